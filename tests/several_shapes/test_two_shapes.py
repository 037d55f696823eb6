"""Two shapes of a model: what ties their placements, by hand and against exhaustive search."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from parapipe.graph.operator_graph import State
from parapipe.graph.states import longest_loop_path
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import peak_memory
from parapipe.pareto import nondominated
from parapipe.platform.memories import MemorySystem
from parapipe.several_shapes.candidates import as_elsewhere, every_placement
from parapipe.several_shapes.choice import Choice, undominated
from parapipe.several_shapes.combination import Combination
from parapipe.several_shapes.placed_shapes import Shape, placed_shapes_of
from tests.cases import hand_built
from tests.cases.pipeline_cases import every_division, random_costs

MS = 1e-3
FLOAT = 4


def chain(count, width, *, reader, writer, tied=False):
    """Operators in a row, each with weights; one reads a state, and one makes its next value.

    Parameters
    ----------
    width
        Of all tensors: a shape of the model.
    tied
        Whether the first and the last operator have the same weights.
    """
    builder = hand_built.GraphBuilder(x=(1, width), h=(1, width))
    names = ["x"]
    for v in range(count):
        own = builder.constant(f"w{0 if tied and v == count - 1 else v}", (v + 1, 16))
        reads = [names[-1], *(["h"] if v == reader else []), own]
        names.append(builder.add("MatMul", reads, (1, width)))
    graph = builder.graph(*dict.fromkeys((names[writer + 1], names[-1])))
    return replace(graph, states=(State("h", names[writer + 1]),))


def memories(processors, *, own_copy=()):
    """The first two processors share a memory, and another one has its own."""
    return MemorySystem(
        names=("dram", "local"),
        assumed=False,
        memory_of={f"p{p}": int(p > 1) for p in range(processors)},
        alignment_bytes=(1, 1),
        usable_bytes=(None, None),
        copying=frozenset(),
        packing=dict.fromkeys(own_copy, 1.0),
    )


def costs_of(graph, processors, seed, system):
    costs = random_costs(graph, processors, seed)
    path = longest_loop_path(graph, [min(row) for row in costs.times])
    object.__setattr__(costs, "loop", path)
    object.__setattr__(costs, "memory_system", system)
    return costs


def random_shapes(seed):
    """Prefill and decode of one model, on two or three processors, with costs of their own."""
    rng = Random(seed)
    count, processors = [(3, 2), (4, 2), (3, 3), (5, 2), (4, 3)][seed % 5] if seed < 13 else (5, 3)
    reader = rng.randint(0, count - 1)
    writer = rng.randint(reader, count - 1)
    system = memories(processors, own_copy=[f"p{rng.randrange(processors)}"] * (seed % 2))
    tied = bool(seed % 3)
    shapes = []
    for at, (name, width, steps) in enumerate((("prefill", 64, 1), ("decode", 8, 5))):
        graph = chain(count, width, reader=reader, writer=writer, tied=tied)
        costs = costs_of(graph, processors, 100 * seed + at, system)
        shapes.append(Shape(name, graph, (costs,), steps))
    return shapes


def placed(shape):
    """Every placement of a chain in stages that share no processor."""
    count, costs = len(shape.graph.operators), shape.tables[0]
    for on in product(range(len(costs.processors)), repeat=count):
        for stages in every_division(range(count)):
            used = [{on[v] for v in stage} for stage in stages]
            if sum(map(len, used)) == len(set().union(*used)):
                yield on, stages


def taken(shape, on, stages):
    """What a chain takes, worked out without the library: latency, period and joules a step."""
    graph, costs = shape.graph, shape.tables[0]
    state = graph.states[0]
    reader, writer = graph.consumers["h"][0], graph.producer[state.output]
    names = [each.id for each in graph.operators]

    def moved_s(v):
        return costs.transfers[names[v - 1]][on[v - 1]][on[v]] if v else 0.0

    def spent_s(first, last):
        return sum(costs.times[v][on[v]] for v in range(first, last + 1)) + sum(
            moved_s(v) for v in range(first + 1, last + 1)
        )

    stages_s = [spent_s(stage[0], stage[-1]) + moved_s(stage[0]) for stage in stages]
    # from the reader's start; stages are admitted one by one, each as long as it takes
    loop_s = spent_s(reader, writer) + costs.transfers[state.output][on[writer]][on[reader]]
    period_s = max(*stages_s, loop_s)
    static_w = sum(costs.static_power_w[p] for p in {*on})
    dynamic_j = sum(costs.energies[v][on[v]] for v in range(len(on)))
    return sum(stages_s), period_s, dynamic_j + period_s * static_w, static_w


def weight_copies(shape, on):
    """Weights by name, memory and owner, as sizes."""
    system, copies = shape.tables[0].memory_system, {}
    for v, operator in enumerate(shape.graph.operators):
        p = f"p{on[v]}"
        constant = shape.graph.constants[operator.inputs[-1]]
        owner = p if p in system.packing else None
        key = constant.name, system.memory_of[p], owner
        copies[key] = constant.shape[0] * constant.shape[1] * FLOAT
    return copies


def working_bytes(shape, on, stages):
    """Peak without weights: that figure has tests of its own."""
    graph, costs = shape.graph, shape.tables[0]
    mapping = mapping_of(graph, None, costs, Assignment(on, tuple(map(tuple, stages))))
    peak = peak_memory(mapping, Storage.of(graph, costs), evaluate(mapping, graph, costs).period_s)
    return peak.total.size_bytes - peak.total.weights_bytes


def request_figures(shapes, first, second):
    """Latency of each shape, seconds, joules and bytes of a request.

    Parameters
    ----------
    first, second
        Placements, what they take, their weights, and what they need beside.
    """
    request_s, energy_j, statics_w = 0.0, 0.0, {}
    for shape, ((on, _), taken_alone, _, _) in zip(shapes, (first, second), strict=True):
        latency_s, period_s, step_j, static_w = taken_alone
        request_s += latency_s + (shape.steps - 1) * period_s
        energy_j += shape.steps * step_j + max(0.0, latency_s - period_s) * static_w
        for p in on:
            statics_w[p] = max(statics_w.get(p, 0.0), shape.tables[0].static_power_w[p])
    output = shapes[0].graph.states[0].output
    source = first[0][0][shapes[0].graph.producer[output]]
    target = second[0][0][shapes[1].graph.consumers["h"][0]]
    move_s = shapes[0].tables[0].transfers[output][source][target]
    request_s += move_s
    energy_j += move_s * sum(statics_w.values())
    memory_bytes = sum((first[2] | second[2]).values()) + max(first[3], second[3])
    return (first[1][0], second[1][0], request_s, energy_j, memory_bytes)


def front_of(shapes, **changes):
    choice = {"energy": True, "memory": True, "max_memory_bytes": None, "resolution": 0.0}
    every = [[*placed_shapes_of(shape, every_placement(shape))] for shape in shapes]
    return Choice(**{**choice, **changes}).front(every)


def rounded(figures):
    return tuple(round(each, 9) for each in figures)


def pareto(points):
    return {*nondominated(sorted({*map(rounded, points)}), lambda each: each)}


@pytest.mark.parametrize("seed", [*range(13), pytest.param(13, marks=pytest.mark.nightly)])
def test_the_front_of_two_shapes_is_that_of_exhaustive_search_over_both_placements(seed):
    shapes = random_shapes(seed)
    found = [each.objectives(energy=True, memory=True) for each in front_of(shapes) if each.pareto]
    every = [
        [
            (each, taken(shape, *each), weight_copies(shape, each[0]), working_bytes(shape, *each))
            for each in placed(shape)
        ]
        for shape in shapes
    ]
    points = [request_figures(shapes, *pair) for pair in product(*every)]
    assert pareto(found) == pareto(points)


def single(shape, on):
    costs = shape.tables[0]
    mapping = mapping_of(shape.graph, None, costs, Assignment(on, (tuple(range(len(on))),)))
    found = evaluate(mapping, shape.graph, costs)
    return next(placed_shapes_of(shape, [Configuration(mapping, found, True, 0.0, 0)]))


def test_weights_are_in_a_memory_once_and_in_two_memories_twice():
    shapes = [Shape(n, chain(2, 4, reader=0, writer=1), ()) for n in ("prefill", "decode")]
    system = memories(3)
    shapes = [replace(s, tables=(costs_of(s.graph, 3, 0, system),)) for s in shapes]
    weights_bytes = (1 + 2) * 16 * FLOAT
    together = Combination((single(shapes[0], (0, 0)), single(shapes[1], (1, 1))))
    assert together.weights_bytes == (weights_bytes, 0)
    apart = Combination((single(shapes[0], (0, 0)), single(shapes[1], (2, 2))))
    assert apart.weights_bytes == (weights_bytes, weights_bytes)
    own = memories(3, own_copy=["p1"])
    shapes = [replace(s, tables=(costs_of(s.graph, 3, 0, own),)) for s in shapes]
    packed = Combination((single(shapes[0], (0, 0)), single(shapes[1], (1, 1))))
    assert packed.weights_bytes == (2 * weights_bytes, 0)


def test_a_state_moves_once_and_a_request_has_all_steps():
    shapes = random_shapes(0)
    count = len(shapes[0].graph.operators)
    first, second = single(shapes[0], (0,) * count), single(shapes[1], (1,) * count)
    apart, together = Combination((first, second)), Combination((first, first))
    output = shapes[0].graph.states[0].output
    move_s = shapes[0].tables[0].transfers[output][0][1]
    assert [(each.state, each.source, each.target) for each in apart.moves] == [("h", "p0", "p1")]
    assert apart.moves[0].size_bytes == 64 * FLOAT
    assert apart.request_s == pytest.approx(first.latency_s + 5 * second.latency_s + move_s)
    assert together.moves == ()


def test_a_placement_that_is_beaten_by_itself_stays_if_it_leaves_the_state_where_it_is():
    """Decode on p1 takes 4 ms and on p0 5 ms; to move the state takes 100 ms."""
    shapes = []
    for name, times_ms, steps in (("prefill", (10, 400), 1), ("decode", (5, 4), 3)):
        graph = chain(2, 4, reader=0, writer=1)
        costs = costs_of(graph, 2, 0, memories(2))
        object.__setattr__(costs, "times", [[t / 2 * MS for t in times_ms]] * 2)
        object.__setattr__(costs, "energies", [[0.0, 0.0]] * 2)
        object.__setattr__(costs, "static_power_w", (1.0, 1.0))
        matrix = ((0.0, 0.1), (0.1, 0.0))
        object.__setattr__(costs, "transfers", dict.fromkeys(graph.tensors, matrix))
        shapes.append(Shape(name, graph, (costs,), steps))
    best = min(front_of(shapes), key=lambda each: each.request_s)
    assert best.request_s == pytest.approx(25 * MS)
    assert {"most-throughput", "one-placement", "one-processor"} <= {*best.names}
    long = [shapes[0], replace(shapes[1], steps=1000)]
    best = min(front_of(long), key=lambda each: each.request_s)
    assert best.request_s == pytest.approx((10 + 100 + 4000) * MS)
    assert "one-placement" not in best.names


def test_a_limit_of_memory_holds_for_all_shapes_together():
    shapes = random_shapes(3)
    front = front_of(shapes, memory=False)
    least = min(each.memory_bytes for each in front_of(shapes))
    limited = front_of(shapes, memory=False, max_memory_bytes=least)
    assert {each.memory_bytes for each in limited} == {least}
    assert front_of(shapes, memory=False, max_memory_bytes=least - 1) == []
    assert max(each.memory_bytes for each in front) > least


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_is_replaced_by_something_with_the_same_ends_and_no_other_weight(seed):
    shape = random_shapes(seed)[1]
    every = [*placed_shapes_of(shape, every_placement(shape))]
    few = undominated(every, energy=True, memory=True)
    fewer = undominated(every, energy=False, memory=False)
    assert len(fewer) <= len(few) <= len(every)
    assert len(fewer) < len(every)
    for each in every:
        assert any(
            other.ends == each.ends
            and other.weights <= each.weights
            and other.steps_s <= each.steps_s
            and other.energy_j <= each.energy_j
            for other in few
        )


def test_configurations_of_another_shape_keep_processors_and_stages():
    shapes = random_shapes(4)
    count = len(shapes[0].graph.operators)
    on, stages = (0,) + (1,) * (count - 1), ((0,), tuple(range(1, count)))
    costs = shapes[0].tables[0]
    mapping = mapping_of(shapes[0].graph, None, costs, Assignment(on, stages))
    found = Configuration(mapping, evaluate(mapping, shapes[0].graph, costs), True, 0.0, 0)
    moved = [*as_elsewhere(shapes[1], shapes[0], [found])]
    assert [len(each.mapping.stages) for each in moved] == [2, 1]
    for each in moved:
        assert tuple(each.mapping.at[v].processor for v in range(count)) == on
    latency_s, period_s, energy_j, _ = taken(shapes[1], on, stages)
    assert moved[0].objectives == pytest.approx((latency_s, period_s, energy_j))


def test_large_graphs_are_not_enumerated():
    graph = chain(14, 4, reader=0, writer=1)
    assert every_placement(Shape("one", graph, (costs_of(graph, 2, 0, memories(2)),))) is None


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_by_leaving_out_parts_of_three_shapes(seed):
    """The front of all combinations, with nothing left out before, is the same."""
    rng = Random(seed)
    system, shapes = memories(2, own_copy=["p1"] * (seed % 2)), []
    for at, steps in enumerate((1, rng.randint(0, 2), 4)):
        graph = chain(3, 8 * (at + 1), reader=rng.randint(0, 1), writer=rng.randint(1, 2))
        costs = costs_of(graph, 2, 10 * seed + at, system)
        shapes.append(Shape(f"s{at}", graph, (costs,), steps, follows=bool(seed % 3)))
    every = [[*placed_shapes_of(shape, every_placement(shape))] for shape in shapes]
    points = [
        Combination(chosen).objectives(energy=True, memory=True) for chosen in product(*every)
    ]
    found = [each.objectives(energy=True, memory=True) for each in front_of(shapes) if each.pareto]
    assert pareto(found) == pareto(points)


def diamond(width):
    builder = hand_built.GraphBuilder(x=(1, width))
    top = builder.add("Relu", ["x"], (1, width))
    left, right = (builder.add("Relu", [top], (1, width)) for _ in range(2))
    return builder.graph(builder.add("Add", [left, right], (1, width)))


@pytest.mark.parametrize("seed", range(4))
def test_branches_are_tried_in_each_order_that_the_graph_allows(seed):
    graph = diamond(4)
    costs = random_costs(graph, 2, seed)
    tensors = [each.id for each in graph.operators]

    def latency_s(on, order):
        free_s, end_s = [0.0, 0.0], [0.0] * 4
        for v in order:
            ready = [
                end_s[u] + costs.transfers[tensors[u]][on[u]][on[v]] for u in graph.predecessors(v)
            ]
            end_s[v] = max(free_s[on[v]], *ready, 0.0) + costs.times[v][on[v]]
            free_s[on[v]] = end_s[v]
        return max(end_s)

    every = every_placement(Shape("one", graph, (costs,)))
    for on in product(range(2), repeat=4):
        least_s = min(latency_s(on, order) for order in ((0, 1, 2, 3), (0, 2, 1, 3)))
        found_s = [
            each.evaluated.latency_s
            for each in every
            if len(each.mapping.stages) == 1
            and tuple(each.mapping.at[v].processor for v in range(4)) == on
        ]
        assert min(found_s) == pytest.approx(least_s)
