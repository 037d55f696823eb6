"""Why an interleaved configuration takes what it takes: one period, one frame, and other loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.cost.cost_table import CostTable
from parapipe.formats.explanation import StepRow
from parapipe.formats.front import ConfigurationRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.interleaved.loads import loads_s
from parapipe.pipeline.configuration import CLOSE
from parapipe.pipeline.mapping import Placement
from parapipe.pipeline.whole_problem import whole_problem
from parapipe.plan.mapped import mapped
from parapipe.plan.schema import Plan

SAME = 1e-9  # share of a period by which equal moments may differ


@dataclass(frozen=True, slots=True)
class Move:
    """An operator that runs elsewhere, and the load of the busiest resource then."""

    operator: str
    processor: str
    load_s: float


def busiest(plan: Plan) -> tuple[str, tuple[StepRow, ...]]:
    """Return the processor or link with the most to do, and its period: work, and waits between."""
    work: dict[str, list[tuple[float, StepRow]]] = {}
    for stage in plan.stages:
        for processor in stage.processors:
            for at in processor.operators:
                step = _step("operator", at.operator, processor.name, at.end_s - at.start_s)
                work.setdefault(processor.name, []).append((at.start_s, step))
    for transfer in plan.transfers:
        if transfer.occupies is not None and transfer.start_s is not None:
            step = _step("transfer", transfer.tensor, transfer.target, transfer.time_s)
            work.setdefault(transfer.occupies, []).append((transfer.start_s, step))
    name = max(work, key=lambda each: sum(step.time_s for _, step in work[each]))
    steps = sorted((each for each in work[name] if each[1].time_s), key=lambda each: each[0])
    return name, tuple(_with_waits(steps, plan.predicted.period_s))


def _with_waits(steps: Sequence[tuple[float, StepRow]], period_s: float) -> Iterator[StepRow]:
    following_s = [start_s for start_s, _ in steps[1:]] + [steps[0][0] + period_s]
    for (start_s, step), next_s in zip(steps, following_s, strict=True):
        yield step
        if (wait_s := next_s - start_s - step.time_s) > SAME * period_s:
            yield _step("wait", "", step.processor, wait_s)


def frame_way(plan: Plan) -> tuple[StepRow, ...]:
    """Return steps of one frame from its first start to its last end, without a gap.

    An operator starts some time after the last of what it reads has arrived: until then its
    processor works on other frames, or on other operators of this one.
    """
    view, period_s = mapped(plan), plan.predicted.period_s
    read_by: dict[Placement, list[tuple[Placement, float, str]]] = {}
    for edge in view.edges:
        moved = edge.transfer
        entry = (edge.made, moved.time_s if moved else 0.0, moved.tensor if moved else "")
        read_by.setdefault(edge.read, []).append(entry)

    def start_s(at: Placement) -> float:
        return at.lag * period_s + at.start_s

    def end_s(at: Placement) -> float:
        return at.lag * period_s + at.end_s

    at: Placement | None = max(view.placements.values(), key=end_s)
    first_s = min(map(start_s, view.placements.values()))
    steps: list[StepRow] = []
    while at is not None:
        here = view.name(at)
        steps.append(_step("operator", view.id(at), here, at.end_s - at.start_s))
        arrivals = read_by.get(at, [])
        before = max(arrivals, key=lambda each: end_s(each[0]) + each[1], default=None)
        arrived_s = end_s(before[0]) + before[1] if before else first_s
        if (wait_s := start_s(at) - arrived_s) > SAME * period_s:
            steps.append(_step("wait", "", here, wait_s))
        if before and before[1]:
            steps.append(_step("transfer", before[2], here, before[1]))
        at = before[0] if before else None
    return tuple(steps[::-1])


def lighter(graph: OperatorGraph, costs: CostTable, place: Mapping[str, str]) -> Iterator[Move]:
    """Yield single moves that lower the greatest load, the best first.

    Parameters
    ----------
    place
        Name of each operator's processor, by its id.
    """
    problem = whole_problem(graph, costs)
    now = [costs.processors.index(place[operator.id]) for operator in graph.operators]
    most_s = max(loads_s(problem, now))
    found = []
    for v, p in enumerate(now):
        for q in range(len(costs.processors)):
            if q != p and costs.unsupported(v, q) is None:
                load_s = max(loads_s(problem, [*now[:v], q, *now[v + 1 :]]))
                if load_s < most_s * (1 - SAME):
                    found.append(Move(graph.operators[v].id, costs.processors[q], load_s))
    yield from sorted(found, key=lambda move: move.load_s)


def _step(kind: str, name: str, processor: str, time_s: float) -> StepRow:
    return StepRow.model_validate(
        {"kind": kind, "name": name, "processor": processor, "time_s": time_s}
    )


def near_the_least(row: ConfigurationRow, split: str) -> Iterator[str]:
    """Say how far a modulo schedule is from what is proven of all that may be listed."""
    if row.least is None:  # of an older version
        return
    told = []
    for name, figure, least, of in (
        ("period", row.period_s, row.least.period_s, "of any configuration"),
        ("latency", row.latency_s, row.least.latency_s, "at this period or a shorter one"),
        ("energy", row.energy_j, row.least.energy_j, "at this period or a shorter one"),
    ):
        if least:
            above = figure / least - 1
            far = f"at most {above:.1%} above the least" if above > CLOSE else "the least"
            told.append(f"its {name} is {far} {of}")
    ways = " (for the operator splits that were found)" if split == "auto" else ""
    yield f"Proven{ways}: {'; '.join(told)}."
