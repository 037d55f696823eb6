"""Modulo schedules of operators whose processors are known: least latency at a given period.

Work is placed one piece after the other, at the first time at which its inputs have arrived and its
processor is free in every period. Where nothing is free, it takes the place of what is there, which
is placed again (B. R. Rau, Iterative modulo scheduling, 1996). If that does not end, the work of
each processor is put together in a window of the period: whatever its order, it fits if its load
does. At last everything is moved together as far as the orders allow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from parapipe.modulo.cyclic_problem import CyclicProblem, ModuloSchedule

Circle = tuple[tuple[int, ...], tuple[int, ...]]
"""Begins and ends of busy times within [0, period], ascending and disjoint."""

FREE: Circle = ((), ())


def first_fit(circle: Circle, period: int, ready: int, time: int) -> int | None:
    """Return the first time from `ready` on at which work fits; None if it fits nowhere.

    Parameters
    ----------
    ready
        Any time, from the entry of a frame; times of all periods count.
    time
        Of the work, at least 1 and at most the period.
    """
    begins, ends = circle
    if not begins:
        return ready
    at = ready % period
    base = ready - at
    i = bisect_right(begins, at) - 1
    if i >= 0:
        at = max(at, ends[i])
    last = len(begins) - 1
    for _ in range(last + 2):
        if i < last:
            if begins[i + 1] - at >= time:
                return base + at
            i += 1
        else:
            if begins[0] + period - at >= time:
                return base + at
            base += period
            i = 0
        at = ends[i]
    return None


def with_work(circle: Circle, period: int, start: int, time: int) -> Circle:
    """Return a circle with work put where there is room."""
    begin = start % period
    end = begin + time
    if end > period:
        return _add_busy(_add_busy(circle, begin, period), 0, end - period)
    return _add_busy(circle, begin, end)


def without_work(circle: Circle, period: int, start: int, time: int) -> Circle:
    """Return a circle with work taken away that was put there.

    Work without time stays: what is around it may be away already.
    """
    if not time:
        return circle
    begin = start % period
    end = begin + time
    if end > period:
        return _remove_busy(_remove_busy(circle, begin, period), 0, end - period)
    return _remove_busy(circle, begin, end)


def _remove_busy(circle: Circle, begin: int, end: int) -> Circle:
    """Return a circle without a part of one busy time."""
    begins, ends = circle
    at = bisect_right(begins, begin) - 1
    first, last = begins[at], ends[at]
    left = (begin,) if first < begin else ()
    right = (end,) if end < last else ()
    return (
        (*begins[:at], *((first,) if left else ()), *right, *begins[at + 1 :]),
        (*ends[:at], *left, *((last,) if right else ()), *ends[at + 1 :]),
    )


def _add_busy(circle: Circle, begin: int, end: int) -> Circle:
    begins, ends = circle
    low = bisect_left(ends, begin)  # the first that ends at `begin` or later
    high = bisect_right(begins, end)  # behind the last that begins at `end` or before
    if low < high:
        begin, end = min(begin, begins[low]), max(end, ends[high - 1])
    return (*begins[:low], begin, *begins[high:]), (*ends[:low], end, *ends[high:])


ATTEMPTS = 4  # placements for each piece of work before it is put together
ROUNDS = 4  # of moving together

Gaps = list[list[tuple[int, int]]]


@dataclass(slots=True)
class Jobs:
    """What is done for a frame on given processors: operators, then transfers that are work.

    Parameters
    ----------
    resource, time
        What each keeps busy, and how long.
    before
        `before[w]`: (u, g) for each u that ends g before w starts, or more.
    after
        The same from the other side.
    height
        From its start to the end of the frame, if nothing waits.
    placements
        How often work was placed so far: what searching has taken.
    """

    cyclic: CyclicProblem
    place: Sequence[int]
    routes: list[tuple[int, int]]
    resource: list[int]
    time: list[int]
    before: Gaps
    after: Gaps
    height: list[int]
    placements: int = 0

    @classmethod
    def of(cls, cyclic: CyclicProblem, place: Sequence[int]) -> Jobs:
        """Return the work of operators on their processors."""
        moves = cyclic.moves(place)
        routes = list(moves)
        number = {route: cyclic.operators + i for i, route in enumerate(routes)}
        time = [cyclic.time[v][p] for v, p in enumerate(place)]
        time += [cyclic.delay[f][place[cyclic.maker[f]]][q] for f, q in routes]
        before: Gaps = [[] for _ in time]
        for v, p in enumerate(place):
            for flow in cyclic.reads[v]:
                u = cyclic.maker[flow]
                if (moving := number.get((flow, p))) is None:
                    before[v].append((u, cyclic.delay[flow][place[u]][p]))
                else:
                    before[v].append((moving, 0))
                    before[moving] = [(u, 0)]
        after: Gaps = [[] for _ in time]
        for w, makers in enumerate(before):
            for u, gap in makers:
                after[u].append((w, gap))
        height = [0] * len(time)
        for route in reversed(topological(cyclic, routes)):
            behind = max((gap + height[x] for x, gap in after[route]), default=0)
            height[route] = time[route] + behind
        return cls(cyclic, place, routes, [*place, *moves.values()], time, before, after, height)

    def starts(self, schedule: ModuloSchedule) -> list[int]:
        """Return the starts of all work in a schedule on these processors."""
        moved = dict(schedule.moved)
        return [*schedule.start, *(moved[route] for route in self.routes)]

    def schedule(self, period: int, start: Sequence[int]) -> ModuloSchedule:
        """Return a schedule; the first operator starts at 0, transfers as late as they can."""
        count = self.cyclic.operators
        low = min(start[:count])
        moved = []
        for i, route in enumerate(self.routes, start=count):
            spare = min(start[x] for x, _ in self.after[i]) - start[i] - self.time[i]
            moved.append((route, start[i] - low + spare // period * period))
        ends = (at + time for at, time in zip(start[:count], self.time[:count], strict=True))
        return ModuloSchedule(
            period,
            tuple(self.place),
            tuple(at - low for at in start[:count]),
            tuple(moved),
            max(ends) - low,
        )


def topological(cyclic: CyclicProblem, routes: Sequence[tuple[int, int]]) -> list[int]:
    """Return all work, makers before readers."""
    behind: dict[int, list[int]] = {}
    for i, (flow, _) in enumerate(routes, start=cyclic.operators):
        behind.setdefault(cyclic.maker[flow], []).append(i)
    return [w for v in range(cyclic.operators) for w in (v, *behind.get(v, ()))]


def schedule_jobs(jobs: Jobs, period: int) -> ModuloSchedule | None:
    """Return a schedule of low latency.

    None if a load is above the period, or a transfer that is work would have to wait for its first
    reader until the next frame's begins, which no plan can say.
    """
    if max(jobs.cyclic.loads(jobs.place)) > period:
        return None
    start = _Placement(jobs, period).starts()
    schedule = jobs.schedule(period, tighten(jobs, period, start or pack(jobs, period)))
    return schedule if soon_read(jobs, schedule) else None


def soon_read(jobs: Jobs, schedule: ModuloSchedule) -> bool:
    """Return whether each transfer's first reader starts within a period of it."""
    for (flow, target), at in schedule.moved:
        readers = jobs.cyclic.problem.flows[flow].consumers
        first = min(schedule.start[v] for v in readers if jobs.place[v] == target)
        if first >= at + schedule.period:
            return False
    return True


