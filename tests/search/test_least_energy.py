"""The bound of the energy per frame: below every configuration, and reached where it can be."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.search.exploration_result import least_energy_j
from tests.cases.pipeline_cases import identical_costs, random_costs
from tests.search.test_configurations_from_costs import chain, every_chain_configuration


@pytest.mark.parametrize("kinds", [(0, 1), (0, 1, 2), (0, 1, 1)])
@pytest.mark.parametrize("seed", range(6))
def test_no_configuration_takes_less_energy_than_the_bound(seed, kinds):
    graph = chain(4)
    costs = identical_costs(graph, kinds, seed)
    least_j = min(energy_j for *_, energy_j in every_chain_configuration(graph, costs))
    assert 0 < least_energy_j(4, [costs]) <= least_j * (1 + 1e-9)


@pytest.mark.parametrize("operators", [1, 5])
def test_one_processor_takes_just_the_bound(operators):
    graph = chain(operators)
    costs = random_costs(graph, 1, operators)
    (alone,) = {
        round(energy_j, 12)
        for latency_s, period_s, energy_j in every_chain_configuration(graph, costs)
        if latency_s == period_s
    }
    assert least_energy_j(operators, [costs]) == pytest.approx(alone)


def test_each_operator_counts_where_dynamic_and_static_energy_together_are_least():
    graph = chain(2)
    costs = random_costs(graph, 2, 0)
    object.__setattr__(costs, "static_power_w", (2.0, 0.5))
    costs.times[:] = [[0.1, 0.3], [0.1, 0.2]]
    costs.energies[:] = [[0.1, 0.4], [0.3, 0.1]]
    # 0.1 + 2 × 0.1 = 0.3 against 0.4 + 0.5 × 0.3 = 0.55; 0.5 against 0.1 + 0.5 × 0.2 = 0.2
    assert least_energy_j(2, [costs]) == pytest.approx(0.3 + 0.2)


def test_of_several_cost_tables_the_least_counts():
    graph = chain(3)
    tables = [random_costs(graph, 2, seed) for seed in range(3)]
    each = [least_energy_j(3, [table]) for table in tables]
    assert least_energy_j(3, tables) == min(each)


def test_a_real_front_comes_near_to_the_bound():
    front = parapipe.map(
        "zoo:squeezenet",
        "amlogic-a311d-2024",
        cache=False,
        jobs=1,
        budget_s=1e-6,
        interleave="none",
    )
    bound_j = front.document.unfinished.energy_j
    least_j = min(row.energy_j for row in front)
    assert bound_j * (1 - 1e-9) <= least_j <= bound_j * 1.01
