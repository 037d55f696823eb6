"""Stages of given order: everything in them starts as early as that order allows."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from parapipe.graph.partition import partition
from parapipe.mappings.assembly import assignment_of, mapping_of, with_earliest_starts
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from tests.cases import branchy_networks
from tests.cases.pipeline_cases import random_costs
from tests.cases.shuffled import scattered
from tests.search.test_live_boundaries import cut_everywhere, tangled

MAPPERS = ("auto", "coarse", "fine", "heft", "peft", "cpop", "layer_switched")
BUS, SENDER, RECEIVER = "bus", "sender", "receiver"


def occupying(costs, occupied):
    """The same costs, every transfer of which keeps something busy."""
    everyone = range(len(costs.processors))
    of = {BUS: lambda p, q: len(everyone), SENDER: lambda p, q: p, RECEIVER: lambda p, q: q}
    carriers = tuple(
        tuple(None if p == q else of[occupied](p, q) for q in everyone) for p in everyone
    )
    object.__setattr__(costs, "transfer_resource", carriers)
    return costs


def idle_before(mapping, each, resource, ready_s):
    """Seconds by which something in a stage could start earlier, in the order of its resource."""
    others = [
        *(at for at in mapping.placements if at.processor == resource and at.lag == each.lag),
        *(t for t in mapping.transfers if t.resource == resource and t.lag == each.lag),
    ]
    before_s = [o.end_s for o in others if o is not each and o.end_s <= each.start_s + 1e-12]
    return each.start_s - max([0.0, ready_s, *before_s])


def slacks(mapping, graph):
    """Of each operator and each transfer that keeps something busy."""
    moved = {(t.tensor, t.target): t for t in mapping.transfers}
    for each in mapping.transfers:
        if each.resource is not None:
            made = mapping.at[each.producer]
            ready_s = made.end_s if made.lag == each.lag else 0.0
            yield idle_before(mapping, each, each.resource, ready_s)
    for at in mapping.placements:
        ready_s = 0.0
        for name in graph.reads(graph.operators[at.operator]):
            if name in graph.producer:
                made = mapping.at[graph.producer[name]]
                if made.processor == at.processor:
                    ready_s = max(ready_s, made.end_s if made.lag == at.lag else 0.0)
                else:
                    ready_s = max(ready_s, moved[name, at.processor].end_s)
        yield idle_before(mapping, at, at.processor, ready_s)


def found_on(graph, costs, cut, mapper):
    options = MapOptions(
        mapper=mapper, time_limit_s=5, resolution=0.0, jobs=1, interleave="none",
        objectives="latency-throughput",
    )  # fmt: skip
    return explore(graph, cut(graph), costs, options).found


@pytest.mark.parametrize("occupied", [BUS, SENDER, RECEIVER])
@pytest.mark.parametrize(
    ("cut", "mapper"),
    [(cut_everywhere, "auto"), (cut_everywhere, "cpop"), *((partition, each) for each in MAPPERS)],
)
def test_all_that_a_front_shows_starts_as_early_as_it_can(cut, mapper, occupied):
    for seed in range(3):
        graph = tangled(5, seed)
        costs = occupying(random_costs(graph, 3, seed), occupied)
        for each in found_on(graph, costs, cut, mapper):
            mapping = each.mapping
            assert max(slacks(mapping, graph)) < 1e-9
            assert with_earliest_starts(mapping, graph, costs) is mapping
            for ordered in (True, False):
                assignment = replace(assignment_of(mapping), ordered=ordered)
                again = evaluate(mapping_of(graph, None, costs, assignment), graph, costs)
                times_s = zip(mapping.stages, again.stages, strict=True)
                assert all(here.time_s <= there.time_s + 1e-9 for here, there in times_s)


@pytest.mark.parametrize("operators", [8, 12])
def test_no_stage_takes_longer_than_its_assignment_evaluated(operators):
    shorter = 0
    for seed, occupied in product(range(40), [BUS, SENDER, RECEIVER]):
        rng = random.Random(seed)
        graph = scattered(rng, operators)
        costs = occupying(branchy_networks.random_costs(graph, 3, seed), occupied)
        placed = tuple(rng.randrange(3) for _ in range(operators))
        given, free = (
            mapping_of(graph, None, costs, Assignment(placed, (tuple(range(operators)),), ordered))
            for ordered in (True, False)
        )
        [early], [kept], [listed] = (
            each.stages for each in (with_earliest_starts(given, graph, costs), given, free)
        )
        assert early.time_s <= min(kept.time_s, listed.time_s) + 1e-9
        shorter += listed.time_s < kept.time_s - 1e-9
    assert shorter
