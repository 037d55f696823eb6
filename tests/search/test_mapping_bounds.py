"""Bounds of all mappings of a kind: below what brute force finds, and reached where they can be."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import inf

import numpy as np
import pytest

from parapipe.graph.partition import partition
from parapipe.problems.identical_processors import identical_processors, replicable
from parapipe.problems.method import Method, Question, answer_of
from parapipe.problems.problems import requests
from parapipe.search.mapping_bounds import (
    EnergyBounds,
    operator_bounds,
    relaxed_bounds,
    stage_bounds,
)
from parapipe.search.stages.unit_schedules import Choice
from tests.cases.pipeline_cases import identical_costs, random_costs
from tests.search.test_configurations_from_costs import chain, every_chain_configuration

KINDS = ((0, 1), (0, 1, 1), (0, 0, 1, 1), (0, 0, 0))


def bounds_of_stages(graph, costs):
    method, parts = Method("coarse", 10.0, 0), partition(graph)
    choices = [
        Choice(each, answer_of(Question(each.problem), method).schedules[0])
        for each in requests(graph, parts, costs)
    ]
    groups = replicable(identical_processors(graph, costs), costs)
    return stage_bounds(parts.cuts.last, len(graph.operators), choices, costs, groups)


def least(every, figure, period_s=inf):
    """The least latency, period or energy of all that have at most a period."""
    return min((each[figure] for each in every if each[1] <= period_s * (1 + 1e-9)), default=inf)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_no_stages_are_below_the_bounds_at_any_period_and_the_least_ones_reach_them(seed, kinds):
    graph = chain(3)
    costs = identical_costs(graph, kinds, seed)
    every = [*every_chain_configuration(graph, costs, kinds)]
    times = bounds_of_stages(graph, costs)
    energies = EnergyBounds.of(3, costs, times.periods_s)
    assert times.period_s <= least(every, 1)
    assert times.latency_at(inf) == pytest.approx(least(every, 0), abs=1e-8)
    assert times.latency_at(times.period_s * 0.99) == energies.at(times.period_s * 0.99) == inf
    for period_s in sorted({each[1] for each in every}):
        latency_s, energy_j = least(every, 0, period_s), least(every, 2, period_s)
        assert times.latency_s <= times.latency_at(period_s) <= latency_s
        assert 0 < energies.at(period_s) <= energy_j


@pytest.mark.parametrize("kinds", KINDS[1:])
@pytest.mark.parametrize("seed", range(6))
def test_no_replicas_take_less_energy_than_the_bound_at_any_period(seed, kinds):
    graph = chain(3)
    costs = identical_costs(graph, kinds, seed)
    every = Counter(every_chain_configuration(graph, costs, kinds))
    replicated = [*(every - Counter(every_chain_configuration(graph, costs)))]
    groups = replicable(identical_processors(graph, costs), costs).alone
    energies = EnergyBounds.of_replicas(graph, costs, bounds_of_stages(graph, costs), groups)
    for period_s in sorted({each[1] for each in replicated}):
        bound_j, energy_j = energies.at(period_s), least(replicated, 2, period_s)
        assert 0 < bound_j <= energy_j
        assert energies.at(period_s, bound_j / 2) == bound_j / 2
    assert energies.at(inf) >= EnergyBounds.of(3, costs, energies.periods_s).at(inf)


def test_the_latency_of_replicas_counts_in_full_and_their_share_in_the_period():
    graph = chain(2)
    costs = identical_costs(graph, (0, 0), 0)
    costs.times[:] = [[0.003, 0.003], [0.004, 0.004]]
    for name, rows in costs.transfers.items():
        costs.transfers[name] = tuple(tuple(0.001 if t else 0.0 for t in row) for row in rows)
    times = bounds_of_stages(graph, costs)
    assert times.period_s == pytest.approx(0.0035, abs=1e-8)  # 7 ms by two in turn
    assert times.latency_at(0.0035) == pytest.approx(0.007, abs=1e-8)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_below_what_holds_for_operators_wherever_each_frame_runs_them(seed, kinds):
    graph = chain(3)
    costs = identical_costs(graph, kinds, seed)
    anyhow = operator_bounds(graph, costs)
    energies = EnergyBounds.of(3, costs, anyhow.periods_s)
    everyone = range(len(kinds))
    ways = [*product(everyone, repeat=3)]
    loads = np.array(
        [
            [sum(costs.times[v][p] for v in range(3) if way[v] == p) for p in everyone]
            for way in ways
        ]
    )
    two = (loads[:, None] + loads[None]) / 2  # one frame one way, the next another one
    assert 0 < anyhow.period_s <= two.max(axis=2).min() * (1 + 1e-9)
    for latency_s, period_s, energy_j in every_chain_configuration(graph, costs, kinds):
        assert anyhow.latency_at(period_s) <= latency_s * (1 + 1e-9)
        assert energies.at(period_s) <= energy_j * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_equal_processors_share_all_work(seed):
    graph = chain(4)
    costs = identical_costs(graph, (0, 0, 0), seed)
    work_s = sum(row[0] for row in costs.times)
    assert operator_bounds(graph, costs).period_s == pytest.approx(work_s / 3)


@pytest.mark.parametrize("seed", range(6))
def test_before_anything_is_solved_the_bounds_of_stages_hold_too(seed):
    graph = chain(3)
    costs = random_costs(graph, 3, seed)
    every = [*every_chain_configuration(graph, costs)]
    times = relaxed_bounds(graph, partition(graph), costs)
    assert 0 < times.latency_s <= least(every, 0)
    assert 0 < times.period_s <= least(every, 1)
