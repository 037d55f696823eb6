"""Problems of any shape for properties, and what can be said of them by trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import inf

from hypothesis import strategies as st

from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay

MICRO = 1e-6


@st.composite
def dags(draw, most_operators=7, support=True, outside=True):
    """Any directed acyclic graph: also several tensors from one operator to another, tensors that
    nobody reads, operators that take no time, transfers that differ with pair and direction."""
    operators = draw(st.integers(1, most_operators))
    processors = draw(st.integers(1, 3))
    times = [us * MICRO for us in (0, 70, 800, 1_234, 2_500, 4_000)]
    row = st.tuples(*[st.sampled_from([*times, inf] if support else times)] * processors)
    rows = draw(st.tuples(*[row.filter(lambda row: min(row) < inf)] * operators))
    moved = st.lists(st.integers(0, 3_000), min_size=9, max_size=9)

    def transfer():
        cells = draw(moved)
        return tuple(
            tuple(0.0 if p == q else cells[3 * p + q] * MICRO for q in range(processors))
            for p in range(processors)
        )

    flows = []
    for u in draw(st.lists(st.integers(0, operators - 1), max_size=operators + 3)):
        readers = draw(st.sets(st.integers(0, operators - 1), max_size=4))
        flows.append(Flow(u, tuple(v for v in sorted(readers) if v > u), transfer()))
    if outside:
        for home in draw(st.lists(st.integers(0, processors - 1), max_size=2)):
            readers = draw(st.sets(st.integers(0, operators - 1), max_size=3))
            flows.append(Flow(None, tuple(sorted(readers)), transfer(), home))
    return MappingProblem(rows, tuple(flows), tuple(range(operators)))


def placements(problem: MappingProblem) -> Iterator[tuple[int, ...]]:
    """Every way to give each operator a processor that supports it."""
    return product(*[[p for p, t in enumerate(row) if t < inf] for row in problem.time_s])


def least_makespan_s(problem: MappingProblem) -> float:
    """The optimum, by trying every placement in every topological order."""
    edges = [(f.producer, v) for f in problem.flows for v in f.consumers if f.producer is not None]
    orders = [
        order
        for order in permutations(range(problem.operators))
        if all(order.index(u) < order.index(v) for u, v in edges)
    ]
    return min(
        replay(problem, processor, order).makespan_s
        for processor in placements(problem)
        for order in orders
    )
