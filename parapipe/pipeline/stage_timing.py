"""When the operators of a given mapping's stages start and end, and what they wait for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from parapipe.cost.cost_table import CostTable, Matrix
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.replay import Job, expanded, list_order, source_of
from parapipe.mapping.replay import timed as timed_by
from parapipe.pipeline.assignment import Assignment
from parapipe.pipeline.moves import Identity, Link, Rank, operator_identity
from parapipe.pipeline.sustained import Event
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class TimedStage:
    """Seconds of a stage, its operators by start; its works and links for `ordered_flow`."""

    time_s: float
    order: tuple[int, ...]
    works: tuple[tuple[Rank, Event], ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class StageTiming:
    """When the operators of an assignment's stages start and end.

    Parameters
    ----------
    blocks
        Block of each operator, if the costs are those of blocks that were measured apart.
    """

    graph: OperatorGraph
    platform: Platform
    costs: CostTable
    assignment: Assignment
    blocks: Sequence[int] | None

    @property
    def contention(self) -> float:
        """Lengthening per byte a second that others move."""
        known = self.platform.evaluation
        return known.contention / self.platform.memory.bandwidth_bytes_per_s if known else 0.0

    def bytes_of(self, operators: Sequence[int]) -> int:
        """Return what the operators read and write in one frame."""
        works = [self.graph.operators[v].work for v in operators]
        return sum(work.read_bytes + work.written_bytes for work in works)

    def of_stage(self, stage: int) -> TimedStage:
        """Return when the operators of a stage start and end, and what they wait for."""
        operators = self.assignment.stages[stage]
        local = {v: i for i, v in enumerate(operators)}
        placed = [self.assignment.processors[v] for v in operators]
        made_by = list(self._flows(local, stage))
        problem = MappingProblem(
            tuple(
                tuple(self.costs.time_s(v, q) if q == p else inf for q in self._everyone)
                for v, p in zip(operators, placed, strict=True)
            ),
            tuple(flow for _, flow in made_by),
            tuple(range(len(operators))),
            self.costs.carrier,
        )
        jobs_alone = expanded(problem, placed)
        jobs = jobs_alone.jobs
        if self.assignment.ordered:
            timed = timed_by(problem, placed, range(len(operators)))
        else:
            order = list_order(jobs_alone.problem, jobs_alone.processor, range(len(jobs)))
            timed = jobs_alone.replayed(order)
        moves = {(move.flow, move.target): move for move in timed.transfers}
        start_s, end_s = (
            [times[job] if isinstance(job, int) else getattr(moves[job], name) for job in jobs]
            for name, times in (("start_s", timed.start_s), ("end_s", timed.end_s))
        )

        def identity(job: Job) -> Identity:
            if isinstance(job, int):
                return operator_identity(operators[job])
            flow, target = job
            return made_by[flow][0], f"{stage}.{flow}", target

        works = tuple(
            (
                (start_s[i], end_s[i], *identity(job)),
                Event(jobs_alone.processor[i], stage, end_s[i] - start_s[i]),
            )
            for i, job in enumerate(jobs)
        )
        moved = set(jobs)
        links = tuple(
            (
                maker,
                operators[v],
                flow.transfer_s[source_of(flow, placed)][placed[v]],
                identity((f, placed[v])) if (f, placed[v]) in moved else None,
            )
            for f, (maker, flow) in enumerate(made_by)
            for v in flow.consumers
        )
        done = sorted(
            (start_s[i], end_s[i], job) for i, job in enumerate(jobs) if isinstance(job, int)
        )
        in_order = tuple(operators[job] for _, _, job in done)
        return TimedStage(max(end for _, end, _ in done), in_order, works, links)

    @property
    def _everyone(self) -> range:
        return range(len(self.costs.processors))

    def _flows(self, local: Mapping[int, int], stage: int) -> Iterator[tuple[int, Flow]]:
        """Yield what the operators read, each with the operator that makes it."""
        names = dict.fromkeys(
            name for v in local for name in self.graph.reads(self.graph.operators[v])
        )
        for name in names:
            maker = self.graph.producer.get(name)
            if maker is None:
                continue  # a graph input is everywhere once it is loaded
            for share, readers in self._by_share(maker, name, local):
                inside = tuple(sorted(local[v] for v in readers))
                matrix = _scaled(self.costs.transfer_matrix(name), share)
                if maker in local:
                    yield maker, Flow(local[maker], inside, matrix)
                else:
                    home = self.assignment.processors[maker]
                    there = self._copies(name, stage)
                    yield maker, Flow(None, inside, _without(matrix, home, there), home)

    def _by_share(
        self, maker: int, name: str, local: Collection[int]
    ) -> Iterator[tuple[float, list[int]]]:
        """Group a tensor's readers by how much of the hand-over to them their times lack."""
        known = self.platform.evaluation
        groups: dict[float, list[int]] = {}
        for v in self.graph.consumers[name]:
            if v in local:
                apart = self.blocks is not None and self.blocks[maker] != self.blocks[v]
                share = known.hand_over_share if apart and known else 1.0
                groups.setdefault(share, []).append(v)
        yield from groups.items()

    def _copies(self, name: str, stage: int) -> set[int]:
        """Processors to which an earlier stage has moved the tensor already."""
        earlier = {v for members in self.assignment.stages[:stage] for v in members}
        readers = earlier.intersection(self.graph.consumers[name])
        return {self.assignment.processors[v] for v in readers}


def _scaled(matrix: Matrix, share: float) -> Matrix:
    if share == 1.0:
        return matrix
    return tuple(tuple(share * time_s for time_s in row) for row in matrix)


def _without(matrix: Matrix, home: int, copies: Collection[int]) -> Matrix:
    """Return the matrix with nothing to pay from a tensor's home to where copies are."""
    row = tuple(0.0 if q in copies else time_s for q, time_s in enumerate(matrix[home]))
    return (*matrix[:home], row, *matrix[home + 1 :])
