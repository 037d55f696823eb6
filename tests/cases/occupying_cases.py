"""Problems in which transfers keep their sender, their receiver or a shared link busy."""

from __future__ import annotations

import random
from math import inf

from parapipe.solvers.problem import Flow, MappingProblem

MICRO = 1e-6
SENDER = ((None, 0), (1, None))
RECEIVER = ((None, 1), (0, None))
LINK = ((None, 2), (2, None))
FAR = ((0.0, 3.0), (3.0, 0.0))


def fork(transfer_resource) -> MappingProblem:
    """0 on processor 0 is read by 1 on processor 1, 3 s away; 2 on processor 0 by nobody."""
    rows = ((1.0, inf), (inf, 1.0), (2.0, inf))
    return MappingProblem(rows, (Flow(0, (1,), FAR),), (0, ((1,), (2,))), transfer_resource)


def any_problem(seed: int, most_operators: int = 5) -> MappingProblem:
    """Any graph, any times, any mixture of what transfers occupy, nothing included."""
    rng = random.Random(seed)
    operators, processors = rng.randint(1, most_operators), rng.randint(1, 3)
    everyone = range(processors)

    def row():
        times = [rng.choice([0, 70, 800, 1_234, 2_500, 4_000]) * MICRO for _ in everyone]
        able = [t if rng.random() < 0.85 else inf for t in times]
        return tuple(able if min(able) < inf else times)

    def moved():
        us = [0, 1, 300, 900, 2_000, 3_000]
        return tuple(
            tuple(0.0 if p == q else rng.choice(us) * MICRO for q in everyone) for p in everyone
        )

    flows = []
    for u in range(operators):
        for _ in range(rng.randint(0, 2)):
            readers = tuple(v for v in range(u + 1, operators) if rng.random() < 0.5)
            flows.append(Flow(u, readers, moved()))
    if rng.random() < 0.5:
        readers = tuple(v for v in range(operators) if rng.random() < 0.5)
        flows.append(Flow(None, readers, moved(), rng.randrange(processors)))
    kind = rng.choice(["sender", "receiver", "link", "any", "any"])

    def transfer_resource(p, q):
        two_links = (processors, processors + 1)
        of = {"sender": p, "receiver": q, "link": processors}
        return of.get(kind, rng.choice([None, p, q, *two_links]))

    carriers = tuple(
        tuple(None if p == q else transfer_resource(p, q) for q in everyone) for p in everyone
    )
    rows = tuple(row() for _ in range(operators))
    return MappingProblem(rows, tuple(flows), tuple(range(operators)), carriers)
