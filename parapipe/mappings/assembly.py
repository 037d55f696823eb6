"""Mappings assembled: of placed operators and their hand-overs, and of a given assignment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as ByKey
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from parapipe.cost.cost_table import CostTable
from parapipe.errors import AssignmentError
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.launches import add_launches, launch_times_s
from parapipe.mappings.mapping import ROUNDING, Edge, Mapping, Placement, Transfer
from parapipe.platform.platform import Platform
from parapipe.solvers.paths import list_order
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import Job, expand_transfers, needed_transfers, replay, source_of
from parapipe.solvers.replay import time_placement as timed_by


class HandOver(NamedTuple):
    """A tensor that goes to readers: `transfers` are those to other processors, one for each."""

    producer: int
    readers: Sequence[int]
    transfers: Sequence[Transfer]


def hand_overs_of(
    placements: dict[int, Placement],
    graph: OperatorGraph,
    costs: CostTable,
    busy: dict[tuple[str, int], Transfer],
) -> Iterator[HandOver]:
    """Yield what the operators of a graph hand over: whole tensors, once to each processor.

    Parameters
    ----------
    placements
        Of each operator.
    busy
        Transfers that keep something busy, by tensor and target. All others only delay.
    """
    for name, u in graph.producer.items():
        source, readers = placements[u].processor, graph.consumers.get(name, ())
        lags: dict[int, int] = {}
        for v in readers:
            at = placements[v]
            if at.processor != source:
                lags[at.processor] = min(at.lag, lags.get(at.processor, at.lag))
        transfers = [
            busy.get((name, q))
            or Transfer(name, u, source, q, lag, costs.transfer_s(name, source, q))
            for q, lag in lags.items()
        ]
        yield HandOver(u, readers, transfers)


def assemble(
    placements: dict[int, Placement], moved: Iterable[HandOver], period_s: float | None = None
) -> Mapping:
    """Return the mapping of placed operators and of what they hand over."""
    transfers: list[Transfer] = []
    edges: list[Edge] = []
    for producer, readers, some in moved:
        number = {each.target: at for at, each in enumerate(some, len(transfers))}
        transfers += some
        edges += [Edge(producer, v, number.get(placements[v].processor)) for v in readers]
    return Mapping(tuple(placements.values()), tuple(transfers), tuple(edges), period_s)


def mapping_of(
    graph: OperatorGraph,
    platform: Platform | None,
    costs: CostTable,
    assignment: Assignment,
    *,
    blocks: Sequence[int] | None = None,
) -> Mapping:
    """Return the mapping that an assignment stands for; each stage starts with its first inputs.

    Parameters
    ----------
    platform
        Needed with blocks alone.
    blocks
        Block of each operator, if the costs are those of blocks that were measured apart.

    Raises
    ------
    AssignmentError
        If an operator is put on a processor that does not run it; all such operators are named.
    """
    unable = [
        f"'{graph.operators[v].name}' ({costs.unsupported(v, p)})"
        for v, p in enumerate(assignment.processors)
        if costs.time_s(v, p) == inf
    ]
    if unable:
        raise AssignmentError(
            f"the assignment puts operators of '{graph.source.name}' where they cannot run: "
            f"{listed(unable)}; choose other processors for them"
        )
    evaluation = platform.evaluation if blocks and platform else None
    hand_over_share = evaluation.hand_over_share if evaluation else 1.0
    mapping = _Timing(graph, costs, assignment, blocks, hand_over_share).all_stages()
    return mapping if blocks else stages_with_launches(mapping, graph, costs)


def stages_with_launches(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return plain stages in their order, with what it takes to start captured graphs.

    The same mapping is returned where that is nothing.
    """
    if not launch_times_s(mapping, graph, costs):
        return mapping
    own = assignment_of(mapping)

    def retime(launches_s: ByKey[int, float]) -> Mapping:
        timing = _Timing(graph, costs, own, None, 1.0, launches_s=launches_s)
        return timing.all_stages().with_replicas(mapping.replicated)

    return add_launches(mapping, graph, costs, retime)


