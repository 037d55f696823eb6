"""Fronts whose units may run longer and cheaper, against every configuration there is."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from parapipe.graph.partition import partition
from parapipe.pareto import nondominated
from parapipe.problems.cache import Cache
from parapipe.problems.solve import SolvedQuestions
from parapipe.problems.time_energy import EXACT, Tolerance, unit_tolerance
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.stages import stage_incumbents
from parapipe.search.stages.options import Option
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.trade_energy import trade_energy
from tests.cases.branchy_networks import every_configuration, network, random_costs
from tests.search.test_search import every_configuration as every_choice
from tests.search.test_search import random_case

SHAPES = ("d", "od", "do", "dd")


def case(seed):
    blocks = SHAPES[seed % len(SHAPES)]
    graph = network(blocks)
    return graph, random_costs(graph, 2 if blocks == "dd" else 2 + seed // 4 % 2, seed)


def explored(graph, costs, mapper="fine", *, cache=None, progress=None, **given):
    exact = {"time_limit_s": 30, "resolution": 0.0, "energy_resolution": 0.0, "jobs": 1}
    options = MapOptions(mapper=mapper, **{**exact, **given})
    return explore(graph, partition(graph), costs, options, cache=cache, progress=progress)


def figures(exploration):
    """Latency, period (ms) and energy (mJ) of all that is on the front."""
    made = (found.evaluated for found in exploration.found if found.pareto)
    return [(m.latency_s * 1e3, m.period_s * 1e3, m.energy_j * 1e3) for m in made]


def rounded(values):
    return sorted(tuple(round(value, 6) for value in row) for row in values)


@pytest.mark.parametrize("seed", range(48))
def test_at_resolution_0_the_front_equals_brute_force_over_all_schedules(seed):
    graph, costs = case(seed)
    found = explored(graph, costs, energy_resolution=0.0)
    assert rounded(figures(found)) == rounded(every_configuration(graph, partition(graph), costs))
    assert found.energy_resolution <= 1e-9


@pytest.mark.parametrize("seed", range(100, 130))
def test_every_configuration_is_matched_within_the_resolution_that_is_stated(seed):
    graph, costs = case(seed)
    asked = (0.05, 0.2, 0.6)[seed % 3]
    found = explored(graph, costs, energy_resolution=asked)
    share = 1 + found.energy_resolution + 1e-9
    assert found.energy_resolution <= asked + 1e-9
    assert not found.energy_timed_out
    kept = figures(found)
    for wanted in every_configuration(graph, partition(graph), costs):
        assert any(all(a <= b * share for a, b in zip(k, wanted, strict=True)) for k in kept)


def test_a_resolution_that_time_limits_keep_from_being_reached_says_so():
    graph, costs = case(3)
    # The shortest schedules are proven in no time by bounds; what trades for energy is not found.
    found = explored(graph, costs, energy_resolution=0.0, time_limit_s=1e-6)
    assert found.energy_resolution > 1e-9
    assert found.energy_timed_out


def test_a_look_before_the_first_set_is_solved_finds_the_shortest_schedules(monkeypatch):
    graph, costs = case(3)
    looked = []

    def trade(sets, *given, **more):
        looked.append(
            trade_energy(replace(sets, solved=SolvedQuestions({}, frozenset())), *given, **more)
        )
        return trade_energy(sets, *given, **more)

    monkeypatch.setattr(stage_incumbents, "trade_energy", trade)
    explored(graph, costs)
    assert len(looked) == 1
    assert looked[0].resolution == 0


@pytest.mark.parametrize("seed", range(8))
def test_latency_and_throughput_are_not_traded_for_energy(seed):
    graph, costs = case(seed)
    traded = explored(graph, costs, energy_resolution=0.5)
    exact = explored(graph, costs, objectives="latency-throughput")
    paper = [
        {
            (round(f.evaluated.latency_s, 9), round(f.evaluated.period_s, 9))
            for f in exploration.found
            if f.pareto_latency_throughput
        }
        for exploration in (traded, exact)
    ]
    assert paper[0] == paper[1]
    assert exact.energy_resolution is None


def test_a_mapper_that_proves_nothing_shortest_is_left_its_own_schedules():
    graph, costs = case(3)
    assert explored(graph, costs, "heft").energy_resolution is None
    assert explored(graph, costs, "heft").traded.answers == {}


def test_sets_come_from_the_cache_and_neither_that_nor_processes_show(tmp_path):
    graph, costs = case(3)
    told = []
    alone = explored(graph, costs)
    with Cache(tmp_path, told.append) as cache:
        first = explored(graph, costs, cache=cache, jobs=2)
        again = explored(graph, costs, cache=cache)
    assert figures(first) == figures(again) == figures(alone)
    assert first.traded.cached == frozenset()
    assert again.traded.cached == first.traded.answers.keys()
    assert again.traded.answers == first.traded.answers
    assert told == []


def test_progress_counts_the_sets_and_ends_complete():
    graph, costs = case(3)
    told = []
    found = explored(graph, costs, progress=told.append)
    sets = [progress for progress in told if progress.phase == "trading"]
    count = len(found.traded.answers)
    assert [p.done for p in sets] == [count]  # small ones are found with the shortest schedules
    assert {p.total for p in sets} == {count}


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_rough_search_matches_every_configuration(share):
    for seed in range(40):
        options, static = random_case(seed, 1 + seed % 5, 1 + seed % 4)
        units = 1 + seed % 5
        least_ns = [1] * units
        runs = StageTable(options, tolerance=unit_tolerance(least_ns, share))
        found = search(units, runs, static, tolerance=Tolerance(share, share / 3))
        worst = (1 + share) ** 2 * (1 + share / 3) ** len(static) + 1e-9
        every = nondominated(
            (c.nano_objectives for c in every_choice(units, options, static)), lambda v: v
        )
        for wanted in every:
            assert any(
                all(a <= b * worst for a, b in zip(c.nano_objectives, wanted, strict=True))
                for c in found
            )
        if not share:
            assert nondominated([c.nano_objectives for c in found], lambda v: v) == every


def test_a_rough_search_over_long_fronts_stays_within_its_tolerance():
    # Twelve units of twenty ways each on one processor: what is longer takes less, more or less.
    rng = random.Random(0)
    times = [[rng.randint(10**5, 3 * 10**5) for _ in range(20)] for _ in range(12)]
    table = [[(t, 4 * 10**5 - t + rng.randint(0, 10**4)) for t in unit] for unit in times]
    options = [[Option(1, (), t, e, i) for i, (t, e) in enumerate(unit)] for unit in table]
    least = [min(t for t, _ in unit) for unit in table]
    share = 0.02
    exact = search(12, StageTable(lambda u, _: options[u]), [0.0], tolerance=EXACT)
    runs = StageTable(lambda u, _: options[u], tolerance=unit_tolerance(least, share))
    rough = search(12, runs, [0.0], tolerance=Tolerance(share, share))
    assert len(rough) < len(exact) / 10
    worst = (1 + share) ** 3
    for wanted in exact:
        assert any(
            c.latency_ns <= wanted.latency_ns * worst and c.energy_nj <= wanted.energy_nj
            for c in rough
        )
    for candidate in rough:
        (stage,) = candidate.stages
        traced = runs.trace(stage.shape, stage.time_ns, stage.energy_nj)
        assert sum(o.time_ns for o in traced) == candidate.latency_ns
        assert math.isclose(sum(o.energy_nj for o in traced), candidate.energy_nj)
