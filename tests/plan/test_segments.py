"""Segments are the maximal runs that need no other processor in between."""

import json
from itertools import pairwise

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.plan.segments import Segment, segments
from parapipe.plan.verify import verify_plan
from tests.cases.plan_cases import (
    Costs,
    configured,
    drawn_plan,
    graph_of,
    operator,
    platform_of,
    random_case,
)
from tests.cases.plan_changes import DRAWN

SEEDS = st.integers(0, 10**9)


def plan_of(operators, outputs, stages, processors=2):
    graph = graph_of(operators, inputs=["x"], outputs=outputs)
    costs = Costs([[1.0] * processors] * len(operators), {})
    return build_plan(graph, platform_of(processors), costs, configured(graph, costs, stages))


def test_the_segments_of_the_drawn_plan() -> None:
    found = segments(drawn_plan())
    assert found == {
        "big": (Segment("big", 0, 0, ("a", "b"), (), ("x",), ("a", "b")),),
        "little": (Segment("little", 0, 0, ("c",), ("a",), ("a",), ("c",)),),
        "gpu": (
            Segment("gpu", 1, 1, ("d",), ("b", "c"), ("b", "c"), ("d",)),
            Segment("gpu", 1, 1, ("e",), ("a",), ("d", "a"), ("e",)),
        ),
    }


def test_one_processor_alone_runs_one_segment() -> None:
    chain = [operator("a", "x"), operator("b", "a"), operator("c", "a b")]
    (only,) = segments(plan_of(chain, ["c"], [[(0, 0), (1, 0), (2, 0)]]))["big"]
    assert (only.operators, only.inputs, only.outputs) == (("a", "b", "c"), ("x",), ("c",))


def test_a_tensor_that_was_waited_for_before_does_not_begin_a_segment() -> None:
    # On little, both b and c read a; b has waited for it.
    fork = [operator("a", "x"), operator("b", "a"), operator("c", "a b")]
    (only,) = segments(plan_of(fork, ["c"], [[(0, 0), (1, 1), (2, 1)]]))["little"]
    assert (only.operators, only.receives, only.inputs) == (("b", "c"), ("a",), ("a",))


def test_processors_that_need_each_other_get_two_segments_each() -> None:
    # big: a, d; little: b, c; c reads a, and d reads b: whole runs would wait for each other.
    cross = [operator("a", "x"), operator("b", "x"), operator("c", "a b"), operator("d", "b a")]
    found = segments(plan_of(cross, ["c", "d"], [[(0, 0), (1, 1), (2, 1), (3, 0)]]))
    assert [segment.operators for segment in found["big"]] == [("a",), ("d",)]
    assert [segment.operators for segment in found["little"]] == [("b",), ("c",)]


def test_graph_outputs_leave_their_segment_even_if_nothing_else_reads_them() -> None:
    chain = [operator("a", "x"), operator("b", "a"), operator("c", "b")]
    (only,) = segments(plan_of(chain, ["a", "c"], [[(0, 0), (1, 0), (2, 0)]]))["big"]
    assert only.outputs == ("a", "c")


def test_a_segment_works_on_one_frame() -> None:
    # The drawn plan as one stage, with b a frame behind a.
    document = json.loads(json.dumps(DRAWN))
    first, second = document["stages"]
    first["processors"] += second["processors"]
    document["stages"] = [first]
    first["processors"][0]["operators"][1]["lag"] = 1
    first["processors"][1]["operators"][0]["lag"] = 1
    for at in first["processors"][2]["operators"]:
        at["lag"] = 2
    for entry in document["transfers"]:
        entry |= {"kind": "within-stage", "queue_depth": 3}
    document["predicted"]["latency_s"] = 8.25
    del document["memory"], document["buffers"]  # of another schedule
    plan = Plan.model_validate_json(json.dumps(document))
    verify_plan(plan)
    assert [(s.operators, s.lag) for s in segments(plan)["big"]] == [(("a",), 0), (("b",), 1)]


def facts(plan):
    """What oracles need: order on each processor, reads, makers and homes."""
    order = {
        processor.name: [at.operator for at in processor.operators]
        for stage in plan.stages
        for processor in stage.processors
    }
    reads = {o.id: [n for n in o.inputs if n in plan.tensors] for o in plan.operators}
    maker = {name: o.id for o in plan.operators for name in o.outputs}
    home = {v: processor for processor, listed in order.items() for v in listed}
    return order, reads, maker, home


@given(seed=SEEDS)
def test_segments_are_exactly_the_maximal_runs(seed) -> None:
    plan = build_plan(*random_case(seed))
    order, reads, maker, home = facts(plan)
    for processor, listed in order.items():

        def foreign(v, here=processor):
            return {n for n in reads[v] if n in maker and home[maker[n]] != here}

        def at_one_go(i, j, listed=listed, foreign=foreign):
            there = set().union(*(foreign(v) for v in listed[: i + 1]))
            return all(foreign(v) <= there for v in listed[i + 1 : j + 1])

        span = range(len(listed))
        runs = {(i, j) for i in span for j in span if i <= j and at_one_go(i, j)}
        longest = {
            (i, j)
            for i, j in runs
            if not any((k, m) != (i, j) and k <= i and j <= m for k, m in runs)
        }
        found = [segment.operators for segment in segments(plan)[processor]]
        assert found == [tuple(listed[i : j + 1]) for i, j in sorted(longest)]


