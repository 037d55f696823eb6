"""Captured graphs: one launch for each segment of a processor, whatever the mapping."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.price import without_launch
from parapipe.errors import VerificationError
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import settle
from parapipe.mappings.launches import launch_times_s
from parapipe.mappings.segments import count_segments
from parapipe.plan.build import build_plan
from parapipe.plan.launch_rules import graph_launches_s
from parapipe.plan.mapped import mapping_view
from parapipe.plan.verify import verify_plan
from parapipe.platform.divided import variant_with
from parapipe.platform.fields import Expression
from tests.cases.hand_built import GraphBuilder, platform, processor
from tests.cases.uncertain_mappings import random_chip, random_in_turn, random_stages

SEEDS = st.integers(0, 2**32)
LAUNCH_S, GRAPH_S = 1e-5, 3e-5


def gpu(**changes):
    launch = {"source": "guess", "overhead_s": LAUNCH_S, "graph_s": GRAPH_S}
    return processor("gpu", cores=[], launch=launch, **changes)


BOARD = platform(processor("big"), gpu())


def chain(length=3):
    builder, last = GraphBuilder(x=(1, 8, 12, 12)), "x"
    for _ in range(length):
        last = builder.conv(last, 8)
    return builder.graph()


def launched(graph, board=BOARD):
    """Return costs where operators are started one by one, and where graphs are captured."""
    return [
        build_cost_table(graph, each, profiles=())
        for each in (board.without_captured_graphs(), board)
    ]


def placed(graph, costs, stages):
    """Return the mapping of lists of (operator, processor), a list for each stage."""
    at = dict(pair for stage in stages for pair in stage)
    order = tuple(tuple(v for v, _ in stage) for stage in stages)
    places = tuple(at[v] for v in range(len(at)))
    return mapping_of(graph, None, costs, Assignment(places, order, ordered=True))


def test_operators_of_one_processor_are_one_launch():
    graph = chain()
    single, captured = launched(graph)
    mapping = placed(graph, captured, [[(0, 1), (1, 1), (2, 1)]])
    mapping, evaluated = settle(mapping, graph, captured)
    work_s = sum(single.time_s(v, 1) - LAUNCH_S for v in range(3))
    assert evaluated.latency_s == pytest.approx(GRAPH_S + work_s, rel=1e-12)
    assert evaluated.launch_s == GRAPH_S
    energy_j = sum(captured.energy_j(v, 1) for v in range(3))
    static_j = evaluated.period_s * captured.static_power_w[1]
    assert evaluated.energy_j == pytest.approx(energy_j + static_j, rel=1e-12)


def test_a_processor_that_captures_nothing_is_as_it_was():
    graph = chain()
    single, captured = launched(graph)
    for v in range(3):
        assert captured.time_s(v, 0) == single.time_s(v, 0)
    mapping = placed(graph, captured, [[(0, 0), (1, 0), (2, 0)]])
    _, evaluated = settle(mapping, graph, captured)
    assert evaluated.latency_s == pytest.approx(sum(single.time_s(v, 0) for v in range(3)))
    assert evaluated.launch_s is None


def test_a_graph_ends_where_another_processor_is_needed():
    graph = chain()
    single, captured = launched(graph)
    mapping = placed(graph, captured, [[(0, 1), (1, 0), (2, 1)]])
    _, evaluated = settle(mapping, graph, captured)
    moved_s = sum(
        captured.transfer_s(graph.operators[v].outputs[0], p, 1 - p) for v, p in ((0, 1), (1, 0))
    )
    times_s = [single.time_s(0, 1), single.time_s(1, 0), single.time_s(2, 1)]
    own_s = sum(times_s) + 2 * (GRAPH_S - LAUNCH_S)
    assert evaluated.latency_s == pytest.approx(own_s + moved_s, rel=1e-12)
    assert evaluated.launch_s == 2 * GRAPH_S


def test_what_another_processor_waits_for_ends_a_graph_though_its_own_goes_on():
    # 0 is read by 1 on the other processor and by 2 on its own; 3 adds both
    builder = GraphBuilder(x=(1, 8, 12, 12))
    first = builder.conv("x", 8)
    sides = [builder.conv(first, 8), builder.conv(first, 8)]
    builder.add("Add", sides, (1, 8, 12, 12))
    graph = builder.graph()
    _, captured = launched(graph)
    mapping = placed(graph, captured, [[(0, 1), (1, 0), (2, 1), (3, 1)]])
    assert launch_times_s(mapping, graph, captured) == {0: GRAPH_S, 2: GRAPH_S, 3: GRAPH_S}


def test_what_is_free_launches_nothing():
    builder = GraphBuilder(x=(1, 8, 12, 12))
    view = builder.add("Reshape", ["x"], (1, 8, 12, 12))
    builder.conv(view, 8)
    graph = builder.graph()
    single, captured = launched(graph)
    mapping = placed(graph, captured, [[(0, 1), (1, 1)]])
    assert launch_times_s(mapping, graph, captured) == {1: GRAPH_S}
    assert captured.time_s(0, 1) == single.time_s(0, 1) == 0
    alone = placed(graph, captured, [[(0, 1)], [(1, 0)]])
    assert launch_times_s(alone, graph, captured) == {}


def test_a_measured_operator_takes_at_least_a_nanosecond_in_a_graph():
    cost = build_cost_table(chain(1), BOARD, profiles=()).entries[0][0].parts[0]
    gpu = BOARD.processors[1]
    shorter = replace(cost, time=Expression(LAUNCH_S / 2))
    assert without_launch(shorter, gpu).time_s == 1e-9
    assert without_launch(replace(cost, time=Expression(0)), gpu).time_s == 0
    priced = replace(cost, provenance="compiled")
    assert without_launch(priced, gpu) == priced
    assert without_launch(cost, BOARD.processors[0]) == cost


def test_a_stream_starts_graphs_of_its_own():
    streams = {"source": "guess", "slowdown": [1.0, 1.5], "hand_over": {"latency_s": 1e-5}}
    board = variant_with(platform(processor("big"), gpu(streams=streams)), ["gpu-1of2"])
    graph = chain()
    single, captured = launched(graph, board)
    for p, name in enumerate(captured.processors):
        if "of2" in name:
            assert captured.graph_launch_s[p] == GRAPH_S
            own_s = single.time_s(0, p) - 1.5 * LAUNCH_S
            assert captured.time_s(0, p) == pytest.approx(own_s, rel=1e-12)


def capturing(graph, seed, *, occupying):
    """Return the costs of a random network, some of whose processors capture graphs."""
    rng = random.Random(f"graphs {seed}")
    board = random_chip(seed, occupying=occupying)
    some = rng.choice([(0,), (1, 2), (0, 1, 2)])
    processors = [
        each.model_copy(update={"launch": each.launch.model_copy(update={"graph_s": GRAPH_S})})
        if p in some
        else each
        for p, each in enumerate(board.processors)
    ]
    board = board.model_copy(update={"processors": tuple(processors)})
    return board, build_cost_table(graph, board, profiles=())


def check(graph, board, costs, mapping):
    """Check a mapping with its launches, and its plan, which knows as much of them."""
    mapping, evaluated = settle(mapping, graph, costs)
    launches_s = launch_times_s(mapping, graph, costs)
    for v, at in mapping.at.items():
        own_s = costs.time_s(v, at.processor) + launches_s.get(v, 0.0)
        # Where a period begins may go round in a circle: then a launch may be counted twice.
        twice_s = GRAPH_S if mapping.period_s and v not in launches_s else 0.0
        assert own_s - 2e-12 <= at.end_s - at.start_s <= own_s + twice_s + 2e-12
    graphs = {
        p: count
        for p, count in count_segments(mapping, graph).items()
        if costs.graph_launch_s[p] is not None and p in mapping.orders
    }
    if graphs:
        assert evaluated.launch_s == pytest.approx(sum(graphs.values()) * GRAPH_S)
    else:
        assert evaluated.launch_s in (None, 0.0)
    plan = build_plan(graph, board, costs, mapping)
    assert graph_launches_s(mapping_view(plan)) == {
        graph.operators[v].id: each_s for v, each_s in launches_s.items()
    }
    again, same = settle(mapping, graph, costs)
    assert again == mapping
    assert same == evaluated
    return plan


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.booleans())
def test_stages_of_any_kind_have_a_launch_for_each_segment(seed, shared):
    occupying = bool(seed % 2)
    graph, _, mapping = random_stages(seed, occupying=occupying, shared=shared)
    if occupying and mapping.replicated:
        return  # a transfer may occupy what takes turns
    board, captured = capturing(graph, seed, occupying=occupying)
    again, _ = settle(mapping, graph, captured)
    for stage, other in zip(mapping.stages, again.stages, strict=True):
        for p in stage.processors:
            own, same = ([at.operator for at in each.placements if at.processor == p]
                         for each in (stage, other))  # fmt: skip
            assert own == same
    if shared:  # plans have no processor in two plain stages
        launches_s = launch_times_s(again, graph, captured)
        for v, at in again.at.items():
            own_s = captured.time_s(v, at.processor) + launches_s.get(v, 0.0)
            assert at.end_s - at.start_s >= own_s - 1e-12
    else:
        check(graph, board, captured, mapping)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_interleaved_frames_have_a_launch_for_each_segment(seed):
    graph, _, mapping = random_in_turn(seed)
    if mapping is None or len(mapping.stages) == 1:  # of which no plan is made for a period
        return
    board, captured = capturing(graph, seed, occupying=bool(seed % 2))
    check(graph, board, captured, mapping)


def test_the_verifier_refuses_a_graph_that_starts_in_less_time():
    graph = chain()
    _, captured = launched(graph)
    plan = build_plan(graph, BOARD, captured, placed(graph, captured, [[(0, 1), (1, 0), (2, 1)]]))
    processors = tuple(
        each.model_copy(update={"graph_launch_s": 1.0}) if each.graph_launch_s else each
        for each in plan.processors
    )
    with pytest.raises(VerificationError) as error:
        verify_plan(plan.model_copy(update={"processors": processors}))
    operators = graph.operators
    assert len(error.value.violations) == 2
    for v, text in zip((0, 2), error.value.violations, strict=True):
        assert text.startswith(f"operator '{operators[v].id}' takes ")
        assert text.endswith("captured graph that begins with it takes 1 s on 'gpu'")


def test_frames_of_several_models_are_launched_operator_by_operator():
    graph = chain()
    member = replace(graph.source, members=(object(),))
    alone = build_cost_table(graph, BOARD.without_captured_graphs(), profiles=())
    together = build_cost_table(replace(graph, source=member), BOARD, profiles=())
    assert together.graph_launch_s == ()
    assert together.entries == alone.entries
