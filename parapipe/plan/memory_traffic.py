"""What the operators of a plan move through the memory that all processors share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import fsum

from parapipe.graph.data_types import convert_graph
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.launch_rules import graph_launches_s
from parapipe.plan.mapped import MappedPlan, mapping_view, network_of
from parapipe.plan.schema import Plan


def moved_bytes(plan: Plan) -> dict[str, int]:
    """Return what each operator reads and writes for a frame in the type it computes in, by id."""
    network = network_of(plan)

    @cache
    def converted(dtype: str | None) -> OperatorGraph:
        return convert_graph(network, dtype) if dtype else network

    types = _computed_types(plan)
    number = {each.id: v for v, each in enumerate(network.operators)}
    work_of = {name: converted(types[name]).operators[v].work for name, v in number.items()}
    return {name: work.read_bytes + work.written_bytes for name, work in work_of.items()}


def least_memory_s(view: MappedPlan) -> float:
    """Return seconds in which the memory serves a frame, by what the plan says alone.

    0 if the plan states no bandwidth.
    """
    plan = view.plan
    if plan.bandwidth_bytes_per_s is None:
        return 0.0
    moved, launches_s = moved_bytes(plan), graph_launches_s(view)
    return fsum(
        min(
            moved[name] / plan.bandwidth_bytes_per_s,
            at.end_s - at.start_s - launches_s.get(name, 0.0),
        )
        for name, at in view.placements.items()
    )


def traffic_violations(plan: Plan, tolerance_s: float) -> Iterator[str]:
    """Yield what is wrong with the time that the memory needs for a frame.

    The rules: it stands where the bandwidth does; it is at least the bytes of all operators over
    the bandwidth, where an operator counts at most its own time; and at most all these times.
    """
    stated_s, view = plan.predicted.memory_s, mapping_view(plan)
    if (stated_s is None) != (plan.bandwidth_bytes_per_s is None):
        yield "the bandwidth of the memory and its time for a frame do not stand together"
        return
    if stated_s is None:
        return
    work_s = fsum(at.end_s - at.start_s for at in view.placements.values())
    least_s = least_memory_s(view)
    if stated_s < least_s - tolerance_s:
        yield (
            f"the memory serves a frame in {stated_s:.9g} s, and at its bandwidth needs "
            f"{least_s:.9g} s"
        )
    if stated_s > work_s + tolerance_s:
        yield (
            f"the memory serves a frame in {stated_s:.9g} s, and all operators together take "
            f"{work_s:.9g} s"
        )


def _computed_types(plan: Plan) -> Mapping[str, str | None]:
    """Return the type that each operator computes in after conversion, by its id."""
    own = {processor.name: processor.data_type for processor in plan.processors}
    return {
        at.operator: at.data_type or own[each.name]
        for stage in plan.stages
        for each in stage.processors
        for at in each.operators
    }