class _Placement:
    """Places jobs, those with the longest path to the end first."""

    def __init__(self, jobs: Jobs, period: int) -> None:
        self.jobs, self.period = jobs, period
        count = len(jobs.time)
        self.start = [-1] * count
        self.last = [-1] * count
        self.on: dict[int, set[int]] = {resource: set() for resource in jobs.resource}
        self.circle: dict[int, Circle] = dict.fromkeys(self.on, FREE)
        self.arrivals = jobs.cyclic.arrivals(period)
        self.queue = [(-height, w) for w, height in enumerate(jobs.height)]
        heapify(self.queue)

    def starts(self) -> list[int] | None:
        """Return starts; None if there were too many attempts."""
        jobs = self.jobs
        for _ in range(ATTEMPTS * len(self.start)):
            if not self.queue:
                return self.start
            _, w = heappop(self.queue)
            jobs.placements += 1
            ready = self.arrivals[w] if w < jobs.cyclic.operators else 0
            for u, gap in jobs.before[w]:
                if self.start[u] >= 0:
                    ready = max(ready, self.start[u] + jobs.time[u] + gap)
            self._place(w, ready)
        return None

    def _place(self, w: int, ready: int) -> None:
        resource, time = self.jobs.resource[w], self.jobs.time[w]
        at = first_fit(self.circle[resource], self.period, ready, time)
        if at is None:
            at = self._displacing_start(w, ready)
            for other in [*self.on[resource]]:
                if self._overlap(at, time, other):
                    self._remove(other)
        self.start[w] = self.last[w] = at
        self.on[resource].add(w)
        self.circle[resource] = with_work(self.circle[resource], self.period, at, time)
        for x, gap in self.jobs.after[w]:
            if 0 <= self.start[x] < at + time + gap:
                self._remove(x)

    def _displacing_start(self, w: int, ready: int) -> int:
        """Return a start that displaces others: a later one than the last time."""
        last, resource = self.last[w], self.jobs.resource[w]
        if last < ready:
            return ready
        ends = (self.start[x] + self.jobs.time[x] - last for x in self.on[resource])
        return last + min(end % self.period or self.period for end in ends)

    def _overlap(self, at: int, time: int, other: int) -> bool:
        distance = (self.start[other] - at) % self.period
        return distance < time or self.period - distance < self.jobs.time[other]

    def _remove(self, w: int) -> None:
        jobs, resource = self.jobs, self.jobs.resource[w]
        heappush(self.queue, (-jobs.height[w], w))
        self.on[resource].remove(w)
        self.circle[resource] = without_work(
            self.circle[resource], self.period, self.start[w], jobs.time[w]
        )
        self.start[w] = -1


