"""The predicted schedule of a plan as bars and transfers: one frame through all stages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from parapipe.plan.mapped import mapped, producers
from parapipe.plan.schema import Plan, Transfer


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
    """A transfer, in seconds from the start of the receiving stage.

    Parameters
    ----------
    operator
        Id of the one that makes the tensor.
    stage
        The receiving one.
    occupies
        The processor or link it keeps busy; None for a pure delay, which starts as soon as it can.
    """

    tensor: str
    operator: str
    source: str
    target: str
    stage: int
    within: bool
    occupies: str | None
    size_bytes: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All of it, in the order of the plan."""

    stages: tuple[StageSpan, ...]
    bars: tuple[Bar, ...]
    passages: tuple[Passage, ...]

    def begin_s(self, stage: int) -> float:
        """Seconds from the frame's entry to the start of a stage."""
        return self.stages[stage].start_s


def timeline(plan: Plan) -> Timeline:
    """Read the schedule out of a plan that keeps the rules."""
    view = mapped(plan)
    begins = accumulate((stage.time_s for stage in plan.stages), initial=0.0)
    stages = tuple(
        StageSpan(tuple(p.name for p in stage.processors), begin_s, begin_s + stage.time_s)
        for stage, begin_s in zip(plan.stages, begins, strict=False)
    )
    bars = tuple(
        Bar(operator, view.name(at), view.stage(at), at.start_s, at.end_s)
        for operator, at in view.placements.items()
    )
    made = producers(plan)
    ends = {bar.operator: bar.end_s for bar in bars}
    stage_of = {name: index for index, span in enumerate(stages) for name in span.processors}
    passages = tuple(
        _passage(transfer, made[transfer.tensor], ends, stage_of) for transfer in plan.transfers
    )
    return Timeline(stages, bars, passages)


def _passage(
    transfer: Transfer, operator: str, ends: dict[str, float], stage_of: dict[str, int]
) -> Passage:
    within = transfer.kind == "within-stage"
    start_s = transfer.start_s
    if start_s is None:  # a pure delay; one between stages counts from the receiving one's start
        start_s = ends[operator] if within else 0.0
    return Passage(
        tensor=transfer.tensor,
        operator=operator,
        source=transfer.source,
        target=transfer.target,
        stage=stage_of[transfer.target],
        within=within,
        occupies=transfer.occupies,
        size_bytes=transfer.size_bytes,
        start_s=start_s,
        end_s=start_s + transfer.time_s,
    )


def flows(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return pairs of operators of which the second reads what the first makes, each once."""
    view = mapped(plan)
    pairs = ((view.id(edge.made), view.id(edge.read)) for edge in view.edges)
    return tuple(dict.fromkeys(pairs))
