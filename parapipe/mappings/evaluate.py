"""What a mapping takes: latency, period and energy, and what each of several models gets.

Everything that says what a mapping takes asks here: the configurations of a front, mappings that
are given, and both again with the times of a network that was measured as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, sqrt
from typing import TYPE_CHECKING, TypeVar

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import PartCost
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.co_run_times import CoRunEffect, FrameSpans, co_run_times
from parapipe.mappings.event_graph import sustained_period_s
from parapipe.mappings.mapping import Mapping, Placement, Stage
from parapipe.modulo.cyclic_problem import Frames
from parapipe.solvers.problem import NANO

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


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
        below `memory_s`.
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
        Joules of one frame at a time: only the processors of the running stage draw static power.
    memory_s
        Seconds in which the memory serves all operators of a frame, at its bandwidth; None if no
        limit of that is known.
    co_run
        What latency and periods come from where processors slow each other down, and what they
        would be if they did not; None if nothing is known of that.
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

    @property
    def throughput_fps(self) -> float:
        """Frames per second: the reciprocal of the period."""
        return 1 / self.period_s


def evaluate(
    mapping: Mapping, graph: OperatorGraph, costs: CostTable, *, contention: float = 0.0
) -> Evaluated:
    """Price a mapping.

    Parameters
    ----------
    contention
        Lengthening of a stage per byte a second that the other stages move; not looked at where the
        costs know how much processors slow each other down.

    Raises
    ------
    AssignmentError
        If no operator takes time.
    """
    times_s = [stage.time_s for stage in mapping.stages]
    longest_s = _period_s(mapping.stages, times_s)
    if not longest_s:
        raise AssignmentError(f"'{graph.source.name}' has no operator that takes time to evaluate")
    slowed_s, law = times_s, costs.co_run
    if contention and law is None:
        traffic = [
            sum(_moved_bytes(at, costs) for at in stage.placements) / longest_s
            for stage in mapping.stages
        ]
        slowed_s = [
            time_s * (1 + contention * (sum(traffic) - own))
            for time_s, own in zip(times_s, traffic, strict=True)
        ]
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
            contended_time_s=contended_s,
        )
        for stage, contended_s in zip(mapping.stages, slowed_s, strict=True)
    )
    needed_s = memory_s(mapping, costs)
    period_s = max(mapping.period_s or _period_s(mapping.stages, slowed_s), needed_s)
    latency_s = max(sum(times_s) if mapping.period_s is None else mapping.elapsed_s, needed_s)
    sustained_s, effect = max(sustained_period_s(mapping), needed_s), None
    if law is not None:
        slowed = co_run_times(mapping, graph, costs, law, least_period_s=period_s)
        effect = CoRunEffect(latency_s, period_s, sustained_s, slowed.frames)
        stages = tuple(map(partial(_slowed_stage, slowed.frames), stages))
        latency_s, period_s = max(latency_s, slowed.latency_s), slowed.period_s
        sustained_s = max(sustained_s, slowed.sustained_period_s)
    dynamic_j = sum(stage.dynamic_energy_j for stage in stages)
    frame_s = costs.frame_s(period_s)
    energy_j = dynamic_j + frame_s * sum(costs.static_power_w[p] for p in mapping.processors)
    sequential_j = dynamic_j + sum(
        stage.time_s * costs.static_power_w[p] for stage in stages for p in stage.processors
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
        sequential_board_energy_j=sequential_j + latency_s * costs.idle_power_w,
        memory_s=None if costs.bandwidth_bytes_per_s is None else needed_s,
        co_run=effect,
    )


def _slowed_stage(frames: FrameSpans, stage: EvaluatedStage) -> EvaluatedStage:
    """Return a stage with the time that it takes at most while the others work as well.

    It is as much longer as its operators together are from the first start to the last end.
    """
    spans = [frames.spans_s[v] for v in stage.operators]
    took_s = [
        max(b for _, b in some) - min(a for a, _ in some) for some in zip(*spans, strict=True)
    ]
    return replace(stage, contended_time_s=max(stage.time_s, *took_s))


def memory_s(mapping: Mapping, costs: CostTable) -> float:
    """Return the seconds in which the memory serves all operators of a frame.

    Whatever runs at the same time, a frame takes no less, and neither does a period. 0 if no limit
    of the bandwidth is known.
    """
    return fsum(costs.memory_s(at.operator, at.processor) for at in mapping.placements)


def keep_bandwidth(mapping: Mapping, costs: CostTable) -> Mapping:
    """Return the mapping with a period, if it is made for one, in which the memory serves a frame.

    Starts and lags stay as they are: what they wait for is there no later than before.
    """
    least_s = memory_s(mapping, costs)
    if mapping.period_s is None or mapping.period_s >= least_s:
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


def _moved_bytes(at: Placement, costs: CostTable) -> int:
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


@dataclass(frozen=True, slots=True)
class Service:
    """What each model gets, at the rates that are asked.

    Parameters
    ----------
    come_s
        Of each model: when its frames come, in seconds after a pattern begins; the frames of a
        model come in equal steps.
    latency_s
        Of each model: from when a frame comes to its last end, of the one that takes longest.
    rate_factor
        By how much all rates could grow together, at most: the order of work stays.
    contended_rate_factor
        The same while processors slow each other down at the memory; None if the platform does not
        say how much.
    bound
        No mapping has a greater factor: by loads.
    """

    come_s: tuple[tuple[float, ...], ...]
    latency_s: tuple[float, ...]
    rate_factor: float
    contended_rate_factor: float | None
    bound: float

    @property
    def effective_factor(self) -> float:
        """The factor that counts, with contention if it is known."""
        contended = self.contended_rate_factor
        return self.rate_factor if contended is None else min(contended, self.rate_factor)


def frames_in(graph: OperatorGraph) -> Frames:
    """Return which frame each operator of several models is of."""
    members = graph.source.members
    sizes = tuple(sum(v.id.startswith(each.prefix(0)) for v in graph.operators) for each in members)
    counts = tuple(each.frames for each in members)
    return Frames(sizes, counts, (1.0,) * len(members))


def with_all_loaded(
    evaluated: Evaluated, mapping: Mapping, graph: OperatorGraph, costs: CostTable
) -> Evaluated:
    """Return figures in which every frame of a pattern is loaded and every result read."""
    input_s = output_s = 0.0
    for member in graph.source.members:
        for prefix in map(member.prefix, range(member.frames)):
            names = (name for name in graph.inputs if name.startswith(prefix))
            readers = [v for name in names for v in graph.consumers.get(name, ())]
            if readers:
                input_s += costs.input_s(mapping.at[min(readers)].processor)
            producers = [graph.producer[name] for name in graph.outputs if name.startswith(prefix)]
            output_s += costs.output_s(mapping.at[producers[-1]].processor)
    return replace(evaluated, input_s=input_s, output_s=output_s)


def service_of_frames(
    mapping: Mapping, graph: OperatorGraph, period_s: float
) -> list[tuple[tuple[float, ...], float]]:
    """Return when each model's frames come, in seconds after a pattern begins, and its latency."""
    frames = frames_in(graph)
    placed = [mapping.at[v] for v in range(len(frames.of))]
    start = [round((each.lag * period_s + each.start_s) * NANO) for each in placed]
    end = [round((each.lag * period_s + each.end_s) * NANO) for each in placed]
    of_models = frames.served(round(period_s * NANO), frames.spans(start, end))
    return [(tuple(at / NANO for at in come), latency / NANO) for come, latency in of_models]


