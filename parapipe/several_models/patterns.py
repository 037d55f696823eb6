"""Patterns of several models on the same processors, or each on its own.

A pattern is an interleaved mapping of the graph of all frames; its period is the common period of
the rates, or several of them. Every pattern that was found for a shorter period is stretched to
this one: the orders stay, and with them by how much the rates could grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, lcm

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.mapping import Mapping
from parapipe.mappings.service import frames_in
from parapipe.modulo.baselines import (
    Baseline,
    Baselines,
    join_problems,
    join_schedules,
    repeat_pattern,
    sub_problem,
)
from parapipe.modulo.beam_search import prices_of, values_of
from parapipe.modulo.cyclic_problem import CyclicProblem, Frames, ModuloSchedule
from parapipe.modulo.exact_latency import least_latency_by_cp_sat
from parapipe.modulo.latency_curve import ABOVE, ROUNDING, period_shares
from parapipe.modulo.least_latency import fit_loads, least_latency
from parapipe.modulo.least_period import LeastPeriod, bound_s, least_period, restrict_to
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.modulo.reordering import reorder_jobs
from parapipe.modulo.verify import check
from parapipe.problems.problems import whole_problem
from parapipe.search.interleaved import low_energy_schedules, mapping_of, served_within
from parapipe.solvers.problem import NANO, MappingProblem

FEW = 12  # operators of a pattern for which the least latency is solved for as well
EXACT_LIMIT_S = 2.0  # of counted work for it
LIMIT_S = 2.0  # of counted work for the least period of all models
FAVOURED = 4.0  # times as urgent as the others
STAGGER = 0.382  # of a period between models' first frames, the golden section
WITHOUT_DEADLINE = 2.0  # times its longest path is what a model's latency is measured by
SHARES = 12  # divisions that give models processors of their own that are scheduled, the best ones


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked for a model.

    Parameters
    ----------
    rate_fps
        Frames a second.
    deadline_s
        Most latency; infinite if any will do.
    priority
        What its latency counts in comparison to others'.
    """

    name: str
    rate_fps: float
    deadline_s: float = inf
    priority: float = 1.0


@dataclass(frozen=True, slots=True)
class LeastPeriods:
    """How long a pattern takes at least.

    Parameters
    ----------
    shared
        With processors shared.
    bound_s
        No pattern that keeps the rates takes less for as many seconds of them, however long it is.
    own_processors, in_turn, one_each
        See `Baselines`; None where there is none.
    """

    shared: LeastPeriod
    bound_s: float
    own_processors: Baseline | None
    in_turn: Baseline
    one_each: Baseline | None

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """Those that there are."""
        return tuple(filter(None, (self.own_processors, self.in_turn, self.one_each)))


