"""What a mapping takes: latency, period and energy, and what each of several models gets.

Everything that says what a mapping takes asks here: the configurations of a front, mappings that
are given, and both again with the times of a network that was measured as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, inf
from typing import TYPE_CHECKING, TypeVar

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import PartCost
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.co_run_times import CoRunEffect, FrameSpans, co_run_times, frame_alone
from parapipe.mappings.event_graph import sustained_period_s
from parapipe.mappings.feedback import (
    has_circle,
    loop_period_s,
    sequences_that_fill,
    with_feedback,
)
from parapipe.mappings.launches import launch_times_s
from parapipe.mappings.mapping import ROUNDING, Mapping, Placement, Stage
from parapipe.mappings.power_budget import PowerNeed, power_need, power_s

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


MOST_PERIODS = 3  # evaluations of a mapping at longer and longer periods
Seconds = TypeVar("Seconds", float, "NDArray[float64]")


@dataclass(frozen=True, slots=True)
class EvaluatedStage:
    """A stage and what it takes.

    Parameters
    ----------
    processors
        Platform indices, ascending.
    operators
        Indices into the graph's operators, in the order in which they start.
    time_s
        Seconds from its first operator's inputs on the stage before to its last end; loading the
        frame is not part of it.
    work_s
        Seconds of its operators, added up.
    dynamic_energy_j
        Joules of its operators without the static part.
    shared_processor
        Whether another stage runs on one of its processors too.
    contended_time_s
        `time_s` while all other stages work on other frames and use the memory as well.
    """

    processors: tuple[int, ...]
    operators: tuple[int, ...]
    time_s: float
    work_s: float
    dynamic_energy_j: float
    shared_processor: bool
    contended_time_s: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a mapping takes.

    Parameters
    ----------
    latency_s
        One frame through all stages, one after the other, for frames admitted once per period; of
        a mapping made for a period, from its first start to its last end. Never below `memory_s`.
    longest_stage_s
        The period of the paper; a stage that r processors take turns on counts 1 / r.
    period_s
        Seconds between frames: the longest stage, or if longer the time in which a processor that
        several stages share works for one frame; of a mapping made for a period, that one. Never
        below `memory_s`, nor below `loop_s` shared among the sequences that take turns.
    sustained_period_s
        What an executor with one thread per processor and two slots per channel reaches, if stages
        do not contend for the memory; a processor that stages share takes what they ask of it in
        a period in the order of the starts. Never below `memory_s`.
    input_s, output_s
        Seconds to load a frame on the first operator's processor and to read the result on the
        last one's; in none of the figures above.
    energy_j, board_energy_j
        Joules per frame at that period, equation (8); the latter with the board's idle power. Where
        frames arrive at a lower rate (`CostTable.arrival_s`), static and idle power count for the
        time between them.
    sequential_energy_j, sequential_board_energy_j
        Joules of one frame at a time: only the processors of the running stage draw static power,
        and slow each other down. Where frames are interleaved, idle power is that of the latency.
    memory_s
        Seconds in which the memory serves all operators of a frame, at its bandwidth; None if no
        limit of that is known.
    co_run
        What latency and periods come from where processors slow each other down, and what they
        would be if they did not; None if nothing is known of that.
    power
        What a power budget asks for: the period and the sustained one are no less.
    loop_s
        Seconds from the start of what reads a state to its being there for the next step, of the
        state that takes longest; None if the model has none.
    launch_s
        Seconds of a frame in which processors start captured graphs, added up; None if none of
        those used captures graphs.
    sequences
        How many sequences would fill the mapping: with so many in turn, states no longer set the
        period. None if the model has no state.
    """

    stages: tuple[EvaluatedStage, ...]
    input_s: float
    output_s: float
    latency_s: float
    longest_stage_s: float
    period_s: float
    sustained_period_s: float
    energy_j: float
    board_energy_j: float
    sequential_energy_j: float
    sequential_board_energy_j: float
    memory_s: float | None = None
    co_run: CoRunEffect | None = None
    power: PowerNeed | None = None
    loop_s: float | None = None
    sequences: int | None = None
    launch_s: float | None = None

    @property
    def throughput_fps(self) -> float:
        """Frames per second: the reciprocal of the period."""
        return 1 / self.period_s


