"""The predicted schedule of a plan as bars and transfers: one frame on its way.

Where processors take operators of several frames in turn (*interleaved*), a plan's times are those
of one period: an operator occupies [start, end) modulo the period, `lag` periods after its frame's
entry. Here they are unrolled, and `Timeline.pieces` puts them back into the period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil

from parapipe.plan.places import Place, edges, every_place, producers
from parapipe.plan.schema import Plan, Transfer

ROUNDING = 1e-9  # share of a period by which sums of times may be off


@dataclass(frozen=True, slots=True)
class StageSpan:
    """A stage; seconds from the frame's entry, for frames that wait for nothing."""

    processors: tuple[str, ...]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A transfer, in seconds from the start of the receiving stage.

    Parameters
    ----------
    transfer
        As the plan has it.
    operator
        Id of the one that makes the tensor.
    stage
        The receiving one.
    start_s, end_s
        A pure delay starts as soon as it can.
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
    bars
        Operators, in seconds from the start of their stage.
    period_s
        Seconds between frames if the plan is interleaved; its stages, one for each lag, then all
        start with the frame's entry. None for stages that follow each other.
    """

    stages: tuple[StageSpan, ...]
    bars: tuple[Place, ...]
    passages: tuple[Passage, ...]
    period_s: float | None = None

    def begin_s(self, stage: int) -> float:
        """Seconds from the frame's entry to the start of a stage."""
        return self.stages[stage].start_s

    def pieces(self, start_s: float, end_s: float) -> Iterator[tuple[float, float, int]]:
        """Yield what is drawn of a time: start and end within a period, and which period it is.

        A time that goes beyond the end of a period is cut there. The first period after the
        frame's entry is 0. Without a period there is one piece.
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
    places = tuple(every_place(plan))
    return _one_period(plan, places) if _interleaved(places) else _one_frame(plan, places)


def _one_frame(plan: Plan, places: tuple[Place, ...]) -> Timeline:
    """Return stages that follow each other."""
    made = producers(plan)
    begins = accumulate((stage.time_s for stage in plan.stages), initial=0.0)
    stages = tuple(
        StageSpan(tuple(p.name for p in stage.processors), begin_s, begin_s + stage.time_s)
        for stage, begin_s in zip(plan.stages, begins, strict=False)
    )
    bars = {place.operator: place for place in places}
    stage_of = {name: index for index, span in enumerate(stages) for name in span.processors}
    passages = (
        _passage(each, bars[made[each.tensor]], stage_of[each.target]) for each in plan.transfers
    )
    return Timeline(stages, places, tuple(passages))


def _one_period(plan: Plan, places: tuple[Place, ...]) -> Timeline:
    """Return a frame's way through an interleaved plan, from its first operator on."""
    made = producers(plan)
    period_s = plan.predicted.period_s
    lags = sorted({place.lag for place in places})
    first_s = min(place.start_s + place.lag * period_s for place in places)
    bars = {
        place.operator: replace(
            place,
            stage=lags.index(place.lag),
            start_s=place.start_s + place.lag * period_s - first_s,
            end_s=place.end_s + place.lag * period_s - first_s,
        )
        for place in places
    }
    end_s = max(bar.end_s for bar in bars.values())
    used = {
        lag: tuple(dict.fromkeys(each.processor for each in places if each.lag == lag))
        for lag in lags
    }
    stages = tuple(StageSpan(used[lag], 0.0, end_s) for lag in lags)
    lag_of = {(edge.tensor, edge.consumer.processor): edge.consumer.lag for edge in edges(plan)}
    rolled = []
    for each in plan.transfers:
        bar = bars[made[each.tensor]]
        start_s = bar.end_s
        if each.start_s is not None:  # in the first period in which its tensor is there before
            start_s = each.start_s - first_s
            start_s += period_s * max(0, ceil((bar.end_s - start_s) / period_s - ROUNDING))
        stage = lags.index(lag_of[each.tensor, each.target])
        rolled.append(Passage(each, bar.operator, stage, start_s, start_s + each.time_s))
    return Timeline(stages, tuple(bars.values()), tuple(rolled), period_s)


def _interleaved(places: tuple[Place, ...]) -> bool:
    """Tell whether a processor works for several frames in a period."""
    lags: dict[str, set[int]] = {}
    for place in places:
        lags.setdefault(place.processor, set()).add(place.lag)
    stages: dict[int, set[int]] = {}
    for place in places:
        stages.setdefault(place.stage, set()).add(place.lag)
    return any(len(some) > 1 for some in [*lags.values(), *stages.values()])


def _passage(transfer: Transfer, producer: Place, stage: int) -> Passage:
    start_s = transfer.start_s
    if start_s is None:  # a pure delay; one between stages counts from the receiving one's start
        start_s = producer.end_s if transfer.kind == "within-stage" else 0.0
    return Passage(transfer, producer.operator, stage, start_s, start_s + transfer.time_s)


def flows(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return pairs of operators of which the second reads what the first makes, each once."""
    pairs = ((edge.producer.operator, edge.consumer.operator) for edge in edges(plan))
    return tuple(dict.fromkeys(pairs))
