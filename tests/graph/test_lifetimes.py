"""Live tensors: counted behind each node, and few of them at a time."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.graph.lifetimes import Lifetime, count_live_behind, low_memory_order


@st.composite
def networks(draw):
    """Draw up to 6 nodes that make a tensor each, read by later ones; some come from outside."""
    n = draw(st.integers(1, 6))
    edges = draw(st.sets(st.sampled_from([*combinations(range(n), 2)] or [(0, 0)]), max_size=9))
    readers = {u: frozenset(w for v, w in edges if v == u and w > v) for u in range(n)}
    kept = draw(st.sets(st.integers(0, n - 1)))
    outside = draw(st.lists(st.frozensets(st.integers(0, n - 1), min_size=1), max_size=2))
    return n, [
        *(Lifetime(u, readers[u], u in kept) for u in range(n) if readers[u] or u in kept),
        *(Lifetime(None, names) for names in outside),
    ]


def is_topological(order, lifetimes):
    at = {node: i for i, node in enumerate(order)}
    return all(at[t.maker] < at[r] for t in lifetimes if t.maker is not None for r in t.readers)


@given(networks())
def test_the_order_is_topological_and_holds_every_node_once(case):
    n, lifetimes = case
    order = low_memory_order(n, lifetimes)
    assert sorted(order) == list(range(n))
    assert is_topological(order, lifetimes)


@given(networks())
def test_live_tensors_are_those_made_before_and_read_behind(case):
    n, lifetimes = case
    order = low_memory_order(n, lifetimes)
    for i, live in enumerate(count_live_behind(order, lifetimes)):
        before, behind = {None, *order[: i + 1]}, set(order[i + 1 :])
        waiting = [
            t for t in lifetimes if t.maker in before and (t.live_at_end or t.readers & behind)
        ]
        assert live == len(waiting)


def test_heads_go_where_their_tensor_is_made_though_the_file_lists_them_last():
    # 0-1-2 is the trunk; 3-4, 5-6 and 7-8 are heads on 0, 1 and 2.
    lifetimes = [
        Lifetime(0, frozenset({1, 3})), Lifetime(1, frozenset({2, 5})), Lifetime(2, frozenset({7})),
        Lifetime(3, frozenset({4})), Lifetime(5, frozenset({6})), Lifetime(7, frozenset({8})),
    ]  # fmt: skip
    order = low_memory_order(9, lifetimes)
    assert order == [0, 3, 4, 1, 2, 7, 8, 5, 6]
    assert max(count_live_behind(order, lifetimes)) == 2
    assert max(count_live_behind(range(9), lifetimes)) == 3


def test_of_equal_choices_the_lowest_node_goes_first():
    assert low_memory_order(3, []) == [0, 1, 2]


def test_nodes_that_wait_for_each_other_have_no_order():
    circle = [Lifetime(0, frozenset({1})), Lifetime(1, frozenset({0}))]
    with pytest.raises(ValueError, match="wait for each other"):
        low_memory_order(2, circle)
