"""A mapping made for a period, at other costs: the same processors and the same orders."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf

from parapipe.cost.cost_table import CostTable
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assemble, hand_overs_of
from parapipe.mappings.event_graph import PICOSECONDS, EventGraph, execution_of
from parapipe.mappings.feedback import with_feedback
from parapipe.mappings.mapping import Mapping, Transfer
from parapipe.modulo.modulo_schedules import longest_paths


def retimed(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a mapping made for a period with the times of other costs.

    Operators keep their processors, and processors and links their orders; channels keep their
    slots. The period is the least that these allow, the maximum cycle ratio of the event graph,
    rounded up to a picosecond. All starts as early as that allows, then as late as the last end
    does, so that no frame begins before it has to.

    Parameters
    ----------
    costs
        Of the same operators on the same processors.

    Raises
    ------
    AssignmentError
        If a processor does not run an operator that is placed there.
    """
    assert mapping.period_s is not None, "it is made for a period"
    slower = with_feedback(_with_times(mapping, graph, costs), graph, costs)
    execution = execution_of(slower, slots=mapping.channel_slots)
    period_ps = ceil(execution.graph.period_ps())
    start_ps = _starts_ps(execution.graph, period_ps)
    begin_ps = min(start_ps[execution.event[v]] for v in mapping.at)

    def when(event: int) -> tuple[int, float]:
        lag, at_ps = divmod(start_ps[execution.event[event]] - begin_ps, period_ps)
        return lag, at_ps / PICOSECONDS

    placements = {}
    for v, at in slower.at.items():
        lag, start_s = when(v)
        placements[v] = replace(at, start_s=start_s, end_s=start_s + at.end_s - at.start_s, lag=lag)
    busy: dict[tuple[str, int], Transfer] = {}
    for i, each in enumerate(slower.transfers):
        if each.resource is not None:
            lag, start_s = when(-1 - i)
            busy[each.tensor, each.target] = replace(
                each, start_s=start_s, end_s=start_s + each.time_s, lag=lag
            )
    hand_overs = hand_overs_of(placements, graph, costs, busy)
    return assemble(placements, hand_overs, period_ps / PICOSECONDS)


def _with_times(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a mapping that starts as before, with the times of other costs."""
    unable = [
        f"'{graph.operators[v].id}' on '{costs.processors[at.processor]}'"
        for v, at in mapping.at.items()
        if costs.time_s(v, at.processor) == inf
    ]
    if unable:
        raise AssignmentError(f"these do not run there: {', '.join(unable)}")
    return replace(
        mapping,
        placements=tuple(
            replace(at, end_s=at.start_s + costs.time_s(at.operator, at.processor))
            for at in mapping.placements
        ),
        transfers=tuple(
            replace(each, time_s=time_s, end_s=each.start_s + time_s)
            for each in mapping.transfers
            for time_s in [costs.transfer_s(each.tensor, each.source, each.target)]
        ),
    )


def _starts_ps(graph: EventGraph, period_ps: int) -> list[int]:
    """Return when each event starts for a frame: as late as its end allows, which is the first."""
    arcs = [*graph.arcs()]
    gains = [arc.time_ps - arc.tokens * period_ps for arc in arcs]
    forwards = [(arc.tail, arc.head, gain) for arc, gain in zip(arcs, gains, strict=True)]
    earliest = longest_paths(forwards, [0] * len(graph.time_ps))
    last = max(at + time for at, time in zip(earliest, graph.time_ps, strict=True))
    backwards = [(arc.head, arc.tail, gain) for arc, gain in zip(arcs, gains, strict=True)]
    return [last - at for at in longest_paths(backwards, graph.time_ps)]
