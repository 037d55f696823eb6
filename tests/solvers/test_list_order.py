"""The order of list scheduling, against a plain choice among all operators that wait."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.paths import arrival_s, inputs_of, list_order
from tests.cases.random_dags import dags


def plain(problem, processor, priority):
    """Look at all operators whose inputs are made, again and again."""
    inputs = inputs_of(problem)
    order, end_s, free_s = [], [0.0] * problem.operators, [0.0] * problem.processors
    while len(order) < problem.operators:
        able = [
            v
            for v in range(problem.operators)
            if v not in order
            and all(flow.producer is None or flow.producer in order for flow in inputs[v])
        ]
        start_s = {
            v: max(arrival_s(inputs[v], processor[v], processor, end_s), free_s[processor[v]])
            for v in able
        }
        v = min(able, key=lambda v: (start_s[v], priority[v], v))
        free_s[processor[v]] = end_s[v] = start_s[v] + problem.time_s[v][processor[v]]
        order.append(v)
    return tuple(order)


@settings(max_examples=200, deadline=None)
@given(dags(most_operators=9, support=False), st.integers(0, 1000))
def test_the_operator_that_can_start_first_starts_first(problem, seed) -> None:
    rng = random.Random(seed)
    processor = [rng.randrange(problem.processors) for _ in range(problem.operators)]
    priority = [rng.randrange(4) for _ in range(problem.operators)]
    assert list_order(problem, processor, priority) == plain(problem, processor, priority)
