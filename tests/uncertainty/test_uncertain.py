"""Draws of costs: medians and quantiles worked out by hand, and what errs together."""

from __future__ import annotations

from dataclasses import replace
from math import exp, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.spread import PlatformSpread, Spread
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate
from parapipe.uncertainty.causes import Draws, uncertain_costs
from parapipe.uncertainty.contributions import Doubt
from parapipe.uncertainty.samples import figures_at_costs, interval, least_chances, pareto_chances
from tests.cases.hand_built import GraphBuilder, platform

CERTAIN = PlatformSpread(0.0, (0.0, 0.0), 0.0, ("big", "little"))
NORMAL = NormalDist()


def two_operators(*, own=0.0, shared=0.0, spread=CERTAIN, stages=False, cause="a fit"):
    """Return two equal convolutions: on big in turn, or each in a stage of its own."""
    builder = GraphBuilder(x=(1, 8, 10, 10))
    builder.conv(builder.conv("x", 8), 8)
    graph = builder.graph()
    costs = build_cost_table(graph, platform(), profiles=())
    doubt = Spread(own, shared, cause)
    rows = tuple(
        tuple(replace(c, parts=(replace(c.parts[0], spread=doubt),)) for c in row)
        for row in costs.entries
    )
    nothing = dict.fromkeys(costs.transfers, ((0.0, 0.0), (0.0, 0.0)))
    costs = replace(costs, entries=rows, spread=spread, transfers=nothing)
    where = Assignment((0, 1), ((0,), (1,))) if stages else Assignment((0, 0), ((0, 1),))
    return graph, costs, mapping_of(graph, None, costs, where)


def drawn(case, count=400, seed=0):
    graph, costs, mapping = case
    made = evaluate(mapping, graph, costs)
    known = uncertain_costs(mapping, costs, [operator.id for operator in graph.operators])
    values = known.costs(Draws(count, seed).of(known.causes))
    of = {"latency_s": made.latency_s, "period_s": made.period_s}
    return made, figures_at_costs(mapping, values, **of)


def quantile(share, sigma):
    return exp(sigma * NORMAL.inv_cdf(share))


def test_what_all_operators_share_widens_their_sum_in_full():
    state = replace(CERTAIN, state=0.2)
    made, found = drawn(two_operators(spread=state))
    low, high = interval(found.latency_s[1:])
    assert low == pytest.approx(made.latency_s * quantile(0.05, 0.2), rel=5e-3)
    assert high == pytest.approx(made.latency_s * quantile(0.95, 0.2), rel=5e-3)
    assert np.median(found.latency_s[1:]) == pytest.approx(made.latency_s, rel=5e-3)


def test_what_all_processors_share_widens_the_latency_of_stages_in_full():
    expected = {0.0: 0.2 / sqrt(2), 0.2: 0.2}
    for common, sigma in expected.items():
        spread = replace(CERTAIN, state=0.2, common=common)
        made, found = drawn(two_operators(spread=spread, stages=True), count=4000)
        high = interval(found.latency_s[1:])[1]
        assert high == pytest.approx(made.latency_s * quantile(0.95, sigma), rel=0.02)


def test_what_operators_have_of_their_own_widens_their_sum_by_the_root():
    made, found = drawn(two_operators(own=0.1), count=4000)
    # the logarithm of the sum of two has about half of the variance
    low, high = interval(found.latency_s[1:])
    assert low == pytest.approx(made.latency_s * quantile(0.05, 0.1 / sqrt(2)), rel=0.01)
    assert high == pytest.approx(made.latency_s * quantile(0.95, 0.1 / sqrt(2)), rel=0.01)


def test_the_longer_of_two_equal_stages_is_longer_than_either():
    made, found = drawn(two_operators(own=0.3, stages=True), count=4000)
    # both are below x with the square of the probability that one is
    for share in (0.05, 0.5, 0.95):
        expected = made.period_s * quantile(sqrt(share), 0.3)
        assert np.quantile(found.period_s[1:], share) == pytest.approx(expected, rel=0.015)


def test_the_stated_costs_come_first():
    made, found = drawn(two_operators(own=0.3, shared=0.2, stages=True))
    assert found.latency_s[0] == pytest.approx(made.latency_s)
    assert found.period_s[0] == pytest.approx(made.period_s)
    assert found.energy_j[0] == pytest.approx(made.energy_j)


def test_energy_is_power_times_drawn_time_and_static_power_times_drawn_period():
    spread = replace(CERTAIN, power=(0.2, 0.2))
    made, found = drawn(two_operators(spread=spread))
    ends = [made.energy_j * quantile(share, 0.2) for share in (0.05, 0.95)]
    assert interval(found.energy_j[1:]) == pytest.approx(ends, rel=5e-3)
    assert np.ptp(found.period_s) == pytest.approx(0.0)