@dataclass
class Patterns:
    """The search for patterns of several models.

    Parameters
    ----------
    graph, costs
        All frames of a pattern.
    demands
        Of each model.
    period_s
        In which the frames come.
    over
        Whether to end.
    """

    graph: OperatorGraph
    costs: CostTable
    demands: Sequence[Demand]
    period_s: float
    seed: int = 0
    over: Callable[[], bool] = lambda: False
    problem: MappingProblem = field(init=False)
    frames: Frames = field(init=False)
    baselines: Baselines = field(init=False)
    period: int = field(init=False)

    def __post_init__(self) -> None:
        self.problem = whole_problem(self.graph, self.costs)
        frames = frames_in(self.graph)
        parts = [*_one_of_each(self.problem, frames)]
        self.baselines = Baselines(parts, frames.counts, self.seed, self.over)
        step = lcm(*frames.counts)  # so that frames come in equal steps
        self.period = int(self.period_s * NANO * (1 + 1e-12)) // step * step
        self.frames = replace(frames, urgency=self._urgency(parts))

    def _urgency(self, parts: Sequence[MappingProblem]) -> tuple[float, ...]:
        scales = [
            WITHOUT_DEADLINE * CyclicProblem(each).critical_path
            if demand.deadline_s == inf
            else demand.deadline_s * NANO
            for each, demand in zip(parts, self.demands, strict=True)
        ]
        counted = [d.priority / scale for d, scale in zip(self.demands, scales, strict=True)]
        return tuple(each * len(counted) / sum(counted) for each in counted)

    def reached(self, assignments: Sequence[tuple[int, ...]] = ()) -> LeastPeriods:
        """Return how long a pattern takes at least: of shared processors never above others.

        Parameters
        ----------
        assignments
            None of them takes less with processors shared.
        """
        own, serial, one_each = (
            self.baselines.own_processors(),
            self.baselines.in_turn(),
            self.baselines.one_each(),
        )
        incumbents = [
            *assignments,
            *(each.processor for each in (own, serial, one_each) if each),
        ]
        return LeastPeriods(
            self.least(self.problem, incumbents),
            self.bound_s(self.frames.counts),
            own and self._served(own),
            self._served(serial),
            one_each and self._served(one_each),
        )

    def _served(self, baseline: Baseline) -> Baseline:
        """Return a baseline with a period in which the memory can serve all frames."""
        least_s = self.costs.memory_range_s()[0]
        return replace(baseline, period_s=max(baseline.period_s, least_s))

    def least(
        self, problem: MappingProblem, incumbents: Sequence[tuple[int, ...]] = ()
    ) -> LeastPeriod:
        """Return the least period of a problem; no known assignment has less."""
        least = least_period(
            problem, time_limit_s=LIMIT_S, seed=self.seed, deterministic=True, known=incumbents
        )
        return served_within(least, self.costs, problem.operators / self.problem.operators)

    def bound_s(self, counts: Sequence[int]) -> float:
        """Return what so many frames of each model take at least, in patterns of any length.

        Where a pattern gives a model a bit more than its rate, its frames count less.
        """
        shares = [
            min(1.0, demand.rate_fps * self.period_s / count)
            for demand, count in zip(self.demands, self.frames.counts, strict=True)
        ]
        needed = [*map(_scaled, self.baselines.problems, shares)]
        served_s = sum(
            count * share * time_s
            for count, share, time_s in zip(counts, shares, self._memory_s, strict=True)
        )
        return max(bound_s(join_problems(needed, counts)), served_s * (1 - ROUNDING))

    @cached_property
    def _memory_s(self) -> list[float]:
        """Seconds in which the memory serves one frame of each model, at least."""
        of_models = [0.0] * len(self.frames.counts)
        if self.costs.bandwidth_bytes_per_s is None:
            return of_models
        for frame, (least_s, _) in zip(self.frames.of, self.costs.memory_ranges_s(), strict=True):
            of_models[self.frames.model[frame]] += least_s
        return [a / count for a, count in zip(of_models, self.frames.counts, strict=True)]

    def mappings_of(self, schedules: Iterable[ModuloSchedule], times: int) -> Iterator[Mapping]:
        """Yield schedules of a pattern that is so many times shorter as mappings of this one."""
        counts = [count // times for count in self.frames.counts]
        for each in schedules:
            yield self.mapped(repeat_pattern(self.baselines.problems, counts, each, times))

    def schedules(
        self,
        reached: LeastPeriods,
        *,
        energy: bool,
        tell: Callable[[int, int], None],
        below_s: float = inf,
    ) -> Iterator[ModuloSchedule]:
        """Yield patterns that keep the period, each at its own: `mapped` stretches it.

        Parameters
        ----------
        energy
            Whether it is an objective.
        tell
            Called with the numbers of searches that are done and of all.
        below_s
            Other patterns are known that take so many seconds or more: only those that take less
            are searched for, or less energy.
        """
        attempts = [each for each in self._periods_tried(reached) if each[0] < below_s * NANO]
        incumbents = [reached.shared.processor, *(each.processor for each in reached.baselines)]
        prices = [float(each) for each in prices_of(CyclicProblem(self.problem))]
        for done, (period, frames) in enumerate(attempts):
            tell(done, len(attempts))
            if self.over():
                return
            cyclic = CyclicProblem(self.problem, frames)
            above = period / (reached.shared.period_s * NANO) - 1
            if cyclic.operators <= FEW and period == self.period and not frames.phase:
                exact = least_latency_by_cp_sat(
                    cyclic, period, most=EXACT_LIMIT_S, seed=self.seed
                ).schedule
                yield from filter(None, (exact,))
            begin = [p for each in incumbents if (p := fit_loads(cyclic, each, period, prices))]
            values = values_of(cyclic, period, self.seed)
            schedule = least_latency(
                cyclic, period, values, begin, above=above, seed=self.seed, over=self.over
            )
            if schedule is not None:
                yield reorder_jobs(cyclic, schedule, self.seed) if above <= ABOVE[0] else schedule
        yield from self._by_loads(incumbents)
        if below_s == inf:
            yield from self._on_own_processors()
        if energy:
            yield from self._of_low_energy()
        tell(len(attempts), len(attempts))

    def _periods_tried(self, reached: LeastPeriods) -> Iterator[tuple[int, Frames]]:
        """Yield the periods that are tried, and what is urgent there."""
        least_s, models = reached.shared.period_s, len(self.demands)
        ratio = self.period / NANO / least_s
        staggered = tuple(model * STAGGER % 1 for model in range(models))
        if ratio >= 1:
            yield self.period, self.frames
            yield self.period, replace(self.frames, phase=staggered)
            for model in range(models):
                urgent = [*self.frames.urgency]
                urgent[model] *= FAVOURED
                yield self.period, replace(self.frames, urgency=tuple(urgent))
        for share in period_shares(ratio, len(self.graph.operators)):
            period = int(least_s * NANO * (1 + share))
            if period >= max(map(min, CyclicProblem(self.problem).time)):
                yield period, self.frames

    def _by_loads(self, incumbents: Sequence[tuple[int, ...]]) -> Iterator[ModuloSchedule]:
        """Yield schedules of assignments at the least periods that these allow."""
        cyclic = CyclicProblem(self.problem, self.frames)
        for place in incumbents:
            period = max(cyclic.loads(place))
            if period <= self.period and (
                schedule := schedule_jobs(Jobs.of(cyclic, place), period)
            ):
                yield reorder_jobs(cyclic, schedule, self.seed)

    def _on_own_processors(self) -> Iterator[ModuloSchedule]:
        """Yield patterns with processors of its own for each model."""
        if self.baselines.own_processors() is None:
            return
        able = [
            (sum(map(len, sets)), sets)
            for sets in self.baselines.shares()
            if all(self.baselines.fits(*each, self.period / NANO) for each in enumerate(sets))
        ]
        schedules: dict[tuple[int, tuple[int, ...]], ModuloSchedule | None] = {}
        for _, sets in sorted(able)[:SHARES]:
            for key in enumerate(sets):
                if key not in schedules and not self.over():
                    schedules[key] = self._of_one_model(*key)
            parts = [
                (self.baselines.frames_of(model), each)
                for model, own in enumerate(sets)
                if (each := schedules.get((model, own)))
            ]
            if len(parts) == len(sets):
                yield join_schedules(parts, self.period)

    def _of_low_energy(self) -> Iterator[ModuloSchedule]:
        """Yield patterns of little energy, at their own periods and, with less latency, at this."""
        cyclic = CyclicProblem(self.problem, self.frames)
        seen: set[tuple[int, ...]] = set()
        for each, _ in low_energy_schedules(cyclic, self.costs, self.seed, self.over):
            if each.period > self.period:
                continue
            yield each
            if each.processor not in seen and not self.over():
                seen.add(each.processor)
                if slow := schedule_jobs(Jobs.of(cyclic, each.processor), self.period):
                    yield reorder_jobs(cyclic, slow, self.seed)

    def _of_one_model(self, model: int, processors: tuple[int, ...]) -> ModuloSchedule | None:
        """Return a schedule of all frames of one model on some processors.

        All are scheduled in the same way if one frame can in its share of the period.
        """
        baselines, count = self.baselines, self.frames.counts[model]
        problem, least, period = (
            baselines.problems[model],
            baselines.one(model, processors),
            self.period,
        )
        assert least is not None
        together = count * least.period_s * NANO > period
        frames = Frames((problem.operators,), (count,), (1.0,)) if together else None
        if together:
            problem, least = baselines.frames_of(model), baselines.alone(model, processors)
            assert least is not None
        else:
            period //= count
        limited = restrict_to(problem, processors)
        assert limited is not None
        cyclic = CyclicProblem(limited, frames)
        above = period / (least.period_s * NANO) - 1
        values = values_of(cyclic, period, self.seed)
        schedule = least_latency(
            cyclic, period, values, [least.processor], above=above, seed=self.seed, over=self.over
        )
        return schedule and (
            schedule if together else repeat_pattern([problem], [1], schedule, count)
        )

    def mapped(self, schedule: ModuloSchedule) -> Mapping:
        """Return a schedule, which is checked, as a mapping of the asked period."""
        check(self.problem, schedule)
        return mapping_of(self._stretched(schedule), self.graph, self.costs)

    def _stretched(self, schedule: ModuloSchedule) -> ModuloSchedule:
        """Return a schedule at the asked period, each frame's first start in the first period."""
        period = schedule.period
        end = [
            at + CyclicProblem(self.problem).time[v][p]
            for v, (at, p) in enumerate(zip(schedule.start, schedule.processor, strict=True))
        ]
        first = [begin for begin, _ in self.frames.spans(schedule.start, end)]
        back = [begin // period * period for begin in first]
        makers = CyclicProblem(self.problem).maker

        def at(time: int, frame: int) -> int:
            lag, begin = divmod(time - back[frame], period)
            return lag * self.period + begin

        of = self.frames.of
        start = tuple(at(time, of[v]) for v, time in enumerate(schedule.start))
        moved = tuple(((flow, q), at(time, of[makers[flow]])) for (flow, q), time in schedule.moved)
        return ModuloSchedule(self.period, schedule.processor, start, moved, schedule.latency)


def _scaled(problem: MappingProblem, share: float) -> MappingProblem:
    """Return a problem that takes a share of its times."""
    rows = tuple(tuple(time_s * share for time_s in row) for row in problem.time_s)
    flows = tuple(
        replace(
            flow,
            transfer_s=tuple(tuple(time_s * share for time_s in row) for row in flow.transfer_s),
        )
        for flow in problem.flows
    )
    return replace(problem, time_s=rows, flows=flows)


def _one_of_each(problem: MappingProblem, frames: Frames) -> Iterator[MappingProblem]:
    """Yield one frame of each model."""
    begin = 0
    for size, count in zip(frames.operators, frames.counts, strict=True):
        yield sub_problem(problem, begin, begin + size)
        begin += size * count
