"""The predicted schedule of a plan as bars and transfers: one frame on its way.

Where processors take operators of several frames in turn (*interleaved*), a plan's times are those
of one period: an operator occupies [start, end) modulo the period, `lag` periods after its frame's
entry. Here they are unrolled, and `Timeline.in_periods` puts them back into the period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from parapipe.plan.mapped import MappedPlan, mapped, route_of
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

    Parameters
    ----------
    operator
        Id of the one that makes the tensor.
    stage
        The receiving one.
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
    view = mapped(plan)
    return _one_frame(view) if view.period_s is None else _unrolled(view, view.period_s)


def _one_frame(view: MappedPlan) -> Timeline:
    """Return stages that follow each other."""
    begins = accumulate((stage.time_s for stage in view.plan.stages), initial=0.0)
    stages = tuple(
        StageSpan(tuple(p.name for p in stage.processors), begin_s, begin_s + stage.time_s)
        for stage, begin_s in zip(view.plan.stages, begins, strict=False)
    )
    bars = tuple(
        Bar(operator, view.name(at), view.stage(at), at.start_s, at.end_s)
        for operator, at in view.placements.items()
    )
    passages = []
    for transfer in view.plan.transfers:
        edge = view.users[route_of(transfer)][0]
        start_s = transfer.start_s
        if start_s is None:  # a pure delay; one between stages counts from the later one's start
            start_s = edge.made.end_s if transfer.kind == "within-stage" else 0.0
        end_s = start_s + transfer.time_s
        passages.append(
            Passage(transfer, view.id(edge.made), view.stage(edge.read), start_s, end_s)
        )
    return Timeline(stages, bars, tuple(passages))


def _unrolled(view: MappedPlan, period_s: float) -> Timeline:
    """Return a frame's way through an interleaved plan, from its first operator on."""
    every = view.mapping.stages
    number = {stage.lag: i for i, stage in enumerate(every)}
    first_s = min(at.lag * period_s + at.start_s for at in view.placements.values())
    bars = {
        operator: Bar(
            operator,
            view.name(at),
            number[at.lag],
            at.lag * period_s + at.start_s - first_s,
            at.lag * period_s + at.end_s - first_s,
        )
        for operator, at in view.placements.items()
    }
    end_s = max(bar.end_s for bar in bars.values())
    stages = tuple(
        StageSpan(tuple(view.resources[p] for p in stage.processors), 0.0, end_s) for stage in every
    )
    passages = []
    for transfer in view.plan.transfers:
        edge = view.users[route_of(transfer)][0]
        start_s = bars[view.id(edge.made)].end_s
        if transfer.start_s is not None:
            start_s = view.turn(transfer) * period_s + transfer.start_s - first_s
        stage = number[edge.read.lag]
        end_s = start_s + transfer.time_s
        passages.append(Passage(transfer, view.id(edge.made), stage, start_s, end_s))
    return Timeline(stages, tuple(bars.values()), tuple(passages), period_s)


def flows(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return pairs of operators of which the second reads what the first makes, each once."""
    view = mapped(plan)
    pairs = ((view.id(edge.made), view.id(edge.read)) for edge in view.edges)
    return tuple(dict.fromkeys(pairs))
