"""Several models without sharing: what they reach on processors of their own, or in turn.

All by loads, as `least_period`: with transfers as pure delays there is a schedule for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf

from parapipe.mapping.interleaved.loads import LeastPeriod, least_period, restricted
from parapipe.mapping.problem import Flow, MappingProblem

LIMIT_S = 0.3  # of counted work for the least period of a model on a set of processors
MOST_PROCESSORS = 6  # of which all ways to share them out are tried
MOST_WAYS = 20_000


@dataclass(frozen=True, slots=True)
class Rival:
    """A way to run several models.

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


def part(problem: MappingProblem, begin: int, end: int) -> MappingProblem:
    """Return a range of operators that no flow joins to others, as a problem of its own."""
    flows = tuple(
        Flow(
            None if flow.producer is None else flow.producer - begin,
            tuple(v - begin for v in flow.consumers),
            flow.transfer_s,
            flow.location,
        )
        for flow in problem.flows
        if begin <= (flow.consumers[0] if flow.producer is None else flow.producer) < end
    )
    return replace(
        problem,
        time_s=problem.time_s[begin:end],
        flows=flows,
        structure=tuple(range(end - begin)),
    )


def without(problem: MappingProblem, begin: int, end: int) -> MappingProblem | None:
    """Return a problem without a range of operators that no flow joins to others; None if empty."""
    if end - begin == problem.operators:
        return None
    gone = end - begin

    def number(v: int) -> int:
        return v if v < begin else v - gone

    flows = tuple(
        replace(
            flow,
            producer=None if flow.producer is None else number(flow.producer),
            consumers=tuple(map(number, flow.consumers)),
        )
        for flow in problem.flows
        if not begin <= (flow.consumers[0] if flow.producer is None else flow.producer) < end
    )
    return replace(
        problem,
        time_s=(*problem.time_s[:begin], *problem.time_s[end:]),
        flows=flows,
        structure=tuple(range(problem.operators - gone)),
    )


@dataclass(frozen=True)
class Rivals:
    """Several models, one frame of each as a problem, and how many frames a pattern has."""

    problems: Sequence[MappingProblem]
    counts: Sequence[int]
    seed: int
    over: Callable[[], bool] = lambda: False

    @cached_property
    def _known(self) -> dict[tuple[int, tuple[int, ...]], LeastPeriod | None]:
        return {}

    def alone(self, model: int, processors: tuple[int, ...]) -> LeastPeriod | None:
        """Return the least period of a model on some processors; None if they do not run it."""
        key = (model, processors)
        if key not in self._known:
            limited = restricted(self.problems[model], processors)
            self._known[key] = (
                least_period(limited, time_limit_s=LIMIT_S, seed=self.seed, deterministic=True)
                if limited
                else None
            )
        return self._known[key]

    @property
    def processors(self) -> range:
        """All of them."""
        return range(self.problems[0].processors)

    def shares(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Yield all ways to give each model processors of its own; some may stay unused."""
        models = range(len(self.problems))
        for owner in product((*models, -1), repeat=len(self.processors)):
            sets = tuple(tuple(p for p in self.processors if owner[p] == each) for each in models)
            if all(sets):
                yield sets

    def own_processors(self) -> Rival | None:
        """Return the best with processors of its own for each model.

        None if there are fewer processors than models, some model cannot run so, or there are too
        many ways to try.
        """
        count = len(self.processors)
        if count > MOST_PROCESSORS or (len(self.problems) + 1) ** count > MOST_WAYS:
            return None
        best: tuple[float, tuple[tuple[int, ...], ...]] | None = None
        for sets in self.shares():
            if self.over():
                break
            period_s = self._period_s(sets)
            if period_s < inf and (best is None or period_s < best[0]):
                best = period_s, sets
        return best and Rival(best[0], self._placed(best[1]), best[1])

    def _period_s(self, sets: Sequence[tuple[int, ...]]) -> float:
        found = [self.alone(model, each) for model, each in enumerate(sets)]
        return max(
            count * each.period_s if each else inf
            for count, each in zip(self.counts, found, strict=True)
        )

    def _placed(self, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        placed: list[int] = []
        for model, (count, each) in enumerate(zip(self.counts, sets, strict=True)):
            found = self.alone(model, each)
            assert found is not None
            placed += count * found.processor
        return tuple(placed)

    def in_turn(self) -> Rival:
        """Return one model after the other on all processors, each at its best throughput."""
        everyone = tuple(self.processors)
        found = [self.alone(model, everyone) for model in range(len(self.problems))]
        period_s = sum(
            count * each.period_s for count, each in zip(self.counts, found, strict=True) if each
        )
        sets = (everyone,) * len(self.problems)
        return Rival(period_s, self._placed(sets), sets)

    def one_each(self) -> Rival | None:
        """Return the best with each model on a single processor, which several may share.

        None if no processor runs some model whole.
        """
        able = [
            [p for p in self.processors if all(row[p] < inf for row in problem.time_s)]
            for problem in self.problems
        ]
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
        placed = [
            p
            for problem, count, p in zip(self.problems, self.counts, best[1], strict=True)
            for _ in range(count * problem.operators)
        ]
        return Rival(best[0], tuple(placed), tuple((p,) for p in best[1]))
