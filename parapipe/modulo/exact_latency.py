"""Least latency at periods of a range by CP-SAT, for few operators: assignment given or free.

An operator v starts s_v after its frame entered. Two jobs on one resource do not overlap in
all periods if s_v - s_u lies between t_u + k T and (k + 1) T - t_v for some whole k: a disjunction
of few k, each linear in the period T, so that T may be searched, too.

With frames of several models, what their latencies count is least, see `Frames.cost`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from ortools.sat.python import cp_model

from parapipe.modulo.cyclic_problem import NEVER, CyclicProblem, Frames, ModuloSchedule
from parapipe.solvers.cp_sat import run_cp_sat

PRECISION = 1000  # steps of what a nanosecond counts
LARGEST = 1 << 62  # that an objective may be


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver found: a schedule if there is one, and a lower bound on the latency in ns.

    `proven`: no schedule has less latency, or there is none within the limit. `effort` is what
    that took of the solver's deterministic time. With frames of several models, the bound is 0:
    what their latencies count is not bounded.
    """

    schedule: ModuloSchedule | None
    bound: int
    proven: bool
    effort: float


def least_latency_by_cp_sat(
    cyclic: CyclicProblem,
    period: int,
    place: Sequence[int] | None = None,
    *,
    shortest: int | None = None,
    latency: int | None = None,
    incumbent: ModuloSchedule | None = None,
    most: float = 10.0,
    seed: int = 0,
) -> Solution:
    """Return the schedule of least latency at a period, or at any of a range.

    Times are those of the cyclic problem, rounded up, so a bound holds to within a nanosecond for
    each job.

    Parameters
    ----------
    period
        The longest one.
    place
        The processor of each operator; free if not given.
    shortest
        Of the periods; the same as the longest if not given.
    latency
        The most that counts; any if not given.
    incumbent
        A schedule to begin with.
    most
        Deterministic time of the solver.
    """
    if latency is None:
        latency = _longest_latency(cyclic, period)
    shortest = period if shortest is None else max(1, shortest)
    able = [
        [p for p, t in enumerate(row) if t <= period and (place is None or p == place[v])]
        for v, row in enumerate(cyclic.time)
    ]
    if not all(able) or shortest > period or latency < cyclic.critical_path:
        return Solution(None, max(cyclic.critical_path, latency + 1), True, 0.0)
    programme = _LatencyProgramme(cyclic, (shortest, period), latency, able)
    if incumbent is not None:
        programme.hint(incumbent)
    outcome = run_cp_sat(
        programme.model,
        most_s=most,
        seed=seed,
        linearization_level=2,
        # of frames, presolving gave a worse schedule as the best one, with OR-Tools 9.15
        cp_model_presolve=not cyclic.frames,
    )
    effort = outcome.work_s
    if outcome.infeasible:
        return Solution(None, latency + 1, True, effort)
    bound = 0 if cyclic.frames else cyclic.critical_path
    if not outcome.found:
        return Solution(None, bound, False, effort)
    if not cyclic.frames:
        bound = max(bound, round(outcome.bound))
    return Solution(programme.schedule(outcome.solver), bound, outcome.optimal, effort)


def _longest_latency(cyclic: CyclicProblem, period: int) -> int:
    """Return a latency that suffices: nothing need wait a whole period, all one by one."""
    slowest = sum(max(t for t in row if t < NEVER) for row in cyclic.time)
    transfers = sum(max(map(max, delay)) for delay in cyclic.delay)
    jobs = cyclic.operators + len(cyclic.delay) * cyclic.processors
    waits = jobs + (2 if cyclic.frames else 0)  # frames of a period come one after the other
    return slowest + transfers + waits * period


class _Job(NamedTuple):
    """What may keep a resource busy: an operator, or a transfer of a flow between processors."""

    start: cp_model.IntVar
    time: int
    present: cp_model.IntVar
    route: tuple[int, int, int] | None


def _may_meet(one: _Job, other: _Job) -> bool:
    """Tell whether two jobs of a resource, at least one a transfer, can be in one schedule."""
    if one.route is None or other.route is None:
        return one.route is not other.route
    (flow, source, _), (other_flow, other_source, _) = one.route, other.route
    return flow != other_flow or source == other_source  # a tensor is made in one place


