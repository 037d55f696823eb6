"""Several random models on the same processors, one pattern after the other."""

import random

from parapipe.graph.operator_graph import Member
from parapipe.graph.several import union
from parapipe.several_models.patterns import Demand, Patterns
from tests.cases.plan_cases import Costs, graph_of, operator


class Shared(Costs):
    """Costs of a pattern, on the first processors."""

    transfer_resource = ()

    def __init__(self, table, moved_s):
        super().__init__(table, {})
        self.moved = moved_s
        self.processors = Costs.processors[: len(table[0])]
        self.static_power_w = Costs.static_power_w[: len(table[0])]
        self.working = Costs.working[: len(table[0])]

    def transfer_s(self, name, p, q):
        return 0.0 if p == q else self.moved

    def transfer_matrix(self, name):
        count = range(len(self.processors))
        return tuple(tuple(self.transfer_s(name, p, q) for q in count) for p in count)

    def unsupported(self, v, p):
        return ""


def random_model(rng, operators, processors, longest=3):
    """A network of so many operators, and their times in whole seconds."""
    made = []
    for v in range(operators):
        before = [f"t{u}" for u in range(v)]
        reads = rng.sample(before, min(len(before), rng.randint(1, 2))) or ["x"]
        made.append(operator(f"t{v}", " ".join(reads)))
    graph = graph_of(made, inputs=["x"], outputs=[f"t{operators - 1}"])
    times = [[float(rng.randint(1, longest)) for _ in range(processors)] for _ in made]
    return graph, times


def patterns(models, counts, moved_s=0.0, demands=None, period_s=None):
    """The search for patterns; the period is that of one processor at its worst if not given."""
    pairs = [*zip(models, counts, strict=True)]
    members = [Member(f"m{i}", g.source, n) for i, ((g, _), n) in enumerate(pairs)]
    graph = union([each for each, _ in models], members)
    table = [row for (_, times), n in pairs for _ in range(n) for row in times]
    longest_s = sum(map(max, table)) + moved_s * len(table)
    period_s = period_s or longest_s
    demands = demands or [Demand(f"m{i}", n / period_s) for i, n in enumerate(counts)]
    return Patterns(graph, Shared(table, moved_s), demands, period_s)


def random_patterns(seed, *, models=2, least=2, most=4, counts=None, processors=2):
    """A random case of models with `least` to `most` operators each."""
    rng = random.Random(seed)
    found = [random_model(rng, rng.randint(least, most), processors) for _ in range(models)]
    return patterns(found, counts or (1,) * models, moved_s=float(rng.randint(0, 1)))
