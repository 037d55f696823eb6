"""What the memory's bandwidth sets of a configuration, and what co-runs cost it."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum, isclose
from typing import Literal

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.co_run import busy_times_s
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.platform.fields import Expression, file_value, largest, named_value
from parapipe.platform.platform import Platform

NOTEWORTHY = 5e-4  # share that co-runs cost at least to be told
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


def slowed(time: Expression, plan: Plan, figure: Literal["latency_s", "period_s"]) -> Expression:
    """Return a time without co-runs as it is with them, if the plan states a law of those."""
    if plan.co_run is None:
        return time
    taken_s, free_s = getattr(plan.predicted, figure), getattr(plan.co_run.free, figure)
    if isclose(time.value, taken_s, rel_tol=SAME):
        return time
    if isclose(time.value, free_s, rel_tol=SAME):
        return time + named_value("co-runs", taken_s - time.value, "s")
    return named_value("frame by frame beside co-runs", taken_s, "s")


def co_run_texts(plan: Plan) -> Iterator[str]:
    """Say what it costs that processors slow each other down, where they do."""
    if plan.co_run is None or len(plan.processors) < 2:
        return
    predicted, free = plan.predicted, plan.co_run.free
    costs = [
        f"{plain(now_s * 1e3)} ms of {name} would be {plain(free_s * 1e3)} ms"
        for name, now_s, free_s in (
            ("period", predicted.period_s, free.period_s),
            ("latency", predicted.latency_s, free.latency_s),
        )
        if now_s > free_s * (1 + NOTEWORTHY)
    ]
    if not costs:
        yield "Its processors hardly slow each other down: neither latency nor period is longer."
        return
    share = max(predicted.period_s / free.period_s, predicted.latency_s / free.latency_s) - 1
    yield (
        f"Its processors slow each other down, which costs up to {plain(100 * share)} %: "
        f"{' and '.join(costs)} if they did not."
    )
    if not plan.co_run.exact:
        yield "What runs beside what does not recur: these are the figures of a long run."


def is_slowed(plan: Plan) -> bool:
    """Tell whether frames take longer because processors slow each other down."""
    if plan.co_run is None:
        return False
    predicted, free = plan.predicted, plan.co_run.free
    return any(
        now_s > free_s * (1 + NOTEWORTHY)
        for now_s, free_s in (
            (predicted.period_s, free.period_s),
            (predicted.latency_s, free.latency_s),
        )
    )


def beside_texts(plan: Plan) -> Iterator[str]:
    """Say which processor has the most to do while the others slow it down."""
    busy_s = busy_times_s(plan)
    if busy_s and is_slowed(plan):
        name = max(busy_s, key=busy_s.__getitem__)
        yield (
            f"Beside the others, {name} is the busiest: it computes for "
            f"{plain(busy_s[name] * 1e3)} ms in each period of "
            f"{plain(plan.predicted.period_s * 1e3)} ms."
        )


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