def service_of(
    mapping: Mapping,
    evaluated: Evaluated,
    graph: OperatorGraph,
    costs: CostTable,
    *,
    contention: float,
    bound_s: float,
) -> Service:
    """Return what each model gets of a mapping.

    Parameters
    ----------
    contention
        Lengthening of work per byte a second that other processors move; 0 if it is not known.
    bound_s
        No pattern takes less.
    """
    period_s = evaluated.period_s
    of_models = service_of_frames(mapping, graph, period_s)
    least_s = min(period_s, evaluated.sustained_period_s)
    return Service(
        come_s=tuple(come_s for come_s, _ in of_models),
        latency_s=tuple(latency_s for _, latency_s in of_models),
        rate_factor=period_s / least_s,
        contended_rate_factor=period_s
        / max(least_s, _contended_period_s(mapping, costs, contention))
        if contention
        else None,
        bound=period_s / bound_s,
    )


def _contended_period_s(mapping: Mapping, costs: CostTable, contention: float) -> float:
    """Return the least period while processors use the memory together.

    A processor with load L beside others that move B bytes in a pattern works L (1 + c B / T) of
    the period T; the least T is the largest solution of T = L (1 + c B / T).
    """
    load_s: dict[int, float] = {}
    moved_bytes: dict[int, float] = {}
    for at in mapping.placements:
        load_s[at.processor] = load_s.get(at.processor, 0.0) + at.end_s - at.start_s
        bytes_moved = _moved_bytes(at, costs)
        moved_bytes[at.processor] = moved_bytes.get(at.processor, 0.0) + bytes_moved
    total = sum(moved_bytes.values())
    return max(
        (load + sqrt(load**2 + 4 * load * contention * (total - moved_bytes[p]))) / 2
        for p, load in load_s.items()
    )
