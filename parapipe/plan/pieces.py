"""Pieces: operators that are run at one go since somebody says so, and an order to run them in."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import TypeAlias

from parapipe.errors import PlanError
from parapipe.files.listing import listed
from parapipe.pipeline.mapping import Placement
from parapipe.plan.mapped import MappedPlan

# Names of pieces by the ids of their operators.
Pieces: TypeAlias = Mapping[str, str]
NO_PIECES: Pieces = MappingProxyType({})
Runs: TypeAlias = dict[int, list[list[Placement]]]


def in_possible_order(view: MappedPlan, runs: Runs, pieces: Pieces) -> Runs:
    """Return what each processor runs at one go, so that nothing waits for what comes later.

    Of what may come next, that goes first whose first operator does in the plan.

    Raises
    ------
    PlanError
        If runs would wait for each other in a circle, or for themselves.
    """
    every = [run for here in runs.values() for run in here]
    number = {view.id(at): i for i, run in enumerate(every) for at in run}
    before: dict[int, set[int]] = {i: set() for i in range(len(every))}
    for edge in view.edges:
        made, read = number[view.id(edge.made)], number[view.id(edge.read)]
        if made != read:
            before[read].add(made)
    sorter = TopologicalSorter(before)
    try:
        sorter.prepare()
    except CycleError as error:
        first = (view.id(every[i][0]) for i in error.args[1])
        names = list(dict.fromkeys(pieces.get(v, v) for v in first))
        raise PlanError(
            f"pieces would wait for each other in a circle ({listed(names)}): cut the network so "
            "that no way leaves a piece and comes back to it"
        ) from error
    order: list[int] = []
    ready: set[int] = set()
    while sorter.is_active():
        ready.update(sorter.get_ready())
        # Frames come to operators of lower lag first.
        chosen = min(ready, key=lambda i: (every[i][0].lag, every[i][0].start_s, i))
        ready.remove(chosen)
        order.append(chosen)
        sorter.done(chosen)
    found: Runs = {p: [] for p in runs}
    for i in order:
        found[every[i][0].processor].append(every[i])
    return found