@given(seed=SEEDS, prompt=st.booleans())
def test_segments_are_convex(seed, prompt) -> None:
    plan = build_plan(*random_case(seed))
    _, reads, maker, _ = facts(plan)
    network = nx.DiGraph(
        (maker[name], v) for v, names in reads.items() for name in names if name in maker
    )
    network.add_nodes_from(reads)
    for mine in segments(plan, prompt=prompt).values():
        for segment in mine:
            inside = set(segment.operators)
            behind = set().union(*(nx.descendants(network, v) for v in inside)) - inside
            before = set().union(*(nx.ancestors(network, v) for v in inside)) - inside
            assert not behind & before


@given(seed=SEEDS, prompt=st.booleans())
def test_a_machine_that_runs_segments_whole_finishes_the_frame(seed, prompt) -> None:
    plan = build_plan(*random_case(seed))
    there = set(plan.inputs)
    waiting = {name: list(mine) for name, mine in segments(plan, prompt=prompt).items()}
    while any(waiting.values()):
        ready = [
            name for name, mine in waiting.items() if mine and there.issuperset(mine[0].inputs)
        ]
        assert ready, "segments wait for each other"
        for name in ready:
            there.update(waiting[name].pop(0).outputs)
    assert there.issuperset(plan.outputs)


@given(seed=SEEDS)
def test_only_the_first_operator_of_a_segment_receives(seed) -> None:
    plan = build_plan(*random_case(seed))
    _, reads, _, home = facts(plan)
    received = set()
    for processor, mine in segments(plan).items():
        for segment in mine:
            assert set(segment.receives) <= set(reads[segment.operators[0]])
            assert all(home[v] == processor for v in segment.operators)
            received |= {(name, processor) for name in segment.receives}
    assert received == {(t.tensor, t.target) for t in plan.transfers}


def test_cut_promptly_a_segment_ends_where_another_processor_waits_for_it() -> None:
    # big: a, b, c; little: d, which reads a and b, and e, which reads d and a.
    fork = [
        operator("a", "x"),
        operator("b", "a"),
        operator("c", "b"),
        operator("d", "a b"),
        operator("e", "d a"),
    ]
    plan = plan_of(fork, ["c", "e"], [[(0, 0), (1, 0), (2, 0), (3, 1), (4, 1)]])
    assert [s.operators for s in segments(plan)["big"]] == [("a", "b", "c")]
    assert [s.operators for s in segments(plan, prompt=True)["big"]] == [("a", "b"), ("c",)]
    assert [s.operators for s in segments(plan, prompt=True)["little"]] == [("d", "e")]


def test_cut_promptly_a_segment_does_not_end_for_a_later_stage() -> None:
    chain = [operator("a", "x"), operator("b", "a"), operator("c", "a b")]
    plan = plan_of(chain, ["c"], [[(0, 0), (1, 0)], [(2, 1)]])
    assert segments(plan, prompt=True) == segments(plan)


def starts(plan, pieces):
    """When each operator starts if pieces run whole, each stage with all from before it there."""
    stage_of = {p.name: s.index for s in plan.stages for p in s.processors}
    lasting = {
        at.operator: at.end_s - at.start_s
        for stage in plan.stages
        for processor in stage.processors
        for at in processor.operators
    }
    _, reads, maker, home = facts(plan)
    there, free, begun = {}, dict.fromkeys(stage_of, 0.0), {}
    waiting = {name: list(mine) for name, mine in pieces.items()}
    while any(waiting.values()):
        for name, mine in waiting.items():
            needed = [
                n
                for v in (mine[0] if mine else ())
                for n in reads[v]
                if n in maker
                and home[maker[n]] != name
                and stage_of[home[maker[n]]] == stage_of[name]
            ]
            if not mine or not there.keys() >= set(needed):
                continue
            for v in (piece := mine.pop(0)):
                begun[v] = max([free[name], *(there[n] for n in needed if n in reads[v])])
                free[name] = begun[v] + lasting[v]
            there |= {n: free[name] for n, v in maker.items() if v in piece}
    return begun


@given(seed=SEEDS)
def test_cut_promptly_no_operator_starts_later_than_if_it_ran_by_itself(seed) -> None:
    plan = build_plan(*random_case(seed))
    order, *_ = facts(plan)
    prompt = {
        name: [segment.operators for segment in mine]
        for name, mine in segments(plan, prompt=True).items()
    }
    alone = {name: [(v,) for v in listed] for name, listed in order.items()}
    assert starts(plan, prompt) == starts(plan, alone)


@given(seed=SEEDS)
def test_every_operator_is_in_one_segment(seed) -> None:
    plan = build_plan(*random_case(seed))
    for prompt in (False, True):
        found = segments(plan, prompt=prompt)
        listed = [v for mine in found.values() for segment in mine for v in segment.operators]
        assert sorted(listed) == sorted(operator.id for operator in plan.operators)


@given(seed=SEEDS)
def test_a_prompt_cut_stands_only_where_someone_waits(seed) -> None:
    plan = build_plan(*random_case(seed))
    _, reads, maker, home = facts(plan)
    stage_of = {p.name: s.index for s in plan.stages for p in s.processors}
    for name, mine in segments(plan, prompt=True).items():
        for one, other in pairwise(mine):
            readers = [
                v
                for v in reads
                if home[v] != name
                and stage_of[home[v]] == stage_of[name]
                and any(maker.get(n) == one.operators[-1] for n in reads[v])
            ]
            assert other.receives or readers
