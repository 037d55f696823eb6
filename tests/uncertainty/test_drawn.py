"""Mappings under drawn costs: equal, draw by draw, to what is worked out one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.event_graph import execution_of
from parapipe.platform.fields import Expression
from parapipe.uncertainty.causes import SampledCosts
from parapipe.uncertainty.samples import figures_at_costs
from tests.cases.uncertain_mappings import random_in_turn, random_stages

DRAWS = 12
SEEDS = range(20, 50)


def drawn_costs(mapping, costs, seed):
    """Return random costs of a mapping's operators, the stated ones first."""
    rng = np.random.default_rng(seed)
    count = len(mapping.placements)
    stated_s = np.array([costs.time_s(v, mapping.at[v].processor) for v in range(count)])
    factors = np.exp(rng.normal(0, 0.6, (count, 1 + DRAWS)))
    moves = np.exp(rng.normal(0, 1.0, 1 + DRAWS))
    factors[:, 0] = moves[0] = 1
    joules, watts = rng.uniform(1, 2, (2, 1 + DRAWS))
    return SampledCosts(stated_s[:, None] * factors, moves, joules, watts)


def with_times(costs, mapping, drawn, draw):
    """Return the cost table of one draw."""
    rows = []
    for v, row in enumerate(costs.entries):
        p = mapping.at[v].processor
        time = Expression(float(drawn.time_s[v, draw]))
        parts = (replace(row[p].parts[0], time=time),)
        rows.append((*row[:p], replace(row[p], parts=parts), *row[p + 1 :]))
    moved = {
        name: tuple(tuple(s * float(drawn.moves[draw]) for s in row) for row in matrix)
        for name, matrix in costs.transfers.items()
    }
    return replace(costs, entries=tuple(rows), transfers=moved)


def activities(mapping, drawn, draw):
    """Return operators and transfers that are work: seconds, place in the order, resource, lag."""
    found = {
        v: (float(drawn.time_s[v, draw]), (*at.in_order, "", -1), at.processor, at.lag)
        for v, at in mapping.at.items()
    }
    for number, at in enumerate(mapping.transfers):
        if at.resource is not None:
            time_s = at.time_s * float(drawn.moves[draw])
            order = (at.start_s, at.end_s, at.producer, at.tensor, at.target)
            found[-1 - number] = (time_s, order, at.resource, at.lag)
    return found


def waits(mapping, works, moves):
    """Yield what starts so much behind the end of what."""
    for resource, lag in {each[2:] for each in works.values()}:
        here = sorted(
            (each[1], name) for name, each in works.items() if each[2:] == (resource, lag)
        )
        yield from ((u, v, 0.0) for (_, u), (_, v) in pairwise(here))
    for edge in mapping.edges:
        u, v, number = edge.producer, edge.consumer, edge.transfer
        if number is not None and -1 - number in works:
            yield from ((u, -1 - number, 0.0), (-1 - number, v, 0.0))
        else:
            yield u, v, 0.0 if number is None else mapping.transfers[number].time_s * moves


def one_by_one(mapping, drawn, draw):
    """Return latency and period of stages in one draw: starts are moved until nothing is early."""
    works = activities(mapping, drawn, draw)
    before = list(waits(mapping, works, float(drawn.moves[draw])))
    start, late = dict.fromkeys(works, 0.0), True
    while late:
        late = False
        for u, v, delay_s in before:
            same = works[u][3] == works[v][3]
            least = (start[u] + works[u][0] if same else 0.0) + delay_s
            if start[v] < least:
                start[v], late = least, True
    took = {stage.lag: 0.0 for stage in mapping.stages}
    for v, at in mapping.at.items():
        took[at.lag] = max(took[at.lag], start[v] + works[v][0])
    work = Counter()
    for stage in mapping.stages:
        for p in stage.processors:
            work[p] += took[stage.lag] / max(1, len(stage.replicas))
    return sum(took.values()), max(work.values())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_stages_take_in_each_draw_what_they_take_one_by_one(seed, shared):
    _, costs, mapping = random_stages(seed, shared=shared)
    drawn = drawn_costs(mapping, costs, seed)
    latency_s, period_s = one_by_one(mapping, drawn, 0)
    found = figures_at_costs(mapping, drawn, latency_s=latency_s, period_s=period_s)
    for draw in range(1 + DRAWS):
        expected = one_by_one(mapping, drawn, draw)
        assert (found.latency_s[draw], found.period_s[draw]) == pytest.approx(expected, rel=1e-9)
        energy_j = drawn.dynamic_j[draw] + found.period_s[draw] * drawn.static_w[draw]
        assert found.energy_j[draw] == pytest.approx(energy_j)


@pytest.mark.parametrize("seed", SEEDS)
def test_stages_take_in_each_draw_what_the_evaluator_says_of_its_costs(seed):
    graph, costs, mapping = random_stages(seed, occupying=False)
    drawn = drawn_costs(mapping, costs, seed)
    stated = evaluate(mapping, graph, costs)
    of = {"latency_s": stated.latency_s, "period_s": stated.period_s}
    found = figures_at_costs(mapping, drawn, **of)
    for draw in range(1 + DRAWS):
        table = with_times(costs, mapping, drawn, draw)
        again = mapping_of(graph, None, table, assignment_of(mapping))
        made = evaluate(again.with_replicas(mapping.replicated), graph, table)
        assert found.latency_s[draw] == pytest.approx(made.latency_s, rel=1e-9)
        assert found.period_s[draw] == pytest.approx(made.period_s, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_processors_take_turns_the_period_grows_as_the_sustained_one_does(seed):
    _, costs, mapping = random_in_turn(seed)
    if mapping is None:
        return  # nothing fits into that period
    drawn = drawn_costs(mapping, costs, seed)
    of = {"latency_s": mapping.elapsed_s, "period_s": mapping.period_s}
    found = figures_at_costs(mapping, drawn, **of)
    least_s = []
    for draw in range(1 + DRAWS):
        placed = tuple(
            replace(at, end_s=at.start_s + float(drawn.time_s[at.operator, draw]))
            for at in mapping.placements
        )
        moves = float(drawn.moves[draw])
        moved = tuple(replace(each, time_s=each.time_s * moves) for each in mapping.transfers)
        # The channels keep their slots and the resources their orders: those of the plan.
        graph = execution_of(mapping).graph
        times = execution_of(replace(mapping, placements=placed, transfers=moved))
        assert graph.orders == times.graph.orders
        least_s.append(float(replace(times.graph, channels=graph.channels).period_ps()))
    ratios = found.period_s / found.period_s[0]
    assert ratios == pytest.approx(np.array(least_s) / least_s[0], rel=1e-6)
    assert found.latency_s[0] == pytest.approx(mapping.elapsed_s)


def test_the_random_mappings_are_of_all_kinds():
    kinds = Counter(random_stages(seed)[2].kind for seed in SEEDS)
    kinds += Counter(random_stages(seed, shared=True)[2].kind for seed in SEEDS)
    assert kinds.keys() == {
        "sequential", "pipe-only", "para-only", "hybrid", "interleaved", "replicated",
    }  # fmt: skip
    in_turn = [random_in_turn(seed)[2] for seed in SEEDS]
    assert sum(each is not None for each in in_turn) > len(SEEDS) // 2
    occupying = [
        each for each in in_turn if each and any(t.resource is not None for t in each.transfers)
    ]
    assert occupying
