"""What a mapping takes: latency, period and energy of its placements, transfers and costs.

Everything that says what a mapping takes asks here: the configurations of a front, mappings that
are given, and both again with the times of a network that was measured as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import PartCost
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.mapping import Mapping, Stage
from parapipe.pipeline.sustained import sustained_period_s

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
        a mapping made for a period, from its first start to its last end.
    longest_stage_s
        The period of the paper; a stage that r processors take turns on counts 1 / r.
    period_s
        Seconds between frames: the longest stage, or if longer the time in which a processor that
        several stages share works for one frame; of a mapping made for a period, that one.
    sustained_period_s
        What an executor with one thread per processor and two slots per channel reaches, if stages
        do not contend for the memory; a processor that stages share takes what they ask of it in
        a period in the order of the starts.
    input_s, output_s
        Seconds to load a frame on the first operator's processor and to read the result on the
        last one's; in none of the figures above.
    energy_j, board_energy_j
        Joules per frame at that period, equation (8); the latter with the board's idle power.
    sequential_energy_j, sequential_board_energy_j
        Joules of one frame at a time: only the processors of the running stage draw static power.
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
        Lengthening of a stage per byte a second that the other stages move.

    Raises
    ------
    AssignmentError
        If no operator takes time.
    """
    times_s = [stage.time_s for stage in mapping.stages]
    longest_s = _period_s(mapping.stages, times_s)
    if not longest_s:
        raise AssignmentError(f"'{graph.source.name}' has no operator that takes time to evaluate")
    slowed_s = times_s
    if contention:
        traffic = [_bytes_of(stage, graph, costs) / longest_s for stage in mapping.stages]
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
    period_s = mapping.period_s or _period_s(mapping.stages, slowed_s)
    latency_s = sum(times_s) if mapping.period_s is None else mapping.elapsed_s
    dynamic_j = sum(stage.dynamic_energy_j for stage in stages)
    energy_j = dynamic_j + period_s * sum(costs.static_power_w[p] for p in mapping.processors)
    sequential_j = dynamic_j + sum(
        stage.time_s * costs.static_power_w[p] for stage in stages for p in stage.processors
    )
    return Evaluated(
        stages=stages,
        input_s=costs.input_s(_first_reader(graph, mapping)),
        output_s=costs.output_s(mapping.at[graph.producer[graph.outputs[-1]]].processor),
        latency_s=latency_s,
        longest_stage_s=max(stage.every_s for stage in mapping.stages),
        period_s=period_s,
        sustained_period_s=sustained_period_s(mapping),
        energy_j=energy_j,
        board_energy_j=energy_j + period_s * costs.idle_power_w,
        sequential_energy_j=sequential_j,
        sequential_board_energy_j=sequential_j + latency_s * costs.idle_power_w,
    )


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


def _bytes_of(stage: Stage, graph: OperatorGraph, costs: CostTable) -> int:
    """Return what the operators of a stage read and write in one frame."""
    total = 0
    for at in stage.placements:
        work, cost = graph.operators[at.operator].work, costs.cost(at.operator, at.processor)
        converted = cost.moved_bytes if cost else None
        total += work.read_bytes + work.written_bytes if converted is None else converted
    return total


def _first_reader(graph: OperatorGraph, mapping: Mapping) -> int:
    """Processor of the first operator that reads a graph input: it loads the frame."""
    readers = {v for name in graph.inputs for v in graph.consumers.get(name, ())}
    return next(
        at.processor
        for stage in mapping.stages
        for at in stage.placements
        if at.operator in readers or not readers
    )
