"""Problems in the order of promise: those first that the best configurations ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import comb, inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.paths import simple_bound_s
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Answer, Certificate
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.periods import Periods
from parapipe.pipeline.problems import MOST_LOCATIONS, Request
from parapipe.pipeline.question import Question
from parapipe.pipeline.relaxed import Ask, Relaxed, Stretch

MOST_REQUESTS = 100_000  # that are all built and solved
NEAR = 0.6  # of what a bound is off by: so far it is raised by the next round
CLOSE = 0.8  # of the resolution
AT_ONCE = 60  # problems of a round, for each stage
KNOWN_EVERY = 3  # rounds: when it is looked for a shorter period of known schedules

Answered = Callable[[Sequence[Question]], Mapping[Question, Answer]]


@dataclass(slots=True)
class Promising:
    """Rounds of solving what shortest paths ask for, until they ask for nothing new.

    Parameters
    ----------
    relaxed
        Bounds of all requests; what is proven of solved ones replaces them.
    periods
        Likewise of the longest stage.
    resolution
        What latency may be off by, as a share, so that its bound is good enough.
    answers
        What has been solved.
    latency_s, period_s
        No configuration has less.
    """

    relaxed: Relaxed
    periods: Periods
    resolution: float = 0.0
    answers: dict[Question, Answer] = field(default_factory=dict)
    latency_s: float = 0.0
    period_s: float = 0.0
    _asked: dict[Ask, Request] = field(default_factory=dict)

    def solve(self, answered: Answered, deadline: Deadline) -> None:
        """Solve what is asked for, to the deadline: first what bounds latency and period."""
        relaxed = self.relaxed
        _, asked = relaxed.least_latency(relaxed.sets)
        self._round([*relaxed.least_energy(), *asked], answered)
        most_s = inf
        whole = Stretch(0, 0, relaxed.units, relaxed.sets[-1])
        while not deadline.over:
            self.latency_s, most_s, near = relaxed.between(whole)
            if self._is_close(self.latency_s, most_s):
                break
            limit_s = self.latency_s + NEAR * (most_s - self.latency_s)
            asked = [ask for length_s, ask in near if length_s <= limit_s]
            self._round(asked[:AT_ONCE] or self._open(relaxed.path(whole)), answered)
        for number in count():
            if deadline.over:
                return
            if number % KNOWN_EVERY == 0:
                most_s = min(most_s, self.periods.least(most_s, known=True)[0])
            self.period_s, stages = self.periods.least(most_s * (1 + self.resolution))
            walked = list(relaxed.walked(stages))
            parts = [relaxed.between(stage) for stage in walked]
            if self._is_close(self.period_s, most_s):
                return
            limit_s = self.period_s + NEAR * (most_s - self.period_s)
            asked = [ask for stage in (*stages, *walked) for ask in self._open(relaxed.path(stage))]
            for _, _, near in parts:
                asked += [ask for length_s, ask in near if length_s <= limit_s][:AT_ONCE]
            if not asked:
                return
            self._round(asked, answered)

    def _is_close(self, least_s: float, most_s: float) -> bool:
        return most_s <= least_s * (1 + self.resolution * CLOSE)

    def _open(self, asked: Sequence[Ask]) -> list[Ask]:
        return [ask for ask in asked if not self.relaxed.is_known(ask)]

    def _round(self, asked: Sequence[Ask], answered: Answered) -> None:
        requests = {ask: self.relaxed.request(ask) for ask in dict.fromkeys(asked)}
        questions = {ask: Question(request.problem) for ask, request in requests.items()}
        self.answers |= answered([*questions.values()])
        for ask, question in questions.items():
            found = self.answers.get(question)
            for each, names in self.relaxed.swapped(ask).items():
                self._asked[each] = self.relaxed.request(each)
                if found:
                    schedule = found.schedules[0]
                    bound_s = _proven_s(question.problem, schedule.certificate)
                    used = sum(1 << names[p] for p in schedule.used)
                    self.relaxed.put(each, bound_s, used)

    @property
    def requests(self) -> tuple[Request, ...]:
        """What was asked for, likewise for identical processors in other orders."""
        return tuple(sorted(self._asked.values(), key=lambda request: request.end))


def _proven_s(problem: MappingProblem, claim: Certificate) -> float:
    """Return what no schedule is shorter than."""
    bound_s = simple_bound_s(problem)
    return max(bound_s, claim.bound_s) if claim.proves == "makespan" else bound_s


def many_requests(graph: OperatorGraph, partition: Partition, costs: CostTable) -> bool:
    """Tell whether there are too many requests to build them all; an estimate from above."""
    processors = len(costs.processors)
    found = 0
    for index, unit in enumerate(partition.units):
        live = len(partition.boundaries[index])
        inside = set(unit.operators)
        makers = {graph.producer[name] for name in partition.boundaries[index + 1]} & inside
        most = min(processors, len(unit.operators))
        ways = sum(comb(processors, k) * k ** max(1, len(makers)) for k in range(1, most + 1))
        found += max(processors**live, MOST_LOCATIONS if live > 1 else 1) * ways
    return found > MOST_REQUESTS
