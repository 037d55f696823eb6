"""Rules on what it takes to start captured graphs, by what a plan says alone."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.mappings.mapping import Placement
from parapipe.plan.mapped import MappedPlan


def launch_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    """Yield operators that are too short to start the captured graph that begins with them.

    The rule: on a processor with a time to start a captured graph, the first operator of each that
    takes time lasts at least so long.
    """
    for v, launch_s in graph_launches_s(view).items():
        at = view.placements[v]
        if (time_s := at.end_s - at.start_s) < launch_s - tolerance_s:
            yield (
                f"operator '{v}' takes {time_s:.9g} s, and to start the captured graph that begins "
                f"with it takes {launch_s:.9g} s on '{view.name(at)}'"
            )


def graph_launches_s(view: MappedPlan) -> dict[str, float]:
    """Return the seconds to start captured graphs, by the first operator of each that takes time.

    A graph ends where a processor has to look at others: before an operator that reads what another
    processor has made and none before it has read, each frame's in the order of their lags; behind
    an operator whose result is the last that one on another processor of the stage waits for; and
    where the next operator works on another frame.
    """
    stated = {each.name: each.graph_launch_s for each in view.plan.processors}
    if all(launch_s is None for launch_s in stated.values()):
        return {}
    turn = {at: (at.lag, i) for order in view.orders.values() for i, at in enumerate(order)}
    waits = _waits(view, turn)
    awaited = {max(makers, key=turn.__getitem__) for makers in _makers_within(view, waits)}
    launches_s: dict[str, float] = {}
    for p, order in view.orders.items():
        launch_s = stated.get(view.resources[p])
        started, before = False, None
        for at in order if launch_s is not None else ():
            if before is None or before.lag != at.lag or before in awaited or at in waits:
                started = False
            if launch_s is not None and not started and at.end_s > at.start_s:
                launches_s[view.id(at)], started = launch_s, True
            before = at
    return launches_s


_Turns = dict[Placement, tuple[int, int]]
_Waits = dict[Placement, list[Placement]]


def _waits(view: MappedPlan, turn: _Turns) -> _Waits:
    """Return who makes what an operator is the first of its processor to read from another one."""
    waits: _Waits = {}
    first: dict[tuple[str, int], Placement] = {}
    for edge in sorted(view.edges, key=lambda edge: turn[edge.read]):
        made, read = edge.made, edge.read
        if made.processor == read.processor:
            continue
        if first.setdefault((edge.tensor, read.processor), read) == read:
            waits.setdefault(read, []).append(made)
    return waits


def _makers_within(view: MappedPlan, waits: _Waits) -> Iterator[list[Placement]]:
    """Yield what an operator waits for within a stage: of each processor and lag by itself."""
    for read, makers in waits.items():
        groups: dict[tuple[int, int], list[Placement]] = {}
        for made in makers:
            if made.lag == read.lag or view.repeats(made):
                groups.setdefault((made.processor, made.lag), []).append(made)
        yield from groups.values()
