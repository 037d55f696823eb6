"""Mappings made for a period at other costs: by hand, and as valid plans."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import AssignmentError
from parapipe.mappings.evaluate import settle
from parapipe.mappings.event_graph import sustained_period_s
from parapipe.mappings.retiming import retimed
from parapipe.plan.build import build_plan
from parapipe.platform.support import Refusal
from tests.cases.co_runs import timed_costs, with_random_law
from tests.cases.uncertain_mappings import random_chip, random_in_turn

SEEDS = st.integers(0, 2**32)


def scaled(costs, seed, factor=None):
    """Every time on every processor times a factor, or times one of 0.5, 1 and 2 by chance."""
    rng = random.Random(f"times {seed}")

    def times(v):
        places = range(len(costs.processors))
        return [costs.time_s(v, p) * (factor or rng.choice([0.5, 1, 2])) for p in places]

    changed = timed_costs(costs, [times(v) for v in range(len(costs.entries))])
    every = range(len(costs.processors))
    moved = {
        name: tuple(tuple(matrix[p][q] * (factor or 1) for q in every) for p in every)
        for name, matrix in costs.transfers.items()
    }
    return replace(changed, transfers=moved)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_at_its_own_costs_a_mapping_keeps_its_place_and_its_order_and_is_no_slower(seed):
    graph, costs, mapping = random_in_turn(seed)
    if mapping is None:
        return
    again = retimed(mapping, graph, costs)
    assert again.period_s == pytest.approx(sustained_period_s(mapping), abs=2e-12)
    assert again.period_s <= mapping.period_s * (1 + 1e-9)
    own, other = (replace(each, period_s=mapping.period_s) for each in (mapping, again))
    assert {v: at.processor for v, at in own.at.items()} == {
        v: at.processor for v, at in other.at.items()
    }
    for p, order in mapping.orders.items():
        turn = [at.operator for at in again.orders[p]]
        first = turn.index(order[0].operator)
        assert turn[first:] + turn[:first] == [at.operator for at in order]


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_at_twice_all_times_period_and_latency_are_twice_as_long(seed):
    graph, costs, mapping = random_in_turn(seed)
    if mapping is None:
        return
    own = retimed(mapping, graph, scaled(costs, seed, 1.0))
    twice = retimed(mapping, graph, scaled(costs, seed, 2.0))
    assert twice.period_s == pytest.approx(2 * own.period_s, rel=1e-6)
    assert twice.elapsed_s == pytest.approx(2 * own.elapsed_s, rel=1e-6)


def soon_read(mapping):
    """Whether each transfer that is work is read within a period, which a plan must say."""
    period_s = mapping.period_s
    return all(
        edge.transfer is None
        or (moved := mapping.transfers[edge.transfer]).resource is None
        or (reader := mapping.at[edge.consumer]).lag * period_s + reader.start_s
        < (moved.lag + 1) * period_s + moved.start_s
        for edge in mapping.edges
    )


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.booleans())
def test_at_other_costs_it_is_a_plan_that_keeps_all_rules(seed, disturbed):
    graph, costs, mapping = random_in_turn(seed)
    if mapping is None or len(mapping.stages) == 1:
        return
    other = scaled(costs, seed)
    if disturbed:
        other = with_random_law(other, seed)
    moved = retimed(mapping, graph, other)
    if not soon_read(moved) or moved.kind != "interleaved":
        return
    moved, found = settle(moved, graph, other)
    chip = random_chip(seed, occupying=bool(seed % 2))
    build_plan(graph, chip, other, moved, found=found)  # verified


def test_an_operator_that_does_not_run_there_is_told():
    graph, costs, mapping = next(
        case for case in map(random_in_turn, range(100)) if case[2] is not None
    )
    at = mapping.at[0]
    row = tuple(
        Refusal("it is not wanted there", "an option") if p == at.processor else cost
        for p, cost in enumerate(costs.entries[0])
    )
    with pytest.raises(AssignmentError, match="do not run there"):
        retimed(mapping, graph, replace(costs, entries=(row, *costs.entries[1:])))
