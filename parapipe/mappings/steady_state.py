"""How frames follow each other for ever: the state that a replay of frames reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from parapipe.mappings.event_graph import EventGraph
from parapipe.mappings.frame_replay import Admission, Picoseconds, Replay, Slowdown


class TaskSpan(NamedTuple):
    """When a task ran for a frame."""

    frame: int
    start_ps: int
    end_ps: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A stretch of a replay that occurs again and again.

    Parameters
    ----------
    took_ps
        Picoseconds that it takes.
    frames
        So many frames later all is the same, each one by that time later.
    spans
        Of each task, for so many frames, by the frame; those of one task may be other ones than
        those of another. If nothing recurs, they are the last ones of a long run.
    exact
        Whether it recurs, to the picosecond.
    """

    took_ps: int
    frames: int
    spans: Sequence[Sequence[TaskSpan]]
    exact: bool

    @property
    def period_ps(self) -> Fraction:
        """Picoseconds between frames."""
        return Fraction(self.took_ps, self.frames)


MOST_FRAMES = 120  # of a run that does not recur, beside those that fill the pipeline


def recurrence(
    graph: EventGraph,
    admission: Admission,
    slowdown: Slowdown | None,
    most_frames: int = MOST_FRAMES,
) -> Recurrence:
    """Send frames through a plan's tasks until what happens occurs again.

    All that decides what follows is looked at whenever the first task has begun a frame. If it is
    the same as before, all that has followed then occurs again. If it never is, the second half of
    a run of so many frames stands for what comes.

    Raises
    ------
    StuckError
        As for `replay`.
    """
    behind = 2 * (1 + max(graph.lag) + max(graph.replicas or (1,)))
    run = Replay(graph, most_frames + behind, admission, slowdown=slowdown)
    seen: dict[tuple[object, ...], tuple[int, int, list[int]]] = {}
    looked = 0
    while looked < most_frames and run.advance():
        if len(run.start_ps[0]) > looked and run.in_full_rounds:
            looked = len(run.start_ps[0])
            now = looked - 1, run.now_ps, [len(some) for some in run.start_ps]
            before = seen.setdefault(run.state(looked - 1), now)
            if before is not now:
                return _recurring(run, before, now)
    while run.advance():
        pass
    return _long_run(run, graph)


def _long_run(run: Replay, graph: EventGraph) -> Recurrence:
    """Return the second half of a run, as far as no resource had done all its frames.

    Parts that nothing joins may be so far from each other that this leaves nothing; then all of it.
    """
    turns = lcm(*graph.replicas)
    busy_ps = min(max(starts.values()) for starts in run.start_ps)
    last = end = len(run.start_ps[0]) - 1
    while last > 4 * turns and any(starts[last] > busy_ps for starts in run.start_ps):
        last -= 1
    if last <= 4 * turns:
        last = end
    count = last // 2 // turns * turns
    took_ps = max(
        starts[last - n] - starts[last - n - count] for starts in run.start_ps for n in range(turns)
    )
    spans = [
        [TaskSpan(n, starts[n], ends[n]) for n in range(last - count, last)]
        for starts, ends in zip(run.start_ps, run.end_ps, strict=True)
    ]
    return Recurrence(took_ps, count, spans, exact=False)


def _recurring(
    run: Replay, before: tuple[int, int, list[int]], now: tuple[int, int, list[int]]
) -> Recurrence:
    """Return what a replay did between two moments at which it was in the same state."""
    frames, took_ps = now[0] - before[0], now[1] - before[1]
    spans = []
    for starts, ends, since, until in zip(run.start_ps, run.end_ps, before[2], now[2], strict=True):
        recent = sorted([*starts.items()][since:until])
        spans.append([
            TaskSpan(n, at, ends[n] if n in ends else ends[n - frames] + took_ps)
            for n, at in recent
        ])  # fmt: skip
    return Recurrence(took_ps, frames, spans, exact=True)


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
    joined.add_edges_from((u, v) for u, v, _, _ in graph.feedback)
    parts = nx.connected_components(joined)
    part_states = [_steady_state_of_part(graph, sorted(part), start_ps) for part in parts]
    steady_parts = [each for each in part_states if each is not None]
    if len(steady_parts) < len(part_states):
        return None
    return max(steady_parts, key=lambda each: (each.period_ps, each.since))


def _steady_state_of_part(
    graph: EventGraph, part: Sequence[int], start_ps: Sequence[Sequence[Picoseconds]]
) -> Steady | None:
    lags = {v: graph.lag[v] for v in part}
    latest = max(lags.values())
    behind = [k + lags[u] - lags[v] for u, v, k in graph.channels if u in lags]
    ahead = [lags[v] - lags[u] for u, v, _ in graph.waits if v in lags]
    behind += [k + lags[v] - lags[u] for u, v, _, k in graph.feedback if u in lags]
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
    return max(map(_mean_step_ps, starts))


def _mean_step_ps(starts_ps: Sequence[Picoseconds]) -> Fraction:
    """Return the mean step, over a whole number of those in which steps recur if they do."""
    steps = [later - one for one, later in pairwise(starts_ps)]
    every = _recurrence_length(steps)
    if 2 * every > len(steps):
        every = len(steps)
    return Fraction(starts_ps[-1] - starts_ps[-1 - every]) / every


def _recurrence_length(steps: Sequence[Picoseconds]) -> int:
    """Return the least distance at which all steps are equal (Knuth, Morris and Pratt, 1977)."""
    border = [0] * len(steps)
    length = 0
    for i in range(1, len(steps)):
        while length and steps[i] != steps[length]:
            length = border[length - 1]
        length += steps[i] == steps[length]
        border[i] = length
    return len(steps) - border[-1]