def with_earliest_starts(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return plain stages in which all starts as early as the order of each resource allows.

    Schedules of units that stand one behind the other let a transfer wait for its unit, though the
    link and the tensor are free before. The order is kept, of operators and of the transfers that
    keep something busy, unless that of `timed` or of `list_order` is shorter: no stage then takes
    longer than if it was evaluated by its assignment. If no transfer does, or nothing starts
    earlier by more than sums of times are rounded, the same mapping is returned: then a stage takes
    its units' makespans, as in the paper.
    """
    if all(each.resource is None for each in mapping.transfers):
        return mapping
    earlier = _Timing(graph, costs, assignment_of(mapping), None, 1.0, mapping).all_stages()
    start_s = {(each.tensor, each.target): each.start_s for each in mapping.transfers}
    pairs = [
        *((at.start_s, mapping.at[at.operator].start_s) for at in earlier.placements),
        *((each.start_s, start_s[each.tensor, each.target]) for each in earlier.transfers),
    ]
    rounding_s = ROUNDING * max(stage.time_s for stage in mapping.stages)
    return earlier if any(now < then - rounding_s for now, then in pairs) else mapping


def assignment_of(mapping: Mapping) -> Assignment:
    """Return where the operators of a mapping run, in its order."""
    return Assignment(
        tuple(mapping.at[v].processor for v in range(len(mapping.placements))),
        tuple(tuple(at.operator for at in stage.placements) for stage in mapping.stages),
        ordered=True,
    )


@dataclass(frozen=True, slots=True)
class _Timing:
    """Times the stages of an assignment one by one.

    Parameters
    ----------
    hand_over_share
        How much of a transfer between two blocks their measured times do not hold.
    original
        A mapping whose order is kept, of transfers too.
    launches_s
        As of `launch_times_s`.
    """

    graph: OperatorGraph
    costs: CostTable
    assignment: Assignment
    blocks: Sequence[int] | None
    hand_over_share: float
    original: Mapping | None = None
    launches_s: ByKey[int, float] = field(default_factory=dict)

    def all_stages(self) -> Mapping:
        """Return the mapping of all stages."""
        placements: dict[int, Placement] = {}
        moved: list[HandOver] = []
        for stage in range(len(self.assignment.stages)):
            self._add_stage(stage, placements, moved)
        return assemble(placements, moved)

    def _add_stage(
        self, stage: int, placements: dict[int, Placement], hand_overs: list[HandOver]
    ) -> None:
        """Start each operator of a stage as early as its inputs and its processor allow."""
        operators = sorted(self.assignment.stages[stage])
        local = {v: i for i, v in enumerate(operators)}
        placed = [self.assignment.processors[v] for v in operators]
        inputs = list(self._read_flows(local, stage))
        nowhere = (inf,) * len(self.costs.processors)
        problem = MappingProblem(
            tuple(
                (*nowhere[:p], self._time_s(v, p), *nowhere[p + 1 :])
                for v, p in zip(operators, placed, strict=True)
            ),
            tuple(flow for _, _, flow in inputs),
            tuple(range(len(operators))),
            self.costs.transfer_resource,
        )
        schedules = []
        if self.original is not None:
            names = [tensor for _, tensor, _ in inputs]
            jobs_in_order = self._jobs_in_order(self.original, problem, operators, names)
            schedules.append(replay(problem, placed, jobs_in_order))
        if self.assignment.ordered:
            order = [local[v] for v in self.assignment.stages[stage]]
            schedules.append(timed_by(problem, placed, order))
        if self.original is not None or not self.assignment.ordered:
            expansion = expand_transfers(problem, placed)
            jobs = list_order(expansion.problem, expansion.processor, range(len(expansion.jobs)))
            schedules.append(expansion.replayed(jobs))
        timed = min(schedules, key=lambda each: each.makespan_s)
        for v, i in local.items():
            start_s, end_s = timed.start_s[i], timed.end_s[i]
            placements[v] = Placement(v, placed[i], start_s, end_s, stage)
        busy = {(transfer.flow, transfer.target): transfer for transfer in timed.transfers}
        for f, (maker, tensor, flow) in enumerate(inputs):
            source = source_of(flow, placed)
            transfers = []
            for target in sorted({placed[v] for v in flow.consumers} - {source}):
                time_s = flow.transfer_s[source][target]
                transfer = Transfer(tensor, maker, source, target, stage, time_s)
                if job := busy.get((f, target)):
                    resource = problem.resource_of(source, target)
                    transfer = replace(
                        transfer, resource=resource, start_s=job.start_s, end_s=job.end_s
                    )
                transfers.append(transfer)
            readers = [operators[v] for v in flow.consumers]
            hand_overs.append(HandOver(maker, readers, transfers))

    def _time_s(self, v: int, p: int) -> float:
        return self.costs.time_s(v, p) + self.launches_s.get(v, 0.0)

    def _jobs_in_order(
        self,
        mapping: Mapping,
        problem: MappingProblem,
        operators: Sequence[int],
        tensors: Sequence[str],
    ) -> list[Job]:
        """Return operators and transfers of a stage as they start; who makes goes before readers.

        A transfer that the mapping does not say goes before its first reader.
        """
        placed = [self.assignment.processors[v] for v in operators]
        starts = [(mapping.at[v].start_s, mapping.at[v].end_s) for v in operators]
        transfers = {(each.tensor, each.target): each for each in mapping.transfers}
        keyed: list[tuple[float, float, float, Job]] = [
            (*starts[i], float(i), i) for i in range(len(operators))
        ]
        for f, q in needed_transfers(problem, placed):
            flow, transfer = problem.flows[f], transfers[tensors[f], q]
            if transfer.resource is None:
                first = min((v for v in flow.consumers if placed[v] == q), key=starts.__getitem__)
                keyed.append((*starts[first], first - 0.5, (f, q)))
            else:
                maker = -1 if flow.producer is None else flow.producer
                keyed.append((transfer.start_s, transfer.end_s, maker + 0.5, (f, q)))
        return [job for *_, job in sorted(keyed, key=lambda each: each[:3])]

    def _read_flows(self, local: ByKey[int, int], stage: int) -> Iterator[tuple[int, str, Flow]]:
        """Yield what the operators read, each with its maker and its name."""
        names = dict.fromkeys(
            name for v in local for name in self.graph.reads(self.graph.operators[v])
        )
        for name in names:
            maker = self.graph.producer.get(name)
            if maker is None:
                continue  # a graph input is everywhere once it is loaded
            for share, readers in self._readers_by_share(maker, name, local):
                inside = tuple(sorted(local[v] for v in readers))
                matrix = self.costs.transfer_matrix(name)
                if share != 1.0:
                    matrix = tuple(tuple(share * time_s for time_s in row) for row in matrix)
                if maker in local:
                    yield maker, name, Flow(local[maker], inside, matrix)
                else:
                    source = self.assignment.processors[maker]
                    free = self._processors_with_copy(name, stage)
                    row = tuple(0.0 if q in free else s for q, s in enumerate(matrix[source]))
                    matrix = (*matrix[:source], row, *matrix[source + 1 :])
                    yield maker, name, Flow(None, inside, matrix, source)

    def _readers_by_share(
        self, maker: int, name: str, local: Collection[int]
    ) -> Iterator[tuple[float, list[int]]]:
        """Group a tensor's readers by how much of the hand-over to them their times lack."""
        shares: dict[float, list[int]] = {}
        for v in self.graph.consumers[name]:
            if v in local:
                in_other_block = self.blocks is not None and self.blocks[maker] != self.blocks[v]
                shares.setdefault(self.hand_over_share if in_other_block else 1.0, []).append(v)
        yield from shares.items()

    def _processors_with_copy(self, name: str, stage: int) -> set[int]:
        """Return where an earlier stage has moved the tensor already: it is free there."""
        earlier = {v for members in self.assignment.stages[:stage] for v in members}
        readers = earlier.intersection(self.graph.consumers[name])
        return {self.assignment.processors[v] for v in readers}
