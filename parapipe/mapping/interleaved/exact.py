"""Least latency at a period by CP-SAT, for few operators: assignment given or free.

With frames of several models, what their latencies count is least, see `Frames.cost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from parapipe.mapping.interleaved.cyclic import NEVER, Cyclic, ModuloSchedule
from parapipe.mapping.interleaved.frames import Frames

PRECISION = 1000  # steps of what a nanosecond counts
SOLVED = (cp_model.OPTIMAL, cp_model.FEASIBLE)


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver found: a schedule if there is one, and a lower bound on the latency in ns.

    `proven`: no schedule has less latency, or there is none. With frames of several models, the
    bound is 0: what their latencies count is not bounded.
    """

    schedule: ModuloSchedule | None
    bound: int
    proven: bool


def solved(
    net: Cyclic,
    period: int,
    place: Sequence[int] | None = None,
    *,
    most: float = 10.0,
    seed: int = 0,
) -> Solution:
    """Return the schedule of least latency at a period.

    Parameters
    ----------
    place
        The processor of each operator; free if not given.
    most
        Deterministic time of the solver.
    """
    stated = _Stated(net, period, place)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = most
    status = solver.solve(stated.model)
    if status not in SOLVED:
        return Solution(None, net.critical_path, status == cp_model.INFEASIBLE)
    bound = 0 if net.frames else max(net.critical_path, round(solver.best_objective_bound))
    return Solution(stated.schedule(solver), bound, status == cp_model.OPTIMAL)


