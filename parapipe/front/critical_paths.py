"""The longest paths through stages, and why an interleaved configuration takes what it takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.documents.explanation_schema import StepRow
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import CLOSE
from parapipe.mappings.mapping import Placement
from parapipe.modulo.least_period import loads_s
from parapipe.plan.mapped import mapping_view, producers
from parapipe.plan.schema import PlacedOperator, Plan, Stage, Transfer
from parapipe.problems.problems import whole_problem

SAME = 1e-9  # share of a stage's time, or of a period, by which equal moments may differ


def longest_path(plan: Plan, stage: Stage) -> tuple[StepRow, ...]:
    """Return steps from a stage's start to its end, each beginning when the one before ends.

    An operator starts when its processor is free and what it reads has arrived, or when the
    subgraph before has ended; whatever came last is the step before it.
    """
    placed = [(at, p.name) for p in stage.processors for at in p.operators]
    walk = _BackwardWalk(
        stage,
        placed=[(at, name) for at, name in placed if at.end_s > at.start_s],
        instant={at.operator for at, _ in placed if at.end_s == at.start_s},
        reads={operator.id: operator.inputs for operator in plan.operators},
        makes=producers(plan),
        arriving={(transfer.tensor, transfer.target): transfer for transfer in plan.transfers},
    )
    return tuple(walk.steps_backwards())[::-1]


def round_robin_of(stage: Stage) -> tuple[str, ...]:
    """Return the processors that take turns on the frames of a stage, or its first one alone."""
    first = stage.processors[0]
    return first.name, *(first.replicas or ())


def interval_s(stage: Stage) -> float:
    """Return the seconds between frames that a stage can keep."""
    return stage.time_s / len(round_robin_of(stage))


@dataclass(frozen=True, slots=True)
class _BackwardWalk:
    stage: Stage
    placed: Sequence[tuple[PlacedOperator, str]]  # with the processor, those that take time
    instant: Collection[str]  # operators of the stage that take none
    reads: Mapping[str, Sequence[str]]
    makes: Mapping[str, str]
    arriving: Mapping[tuple[str, str], Transfer]

    def steps_backwards(self) -> Iterator[StepRow]:
        """Yield the steps, last to first."""
        moment_s, maker, beside = self.stage.time_s, "", ""
        while not self._is_same_moment(moment_s, 0):
            entry = self._find_end_at(moment_s, maker=maker, beside=beside)
            maker = beside = ""
            if entry is None:
                ends = (at.end_s for at, _ in self.placed if at.end_s < moment_s)
                before = (end_s for end_s in ends if not self._is_same_moment(end_s, moment_s))
                before_s = max(before, default=0.0)
                yield _step_row("wait", "", "", moment_s - before_s)
                moment_s = before_s
                continue
            at, processor = entry
            yield _step_row("operator", at.operator, processor, at.end_s - at.start_s)
            moment_s = at.start_s
            if arrival := self._find_arrival(at, processor):
                yield _step_row("transfer", arrival.tensor, processor, arrival.time_s)
                moment_s -= arrival.time_s
                maker = self.makes.get(arrival.tensor, "")
            else:
                beside = processor

    def _is_same_moment(self, one_s: float, other_s: float) -> bool:
        return abs(one_s - other_s) <= SAME * self.stage.time_s

    def _find_end_at(
        self, moment_s: float, *, beside: str = "", maker: str = ""
    ) -> tuple[PlacedOperator, str] | None:
        """Return an operator that ended then: the maker, or one on the processor, before others."""
        ended = [entry for entry in self.placed if self._is_same_moment(entry[0].end_s, moment_s)]
        return max(ended, key=lambda e: (e[0].operator == maker, e[1] == beside), default=None)

    def _find_arrival(self, at: PlacedOperator, processor: str) -> Transfer | None:
        """Return the transfer that an operator started with, if none ended on its processor."""
        if self._is_same_moment(at.start_s, 0):
            return None
        if any(
            self._is_same_moment(o.end_s, at.start_s) and p == processor for o, p in self.placed
        ):
            return None
        for name in self._tensors_read(at.operator):
            transfer = self.arriving.get((name, processor))
            if transfer and self._arrives_at(transfer, at.start_s):
                return transfer
        return None

    def _arrives_at(self, transfer: Transfer, moment_s: float) -> bool:
        if transfer.end_s is not None:
            return self._is_same_moment(transfer.end_s, moment_s)
        start_s = moment_s - transfer.time_s
        return self._is_same_moment(start_s, 0) or self._find_end_at(start_s) is not None

    def _tensors_read(self, operator: str) -> Iterator[str]:
        """Yield what an operator reads, and what those before it read that take no time."""
        for name in self.reads[operator]:
            yield name
            if (maker := self.makes.get(name)) in self.instant:
                yield from self._tensors_read(str(maker))


@dataclass(frozen=True, slots=True)
class Move:
    """An operator that runs elsewhere, and the load of the busiest resource then."""

    operator: str
    processor: str
    load_s: float


def busiest_resource(plan: Plan) -> tuple[str, tuple[StepRow, ...]]:
    """Return the processor or link with the most to do, and its period: work, and waits between."""
    work: dict[str, list[tuple[float, StepRow]]] = {}
    for stage in plan.stages:
        for processor in stage.processors:
            for at in processor.operators:
                step = _step_row("operator", at.operator, processor.name, at.end_s - at.start_s)
                work.setdefault(processor.name, []).append((at.start_s, step))
    for transfer in plan.transfers:
        if transfer.occupies is not None and transfer.start_s is not None:
            step = _step_row("transfer", transfer.tensor, transfer.target, transfer.time_s)
            work.setdefault(transfer.occupies, []).append((transfer.start_s, step))
    name = max(work, key=lambda each: sum(step.time_s for _, step in work[each]))
    steps = sorted((each for each in work[name] if each[1].time_s), key=lambda each: each[0])
    return name, tuple(_insert_waits(steps, plan.predicted.period_s))


def _insert_waits(steps: Sequence[tuple[float, StepRow]], period_s: float) -> Iterator[StepRow]:
    following_s = [start_s for start_s, _ in steps[1:]] + [steps[0][0] + period_s]
    for (start_s, step), next_s in zip(steps, following_s, strict=True):
        yield step
        if (wait_s := next_s - start_s - step.time_s) > SAME * period_s:
            yield _step_row("wait", "", step.processor, wait_s)


def frame_path(plan: Plan) -> tuple[StepRow, ...]:
    """Return steps of one frame from its first start to its last end, without a gap.

    An operator starts some time after the last of what it reads has arrived: until then its
    processor works on other frames, or on other operators of this one.
    """
    view, period_s = mapping_view(plan), plan.predicted.period_s
    arrivals_at: dict[Placement, list[tuple[Placement, float, str]]] = {}
    for edge in view.edges:
        moved = (edge.transfer.time_s, edge.transfer.tensor) if edge.transfer else (0.0, "")
        arrivals_at.setdefault(edge.read, []).append((edge.made, *moved))

    def start_s(at: Placement) -> float:
        return at.lag * period_s + at.start_s

    def end_s(at: Placement) -> float:
        return at.lag * period_s + at.end_s

    at: Placement | None = max(view.placements.values(), key=end_s)
    first_s = min(map(start_s, view.placements.values()))
    steps: list[StepRow] = []
    while at is not None:
        here = view.name(at)
        steps.append(_step_row("operator", view.id(at), here, at.end_s - at.start_s))
        arrivals = arrivals_at.get(at, [])
        latest = max(arrivals, key=lambda each: end_s(each[0]) + each[1], default=None)
        arrived_s = end_s(latest[0]) + latest[1] if latest else first_s
        if (wait_s := start_s(at) - arrived_s) > SAME * period_s:
            steps.append(_step_row("wait", "", here, wait_s))
        if latest and latest[1]:
            steps.append(_step_row("transfer", latest[2], here, latest[1]))
        at = latest[0] if latest else None
    return tuple(steps[::-1])


def moves_lowering_load(
    graph: OperatorGraph, costs: CostTable, place: Mapping[str, str]
) -> Iterator[Move]:
    """Yield single moves that lower the greatest load, the best first.

    Parameters
    ----------
    place
        Name of each operator's processor, by its id.
    """
    problem = whole_problem(graph, costs)
    placement = [costs.processors.index(place[operator.id]) for operator in graph.operators]
    most_s = max(loads_s(problem, placement))
    moves = []
    for v, p in enumerate(placement):
        for q in range(len(costs.processors)):
            if q != p and costs.unsupported(v, q) is None:
                load_s = max(loads_s(problem, [*placement[:v], q, *placement[v + 1 :]]))
                if load_s < most_s * (1 - SAME):
                    moves.append(Move(graph.operators[v].id, costs.processors[q], load_s))
    yield from sorted(moves, key=lambda move: move.load_s)


def _step_row(
    kind: Literal["operator", "transfer", "wait"], name: str, processor: str, time_s: float
) -> StepRow:
    return StepRow(kind=kind, name=name, processor=processor, time_s=time_s)


def spent_by_kind(steps: Iterable[StepRow]) -> str:
    """Say how long steps compute, move data and wait, the longest first."""
    spent_s: dict[str, float] = defaultdict(float)
    for step in steps:
        spent_s[_kind_of_step(step)] += step.time_s
    longest = sorted(spent_s.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{plain(time_s * 1e3)} ms {kind}" for kind, time_s in longest)


def _kind_of_step(step: StepRow) -> str:
    if step.kind == "operator":
        return f"computing on {step.processor}"
    if step.kind == "transfer":
        return "in transfers"
    return f"waiting for {step.processor or 'a link'}"


def bound_texts(row: ConfigurationRow, split: str) -> Iterator[str]:
    """Say how far a modulo schedule is from what is proven of all that may be listed."""
    if row.least is None:  # of an older version
        return
    texts = []
    for name, figure, least, of in (
        ("period", row.period_s, row.least.period_s, "of any configuration"),
        ("latency", row.latency_s, row.least.latency_s, "at this period or a shorter one"),
        ("energy", row.energy_j, row.least.energy_j, "at this period or a shorter one"),
    ):
        if least:
            above = figure / least - 1
            far = f"at most {above:.1%} above the least" if above > CLOSE else "the least"
            texts.append(f"its {name} is {far} {of}")
    scope = " (for the operator splits that were found)" if split == "auto" else ""
    yield f"Proven{scope}: {'; '.join(texts)}."
