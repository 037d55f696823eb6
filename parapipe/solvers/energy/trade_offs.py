"""A bounded set of schedules that stands for all trades of time against energy.

Deadlines cut time into slabs. Of a slab it is known that every schedule in it takes at least so
much time and so much energy; a schedule at hand that takes little more of both stands for all of
them. Else the least energy under a deadline within the slab splits it. For every true pair of time
and energy there is then a schedule that matches it, as in Papadimitriou and Yannakakis (2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from math import floor, inf, sqrt, ulp
from time import perf_counter

from parapipe.solvers import cp_sat
from parapipe.solvers.assignments.enumerate import LEAST_S
from parapipe.solvers.assignments.tables import sparse
from parapipe.solvers.cp_sat import Budget
from parapipe.solvers.energy.energy_model import EnergyModel, dynamic_nj
from parapipe.solvers.energy.small_problems import enumerated_set, path_front
from parapipe.solvers.fine import mapper as fine
from parapipe.solvers.fine.integer_problem import IntegerProblem, integer_problem
from parapipe.solvers.fine.list_schedules import MOST_SEARCHED, Placement, in_order
from parapipe.solvers.paths import list_order
from parapipe.solvers.problem import MICRO, NANO, MappingProblem, floor_units
from parapipe.solvers.replay import order_by_start, replay, with_transfers
from parapipe.solvers.schedule import Answer, Certificate, Energies, EnergyClaim, Schedule
from parapipe.solvers.verify import energy_of

PATHS = 0.2  # of the resolution: how near longest paths are followed
PATH_SETS = 0.5  # of the resolution: how near to each other their assignments are
PROOF = 0.25  # of the resolution: how near to the least energy a search has to come


def trade_offs(
    problem: MappingProblem,
    energy_j: Energies,
    fastest: Schedule,
    *,
    resolution: float,
    limit: int = 1000,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> Answer:
    """Find schedules between the shortest one and that of least energy; not verified yet.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p, finite wherever p supports v.
    fastest
        A schedule of the problem, the shortest if there is a proof of it.
    resolution
        Relative: 0.05 asks that for every schedule there is one in the set that takes at most 5 %
        more time and at most 5 % more energy. 0 asks for the exact set, in whole microseconds and
        nanojoules rounded down.
    limit
        Schedules at most, at least two.
    time_limit_s, deterministic
        As for `fine`. When it is over, what is known counts.

    Returns
    -------
    The set, with the resolution that it really has. Of a problem of more than `MOST_SEARCHED`
    operators it holds the two ends only. That is stated for exact times, so it can
    exceed the requested one by what rounding to microseconds takes away. Where transfers occupy
    something, the searches between the two ends take them for pure delays, whose bounds hold; the
    resolution says what that leaves open.

    Raises
    ------
    ValueError
        If energies are missing, negative or not finite, or the resolution is negative.
    """
    if not 0 <= resolution < inf:
        raise ValueError(f"the resolution is {resolution}; it must be 0 or more, and finite")
    check_energies(problem, energy_j)
    if time_limit_s >= LEAST_S:
        exact = small_set(
            problem, energy_j, lambda _: fastest, resolution=resolution, limit=limit, seed=seed
        )
        if exact:
            return exact
    import_module("ortools.sat.python.cp_model")  # heavy; loading it takes none of the time
    budget = Budget(time_limit_s, deterministic, perf_counter())
    search = _Search(problem, energy_j, resolution, budget, seed)
    search.begin(fastest, limit)
    search.refine(limit)
    return search.result()


def small_set(
    problem: MappingProblem,
    energy_j: Energies,
    fastest: Callable[[Schedule], Schedule],
    *,
    resolution: float,
    limit: int = 1000,
    seed: int,
) -> Answer | None:
    """Return the set of a small problem, from all its assignments; None if there are too many.

    Parameters
    ----------
    fastest
        As for `enumerated_set`.
    resolution, limit
        As for `trade_offs`.
    """
    gap = resolution * PROOF
    answer = enumerated_set(problem, energy_j, fastest, resolution=resolution, gap=gap, seed=seed)
    return answer if answer and len(answer.schedules) <= limit else None


@dataclass(frozen=True, slots=True)
class _Point:
    """A schedule, also in rounded times and energies."""

    schedule: Schedule
    placement: Placement
    energy_nj: int

    @property
    def time_us(self) -> int:
        return self.placement.makespan_units

    @property
    def pair(self) -> tuple[float, float]:
        return self.schedule.makespan_s, self.schedule.energy_j


@dataclass(frozen=True, slots=True)
class _Slab:
    """All schedules of at least `first_us` and at most `last_us`; they take at least `least_nj`."""

    first_us: int
    last_us: int
    least_nj: int

    def excess(self, points: Iterable[_Point]) -> float:
        """Share by which the point that fits best may be worse than a schedule of the slab."""
        return min(
            max(
                _excess_of(point.pair[0] * MICRO, self.first_us),
                _excess_of(point.pair[1] * NANO, self.least_nj),
            )
            for point in points
        )

    def is_exact(self, points: Iterable[_Point]) -> bool:
        """Tell whether a point is as good as all of the slab, in whole units."""
        return any(p.time_us <= self.first_us and p.energy_nj <= self.least_nj for p in points)


@dataclass(slots=True)
class _Search:
    """The points so far, the slabs that are done, and those that are open."""

    problem: MappingProblem
    energy_j: Energies
    resolution: float
    budget: Budget
    seed: int
    rounded: IntegerProblem = field(init=False)
    points: list[_Point] = field(default_factory=list)
    done: list[_Slab] = field(default_factory=list)
    open: list[_Slab] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rounded = integer_problem(self.problem)

    def begin(self, fastest: Schedule, limit: int) -> None:
        """Take the two ends, and the slabs before, between and behind them."""
        least_nj = sum(
            min(floor_units(e, NANO) for t, e in zip(times_s, row, strict=True) if t < inf)
            for times_s, row in zip(self.problem.time_s, self.energy_j, strict=True)
        )
        slowest = self._least_energy_schedule()
        claim = slowest.certificate
        first = self._end_point(fastest, fastest.makespan_s, least_nj)
        last = self._end_point(slowest, None, least_nj)
        self.points += [first, last]
        if not fastest.certificate.proven:
            bound_us = floor(fastest.certificate.bound_s * MICRO)
            self._add_slab(_Slab(bound_us, first.time_us - 1, least_nj))
        if self.resolution and self.problem.operators <= MOST_SEARCHED:
            self._follow_paths(first.time_us, last.time_us - 1, least_nj, limit - 2)
        else:
            self._add_slab(_Slab(first.time_us, last.time_us - 1, least_nj))
        reached_us = last.time_us if claim.proven else min(first.time_us, last.time_us)
        self._add_slab(_Slab(reached_us, last.time_us, least_nj))

    def _follow_paths(self, first_us: int, last_us: int, least_nj: int, limit: int) -> None:
        """Cut a slab where longest paths bound its energy better, and take what they suggest."""
        pure = replace(self.problem, transfer_resource=())
        share = self.resolution * PATHS
        front = path_front(pure, self.energy_j, share)
        numbers = sparse(front.time_s, front.energy_j, self.resolution * PATH_SETS)
        if len(numbers) > limit:
            self._add_slab(_Slab(first_us, last_us, least_nj))
            return
        slabs = []
        for at, following in pairwise([*numbers, len(front.time_s)]):
            began_s, processor = perf_counter(), front.processor[at].tolist()
            order = list_order(pure, processor, range(self.problem.operators))
            placement = in_order(self.rounded, processor, order)
            self.points.append(
                self._point(placement, least_nj, placement.makespan_units / MICRO, began_s)
            )
            end_us = last_us
            if following < len(front.time_s):
                # less what rounding down takes from each operator and transfer
                least_us = floor(front.time_s[following] * MICRO / (1 + share))
                end_us = min(least_us - 2 * self.problem.operators - 1, last_us)
            bound_nj = floor(front.energy_j[following - 1] * NANO) - self.problem.operators
            slabs.append(_Slab(first_us, end_us, max(bound_nj, least_nj)))
            first_us = max(first_us, end_us + 1)
        for slab in slabs:
            self._add_slab(slab)

    def refine(self, limit: int) -> None:
        """Split the slab whose schedules are matched worst, until all are matched well enough."""
        if not self.open or self.problem.operators > MOST_SEARCHED:
            return
        longest_us = max(slab.last_us for slab in self.open)
        model = EnergyModel(self.rounded, self.energy_j, longest_us, self.resolution * PROOF)
        while self.open and len(self._front()) < limit and self.budget.left_s:
            slab = max(self.open, key=lambda slab: slab.excess(self.points))
            self.open.remove(slab)
            self._split(slab, model)

    def result(self) -> Answer:
        """Return the points that no other is better than, and what they stand for."""
        front = self._front()
        worst = max(slab.excess(front) for slab in (*self.done, *self.open))
        timed_out = not self.budget.left_s
        return Answer(tuple(point.schedule for point in front), worst, timed_out)

    def _split(self, slab: _Slab, model: EnergyModel) -> None:
        began_s = perf_counter()
        deadline_us = self._deadline_us(slab)
        hint = min(self.points, key=lambda point: abs(point.time_us - deadline_us)).placement
        answer = model.solve(deadline_us, hint, budget=self.budget, seed=self.seed)
        self._add_slab(_Slab(deadline_us + 1, slab.last_us, slab.least_nj))
        if answer.bound_nj is None:
            return  # no schedule ends by then
        least_nj = max(answer.bound_nj, slab.least_nj)
        if answer.placement is None:
            self.done.append(_Slab(slab.first_us, deadline_us, least_nj))
            return
        point = self._point(answer.placement, least_nj, deadline_us / MICRO, began_s)
        self.points.append(point)
        self._add_slab(_Slab(slab.first_us, min(point.time_us - 1, deadline_us), least_nj))
        # nothing more is to be had here than the search has found
        rest = _Slab(max(point.time_us, slab.first_us), deadline_us, least_nj)
        if rest.first_us <= rest.last_us:
            self.done.append(rest)

    def _deadline_us(self, slab: _Slab) -> int:
        if not self.resolution or slab.last_us <= slab.first_us * (1 + self.resolution):
            return slab.last_us
        middle_us = floor(sqrt(max(slab.first_us, 1)) * sqrt(slab.last_us))
        return min(max(middle_us, slab.first_us), slab.last_us)

    def _add_slab(self, slab: _Slab) -> None:
        """Put a slab where it belongs, if it holds anything."""
        if slab.first_us > slab.last_us:
            return
        near = slab.excess(self.points) <= self.resolution or slab.is_exact(self.points)
        (self.done if near else self.open).append(slab)

    def _least_energy_schedule(self) -> Schedule:
        """Return the shortest of the schedules of least energy."""
        rows = []
        for times_s, energies_j in zip(self.problem.time_s, self.energy_j, strict=True):
            least_j = min(e for t, e in zip(times_s, energies_j, strict=True) if t < inf)
            rows.append(
                tuple(t if e == least_j else inf for t, e in zip(times_s, energies_j, strict=True))
            )
        return fine.map(
            replace(self.problem, time_s=tuple(rows)),
            time_limit_s=self.budget.left_s / 4,
            seed=self.seed,
            deterministic=self.budget.deterministic,
        )

    def _end_point(self, schedule: Schedule, deadline_s: float | None, least_nj: int) -> _Point:
        """Return an end of the set; the energy of the shortest is not claimed to be least."""
        taken_j = energy_of(self.energy_j, schedule.processor)
        taken_nj = dynamic_nj(self.energy_j, schedule.processor)
        claim = EnergyClaim(
            objective_j=taken_j,
            bound_j=min(least_nj / NANO, taken_j),
            deadline_s=deadline_s,
            proven=taken_nj <= least_nj,
        )
        with_energy = replace(schedule.certificate, energy=claim)
        order = order_by_start(schedule.start_s, schedule.end_s)
        return _Point(
            replace(schedule, certificate=with_energy),
            in_order(self.rounded, schedule.processor, order),
            taken_nj,
        )

    def _point(
        self, placement: Placement, least_nj: int, deadline_s: float, began_s: float
    ) -> _Point:
        """Return a placement in exact times, with what is proven about its energy."""
        pure = replace(self.problem, transfer_resource=())
        delayed = replay(
            pure, placement.processor, order_by_start(placement.start_units, placement.end_units)
        )
        times = with_transfers(self.problem, placement.processor, delayed)
        certificate = Certificate(
            proves="makespan",
            objective_s=times.makespan_s,
            bound_s=0.0,
            proven=times.makespan_s <= 0,
            wall_s=perf_counter() - began_s,
            seed=self.seed,
            solver=cp_sat.name(),
        )
        schedule = Schedule(
            placement.processor, times.start_s, times.end_s, certificate, times.transfers
        )
        return self._end_point(schedule, deadline_s, least_nj)

    def _front(self) -> list[_Point]:
        front: list[_Point] = []
        for point in sorted(self.points, key=lambda point: point.pair):
            time_s, energy_j = point.pair
            if front and energy_j >= front[-1].pair[1] - self._slack(energy_j):
                continue
            if front and front[-1].pair[0] >= time_s - self._slack(time_s):
                front.pop()
            front.append(point)
        return front

    def _slack(self, value: float) -> float:
        """Return what sums of the same figures in different orders can differ by."""
        return (self.problem.operators + 2) * ulp(value)


def _excess_of(value: float, least: int) -> float:
    """Share by which a value exceeds what is least."""
    if value <= least:
        return 0.0
    return value / least - 1 if least else inf


def check_energies(problem: MappingProblem, energy_j: Energies) -> None:
    """Raise a ValueError if there is not a finite energy wherever an operator can run."""
    if [len(row) for row in energy_j] != [problem.processors] * problem.operators:
        raise ValueError("energies must be given for every operator on every processor")
    wrong = [
        (v, p)
        for v, (times_s, energies_j) in enumerate(zip(problem.time_s, energy_j, strict=True))
        for p, (time_s, joules) in enumerate(zip(times_s, energies_j, strict=True))
        if time_s < inf and not 0 <= joules < inf
    ]
    if wrong:
        raise ValueError(f"(operator, processor) {wrong} have no energy, or a negative one")
