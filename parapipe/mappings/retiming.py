"""A mapping made for a period, at other costs: the same processors and the same orders."""

from __future__ import annotations

from collections.abc import Mapping as ByKey
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf

from parapipe.cost.cost_table import CostTable
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import (
    assemble,
    hand_overs_of,
    mapping_of,
    stages_with_launches,
)
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.event_graph import PICOSECONDS, EventGraph, execution_of
from parapipe.mappings.feedback import with_feedback
from parapipe.mappings.launches import add_launches, launch_times_s
from parapipe.mappings.mapping import ROUNDING, Mapping, Transfer
from parapipe.modulo.modulo_schedules import longest_paths

ROOM_S = 2 / PICOSECONDS  # more than rounding takes from a time and from that of a hand-over


def retimed(
    mapping: Mapping, graph: OperatorGraph, costs: CostTable, *, least_period_s: float = 0.0
) -> Mapping:
    """Return a mapping made for a period with the times of other costs.

    Operators keep their processors, and processors and links their orders; channels keep their
    slots. The period is the least that these allow, the maximum cycle ratio of the event graph,
    rounded up to a picosecond. All starts as early as that allows, then as late as the last end
    does, so that no frame begins before it has to.

    Parameters
    ----------
    costs
        Of the same operators on the same processors.
    least_period_s
        The period is no less.

    Raises
    ------
    AssignmentError
        If a processor does not run an operator that is placed there.
    """

    def retime(launches_s: ByKey[int, float]) -> Mapping:
        return _retimed(mapping, graph, costs, launches_s, least_period_s)

    return add_launches(mapping, graph, costs, retime)


