"""Pieces and segments: runs of operators that a processor executes at one go.

A runtime that compiles many operators at once (a session, a delegate) asks which operators it may
compile together. A segment starts when all its inputs are there and hands out its outputs at its
end. So nothing in it, but the first operator, may wait for another processor: otherwise the first
would be delayed by what only a later one needs, and processors whose segments wait for each other
could never start.

Since a segment hands out its outputs at its end, another processor of the stage may have to wait
for operators that it does not need. Cut *promptly*, a segment ends where another processor waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import TypeAlias

from parapipe.errors import PlanError
from parapipe.files.mistakes import listed
from parapipe.mappings.mapping import Placement
from parapipe.mappings.segments import Moved, awaited_operators, awaited_tensors
from parapipe.plan.mapped import MappedPlan, mapping_view, operands_of
from parapipe.plan.schema import Plan

# Names of pieces by the ids of their operators.
Pieces: TypeAlias = Mapping[str, str]
NO_PIECES: Pieces = MappingProxyType({})
Runs: TypeAlias = dict[int, list[list[Placement]]]


def order_runs(view: MappedPlan, runs: Runs, pieces: Pieces) -> Runs:
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
        producer, reader = number[view.id(edge.made)], number[view.id(edge.read)]
        if producer != reader:
            before[reader].add(producer)
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
    ordered: Runs = {p: [] for p in runs}
    for i in order:
        ordered[every[i][0].processor].append(every[i])
    return ordered


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a processor's operators that needs no other processor in between.

    Parameters
    ----------
    processor
        Name of the processor.
    stage, lag
        Number of its stage, and the frame lag that all its operators work at.
    operators
        Ids, in the processor's order.
    receives
        Tensors that come from other processors and that no earlier segment has waited for. The
        first operator reads them all.
    inputs
        Tensors that it reads and does not make: those received, graph inputs, and those made or
        received by earlier segments of the processor; in order of first use.
    outputs
        Tensors that it makes and that other segments read or that leave the graph; in order.
    """

    processor: str
    stage: int
    lag: int
    operators: tuple[str, ...]
    receives: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def segments(
    plan: Plan, *, prompt: bool = False, single: bool = False, pieces: Pieces = NO_PIECES
) -> dict[str, tuple[Segment, ...]]:
    """Cut each processor's operators into segments, in the order in which it runs them.

    A new segment begins where an operator reads a tensor from another processor that the processor
    has not yet waited for, where the frame lag changes, and in a plan of several models, where
    another frame of them begins. Nowhere else: so segments are maximal
    and there is one way only to make them. They are convex: no way through the network leaves a
    segment and comes back to it. And they wait for each other in no circle, even when each hands
    out its outputs only at its end: along any way from segment to segment, each is entered at its
    first operator, so a circle of segments would be a circle of operators.

    Parameters
    ----------
    plan
        A plan that `verify_plan` accepts.
    prompt
        Also end a segment with an operator that another processor of the stage waits for: of those
        that one operator there needs from this processor, the last. Then no operator starts later
        within its stage than the order of the plan makes it, and no cut could be left out.
    single
        Make a segment of every operator.
    pieces
        Names by the ids of operators: those of one name, processor and lag are a segment, whatever
        lies between them in the processor's order. The others are cut as said above.

    Returns
    -------
    dict
        Segments by the processor's name, in the plan's order of processors. With pieces, they are
        in an order in which none waits for a later one.

    Raises
    ------
    PlanError
        If pieces would wait for each other in a circle.
    """
    view = mapping_view(plan)
    moved = [Moved(e.tensor, e.made, e.read) for users in view.users.values() for e in users]
    firsts = awaited_tensors(view.orders, moved)
    ends: Collection[Placement] = ()
    if prompt:
        ends = awaited_operators(view.orders, moved, firsts, view.repeats)
    awaited = {v: tuple(firsts.get(at, ())) for v, at in view.placements.items()}
    readers: dict[str, set[str]] = {}
    for operator in plan.operators:
        for name in operands_of(operator, plan):
            readers.setdefault(name, set()).add(operator.id)
    begins = {v for v, names in awaited.items() if names}
    if pieces:  # a piece may read what the run behind it would then not wait for
        begins = {view.id(edge.read) for users in view.users.values() for edge in users}

    frame_of = _frame_prefixes(plan)

    def continues(last: Placement | None, at: Placement) -> bool:
        if single or last is None or view.id(at) in begins or last in ends:
            return False
        one, other = ((each.lag, frame_of.get(each.operator)) for each in (last, at))
        return one == other

    runs = {p: _cut_into_runs(view, order, pieces, continues) for p, order in view.orders.items()}
    if pieces:
        runs = order_runs(view, runs, pieces)
    by_name = {
        view.resources[p]: tuple(_segment(view, run, readers, awaited) for run in here)
        for p, here in runs.items()
    }
    return {each.name: by_name[each.name] for each in plan.processors if each.name in by_name}


def _cut_into_runs(
    view: MappedPlan,
    order: Sequence[Placement],
    pieces: Pieces,
    continues: Callable[[Placement | None, Placement], bool],
) -> list[list[Placement]]:
    """Cut what a processor runs into pieces, and runs that go on between them."""
    runs: list[list[Placement]] = []
    of_piece: dict[tuple[str, int], list[Placement]] = {}
    last: Placement | None = None
    for at in order:
        name = pieces.get(view.id(at))
        if name is None:
            run = runs[-1] if continues(last, at) else []
        else:
            run = of_piece.setdefault((name, at.lag), [])
        if not run:
            runs.append(run)
        run.append(at)
        last = at if name is None else None
    return runs


def _frame_prefixes(plan: Plan) -> dict[int, str]:
    """Return the frame of each operator, by index, if there are several models."""
    prefixes = [prefix for each in plan.models or () for prefix in each.prefixes]
    return {
        v: prefix
        for v, operator in enumerate(plan.operators)
        for prefix in prefixes
        if operator.id.startswith(prefix)
    }


def _segment(
    view: MappedPlan,
    run: list[Placement],
    readers: dict[str, set[str]],
    awaited: dict[str, tuple[str, ...]],
) -> Segment:
    plan, ids = view.plan, tuple(map(view.id, run))
    operators = [plan.operators[at.operator] for at in run]
    results = dict.fromkeys(name for each in operators for name in each.outputs if name)
    operands = dict.fromkeys(name for each in operators for name in operands_of(each, plan))
    return Segment(
        processor=view.name(run[0]),
        stage=view.stage(run[0]),
        lag=run[0].lag,
        operators=ids,
        receives=tuple(name for v in ids for name in awaited[v]),
        inputs=tuple(name for name in operands if name not in results),
        outputs=tuple(
            name
            for name in results
            if name in plan.outputs or not readers.get(name, set()).issubset(ids)
        ),
    )
