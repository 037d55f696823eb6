"""Small random problems with everything that makes mapping hard, in whole microseconds."""

from __future__ import annotations

import random
from math import inf

from parapipe.solvers.problem import Flow, MappingProblem

MICRO = 1e-6


def small_problem(seed: int, least: int = 3, most: int = 6) -> MappingProblem:
    """Operators on two or three processors.

    A quarter of the pairs is unsupported, some operators are pinned to a processor, some take no
    time. Transfers differ with pair and direction, tensors have several readers, two tensors may
    join the same operators, and tensors from outside release their readers late.
    """
    draw = random.Random(f"small {seed}")
    processors = draw.choice((2, 3))
    operators = draw.randint(least, most)
    rows = tuple(_row(draw, processors) for _ in range(operators))
    flows = []
    for u in range(operators - 1):
        for _ in range(draw.choice((0, 1, 1, 1, 2))):
            readers = tuple(v for v in range(u + 1, operators) if draw.random() < 0.4)
            flows.append(Flow(u, readers, _transfer(draw, processors)))
    for _ in range(draw.randint(0, 3)):
        readers = tuple(sorted(draw.sample(range(operators), draw.randint(1, 3))))
        home = draw.randrange(processors)
        flows.append(Flow(None, readers, _transfer(draw, processors), home))
    return MappingProblem(rows, tuple(flows), tuple(range(operators)))


def _row(draw: random.Random, processors: int) -> tuple[float, ...]:
    row = [draw.randint(100, 5000) * MICRO for _ in range(processors)]
    if draw.random() < 0.1:
        row = [0.0] * processors
    kept = draw.randrange(processors)
    pinned = draw.random() < 0.15
    return tuple(
        t if p == kept or not (pinned or draw.random() < 0.25) else inf for p, t in enumerate(row)
    )


def _transfer(draw: random.Random, processors: int) -> tuple[tuple[float, ...], ...]:
    most_us = draw.choice((50, 1000, 6000))
    return tuple(
        tuple(0.0 if p == q else draw.randint(0, most_us) * MICRO for q in range(processors))
        for p in range(processors)
    )
