"""The search `every-assignment`: each operator of a small model on each processor, in one stage."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf

from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.processes.deadline import Deadline
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.stages.candidates import Candidate


class EveryAssignment:
    """Yields what has a lower latency than all that it has tried before."""

    name = "every-assignment"
    moment = Moment.LATER

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield configurations; of each, parapipe takes the assignment and computes the figures."""
        graph, costs = problem.graph, problem.tables[0]
        operators, least_s = range(len(graph.operators)), inf
        if len(costs.processors) ** len(operators) > 10_000:
            problem.left_out("the model has too many operators to try every assignment")
            return
        for runs_on in product(range(len(costs.processors)), repeat=len(operators)):
            if any(costs.time_s(v, p) == inf for v, p in enumerate(runs_on)) or deadline.over:
                continue
            mapping = mapping_of(graph, None, costs, Assignment(runs_on, (tuple(operators),)))
            figures = evaluate(mapping, graph, costs)
            if figures.latency_s < least_s:
                least_s = figures.latency_s
                yield Configuration(mapping, figures, proven=False, gap=1.0, table=0)