def with_launches(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a mapping with what it takes to start captured graphs; its orders stay.

    The same one is returned if that is nothing, or counted already. A mapping made for a period is
    made for a longer one if it has to be. It is a stage if a frame then ends before the next one
    begins, or if a transfer that keeps something busy would be read more than a period later.
    """
    launches_s = launch_times_s(mapping, graph, costs)
    if not launches_s or _counts(mapping, costs, launches_s):
        return mapping
    if mapping.period_s is None:
        return stages_with_launches(mapping, graph, costs)
    least_s = mapping.period_s

    def retime(launches_s: ByKey[int, float]) -> Mapping:
        return _retimed(mapping, graph, costs, launches_s, least_s, shows_frames=True)

    changed = add_launches(mapping, graph, costs, retime)
    period_s = changed.period_s or 0.0
    if changed.elapsed_s > period_s and _is_soon_read(changed, period_s):
        return changed
    first_s = {v: at.lag * period_s + at.start_s for v, at in changed.at.items()}
    order = tuple(sorted(first_s, key=lambda v: (first_s[v], changed.at[v].end_s, v)))
    places = tuple(changed.at[v].processor for v in range(len(order)))
    return mapping_of(graph, None, costs, Assignment(places, (order,), ordered=True))


def _is_soon_read(mapping: Mapping, period_s: float) -> bool:
    """Tell whether what keeps something busy is read within a period, as plans ask for."""
    for edge in mapping.edges:
        if edge.transfer is None:
            continue
        moved, reader = mapping.transfers[edge.transfer], mapping.at[edge.consumer]
        later_s = (reader.lag - moved.lag) * period_s + reader.start_s - moved.start_s
        if moved.resource is not None and later_s >= period_s:
            return False
    return True


def _counts(mapping: Mapping, costs: CostTable, launches_s: ByKey[int, float]) -> bool:
    """Tell whether operators take what they and their launches cost, to within rounding."""
    rounding_s = max(1.0 / PICOSECONDS, ROUNDING * max(at.end_s for at in mapping.placements))
    return all(
        at.end_s - at.start_s >= costs.time_s(v, at.processor) + launches_s.get(v, 0.0) - rounding_s
        for v, at in mapping.at.items()
    )


def _retimed(
    mapping: Mapping,
    graph: OperatorGraph,
    costs: CostTable,
    launches_s: ByKey[int, float],
    least_period_s: float,
    *,
    shows_frames: bool = False,
) -> Mapping:
    """Return a mapping with other times: see `retimed`.

    Parameters
    ----------
    shows_frames
        Whether the period begins where it shows that there are several frames, if that is not so
        where the first of them begins. Then nothing overlaps by what rounding to picoseconds takes.
    """
    assert mapping.period_s is not None, "it is made for a period"
    room_s = ROOM_S if shows_frames else 0.0
    times = _with_times(mapping, graph, costs, launches_s, room_s)
    slower = with_feedback(times, graph, costs)
    execution = execution_of(slower, slots=mapping.channel_slots)
    period_ps = ceil(max(execution.graph.period_ps(), Fraction(least_period_s) * PICOSECONDS))
    start_ps = _starts_ps(execution.graph, period_ps)
    begin_ps = min(start_ps[execution.event[v]] for v in mapping.at)
    if shows_frames:
        starts_ps = {v: start_ps[execution.event[v]] - begin_ps for v in mapping.at}
        begin_ps -= _later_ps(slower, starts_ps, period_ps)

    def when(event: int) -> tuple[int, float]:
        lag, at_ps = divmod(start_ps[execution.event[event]] - begin_ps, period_ps)
        return lag, at_ps / PICOSECONDS

    placements = {}
    for v, at in slower.at.items():
        lag, start_s = when(v)
        end_s = start_s + at.end_s - at.start_s - room_s
        placements[v] = replace(at, start_s=start_s, end_s=end_s, lag=lag)
    busy: dict[tuple[str, int], Transfer] = {}
    for i, each in enumerate(slower.transfers):
        if each.resource is not None:
            lag, start_s = when(-1 - i)
            time_s = each.time_s - room_s
            busy[each.tensor, each.target] = replace(
                each, start_s=start_s, end_s=start_s + time_s, time_s=time_s, lag=lag
            )
    hand_overs = hand_overs_of(placements, graph, costs, busy)
    return assemble(placements, hand_overs, period_ps / PICOSECONDS)


def _with_times(
    mapping: Mapping,
    graph: OperatorGraph,
    costs: CostTable,
    launches_s: ByKey[int, float],
    room_s: float,
) -> Mapping:
    """Return a mapping that starts as before, with the times of other costs and with launches.

    Parameters
    ----------
    room_s
        What all takes longer.
    """
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
            replace(at, end_s=at.start_s + time_s)
            for at in mapping.placements
            for time_s in [
                costs.time_s(at.operator, at.processor) + launches_s.get(at.operator, 0.0) + room_s
            ]
        ),
        transfers=tuple(
            replace(each, time_s=time_s, end_s=each.start_s + time_s)
            for each in mapping.transfers
            for time_s in [costs.transfer_s(each.tensor, each.source, each.target) + room_s]
        ),
    )


def _later_ps(mapping: Mapping, starts_ps: ByKey[int, int], period_ps: int) -> int:
    """Return how long before the first start a period begins, so that it shows several frames.

    0 if a processor serves several lags then. Else, of the moments at which a processor begins, one
    that gives several lags, then the one that cuts fewest processors and operators.
    """

    def cut_cost(origin: int) -> tuple[bool, int, int]:
        turns = {v: divmod(at - origin, period_ps) for v, at in starts_ps.items()}
        lags = {(mapping.at[v].processor, lag) for v, (lag, _) in turns.items()}
        ends = (at + (mapping.at[v].end_s - mapping.at[v].start_s) * PICOSECONDS
                for v, (_, at) in turns.items())  # fmt: skip
        running = sum(end_ps > period_ps for end_ps in ends)
        return len({lag for _, lag in lags}) == 1, len(lags) - len(mapping.lags), running

    if cut_cost(0)[1]:
        return 0
    begins: dict[int, int] = {}
    for v, at in starts_ps.items():
        p = mapping.at[v].processor
        begins[p] = min(at, begins.get(p, at))
    return -min((0, *sorted(at % period_ps for at in begins.values())), key=cut_cost) % period_ps


def _starts_ps(graph: EventGraph, period_ps: int) -> list[int]:
    """Return when each event starts for a frame: as late as its end allows, which is the first."""
    arcs = [*graph.arcs()]
    gains = [arc.time_ps - arc.tokens * period_ps for arc in arcs]
    forwards = [(arc.tail, arc.head, gain) for arc, gain in zip(arcs, gains, strict=True)]
    earliest = longest_paths(forwards, [0] * len(graph.time_ps))
    last = max(at + time for at, time in zip(earliest, graph.time_ps, strict=True))
    backwards = [(arc.head, arc.tail, gain) for arc, gain in zip(arcs, gains, strict=True)]
    return [last - at for at in longest_paths(backwards, graph.time_ps)]
