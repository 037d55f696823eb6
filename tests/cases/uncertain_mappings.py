"""Small networks with branches, and random mappings of them, with stages and interleaved."""

from __future__ import annotations

import random

from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.modulo.cyclic_problem import CyclicProblem
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.problems.problems import whole_problem
from parapipe.search.interleaved import mapping_of as mapping_of_schedule
from tests.cases.hand_built import GraphBuilder, platform, processor

OCCUPIES = ("nothing", "sender", "receiver", "bus")


def network(seed):
    """Return a chain of convolutions, some of them with a branch beside them."""
    rng, builder, last = random.Random(seed), GraphBuilder(x=(1, 8, 12, 12)), "x"
    for _ in range(rng.randint(2, 5)):
        made = builder.conv(last, rng.choice([4, 8, 16]))
        if rng.random() < 0.6:
            channels = rng.choice([4, 8])
            sides = [builder.conv(made, channels), builder.conv(made, channels, kernel=(1, 1))]
            made = builder.add("Add", sides, (1, channels, 12, 12))
        last = made
    return builder.graph()


def priced(seed, *, occupying):
    """Return a network and its costs on three processors, the last two of them identical."""
    graph = network(seed)
    return graph, build_cost_table(graph, random_chip(seed, occupying=occupying), profiles=())


def random_chip(seed, *, occupying):
    """Return the platform of these processors."""
    rng = random.Random(seed)
    speeds = [1e9 * rng.randint(1, 3), 1e9, 1e9]
    chip = platform(
        *(
            processor(name, cores=[p], peak={"source": "guess", "macs_per_s": {"float32": speed}})
            for p, (name, speed) in enumerate(zip("abc", speeds, strict=True))
        )
    )
    kinds = OCCUPIES if occupying else OCCUPIES[:1]
    links = [link.model_copy(update={"occupies": rng.choice(kinds)}) for link in chip.links]
    return chip.model_copy(update={"links": tuple(links)})


def random_stages(seed, *, occupying=True, shared=False):
    """Return a network, its costs, and a random mapping in stages, some of them replicated.

    With `shared`, a processor may be in several stages.
    """
    rng, (graph, costs) = random.Random(seed), priced(seed, occupying=occupying)
    count, free = len(graph.operators), [0, 1, 2]
    cuts = sorted(rng.sample(range(1, count), rng.randint(0, min(2, count - 1))))
    stages, place = [], []
    for left, (begin, end) in zip(
        range(len(cuts), -1, -1), zip([0, *cuts], [*cuts, count], strict=True), strict=True
    ):
        own = rng.sample(free, rng.randint(1, len(free) - left))
        free = free if shared else [p for p in free if p not in own]
        stages.append(tuple(range(begin, end)))
        place += [rng.choice(own) for _ in range(begin, end)]
        if shared:
            free = [0, 1, 2]
    made = mapping_of(graph, None, costs, Assignment(tuple(place), tuple(stages)))
    used = [stage.processors for stage in made.stages]
    if not shared and (1,) in used and all(2 not in each for each in used):
        made = made.with_replicas([(1, 2)])
    return graph, costs, made


def random_in_turn(seed):
    """Return a network, its costs, and a random interleaved mapping, or None for it."""
    rng, (graph, costs) = random.Random(seed), priced(seed, occupying=bool(seed % 2))
    place = tuple(rng.randrange(3) for _ in graph.operators)
    works = Jobs.of(CyclicProblem(whole_problem(graph, costs)), place)
    period = int(max(works.cyclic.loads(works.place)) * rng.choice([1.0, 1.02, 1.3])) + 1
    schedule = schedule_jobs(works, period)
    return graph, costs, schedule and mapping_of_schedule(schedule, graph, costs)
