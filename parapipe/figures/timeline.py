"""The predicted schedule of a plan as bars and transfers: one frame on its way.

Where processors take operators of several frames in turn (*interleaved*), a plan's times are those
of one period: an operator occupies [start, end) modulo the period, `lag` periods after its frame's
entry. Here they are unrolled, and `Timeline.in_periods` puts them back into the period.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise, repeat
from math import ceil

from parapipe.mappings.mapping import Placement
from parapipe.plan.mapped import mapping_view, route_of
from parapipe.plan.schema import Plan, Transfer

ROUNDING = 1e-9  # share of a period by which sums of times may be off


@dataclass(frozen=True, slots=True)
class StageSpan:
    """A stage; seconds from the frame's entry, for frames that wait for nothing."""

    processors: tuple[str, ...]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Bar:
    """An operator on its processor, in seconds from the start of its stage."""

    operator: str
    processor: str
    stage: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A transfer, in seconds from the start of the receiving stage; a delay starts at once.

    `operator` is the id of the one that makes the tensor, `stage` the receiving one.
    """

    transfer: Transfer
    operator: str
    stage: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All of it, in the order of the plan.

    Parameters
    ----------
    period_s
        Seconds between frames if the plan is interleaved; its stages, one for each lag, then all
        start with the frame's first operator. None for stages that follow each other.
    """

    stages: tuple[StageSpan, ...]
    bars: tuple[Bar, ...]
    passages: tuple[Passage, ...]
    period_s: float | None = None

    def begin_s(self, stage: int) -> float:
        """Seconds from the frame's entry to the start of a stage."""
        return self.stages[stage].start_s

    def in_periods(self, start_s: float, end_s: float) -> Iterator[tuple[float, float, int]]:
        """Yield what is drawn of a time: start and end within a period, and which period it is.

        A time that goes beyond the end of a period is cut there. The first period after the
        frame's entry is 0. Without a period there is one entry.
        """
        if self.period_s is None:
            yield start_s, end_s, 0
            return
        first = int(start_s / self.period_s + ROUNDING)
        last = max(first, ceil(end_s / self.period_s - ROUNDING) - 1)
        for turn in range(first, last + 1):
            begin_s = turn * self.period_s
            yield max(0.0, start_s - begin_s), min(self.period_s, end_s - begin_s), turn


def timeline(plan: Plan) -> Timeline:
    """Read the schedule out of a plan that keeps the rules."""
    view = mapping_view(plan)
    period_s = view.period_s
    number = {stage.lag: i for i, stage in enumerate(view.mapping.stages)}

    def stage_of(at: Placement) -> int:
        return view.stage(at) if period_s is None else number[at.lag]

    def since_entry_s(lag: int, time_s: float) -> float:
        return time_s if period_s is None else lag * period_s + time_s - first_s

    first_s = min(at.lag * (period_s or 0.0) + at.start_s for at in view.placements.values())
    bars = {
        operator: Bar(
            operator,
            view.name(at),
            stage_of(at),
            since_entry_s(at.lag, at.start_s),
            since_entry_s(at.lag, at.end_s),
        )
        for operator, at in view.placements.items()
    }
    passages = []
    for transfer in plan.transfers:
        edge = view.users[route_of(transfer)][0]
        if transfer.start_s is not None:
            start_s = since_entry_s(view.turn(transfer), transfer.start_s)
        elif period_s is None and transfer.kind == "stage":
            start_s = 0.0  # a pure delay between stages counts from the later one's start
        else:
            start_s = bars[view.id(edge.made)].end_s
        end_s = start_s + transfer.time_s
        passages.append(Passage(transfer, view.id(edge.made), stage_of(edge.read), start_s, end_s))
    names = [tuple(view.resources[p] for p in each.processors) for each in view.mapping.stages]
    spans: Iterable[tuple[float, float]] = repeat((0.0, max(bar.end_s for bar in bars.values())))
    if period_s is None:
        names = [tuple(processor.name for processor in stage.processors) for stage in plan.stages]
        spans = pairwise(accumulate((stage.time_s for stage in plan.stages), initial=0.0))
    stages = tuple(StageSpan(each, *span) for each, span in zip(names, spans, strict=False))
    return Timeline(stages, tuple(bars.values()), tuple(passages), period_s)


def operator_flows(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return pairs of operators of which the second reads what the first makes, each once."""
    view = mapping_view(plan)
    pairs = ((view.id(edge.made), view.id(edge.read)) for edge in view.edges)
    return tuple(dict.fromkeys(pairs))