class _LatencyProgramme:
    """The model: starts from a frame's entry, where everything runs, the period, the latency."""

    def __init__(
        self,
        cyclic: CyclicProblem,
        periods: tuple[int, int],
        latency: int,
        able: Sequence[Sequence[int]],
    ) -> None:
        self.cyclic, self.periods, self.most = cyclic, periods, latency
        self.model = cp_model.CpModel()
        self._bound_starts(able)
        new = self.model.new_int_var
        self.period = new(*periods, "")
        self.runs = [{p: self.model.new_bool_var("") for p in each} for each in able]
        self.start = [
            new(head, max(head, latency - tail), "")
            for head, tail in zip(self.head, self.tail, strict=True)
        ]
        self.time = [self._runs_once(v) for v in range(cyclic.operators)]
        self.moved: dict[tuple[int, int, int], _Job] = {}
        for flow in range(len(cyclic.delay)):
            self._state_flow(flow)
        self._state_disjoint()
        if cyclic.frames:
            self._state_frames(cyclic.frames)
            return
        self.last = new(max(map(sum, zip(self.head, self.tail, strict=True))), latency, "")
        for start, time in zip(self.start, self.time, strict=True):
            self.model.add(self.last >= start + time)
        self.model.minimize(self.last)

    def _state_frames(self, frames: Frames) -> None:
        """State what latencies count, see `Frames.cost`.

        Frames of a model are equal, so that they may as well come in the order of their numbers.
        """
        model, period = self.model, self.periods[1]
        come = [model.new_int_var(0, period - 1, "") for _ in frames.counts]
        latency = [model.new_int_var(0, self.most, "") for _ in frames.counts]
        for v, frame in enumerate(frames.of):
            which = frames.model[frame]
            number = frame - sum(frames.counts[:which])
            due = come[which] + number * period // frames.counts[which]
            model.add(self.start[v] >= due)
            model.add(self.start[v] + self.time[v] - due <= latency[which])
        room = LARGEST / self.most / (100 * max(frames.urgency) + sum(frames.urgency))
        weights = [round(urgent * min(PRECISION, room)) for urgent in frames.urgency]
        most = model.new_int_var(0, max(weights) * self.most, "")
        counted = [weight * each for weight, each in zip(weights, latency, strict=True)]
        for each in counted:
            model.add(each <= most)
        model.minimize(100 * most + sum(counted))

    def _bound_starts(self, able: Sequence[Sequence[int]]) -> None:
        """Find how long a frame takes at least before each operator, and from its start on."""
        cyclic = self.cyclic
        count = range(cyclic.operators)
        least = [min(cyclic.time[v][p] for p in able[v]) for v in count]
        self.head, self.tail = [0] * cyclic.operators, [0] * cyclic.operators
        self.behind: list[set[int]] = [set() for _ in count]
        for v in count:
            for u in cyclic.before[v]:
                self.head[v] = max(self.head[v], self.head[u] + least[u])
                self.behind[v] |= {u} | self.behind[u]
        for v in reversed(count):
            self.tail[v] = least[v] + max((self.tail[w] for w in cyclic.after[v]), default=0)

    def _runs_once(self, v: int) -> cp_model.IntVar:
        runs, times = self.runs[v], self.cyclic.time[v]
        domain = cp_model.Domain.from_values([times[p] for p in runs])
        time = self.model.new_int_var_from_domain(domain, "")
        self.model.add_exactly_one(runs.values())
        self.model.add(time == sum(times[p] * x for p, x in runs.items()))
        return time

    def _state_flow(self, flow: int) -> None:
        cyclic, model, u = self.cyclic, self.model, self.cyclic.maker[flow]
        for v in cyclic.problem.flows[flow].consumers if u >= 0 else ():
            model.add(self.start[v] >= self.start[u] + self.time[u])
            for p, makes in self.runs[u].items():
                for q, reads in self.runs[v].items():
                    delay = cyclic.delay[flow][p][q]
                    if not delay:
                        continue
                    arrived = self.start[u] + cyclic.time[u][p] + delay
                    if cyclic.resource[p][q] is not None:
                        transfer = self._state_transfer((flow, p, q))
                        model.add_bool_or(transfer.present, ~makes, ~reads)
                        arrived = transfer.start + delay
                    model.add(self.start[v] >= arrived).only_enforce_if(makes, reads)

    def _state_transfer(self, route: tuple[int, int, int]) -> _Job:
        """State a transfer that keeps something busy; it waits less than a period to be read."""
        if route in self.moved:
            return self.moved[route]
        (flow, p, q), cyclic, model = route, self.cyclic, self.model
        u = cyclic.maker[flow]
        start = model.new_int_var(self.head[u], self.most, "")
        present = model.new_bool_var("")
        model.add_implication(present, self.runs[u][p])
        model.add(start >= self.start[u] + cyclic.time[u][p]).only_enforce_if(present)
        soon = []
        for v in cyclic.problem.flows[flow].consumers:
            if q in self.runs[v]:
                near = model.new_bool_var("")
                model.add_implication(near, self.runs[v][q])
                model.add(self.start[v] < start + self.period).only_enforce_if(near)
                soon.append(near)
        model.add_bool_or(*soon, ~present)
        self.moved[route] = _Job(start, cyclic.delay[flow][p][q], present, route)
        return self.moved[route]

    def _state_disjoint(self) -> None:
        """State that what is on one resource takes turns, and fits into the period."""
        anyhow = (-self.most, self.most)
        on: dict[int, list[_Job]] = {}
        for v, runs in enumerate(self.runs):
            for p, x in runs.items():
                job = _Job(self.start[v], self.cyclic.time[v][p], x, None)
                on.setdefault(p, []).append(job)
        for (_, p, q), job in self.moved.items():
            resource = self.cyclic.resource[p][q]
            assert resource is not None
            on.setdefault(resource, []).append(job)
        for jobs in on.values():
            self.model.add(sum(each.time * each.present for each in jobs) <= self.period)
            for one, other in combinations(jobs, 2):
                if _may_meet(one, other):
                    each = [*self._orders(one[:2], other[:2], (one.time, other.time), anyhow)]
                    self.model.add_bool_or(*each, ~one.present, ~other.present)
        for u, v in combinations(range(self.cyclic.operators), 2):
            self._state_disjoint_operators(u, v)

    def _state_disjoint_operators(self, u: int, v: int) -> None:
        common = self.runs[u].keys() & self.runs[v].keys()
        if not common:
            return
        times = [min(self.cyclic.time[w][p] for p in common) for w in (u, v)]
        first = self.head[v] - self.most + self.tail[u]
        last = self.most - self.tail[v] - self.head[u]
        if u in self.behind[v]:
            first = max(first, times[0])
        if v in self.behind[u]:
            last = min(last, -times[1])
        one, other = ((self.start[w], self.time[w]) for w in (u, v))
        orders = [*self._orders(one, other, (times[0], times[1]), (first, last))]
        for p in sorted(common):
            self.model.add_bool_or(*orders, ~self.runs[u][p], ~self.runs[v][p])

    def _orders(
        self,
        one: tuple[cp_model.IntVar, cp_model.IntVar | int],
        other: tuple[cp_model.IntVar, cp_model.IntVar | int],
        least: tuple[int, int],
        distance: tuple[int, int],
    ) -> Iterator[cp_model.IntVar]:
        """Yield for each k that is possible what states that so many periods lie between starts.

        Parameters
        ----------
        one, other
            Start and time of both.
        least
            Their times at least.
        distance
            From which to which number the second start minus the first can be.
        """
        (shortest, longest), most = self.periods, self.most // self.periods[0] + 2
        for k in range(-most, most + 1):
            early = least[0] + min(k * shortest, k * longest)
            late = max((k + 1) * shortest, (k + 1) * longest) - least[1]
            if early > distance[1] or late < distance[0]:
                continue
            holds = self.model.new_bool_var("")
            after = other[0] - one[0]
            self.model.add(after >= one[1] + k * self.period).only_enforce_if(holds)
            self.model.add(after + other[1] <= (k + 1) * self.period).only_enforce_if(holds)
            yield holds

    def hint(self, incumbent: ModuloSchedule) -> None:
        """Give the solver a schedule that it may keep or change."""
        self.model.add_hint(self.period, incumbent.period)
        for v, p in enumerate(incumbent.processor):
            self.model.add_hint(self.start[v], incumbent.start[v])
            for q, runs in self.runs[v].items():
                self.model.add_hint(runs, p == q)

    def schedule(self, solver: cp_model.CpSolver) -> ModuloSchedule:
        """Return what was found; the first operator starts at 0."""
        place = tuple(
            next(p for p, runs in each.items() if solver.boolean_value(runs)) for each in self.runs
        )
        start = [solver.value(each) for each in self.start]
        low = min(start)
        transfers = tuple(
            ((flow, q), solver.value(job.start) - low)
            for (flow, _, q), job in self.moved.items()
            if solver.boolean_value(job.present)
        )
        ends = (at + self.cyclic.time[v][place[v]] for v, at in enumerate(start))
        return ModuloSchedule(
            solver.value(self.period), place, tuple(at - low for at in start), transfers,
            max(ends) - low,
        )  # fmt: skip
