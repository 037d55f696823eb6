"""States of a mapping: how long their loops take, and what period these leave.

A step reads a state and writes the one that the next step of the same sequence reads. So steps of a
sequence follow each other at the latency of the loop: from the start of the operators that read a
state to the end of those that write it, and its way back where both are on different processors.
Where several sequences take turns, frame n is a step of sequence n modulo their number S, and the
period between frames is at least a S-th of the loop (the recurrence-constrained minimum initiation
interval; B. R. Rau, Iterative modulo scheduling, 1994).

A state that moves is taken as a delay: what else it keeps busy does not count. To choose a token of
an output takes no time here, as loading a frame and reading the result do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf, lcm
from typing import NamedTuple

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph, State
from parapipe.mappings.mapping import ROUNDING, Feedback, Mapping


class StateEnds(NamedTuple):
    """An operator that writes a state, and one that reads it a step later."""

    state: State
    producer: int
    consumer: int


def state_ends(graph: OperatorGraph) -> Iterator[StateEnds]:
    """Yield who writes and who reads each state, if operators do."""
    for state in graph.states:
        producer = graph.producer.get(state.output)
        if producer is not None:
            for consumer in graph.consumers.get(state.input, ()):
                yield StateEnds(state, producer, consumer)


def with_feedback(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a mapping with the states of its graph."""
    if not graph.states:
        return mapping
    feedback = tuple(
        Feedback(
            state.input,
            producer,
            consumer,
            graph.sequences,
            _way_back_s(mapping, state, (producer, consumer), graph.sequences, costs),
        )
        for state, producer, consumer in state_ends(graph)
    )
    return replace(mapping, feedback=feedback)


def _way_back_s(
    mapping: Mapping, state: State, ends: tuple[int, int], frames: int, costs: CostTable
) -> float:
    """Return the seconds that a state moves; with replicas, of the frame where it takes longest."""
    if state.kind == "token":
        return 0.0
    writers, readers = (
        mapping.replicas.get(p, (p,)) for p in (mapping.at[v].processor for v in ends)
    )
    return max(
        costs.transfer_s(
            state.output, writers[n % len(writers)], readers[(n + frames) % len(readers)]
        )
        for n in range(lcm(len(writers), len(readers)))
    )


def loop_period_s(mapping: Mapping) -> float:
    """Return the least seconds between frames that the loops of a mapping leave; 0 without states.

    The mapping has its feedback. If times are made for a period, and that is too short, starts and
    lags stay, and the least longer one in which every state is there in time is returned: infinite
    if there is none, since a state is written too many periods later than it is read.
    """
    if mapping.period_s is None:
        return max((mapping.loop_s(f) / f.frames for f in mapping.feedback), default=0.0)
    least_s = 0.0
    for each in mapping.feedback:
        begin, end = mapping.at[each.consumer], mapping.at[each.producer]
        within_s = end.end_s + each.time_s - begin.start_s
        turns = each.frames - (end.lag - begin.lag)
        if turns > 0:
            least_s = max(least_s, within_s / turns)
        elif within_s > turns * mapping.period_s + ROUNDING * mapping.period_s:
            return inf
    return least_s


def has_circle(mapping: Mapping) -> bool:
    """Tell whether a processor would wait for a state that it makes itself, frames later."""
    shared = {stage.lag for stage in mapping.stages if stage.shared}
    return any(
        mapping.at[each.producer].lag - mapping.at[each.consumer].lag >= each.frames
        for each in mapping.feedback
        if mapping.at[each.consumer].lag in shared or mapping.at[each.producer].lag in shared
    )


def keep_loops(mapping: Mapping, graph: OperatorGraph, costs: CostTable) -> Mapping | None:
    """Return a mapping with a period, if it is made for one, that its loops leave; None if none."""
    looped = with_feedback(mapping, graph, costs)
    if has_circle(looped):
        return None
    least_s = loop_period_s(looped)
    if mapping.period_s is None or least_s <= mapping.period_s:
        return mapping
    return None if least_s == inf else replace(mapping, period_s=least_s)


def sequences_that_fill(mapping: Mapping, own_period_s: float) -> int:
    """Return how many sequences in turn let a mapping keep the period that it has without states.

    Parameters
    ----------
    own_period_s
        That period.
    """
    if (loop := mapping.longest_loop) is None:
        return 1
    return max(1, ceil(loop[0] / own_period_s * (1 - ROUNDING)))
