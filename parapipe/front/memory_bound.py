"""What the memory's bandwidth sets of a configuration, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.platform.fields import Expression, file_value, largest, named_value
from parapipe.platform.platform import Platform

SAME = 1e-9  # share within which the memory's time is the period


def memory_time(
    plan: Plan, graph: OperatorGraph, platform: Platform, costs: CostTable
) -> Expression | None:
    """Return the seconds that the memory needs for a frame; None if no bandwidth is known."""
    if plan.bandwidth_bytes_per_s is None:
        return None
    placed = mapping_view(plan).placements.items()
    index = [platform.index(plan.processors[at.processor].name) for _, at in placed]
    memory_s = fsum(
        costs.memory_s(graph.producer[name], p) for (name, _), p in zip(placed, index, strict=True)
    )
    moved = named_value("bytes of all operators", memory_s * plan.bandwidth_bytes_per_s, "B")
    return moved / file_value(
        "memory bandwidth", "B/s", platform, "memory", "bandwidth_bytes_per_s"
    )


def no_less(time: Expression, memory: Expression | None) -> Expression:
    """Return a time, or what the memory needs if that is longer."""
    if memory is None or memory.value <= time.value:
        return time
    return largest(time, memory)


def bandwidth_texts(plan: Plan) -> Iterator[str]:
    """Say that the memory sets the period, where it does."""
    memory_s, rate = plan.predicted.memory_s, plan.bandwidth_bytes_per_s
    if not memory_s or not rate or plan.predicted.period_s > memory_s * (1 + SAME):
        return
    yield (
        f"The memory sets the period: at {plain(rate / 1e9)} GB/s it takes "
        f"{plain(memory_s * 1e3)} ms for the {plain(memory_s * rate / 1e6)} MB that the operators "
        "of a frame read and write, whatever runs at the same time. The processors alone could do "
        "with less."
    )
