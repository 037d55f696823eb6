"""The period in which a replay without chance repeats itself, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from parapipe.pipeline.sustained import EventGraph
from parapipe.simulate.frame_replay import Picoseconds


@dataclass(frozen=True, slots=True)
class Steady:
    """How frames follow each other for ever.

    Parameters
    ----------
    period_ps
        Picoseconds between frames.
    frames
        After so many frames all waits recur.
    since
        Number of the frame from which on they do.
    """

    period_ps: Fraction
    frames: int
    since: int


def steady(graph: EventGraph, start_ps: Sequence[Sequence[Picoseconds]]) -> Steady | None:
    """Return the state that a replay has reached, or None if it has not shown to recur yet.

    When a task starts is decided by what was started in the last few rounds. So if the starts of
    that many rounds occur again, each later by the same time, all that follows occurs again. Parts
    of the network that no tensor joins go at their own paces; the slowest is that of the frames.

    Parameters
    ----------
    start_ps
        By task and frame, of a saturated replay without jitter and contention.
    """
    import networkx as nx

    joined: nx.Graph[int] = nx.Graph()
    joined.add_nodes_from(range(len(graph.time_ps)))
    for resource in graph.orders:
        nx.add_path(joined, resource)
    joined.add_edges_from((u, v) for u, v, _ in graph.waits)
    parts = nx.connected_components(joined)
    found = [_of_part(graph, sorted(part), start_ps) for part in parts]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return max(known, key=lambda each: (each.period_ps, each.since))


def _of_part(
    graph: EventGraph, part: Sequence[int], start_ps: Sequence[Sequence[Picoseconds]]
) -> Steady | None:
    lags = {v: graph.lag[v] for v in part}
    latest = max(lags.values())
    behind = [k + lags[u] - lags[v] for u, v, k in graph.channels if u in lags]
    ahead = [lags[v] - lags[u] for u, v, _ in graph.waits if v in lags]
    replicas = [count for order, count in graph.rows if order[0] in lags]
    memory = max([1, *behind, *ahead, *replicas])  # rounds that a start can depend on
    rounds = [
        [start_ps[v][r - lags[v]] for v in part]
        for r in range(latest, min(len(start_ps[v]) + lags[v] for v in part))
    ]
    seen: dict[tuple[Picoseconds, ...], int] = {}
    for now in range(memory, len(rounds) + 1):
        origin = rounds[now - 1][0]
        state = tuple(at - origin for row in rounds[now - memory : now] for at in row)
        before = seen.setdefault(state, now)
        if before < now:
            took = Fraction(origin) - Fraction(rounds[before - 1][0])
            return Steady(took / (now - before), now - before, before - 1)
    return None


def slowest_pace(graph: EventGraph, start_ps: Sequence[Sequence[Picoseconds]]) -> Fraction | None:
    """Return picoseconds from frame to frame of the slowest task; None if no two rounds show them.

    Tasks may differ in their paces for thousands of frames, while a queue fills, or what the first
    frames left in one is used up. In the end all go at the pace of the slowest. It is that of the
    second half of the rounds in which every task runs: not while the pipeline empties.

    Parameters
    ----------
    start_ps
        By task and frame, of a saturated replay without jitter and contention.
    """
    latest, frames = max(graph.lag), len(start_ps[0])
    rounds = range(latest + (frames - latest) // 2, frames)
    if len(rounds) < 2:
        return None
    starts = ([row[r - lag] for r in rounds] for row, lag in zip(start_ps, graph.lag, strict=True))
    return max(map(_pace, starts))


def _pace(starts_ps: Sequence[Picoseconds]) -> Fraction:
    """Return the mean step, over a whole number of those in which steps recur if they do."""
    steps = [later - one for one, later in pairwise(starts_ps)]
    every = _recurrence(steps)
    if 2 * every > len(steps):
        every = len(steps)
    return Fraction(starts_ps[-1] - starts_ps[-1 - every]) / every


def _recurrence(steps: Sequence[Picoseconds]) -> int:
    """Return the least distance at which all steps are equal (Knuth, Morris and Pratt, 1977)."""
    border = [0] * len(steps)
    length = 0
    for i in range(1, len(steps)):
        while length and steps[i] != steps[length]:
            length = border[length - 1]
        length += steps[i] == steps[length]
        border[i] = length
    return len(steps) - border[-1]