def evaluate(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Evaluated:
    """Price a mapping.

    Raises
    ------
    AssignmentError
        If no operator takes time, or a processor would wait for a state that it makes itself.
    """
    mapping = with_feedback(mapping, graph, costs)
    if has_circle(mapping):
        raise AssignmentError(
            f"'{graph.source.name}': a processor serves several stages, and would wait for a state "
            "that comes later in its own order; put what reads and writes the state in one stage, "
            "or let more sequences take turns"
        )
    times_s = [stage.time_s for stage in mapping.stages]
    longest_s = _period_s(mapping.stages, times_s)
    if not longest_s:
        raise AssignmentError(f"'{graph.source.name}' has no operator that takes time to evaluate")
    stages = tuple(
        EvaluatedStage(
            processors=stage.processors,
            operators=tuple(at.operator for at in stage.placements),
            time_s=stage.time_s,
            work_s=sum(at.end_s - at.start_s for at in stage.placements),
            dynamic_energy_j=sum(
                costs.energy_j(at.operator, at.processor) for at in stage.placements
            ),
            shared_processor=stage.shared,
            contended_time_s=stage.time_s,
        )
        for stage in mapping.stages
    )
    needed_s, power = memory_s(mapping, costs), power_need(mapping, costs)
    least_s = max(needed_s, power.period_s) if power else needed_s
    own_period_s = max(mapping.period_s or longest_s, least_s)
    looped_s = loop_period_s(mapping)
    period_s = max(own_period_s, looped_s)
    latency_s = max(sum(times_s) if mapping.period_s is None else mapping.elapsed_s, needed_s)
    single_s, single_stages_s = latency_s, times_s
    sustained_s, effect, law = max(sustained_period_s(mapping), least_s), None, costs.co_run
    if law is not None and period_s < inf:
        slowed = co_run_times(mapping, graph, costs, law, least_period_s=period_s)
        effect = CoRunEffect(latency_s, period_s, sustained_s, slowed.frames)
        stages = tuple(map(partial(_slowed_stage, slowed.frames), stages))
        latency_s, period_s = max(latency_s, slowed.latency_s), slowed.period_s
        sustained_s = max(sustained_s, slowed.sustained_period_s)
        if any(len(stage.processors) > 1 for stage in stages):
            alone = frame_alone(mapping, graph, costs, law)
            if alone is None or mapping.period_s is not None:
                single_s = latency_s
            else:
                single_stages_s = [_single_s(alone, stage) for stage in mapping.stages]
                single_s = max(single_s, sum(single_stages_s))
    dynamic_j = sum(stage.dynamic_energy_j for stage in stages)
    frame_s = costs.frame_s(period_s)
    energy_j = dynamic_j + frame_s * sum(costs.static_power_w[p] for p in mapping.processors)
    sequential_j = dynamic_j + sum(
        time_s * costs.static_power_w[p]
        for stage, time_s in zip(stages, single_stages_s, strict=True)
        for p in stage.processors
    )
    return Evaluated(
        stages=stages,
        input_s=costs.input_s(_loading_processor(graph, mapping)),
        output_s=costs.output_s(mapping.at[graph.producer[graph.outputs[-1]]].processor),
        latency_s=latency_s,
        longest_stage_s=max(stage.every_s for stage in mapping.stages),
        period_s=period_s,
        sustained_period_s=sustained_s,
        energy_j=energy_j,
        board_energy_j=energy_j + frame_s * costs.idle_power_w,
        sequential_energy_j=sequential_j,
        sequential_board_energy_j=sequential_j + single_s * costs.idle_power_w,
        memory_s=None if costs.bandwidth_bytes_per_s is None else needed_s,
        co_run=effect,
        power=power,
        loop_s=mapping.longest_loop[0] if mapping.longest_loop else None,
        sequences=sequences_that_fill(mapping, own_period_s) if mapping.longest_loop else None,
        launch_s=_launch_s(mapping, graph, costs),
    )


def _launch_s(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> float | None:
    captures = costs.graph_launch_s and any(
        costs.graph_launch_s[p] is not None for p in mapping.processors
    )
    return fsum(launch_times_s(mapping, graph, costs).values()) if captures else None


def _single_s(alone: FrameSpans, stage: Stage) -> float:
    """Return what a stage takes of a frame beside which no other one runs."""
    first_s = min(at.start_s for at in stage.placements)
    return max(stage.time_s, first_s + _took_s(alone, [at.operator for at in stage.placements]))


def _slowed_stage(frames: FrameSpans, stage: EvaluatedStage) -> EvaluatedStage:
    """Return a stage with the time that it takes at most while the others work as well.

    It is as much longer as its operators together are from the first start to the last end.
    """
    return replace(stage, contended_time_s=max(stage.time_s, _took_s(frames, stage.operators)))


def _took_s(frames: FrameSpans, operators: Sequence[int]) -> float:
    """Return the seconds from the first start of some operators to their last end, at most."""
    own = [frames.spans_s[v] for v in operators]
    return max(
        max(spans[i][1] for spans in own) - min(spans[i][0] for spans in own)
        for i in range(frames.frames)
    )


def settle(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> tuple[Mapping, Evaluated]:
    """Evaluate a mapping; return it with the period that it reaches, if it is made for one.

    What it takes to start captured graphs is added to its times, if it does not hold that already.
    Where processors slow each other down, a schedule that is made for a period is kept for a longer
    one: starts and lags stay, and whatever is waited for is there no later than before.
    """
    if costs.graph_launch_s:
        from parapipe.mappings.retiming import with_launches

        mapping = with_launches(mapping, graph, costs)
    evaluated = evaluate(mapping, graph, costs)
    first = evaluated.co_run
    if mapping.period_s is None or first is None:
        return mapping, evaluated
    for _ in range(MOST_PERIODS):
        lasts_s, mapping = mapping.period_s or 0.0, replace(mapping, period_s=evaluated.period_s)
        if evaluated.period_s <= lasts_s * (1 + ROUNDING):
            break
        evaluated = evaluate(mapping, graph, costs)
    mapping = replace(mapping, period_s=evaluated.period_s)
    assert evaluated.co_run is not None, "the costs are the same"
    frames = evaluated.co_run.frames
    latency_s = max(first.free_latency_s, frames.latency_s)
    effect = replace(first, frames=frames)
    return mapping, replace(evaluated, latency_s=latency_s, co_run=effect)


def memory_s(mapping: Mapping, costs: CostTable) -> float:
    """Return the seconds in which the memory serves all operators of a frame.

    Whatever runs at the same time, a frame takes no less, and neither does a period. 0 if no limit
    of the bandwidth is known.
    """
    return fsum(costs.memory_s(at.operator, at.processor) for at in mapping.placements)


def keep_bandwidth(mapping: Mapping, costs: CostTable) -> Mapping:
    """Return the mapping with a period, if it is made for one, that memory and power allow.

    The memory serves a frame in it, and processors draw no more than the power budget. Starts and
    lags stay as they are: what they wait for is there no later than before.
    """
    least_s = max(memory_s(mapping, costs), power_s(mapping, costs))
    if mapping.period_s is None or mapping.period_s >= least_s or least_s == inf:
        return mapping
    return replace(mapping, period_s=least_s)


def priced_parts(mapping: Mapping, costs: CostTable) -> dict[str, list[PartCost]]:
    """Return the prices of the operators where they run, part by part, by processor."""
    parts: dict[str, list[PartCost]] = {}
    for at in mapping.placements:
        if cost := costs.cost(at.operator, at.processor):
            parts.setdefault(costs.processors[at.processor], []).extend(cost.parts)
    return parts


def _period_s(stages: Sequence[Stage], times_s: Sequence[float]) -> float:
    """Return the longest stage, or the longest work of a processor that stages share."""
    return max(work_by_processor(stages, times_s).values())


def work_by_processor(stages: Sequence[Stage], times_s: Sequence[Seconds]) -> dict[int, Seconds]:
    """Return how long each processor works for a frame, given what each stage takes."""
    work_s: dict[int, Seconds] = {}
    for stage, time_s in zip(stages, times_s, strict=True):
        for p in stage.processors:
            own_s = time_s / max(1, len(stage.replicas))
            work_s[p] = work_s[p] + own_s if p in work_s else own_s
    return work_s


def moved_bytes(at: Placement, costs: CostTable) -> int:
    """Return what an operator reads and writes in one frame."""
    cost = costs.cost(at.operator, at.processor)
    assert cost is not None, "it was mapped there"
    return cost.moved_bytes


def _loading_processor(graph: OperatorGraph, mapping: Mapping) -> int:
    """Processor of the first operator that reads a graph input: it loads the frame."""
    readers = {v for name in graph.inputs for v in graph.consumers.get(name, ())}
    return next(
        at.processor
        for stage in mapping.stages
        for at in stage.placements
        if at.operator in readers or not readers
    )
