"""Brute force: the least makespan of a small problem, sure because it is so simple.

Every schedule in which no operator could start earlier without another order on its processor is
built, operator by operator, in the order of starts. It shares no code with mappers and replay.
"""

from __future__ import annotations

from itertools import product
from math import inf

from parapipe.solvers.problem import MappingProblem


def optimum_s(problem: MappingProblem) -> float:
    """Least makespan over all placements and all orders, in seconds.

    Up to six or seven operators on three processors; four or five where transfers keep a resource
    busy.
    """
    if problem.transfer_resource:
        return _least_with_transfers_s(problem)
    return _Search(problem).best_s


def _least_with_transfers_s(problem: MappingProblem) -> float:
    """Try every placement, and for each every order of operators and transfers."""
    choices = [[p for p, time_s in enumerate(row) if time_s < inf] for row in problem.time_s]
    best_s = inf
    for placed in product(*choices):
        best_s = _Jobs(problem, placed).least_s(best_s)
    return best_s


class _Jobs:
    """Operators that have a processor, and transfers that keep something busy."""

    def __init__(self, problem: MappingProblem, placed: tuple[int, ...]) -> None:
        self.time_s = [problem.time_s[v][p] for v, p in enumerate(placed)]
        self.resource: list[object] = list(placed)
        # what each job waits for, and how long it takes from there; None is the start
        self.waits: list[list[tuple[int | None, float]]] = [[] for _ in placed]
        for flow in problem.flows:
            source = flow.location if flow.producer is None else placed[flow.producer]
            for q in {placed[v] for v in flow.consumers}:
                readers = [v for v in flow.consumers if placed[v] == q]
                moved_s = flow.transfer_s[source][q]
                origin = (flow.producer, moved_s)
                if q != source and problem.transfer_resource[source][q] is not None:
                    self.time_s.append(moved_s)
                    self.resource.append(problem.transfer_resource[source][q])
                    self.waits.append([(flow.producer, 0.0)])
                    origin = (len(self.time_s) - 1, 0.0)
                for v in readers:
                    self.waits[v].append(origin)

    def least_s(self, below_s: float) -> float:
        """Least makespan if it is below a known one, else that."""
        self.best_s = below_s
        self.extend({}, {}, 0.0)
        return self.best_s

    def extend(self, ends_s: dict[int, float], free_s: dict[object, float], last_s: float) -> None:
        """Add a job in every way in which it starts no earlier than the last one."""
        if len(ends_s) == len(self.time_s):
            self.best_s = max(ends_s.values())
            return
        for job, resource in enumerate(self.resource):
            waits = self.waits[job]
            if job in ends_s or any(u is not None and u not in ends_s for u, _ in waits):
                continue
            start_s = free_s.get(resource, 0.0)
            for u, apart_s in waits:
                start_s = max(start_s, (0.0 if u is None else ends_s[u]) + apart_s)
            end_s = start_s + self.time_s[job]
            if start_s >= last_s and end_s < self.best_s:
                self.extend({**ends_s, job: end_s}, {**free_s, resource: end_s}, start_s)


class _Search:
    def __init__(self, problem: MappingProblem) -> None:
        self.problem = problem
        operators = range(problem.operators)
        self.inputs = [[f for f in problem.flows if v in f.consumers] for v in operators]
        self.tail_s = [0.0] * problem.operators  # no schedule ends sooner after v's start
        for v in reversed(operators):
            readers = {w for f in problem.flows if f.producer == v for w in f.consumers}
            rest_s = max((self.tail_s[w] for w in readers), default=0.0)
            self.tail_s[v] = min(problem.time_s[v]) + rest_s
        self.processor: dict[int, int] = {}
        self.end_s: dict[int, float] = {}
        self.best_s = inf
        self.extend([0.0] * problem.processors, 0.0)

    def extend(self, free_s: list[float], last_s: float) -> None:
        """Add an operator in every way in which it starts no earlier than the last one."""
        if len(self.end_s) == self.problem.operators:
            self.best_s = min(self.best_s, max(self.end_s.values()))
            return
        for v, p in product(range(self.problem.operators), range(self.problem.processors)):
            time_s = self.problem.time_s[v][p]
            if v in self.end_s or time_s == inf or not self.is_ready(v):
                continue
            start_s = max(free_s[p], self.arrival_s(v, p))
            if start_s < last_s or start_s + self.tail_s[v] >= self.best_s:
                continue
            self.processor[v], self.end_s[v] = p, start_s + time_s
            if self.end_s[v] < self.best_s:
                self.extend([*free_s[:p], self.end_s[v], *free_s[p + 1 :]], start_s)
            del self.processor[v], self.end_s[v]

    def is_ready(self, v: int) -> bool:
        return all(f.producer is None or f.producer in self.end_s for f in self.inputs[v])

    def arrival_s(self, v: int, p: int) -> float:
        """When the last of v's inputs is on processor p."""
        latest_s = 0.0
        for flow in self.inputs[v]:
            if flow.producer is None:
                latest_s = max(latest_s, flow.transfer_s[flow.location][p])
            else:
                made_s = self.end_s[flow.producer]
                source = self.processor[flow.producer]
                latest_s = max(latest_s, made_s + flow.transfer_s[source][p])
        return latest_s
