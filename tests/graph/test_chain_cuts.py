"""Cuts inside units that are chains of operators, with skip connections around them."""

from __future__ import annotations

import random

import pytest

from parapipe.graph.cuts import MOST_LIVE
from parapipe.graph.inner_cuts import LARGEST_SHARE, cuts_in_chains
from parapipe.graph.partition import live_behind, partition
from tests.cases.shuffled import operators_of, residual, scattered, shuffled


def cut_of(graph, time_s=None):
    return cuts_in_chains(graph, partition(graph), time_s or [1.0] * len(graph.operators))


def test_a_large_chain_is_cut_between_its_operators_and_small_ones_are_not():
    # d reads a, and g reads e; b, c and d hold nearly half of the work, f and g nearly nothing
    graph = operators_of(
        {"a": "x", "b": "a", "c": "b", "d": "ac", "e": "d", "f": "e", "g": "ef", "h": "g"}
    )
    cuts = cut_of(graph, [1, 4, 3, 3, 0.1, 0.1, 0.1, 10])
    assert cuts.stretches == ((0,), (1,), (2,), (3,), (4,), (5, 6), (7,))
    assert cuts.boundaries == ((), ("a",), ("a", "b"), ("a", "c"), ("d",), ("e",), ("g",), ())
    found = {(at, run.end, run.alone) for at, runs in enumerate(cuts.runs) for run in runs}
    # before c and d, tensor a may come in while c runs; all of b, c and d wait for it
    assert found - {(at, at + 1, True) for at in range(7)} == {(2, 4, True), (1, 4, False)}


def test_what_is_parallel_stays_whole():
    graph = operators_of({"a": "x", "b": "a", "c": "a", "d": "bc"})
    assert cut_of(graph) is None


@pytest.mark.parametrize("seed", range(60))
def test_cuts_follow_from_their_definition(seed):
    rng = random.Random(seed)
    graph = residual(rng, 30) if seed % 2 else scattered(rng, 30)
    time_s = [rng.choice([0.1, 1.0, 5.0]) for _ in graph.operators]
    cuts, parts = cut_of(graph, time_s), partition(graph)
    if cuts is None:
        return
    assert sorted(v for each in cuts.stretches for v in each) == list(range(len(graph.operators)))
    before = []
    for stretch, live in zip(cuts.stretches, cuts.boundaries[1:], strict=True):
        before += stretch
        assert live == live_behind(graph, before)
        assert all({*graph.predecessors(v)} <= {*before} for v in before)
    ends = [before[: sum(map(len, cuts.stretches[:i]))] for i in range(len(cuts.boundaries))]
    units = {frozenset(unit.operators) for unit in parts.units}
    runs = {frozenset(run.unit.operators) for some in cuts.runs for run in some}
    assert units <= runs  # nothing is lost
    inner = [e for e in ends if not any({*e} == {*b} for b in ends_of(parts))]
    assert all(len(live_behind(graph, e)) <= MOST_LIVE for e in inner)
    for stretch in cuts.stretches:
        if frozenset(stretch) not in units and len(stretch) > 1:
            share = sum(time_s[v] for v in stretch) / sum(time_s)
            few = all(
                len(live_behind(graph, [*before_of(cuts, stretch), *stretch[:i]])) <= MOST_LIVE
                for i in range(1, len(stretch))
            )
            assert share <= LARGEST_SHARE or not few


def ends_of(parts):
    before = []
    yield []
    for unit in parts.units:
        before = [*before, *unit.operators]
        yield before


def before_of(cuts, stretch):
    return [v for each in cuts.stretches[: cuts.stretches.index(stretch)] for v in each]


@pytest.mark.parametrize("seed", range(20))
def test_cuts_do_not_depend_on_the_order_of_nodes(seed):
    rng = random.Random(seed)
    graph = residual(rng, 40)
    other = shuffled(graph, rng)
    one, two = (
        [{g.operators[v].id for v in each} for each in (cut_of(g) or partition(g).cuts).stretches]
        for g in (graph, other)
    )
    assert one == two
