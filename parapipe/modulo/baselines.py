"""Several models without sharing: on processors of their own, or round-robin.

A pattern's operators are those of the first model's frames, one frame after the other, then those
of the next model's. No flow joins two frames.

All by loads, as `least_period`: with transfers as pure delays there is a schedule for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf

from parapipe.modulo.cyclic_problem import ModuloSchedule, ceil_ns
from parapipe.modulo.least_period import LeastPeriod, bound_s, least_period, restrict_to
from parapipe.modulo.least_period import period_s as period_of
from parapipe.solvers.paths import complete_processors
from parapipe.solvers.problem import Flow, MappingProblem


def sub_problem(problem: MappingProblem, begin: int, end: int) -> MappingProblem:
    """Return a range of operators that no flow joins to others, as a problem of its own."""
    flows = tuple(
        _renumbered(flow, -begin)
        for flow in problem.flows
        if begin <= (flow.consumers[0] if flow.producer is None else flow.producer) < end
    )
    return replace(
        problem, time_s=problem.time_s[begin:end], flows=flows, structure=tuple(range(end - begin))
    )


def join_problems(problems: Sequence[MappingProblem], counts: Sequence[int]) -> MappingProblem:
    """Return so many frames of each problem as one problem; all are of the same processors."""
    rows: list[tuple[float, ...]] = []
    flows: list[Flow] = []
    for problem, count in zip(problems, counts, strict=True):
        for _ in range(count):
            flows += (_renumbered(flow, len(rows)) for flow in problem.flows)
            rows += problem.time_s
    return replace(
        problems[0], time_s=tuple(rows), flows=tuple(flows), structure=tuple(range(len(rows)))
    )


def _renumbered(flow: Flow, by: int) -> Flow:
    return replace(
        flow,
        producer=None if flow.producer is None else flow.producer + by,
        consumers=tuple(v + by for v in flow.consumers),
    )


def join_schedules(
    parts: Sequence[tuple[MappingProblem, ModuloSchedule]], period: int
) -> ModuloSchedule:
    """Return schedules of problems as one schedule of a period, in nanoseconds."""
    place: list[int] = []
    start: list[int] = []
    end: list[int] = []
    moved: list[tuple[tuple[int, int], int]] = []
    flows = 0
    for problem, each in parts:
        place += each.processor
        start += each.start
        end += (
            at + max(1, ceil_ns(row[p]))
            for row, at, p in zip(problem.time_s, each.start, each.processor, strict=True)
        )
        moved += (((flow + flows, q), at) for (flow, q), at in each.moved)
        flows += len(problem.flows)
    return ModuloSchedule(period, tuple(place), tuple(start), tuple(moved), max(end) - min(start))


def repeat_pattern(
    problems: Sequence[MappingProblem], counts: Sequence[int], schedule: ModuloSchedule, times: int
) -> ModuloSchedule:
    """Return the schedule of a pattern, several times one after the other, as of a longer one.

    Parameters
    ----------
    problems, counts
        A frame of each model, and how many of them the schedule has.
    """
    parts: list[tuple[MappingProblem, ModuloSchedule]] = []
    begin = flows = 0
    for problem, count in zip(problems, counts, strict=True):
        frames = []
        for _ in range(count):
            frames.append(_part_of(schedule, problem, begin, flows))
            begin += problem.operators
            flows += len(problem.flows)
        parts += (
            (problem, _later(frame, turn * schedule.period))
            for turn in range(times)
            for frame in frames
        )
    return join_schedules(parts, times * schedule.period)


def _part_of(
    schedule: ModuloSchedule, problem: MappingProblem, begin: int, flows: int
) -> ModuloSchedule:
    """Return what a schedule says of one frame, given its first operator and its first flow."""
    end, beyond = begin + problem.operators, flows + len(problem.flows)
    return replace(
        schedule,
        processor=schedule.processor[begin:end],
        start=schedule.start[begin:end],
        moved=tuple(
            ((flow - flows, q), at) for (flow, q), at in schedule.moved if flows <= flow < beyond
        ),
    )


def _later(schedule: ModuloSchedule, by: int) -> ModuloSchedule:
    return replace(
        schedule,
        start=tuple(at + by for at in schedule.start),
        moved=tuple((route, at + by) for route, at in schedule.moved),
    )


LIMIT_S = 0.3  # of counted work for the least period of a model on a set of processors
MOST_PROCESSORS = 6  # of which all divisions among models are tried
MOST_WAYS = 20_000
ROUNDING = 1e-9  # share by which a least period may be above its bound: rounding

_Share = tuple[int, tuple[int, ...]]  # a model and its processors


@dataclass(frozen=True, slots=True)
class Baseline:
    """Where several models run without sharing, and the period.

    Parameters
    ----------
    period_s
        Seconds that a pattern takes at least.
    processor
        Of each operator of all frames.
    sets
        Processors of each model.
    """

    period_s: float
    processor: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Baselines:
    """Several models, one frame of each as a problem, and how many frames a pattern has."""

    problems: Sequence[MappingProblem]
    counts: Sequence[int]
    seed: int
    over: Callable[[], bool] = lambda: False

    _one: dict[_Share, LeastPeriod | None] = field(default_factory=dict, init=False)
    _alone: dict[_Share, LeastPeriod | None] = field(default_factory=dict, init=False)
    _bound_s: dict[_Share, float] = field(default_factory=dict, init=False)

    def frames_of(self, model: int) -> MappingProblem:
        """Return all frames of a model as one problem."""
        return join_problems([self.problems[model]], [self.counts[model]])

    def one(self, model: int, processors: tuple[int, ...]) -> LeastPeriod | None:
        """Return the least period of one frame on some processors; None if they do not run it."""
        key = (model, processors)
        if key not in self._one:
            limited = restrict_to(self.problems[model], processors)
            self._one[key] = self._least(limited) if limited else None
        return self._one[key]

    def alone(self, model: int, processors: tuple[int, ...]) -> LeastPeriod | None:
        """Return the least period of all frames of a model on some processors.

        Each frame is assigned by itself. None if the processors do not run the model.
        """
        key = (model, processors)
        if key not in self._alone:
            self._alone[key] = self._all_frames(model, processors)
        return self._alone[key]

    def _all_frames(self, model: int, processors: tuple[int, ...]) -> LeastPeriod | None:
        one, count = self.one(model, processors), self.counts[model]
        if one is None or count == 1:
            return one
        places = one.processor * count
        limited = restrict_to(self.frames_of(model), processors)
        assert limited is not None  # one frame runs there
        bound_s = self.bound_s(model, processors)
        if count * one.period_s <= bound_s * (1 + ROUNDING):
            period_s = period_of(limited, places)
            return replace(one, period_s=period_s, bound_s=min(bound_s, period_s), processor=places)
        return self._least(limited, [places])

    def _least(self, problem: MappingProblem, known: Sequence[tuple[int, ...]] = ()) -> LeastPeriod:
        return least_period(
            problem, time_limit_s=LIMIT_S, seed=self.seed, deterministic=True, known=known
        )

    def bound_s(self, model: int, processors: tuple[int, ...]) -> float:
        """Return what all frames of a model take at least on some processors; infinite if none.

        No pattern has less for as many frames, however long it is.
        """
        key = (model, processors)
        if key not in self._bound_s:
            limited = restrict_to(self.problems[model], processors)
            self._bound_s[key] = self.counts[model] * bound_s(limited) if limited else inf
        return self._bound_s[key]

    def fits(self, model: int, processors: tuple[int, ...], period_s: float) -> bool:
        """Tell whether all frames of a model take at most a period on some processors."""
        if self.bound_s(model, processors) > period_s:
            return False
        one = self.one(model, processors)
        if one and self.counts[model] * one.period_s <= period_s:
            return True
        alone = self.alone(model, processors)
        return alone is not None and alone.period_s <= period_s

    @property
    def processors(self) -> range:
        """All of them."""
        return range(self.problems[0].processors)

    def shares(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Yield all divisions that give each model processors of its own; some may stay unused."""
        models = range(len(self.problems))
        for owner in product((*models, -1), repeat=len(self.processors)):
            sets = tuple(tuple(p for p in self.processors if owner[p] == each) for each in models)
            if all(sets):
                yield sets

    def own_processors(self) -> Baseline | None:
        """Return the best with processors of its own for each model.

        None if there are fewer processors than models, some model cannot run so, or there are too
        many divisions to try.
        """
        count = len(self.processors)
        if count > MOST_PROCESSORS or (len(self.problems) + 1) ** count > MOST_WAYS:
            return None
        floors = (
            (max(self.bound_s(*each) for each in enumerate(sets)), number, sets)
            for number, sets in enumerate(self.shares())
        )
        best: tuple[float, int, tuple[tuple[int, ...], ...]] | None = None
        for floor_s, number, sets in sorted(floors):
            if floor_s == inf or (best and floor_s > best[0]) or self.over():
                break
            periods = [self.alone(model, each) for model, each in enumerate(sets)]
            candidate = max(each.period_s if each else inf for each in periods), number, sets
            best = min(best, candidate) if best else candidate
        return best and Baseline(best[0], self._assignment(best[2]), best[2])

    def _assignment(self, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        processor: list[int] = []
        for model, each in enumerate(sets):
            least = self.alone(model, each)
            assert least is not None
            processor += least.processor
        return tuple(processor)

    def in_turn(self) -> Baseline:
        """Return one model after the other on all processors, each at its best throughput."""
        everyone = tuple(self.processors)
        periods = [self.alone(model, everyone) for model in range(len(self.problems))]
        period_s = sum(each.period_s for each in periods if each)
        sets = (everyone,) * len(self.problems)
        return Baseline(period_s, self._assignment(sets), sets)

    def one_each(self) -> Baseline | None:
        """Return the best with each model on a single processor, which several may share.

        None if no processor runs some model whole.
        """
        able = [complete_processors(problem) for problem in self.problems]
        load_s = [
            {p: count * sum(row[p] for row in problem.time_s) for p in each}
            for problem, count, each in zip(self.problems, self.counts, able, strict=True)
        ]
        best: tuple[float, tuple[int, ...]] | None = None
        for chosen in product(*able):
            busy = [0.0] * len(self.processors)
            for each, p in zip(load_s, chosen, strict=True):
                busy[p] += each[p]
            if best is None or max(busy) < best[0]:
                best = max(busy), chosen
        if best is None:
            return None
        processor = [
            p
            for problem, count, p in zip(self.problems, self.counts, best[1], strict=True)
            for _ in range(count * problem.operators)
        ]
        return Baseline(best[0], tuple(processor), tuple((p,) for p in best[1]))
