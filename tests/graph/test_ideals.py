"""Cuts at every ideal: against all subsets of operators, by definition."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.graph.cuts import MOST_LIVE
from parapipe.graph.inner_cuts import MOST_IDEALS, MOST_OPERATORS, cuts_at_ideals
from parapipe.graph.partition import partition
from tests.cases.shuffled import operators_of, scattered


def at_ideals(graph, fits=lambda _cuts: True):
    return cuts_at_ideals(graph, partition(graph), fits)


def ideals_by_definition(graph):
    every = range(len(graph.operators))
    for size in range(len(every) + 1):
        for chosen in combinations(every, size):
            inside = set(chosen)
            if all(inside.issuperset(graph.predecessors(v)) for v in inside):
                yield inside


def live(graph, before):
    return sorted(
        name
        for name, maker in graph.producer.items()
        if maker in before and not before.issuperset(graph.consumers.get(name, ()))
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 8))
def test_boundaries_are_the_ideals_with_few_live_tensors_and_the_ends_of_units(seed, operators):
    graph = scattered(random.Random(seed), operators)
    found, ideals = at_ideals(graph), list(ideals_by_definition(graph))
    assert (found is None) == (len(ideals) > MOST_IDEALS)
    if found is None:
        return
    ends = [set()]
    for unit in partition(graph).units:
        ends.append(ends[-1] | {*unit.operators})
    wanted = [s for s in ideals if s in ends or len(live(graph, s)) <= MOST_LIVE]
    assert len(found.boundaries) == len(wanted)
    # each boundary is reached by runs, and what they have run is an ideal with its live tensors
    reached = {0: set()}
    for begin, runs in enumerate(found.runs):
        for run in runs:
            behind = reached[begin] | {*run.unit.operators}
            assert run.end > begin
            assert not reached[begin] & {*run.unit.operators}
            assert reached.setdefault(run.end, behind) == behind
    assert sorted(map(sorted, reached.values())) == sorted(map(sorted, wanted))
    for at, names in enumerate(found.boundaries):
        assert list(names) == live(graph, reached[at])
    along = [reached[at] for at in found.line]
    steps = [b - a for a, b in pairwise(along)]
    assert [set(some) for some in found.stretches] == steps


def test_a_chain_is_cut_where_its_units_are():
    chain = operators_of({f"t{v}": [f"t{v - 1}" if v else "x"] for v in range(6)})
    assert at_ideals(chain) == replace(partition(chain).cuts, few=True)


def test_a_skip_connection_is_cut_inside_and_the_unit_stays():
    found = at_ideals(operators_of({"a": ["x"], "b": ["a"], "c": ["b"], "d": ["c", "a"]}))
    assert found.boundaries == ((), ("a",), ("a", "b"), ("a", "c"), ())
    assert [[run.end for run in runs] for runs in found.runs] == [[1], [2, 4], [3], [4]]


@pytest.mark.parametrize(("heads", "many"), [(4, False), (5, False), (6, True)])
def test_more_ideals_than_a_first_pass_has_boundaries_are_too_many(heads, many):
    # independent operators: every subset of them is an ideal
    graph = operators_of({f"t{v}": ["x"] for v in range(heads)})
    assert (at_ideals(graph) is None) == many


@pytest.mark.parametrize("operators", [MOST_OPERATORS, MOST_OPERATORS + 1])
def test_a_network_of_more_operators_is_cut_between_units(operators):
    chain = operators_of({f"t{v}": [f"t{v - 1}" if v else "x"] for v in range(operators)})
    assert (at_ideals(chain) is None) == (operators > MOST_OPERATORS)


def test_the_largest_runs_are_left_out_first_but_never_units():
    graph = operators_of({"a": ["x"], **{name: ["a"] for name in "bcd"}, "e": ["b", "c", "d"]})
    every = at_ideals(graph)
    sizes = {len(run.unit.operators) for runs in every.runs for run in runs}
    assert sizes == {1, 2, 3, 4}
    # 14 of one operator each, 6 of two, one of three, and the unit
    assert sum(map(len, every.runs)) == 22
    few = at_ideals(graph, lambda cuts: sum(map(len, cuts.runs)) <= 15)
    assert sum(map(len, few.runs)) == 15
    assert few.boundaries == every.boundaries
    units = partition(graph).units
    kept = [set(run.unit.operators) for runs in few.runs for run in runs]
    assert all(set(unit.operators) in kept for unit in units)
    assert at_ideals(graph, lambda _cuts: False) is None
