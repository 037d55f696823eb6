"""Rules on the states of a plan: what one step writes, and a later one reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from parapipe.mappings.mapping import Placement
from parapipe.plan.mapped import MappedPlan, producers
from parapipe.plan.records import State


def state_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    """Yield what is wrong with the states of a plan.

    The rules: a state is an input of the plan and an output, of one type and as many dimensions, no
    smaller behind the step than before it; none is fed to two inputs, and no input has two; it goes
    back between different processors of the plan alone, or such that take turns; where operators of
    several frames take turns, it is there before the step that reads it starts. There are several
    sequences only if there are states.
    """
    plan = view.plan
    if plan.sequences is not None and not plan.states:
        yield f"{plan.sequences} sequences take turns, and there is no state"
    for what in ("input", "output"):
        times = Counter(getattr(each, what) for each in plan.states or ())
        for name, count in times.items():
            if count > 1:
                yield f"{what} '{name}' is of {count} states"
    for state in plan.states or ():
        yield from _ends_violations(state, view)
        if view.interleaved and plan.co_run is None:  # times are then when all really runs
            yield from _late_violations(view, state, tolerance_s)


def _ends_violations(state: State, view: MappedPlan) -> Iterator[str]:
    plan = view.plan
    if state.input not in plan.inputs:
        yield f"state '{state.input}' is no input of the plan"
    if state.output not in plan.outputs:
        yield f"state '{state.input}' is made of '{state.output}', which is no output of the plan"
    names = {processor.name for processor in plan.processors}
    for way in state.ways_back:
        stays = way.source == way.target and way.source not in view.replicas
        if stays or not {way.source, way.target} <= names:
            yield f"state '{state.input}' goes from '{way.source}' to '{way.target}'"
    read, made = plan.tensors.get(state.input), plan.tensors.get(state.output)
    if read is None or made is None or state.kind == "token":
        return
    grows = len(read.shape) == len(made.shape) and all(
        a <= b for a, b in zip(read.shape, made.shape, strict=True)
    )
    if read.dtype != made.dtype or not grows:
        yield (
            f"state '{state.input}' is {read.dtype} {list(read.shape)}, and the step makes "
            f"{made.dtype} {list(made.shape)} of it"
        )


def _late_violations(view: MappedPlan, state: State, tolerance_s: float) -> Iterator[str]:
    period_s, frames = view.plan.predicted.period_s, view.plan.sequences or 1
    for maker, reader, back_s in _ends(view, state):
        there_s = maker.lag * period_s + maker.end_s + back_s
        read_s = (reader.lag + frames) * period_s + reader.start_s
        if read_s < there_s - tolerance_s:
            yield (
                f"operator '{view.id(reader)}' reads state '{state.input}' at {read_s:.9g} s, and "
                f"the step before has made it at {there_s:.9g} s"
            )


def _ends(view: MappedPlan, state: State) -> Iterator[tuple[Placement, Placement, float]]:
    """Yield who makes a state, who reads it, and the seconds that it takes between them."""
    ways = {(way.source, way.target): way.time_s for way in state.ways_back}
    maker = view.placements.get(producers(view.plan).get(state.output, ""))
    for operator in view.plan.operators if maker else ():
        reader = view.placements.get(operator.id)
        if maker and reader and state.input in operator.inputs:
            yield maker, reader, ways.get((view.name(maker), view.name(reader)), 0.0)


def loop_s(view: MappedPlan) -> float:
    """Return the seconds of the loop of a state that takes longest; 0 if there is none.

    From the start of an operator that reads it to the end of the one that makes it for the next
    step, and its way back. Stages count one behind the other, unless operators of several frames
    take turns: then they are periods apart.
    """
    period_s, begin_s, bases_s = view.plan.predicted.period_s, 0.0, dict[int, float]()
    for position, stage in enumerate(view.plan.stages):
        bases_s[position] = begin_s
        begin_s += stage.time_s

    def base_s(at: Placement) -> float:
        return at.lag * period_s if view.interleaved else bases_s[view.stage(at)]

    return max(
        (
            base_s(maker) + maker.end_s + back_s - base_s(reader) - reader.start_s
            for state in view.plan.states or ()
            for maker, reader, back_s in _ends(view, state)
        ),
        default=0.0,
    )


def loop_work_s(view: MappedPlan) -> float:
    """Return the seconds that a step of a sequence needs from a state to the next, at least.

    Operators and transfers on a path from who reads a state to who makes it, whatever waits for a
    processor; of the path and the state that take longest.
    """
    plan, longest_s = view.plan, 0.0
    into: dict[int, list[tuple[int, float]]] = {}
    for edge in view.edges:
        moved_s = edge.transfer.time_s if edge.transfer else 0.0
        into.setdefault(edge.read.operator, []).append((edge.made.operator, moved_s))
    work_s = [
        at.end_s - at.start_s if (at := view.placements.get(each.id)) else 0.0
        for each in plan.operators
    ]
    for state in plan.states or ():
        ends = [*_ends(view, state)]
        for maker, reader, back_s in ends:
            done_s = {reader.operator: work_s[reader.operator]}
            for v in range(reader.operator + 1, maker.operator + 1):
                reached = [done_s[u] + moved_s for u, moved_s in into.get(v, ()) if u in done_s]
                if reached:
                    done_s[v] = max(reached) + work_s[v]
            if maker.operator in done_s:
                longest_s = max(longest_s, done_s[maker.operator] + back_s)
    return longest_s