class _Stated:
    """The model: s = k T + t of all work; on the circle, work and its copy a period later."""

    def __init__(self, net: Cyclic, period: int, place: Sequence[int] | None) -> None:
        self.net, self.period = net, period
        self.model = cp_model.CpModel()
        self.on: dict[int, list[cp_model.IntervalVar]] = {}
        self.runs: list[dict[int, cp_model.IntVar]] = []
        # A frame need not wait a whole period for anything, and everything fits one by one.
        slowest = sum(max(t for t in row if t < NEVER) for row in net.time)
        moved = sum(max(map(max, delay)) for delay in net.delay)
        works = net.operators + len(net.delay) * net.processors
        self.horizon = slowest + moved + works * period
        self.start = [self._start() for _ in range(net.operators)]
        end = [self._runs(v, place) for v in range(net.operators)]
        self.moved: dict[tuple[int, int], tuple[cp_model.IntVar, cp_model.IntVar]] = {}
        for flow in range(len(net.delay)):
            self._flow(flow, end)
        self._transfers_wait()
        for each in self.on.values():
            self.model.add_no_overlap(each)
        if net.frames:
            self._frames(net.frames, end)
            return
        first, last = self._start(), self.model.new_int_var(0, 2 * self.horizon, "")
        self.model.add_min_equality(first, self.start)
        self.model.add(first < period)
        self.model.add_max_equality(last, end)
        self.model.minimize(last - first)

    def _frames(self, frames: Frames, end: Sequence[cp_model.IntVar]) -> None:
        """State what latencies count, see `Frames.cost`.

        Frames of a model are equal, so that they may as well come in the order of their numbers.
        """
        model, period = self.model, self.period
        come = [model.new_int_var(0, period - 1, "") for _ in frames.counts]
        latency = [model.new_int_var(0, 2 * self.horizon, "") for _ in frames.counts]
        for v, frame in enumerate(frames.of):
            which = frames.model[frame]
            number = frame - sum(frames.counts[:which])
            due = come[which] + number * period // frames.counts[which]
            model.add(self.start[v] >= due)
            model.add(end[v] - due <= latency[which])
        most = model.new_int_var(0, 1 << 60, "")
        counted = [
            round(urgent * PRECISION) * each
            for urgent, each in zip(frames.urgency, latency, strict=True)
        ]
        for each in counted:
            model.add(each <= most)
        model.minimize(100 * most + sum(counted))

    def _start(self) -> cp_model.IntVar:
        return self.model.new_int_var(0, self.horizon, "")

    def _on_circle(
        self, start: cp_model.IntVar, resource: int, time: int, present: cp_model.IntVar
    ) -> None:
        turn = self.model.new_int_var(0, self.horizon // self.period + 1, "")
        begin = self.model.new_int_var(0, self.period - 1, "")
        self.model.add(start == turn * self.period + begin)
        for shift in (0, self.period):
            self.on.setdefault(resource, []).append(
                self.model.new_optional_fixed_size_interval_var(begin + shift, time, present, "")
            )

    def _runs(self, v: int, place: Sequence[int] | None) -> cp_model.IntVar:
        net, model = self.net, self.model
        able = [p for p, t in enumerate(net.time[v]) if t < NEVER and t <= self.period]
        if place is not None:
            able = [p for p in able if p == place[v]]
        runs = {p: model.new_bool_var("") for p in able}
        model.add_exactly_one(runs.values())
        self.runs.append(runs)
        end = model.new_int_var(0, 2 * self.horizon, "")
        model.add(end == self.start[v] + sum(net.time[v][p] * runs[p] for p in able))
        for p in able:
            self._on_circle(self.start[v], p, net.time[v][p], runs[p])
        return end

    def _flow(self, flow: int, end: Sequence[cp_model.IntVar]) -> None:
        net, model, u = self.net, self.model, self.net.maker[flow]
        for v in net.problem.flows[flow].consumers if u >= 0 else ():
            model.add(self.start[v] >= end[u])
            for p, made in self.runs[u].items():
                for q, read in self.runs[v].items():
                    delay = net.delay[flow][p][q]
                    if not delay:
                        continue
                    resource = net.resource[p][q]
                    if resource is None:
                        model.add(self.start[v] >= end[u] + delay).only_enforce_if(made, read)
                        continue
                    self._transfer(flow, v, (p, q), resource, end[u])

    def _transfer(
        self, flow: int, v: int, pair: tuple[int, int], resource: int, made: cp_model.IntVar
    ) -> None:
        """State that a reader waits for the transfer of its tensor between two processors."""
        model, (p, q) = self.model, pair
        delay = self.net.delay[flow][p][q]
        key = (flow, p * self.net.processors + q)
        if key not in self.moved:
            start, present = self._start(), model.new_bool_var("")
            self.moved[key] = start, present
            model.add(start >= made).only_enforce_if(present)
            self._on_circle(start, resource, delay, present)
        start, present = self.moved[key]
        both = (self.runs[self.net.maker[flow]][p], self.runs[v][q])
        model.add_bool_or(present, both[0].negated(), both[1].negated())
        model.add(self.start[v] >= start + delay).only_enforce_if(*both)

    def _transfers_wait(self) -> None:
        """State that the first reader starts within a period of a transfer's start."""
        net, model = self.net, self.model
        for (flow, pair), (start, present) in self.moved.items():
            p, q = divmod(pair, net.processors)
            made = self.runs[net.maker[flow]][p]
            soon = []
            for v in net.problem.flows[flow].consumers:
                if q in self.runs[v]:
                    near = model.new_bool_var("")
                    model.add_implication(near, self.runs[v][q])
                    model.add(self.start[v] < start + self.period).only_enforce_if(near)
                    soon.append(near)
            model.add_implication(present, made)
            model.add_bool_or(*soon, present.negated())

    def schedule(self, solver: cp_model.CpSolver) -> ModuloSchedule:
        """Return what was found; the first operator starts at 0."""
        net = self.net
        place = tuple(
            next(p for p, runs in each.items() if solver.boolean_value(runs)) for each in self.runs
        )
        start = [solver.value(each) for each in self.start]
        low = min(start)
        moved = tuple(
            ((flow, pair % net.processors), solver.value(at) - low)
            for (flow, pair), (at, present) in self.moved.items()
            if solver.boolean_value(present)
        )
        ends = (at + net.time[v][place[v]] for v, at in enumerate(start))
        return ModuloSchedule(
            self.period, place, tuple(at - low for at in start), moved, max(ends) - low
        )