def test_a_processor_in_a_slower_state_draws_less_power():
    made, found = drawn(two_operators(spread=replace(CERTAIN, state=0.2)))
    static_w = 0.25  # of big: beta 0.25 W/V at 1 V
    dynamic_j = found.energy_j - static_w * found.period_s
    assert dynamic_j == pytest.approx(made.energy_j - static_w * made.period_s)


def correlation(case):
    graph, costs, mapping = case
    known = uncertain_costs(mapping, costs, [operator.id for operator in graph.operators])
    times = np.log(known.costs(Draws(2000, 1).of(known.causes)).time_s[:, 1:])
    return float(np.corrcoef(times)[0, 1])


def test_times_on_one_processor_err_with_its_state_and_on_two_they_do_not():
    state = replace(CERTAIN, state=0.2)
    assert correlation(two_operators(spread=state)) == pytest.approx(1)
    assert correlation(two_operators(spread=state, stages=True)) == pytest.approx(0, abs=0.08)


def test_parts_of_a_divided_processor_have_one_state():
    state = replace(CERTAIN, state=0.2, states=("cluster", "cluster"))
    assert correlation(two_operators(spread=state, stages=True)) == pytest.approx(1)


def test_times_by_one_fit_err_together_on_a_processor():
    assert correlation(two_operators(shared=0.2)) == pytest.approx(1)
    assert correlation(two_operators(shared=0.2, stages=True)) == pytest.approx(0, abs=0.08)
    half = correlation(two_operators(shared=0.2, own=0.2))
    assert half == pytest.approx(0.5, abs=0.06)


def test_single_operators_err_by_themselves():
    assert correlation(two_operators(own=0.2)) == pytest.approx(0, abs=0.08)


def test_a_cause_has_the_same_draws_whatever_else_is_drawn():
    first, second = Draws(50, 3), Draws(50, 3)
    assert (first.of(["a", "b"])[1] == second.of(["c", "b", "a"])[1]).all()
    assert (first.of(["a"]) != Draws(50, 4).of(["a"]))[0, 1:].any()
    assert (first.of(["a"])[:, 0] == 0).all()


def test_draws_of_a_cause_are_the_quantiles_of_the_normal_distribution():
    found = np.sort(Draws(4, 0).of(["a"])[0, 1:])
    assert found == pytest.approx([NORMAL.inv_cdf(share) for share in (0.125, 0.375, 0.625, 0.875)])


def test_chances_count_the_draws():
    latency = np.array([[1.0, 1.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 1.0]])
    period = np.array([[1.0, 2.0, 1.0, 1.0], [1.0, 1.0, 2.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    # by draw: 0 beats all; 0 and 1; 1, 0 (period); 2, and 0 as 1 in both
    assert pareto_chances([latency, period]) == [1.0, 0.75, 0.25]
    assert least_chances(latency, range(3)) == {0: 0.5, 1: 0.25, 2: 0.25}
    assert least_chances(latency, [1, 2]) == {1: 0.75, 2: 0.25}


def doubt(case):
    graph, costs, mapping = case
    made = evaluate(mapping, graph, costs)
    known = uncertain_costs(mapping, costs, [operator.id for operator in graph.operators])
    return Doubt(mapping, known, Draws(400, 0), made.latency_s, made.period_s)


def test_shares_of_the_doubt_are_those_of_the_variance():
    # a sum of two equal times: own spreads bring 0.1² / 4 each, what they share 0.1²
    found = doubt(two_operators(own=0.1, shared=0.1))
    shares = dict(zip(found.costs.causes, found.shares[:, 0], strict=True))
    assert shares["a fit on big"] == pytest.approx(2 / 3, abs=0.02)
    own = [share for cause, share in shares.items() if cause.startswith("conv")]
    assert own == pytest.approx([1 / 6, 1 / 6], abs=0.02)
    assert sum(shares.values()) == pytest.approx(1)


def test_what_is_most_useful_to_measure_is_what_narrows_the_interval_most():
    graph, costs, mapping = two_operators(own=0.2)
    surer = replace(costs.entries[0][0].parts[0], spread=Spread(own=0.06))
    rows = ((replace(costs.entries[0][0], parts=(surer,)), costs.entries[0][1]), costs.entries[1])
    found = doubt((graph, replace(costs, entries=rows), mapping))
    assert found.most_useful(0, 1) == [1]
    assert found.measured([1]).width(0) < found.measured([0]).width(0) < found.width(0)


def test_nothing_is_useful_to_measure_where_all_is_known_better():
    assert doubt(two_operators(own=0.01)).most_useful(0, 3) == []