def pack(jobs: Jobs, period: int) -> list[int]:
    """Return starts for which each resource works in a window of the period, in topological order.

    There are such starts whenever no load is above the period: what comes too early for its inputs
    goes some periods later.
    """
    used = [0] * jobs.cyclic.problem.resources
    start = [0] * len(jobs.time)
    arrivals = jobs.cyclic.arrivals(period)
    for w in topological(jobs.cyclic, jobs.routes):
        came = arrivals[w] if w < len(arrivals) else 0
        ready = max([came, *(start[u] + jobs.time[u] + gap for u, gap in jobs.before[w])])
        begin = used[jobs.resource[w]]
        used[jobs.resource[w]] += jobs.time[w]
        start[w] = ready + (begin - ready) % period
    return start


def tighten(jobs: Jobs, period: int, start: list[int]) -> list[int]:
    """Start all as early as the orders allow, then as late as the latency allows, and again.

    No frame then starts earlier or ends later: with several of them, each one's latency falls.
    """
    count, time = jobs.cyclic.operators, jobs.time
    arcs = order_arcs(jobs, period, start, period)
    back = [(v, u, gap) for u, v, gap in arcs]
    frames = _frames_of_jobs(jobs)
    operators: list[list[int]] = [[] for _ in range(max(frames) + 1)]  # of each frame
    for v, frame in enumerate(frames[:count]):
        operators[frame].append(v)

    def firsts() -> list[int]:
        return [min([start[v] for v in own]) for own in operators]

    def lasts() -> list[int]:
        return [max([start[v] + time[v] for v in own]) for own in operators]

    best, latency = start, sum(lasts()) - sum(firsts())
    for _ in range(ROUNDS):
        begin = firsts()
        start = _least_starts(start, arcs, [begin[frame] for frame in frames])
        ends = lasts()
        last = max(ends)
        least = [last - ends[frame] for frame in frames]
        least[:count] = [at + time[v] for v, at in enumerate(least[:count])]
        start = [last - at for at in _least_starts([last - at for at in start], back, least)]
        low = min(start)
        start = [at - low for at in start]
        now = sum(lasts()) - sum(firsts())
        if now >= latency:
            break
        best, latency = start, now
    return best


def _frames_of_jobs(jobs: Jobs) -> list[int]:
    """Return the frame of all work; a transfer's is that of its maker."""
    cyclic = jobs.cyclic
    of = cyclic.frames.of if cyclic.frames else (0,) * cyclic.operators
    return [*of, *(of[cyclic.maker[flow]] for flow, _ in jobs.routes)]


def order_arcs(
    jobs: Jobs, period: int, start: Sequence[int], paced: int
) -> list[tuple[int, int, int]]:
    """Return (u, v, gap): v starts so much later than u; so all circles keep their order.

    Parameters
    ----------
    paced
        Period that the gaps are for; `start` is of the other one.
    """
    time = jobs.time
    arcs = [(u, w, time[u] + gap) for w, makers in enumerate(jobs.before) for u, gap in makers]
    on: dict[int, list[int]] = {}
    for w, resource in enumerate(jobs.resource):
        on.setdefault(resource, []).append(w)
    for each in on.values():
        each.sort(key=lambda w: start[w] % period)
        turn = {w: start[w] // period for w in each}
        arcs += [(u, w, time[u] + (turn[w] - turn[u]) * paced) for u, w in pairwise(each)]
        first, last = each[0], each[-1]
        if first != last:
            arcs.append((last, first, time[last] + (turn[first] - turn[last] - 1) * paced))
    return arcs


def _least_starts(
    start: Sequence[int], arcs: Sequence[tuple[int, int, int]], least: Sequence[int]
) -> list[int]:
    """Return the least starts that keep all arcs, which some starts do."""
    return longest_paths(sorted(arcs, key=lambda arc: start[arc[0]]), least)


def longest_paths(steps: Sequence[tuple[int, int, int]], least: Sequence[int]) -> list[int]:
    """Return the least distances that are no less than stated, and grow by each step's gain.

    Parameters
    ----------
    steps
        From where, to where, and the gain; no circle of steps gains anything. In about the order
        of the distances, one or two rounds do.
    """
    distance = [*least]
    changed = True
    while changed:
        changed = False
        for tail, head, gain in steps:
            if distance[tail] + gain > distance[head]:
                distance[head] = distance[tail] + gain
                changed = True
    return distance
