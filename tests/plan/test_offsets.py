"""Offsets of buffers in plans: drawn by hand, checked by rules, and run frame by frame."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.plan import layout
from parapipe.plan.build import build_plan
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import mapping_view, network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.verify import verify_plan
from parapipe.platform.memories import MemorySystem
from parapipe.solvers.memory.ejections import Ejections
from tests.cases.arena_replay import ELEMENTWISE, Replay
from tests.cases.interleaved import plan_of, random_document
from tests.cases.moving_networks import moving_graph
from tests.cases.plan_cases import (
    Costs,
    configured,
    cut_into_stages,
    graph_of,
    operator,
    platform_of,
)
from tests.cases.plan_changes import found_after, violations


def alone(made, **changed):
    """The plan of operators that run on one processor, one behind the other.

    Of tensors, shapes or types other than those of `graph_of` are given.
    """
    graph = graph_of(made, inputs=["x"], outputs=[made[-1].id])
    changes = {
        name: {"dtype" if isinstance(each, str) else "shape": each}
        for name, each in changed.items()
    }
    tensors = {n: replace(each, **changes.get(n, {})) for n, each in graph.tensors.items()}
    graph = replace(graph, tensors=tensors)
    costs = Costs([[1.0] * 5] * len(made), {})
    return build_plan(
        graph,
        platform_of(1),
        costs,
        configured(graph, costs, [[(v, 0) for v in range(len(made))]]),
    )


def places(plan):
    return {each.tensor: each.offset_bytes for each in plan.buffers}


def shared(plan, kind):
    return {each.tensor: other for each in plan.buffers if (other := getattr(each, kind))}


def sizes(plan):
    (arena,) = plan.memory.arenas
    return arena.size_bytes, arena.bound_bytes, arena.proven


def conv(name, reads):
    return operator(name, reads, kind="Conv")


def test_an_activation_writes_over_what_it_is_the_last_to_read():
    plan = alone([conv("a", "x"), operator("b", "a"), conv("c", "b")])
    assert shared(plan, "over") == {"b": "a"}
    assert places(plan)["a"] == places(plan)["b"]
    assert sizes(plan) == (48, 48, True)  # x and c lie beside them, one after the other


def test_it_does_not_while_another_one_still_reads_that():
    plan = alone([conv("a", "x"), operator("b", "a"), operator("c", "b a", kind="Add")])
    assert shared(plan, "over") == {"c": "b"}  # a is written over by nobody
    assert sizes(plan) == (48, 48, True)


@pytest.mark.parametrize(
    ("made", "shapes"),
    [
        ([operator("b", "x"), conv("c", "b")], {}),  # a graph input
        ([conv("a", "x"), operator("b", "a"), conv("c", "b")], {"a": (1, 1, 3)}),  # broadcast
        ([conv("a", "x"), operator("b", "a", kind="Softmax"), conv("c", "b")], {}),
        ([conv("a", "x"), operator("b", "x x a", kind="Sum"), conv("c", "b")], {}),  # third operand
    ],
)
def test_what_is_not_written_over(made, shapes):
    assert shared(alone(made, **shapes), "over") == {}


def test_a_cast_to_a_type_of_equal_size_writes_over_what_it_reads():
    plan = alone([conv("a", "x"), operator("b", "a", kind="Cast"), conv("c", "b")], b="int32")
    assert shared(plan, "over") == {"b": "a"}


JOINED = [
    conv("a", "x"),
    conv("b", "x"),
    operator("j", "a b", kind="Concat", attributes={"axis": 1}),
    conv("c", "j"),
]


def test_what_is_joined_lies_in_its_result_in_order():
    plan = alone(JOINED, j=(1, 4, 3))
    at = places(plan)
    assert shared(plan, "within") == {"a": "j", "b": "j"}
    assert at["b"][0] - at["a"][0] == 24
    assert at["j"] == at["a"]
    assert sizes(plan) == (72, 72, True)  # apart, 96 would be needed


def test_what_is_joined_in_pieces_does_not():
    plan = alone(JOINED, x=(2, 2, 3), a=(2, 2, 3), b=(2, 2, 3), j=(2, 4, 3))
    assert shared(plan, "within") == {}
    assert sizes(plan) == (192, 192, True)


def test_a_cut_and_a_new_shape_are_ranges_of_what_they_are_made_of():
    attributes = {"starts": (1,), "ends": (2,), "axes": (1,)}
    made = [
        conv("a", "x"),
        operator("s", "a", kind="Slice", attributes=attributes),
        operator("r", "s", kind="Reshape"),
        conv("c", "r"),
    ]
    plan = alone(made, s=(1, 1, 3), r=(3, 1, 1))
    assert shared(plan, "within") == {"s": "a", "r": "s"}
    at = places(plan)
    assert at["s"][0] - at["a"][0] == 12
    assert at["r"] == at["s"]


def buffer(document, tensor):
    return next(each for each in document["buffers"] if each["tensor"] == tensor)


def moved(name, **fields):
    return lambda document: buffer(document, name).update(fields)


def in_arena(**fields):
    return lambda document: document["memory"]["arenas"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            moved("x", offset_bytes=[24]),
            "'x' on 'big' at 24 and 'a' on 'big' at 24 overlap while both are alive",
        ),
        (
            moved("b", offset_bytes=[72, 72]),
            "'b' on 'big' at 72 and 'b' on 'big' at 72 overlap while both are alive",
        ),
        (moved("b", offset_bytes=[72]), "'b' on 'big' has 1 offsets, and 2 frames of it are alive"),
        (
            moved("x", offset_bytes=[169]),
            "'x' on 'big' ends at 193, and the arena of 'shared memory assumed' has 192 bytes",
        ),
        (moved("x", size_bytes=23), "'x' on 'big' takes 24 bytes, and has 23"),
        (moved("x", content="copy"), "'x' on 'big' is a copy, and should be a tensor"),
        (moved("e", over="c"), "'e' on 'gpu' does not lie on 'c' right"),
        (moved("e", within="d"), "'e' on 'gpu' does not lie on 'd' right"),
        (
            moved("b", processors=["big"]),
            "'b' on 'big' is used by big, gpu, and its buffer names big",
        ),
        (lambda d: d["buffers"].pop(), "'x' on 'big' has no buffer"),
        (lambda d: d["buffers"].append(d["buffers"][0]), "'a' on 'big' has 2 buffers"),
        (moved("x", tensor="y"), "'y' on 'big' has a buffer, and needs none"),
        (
            lambda d: d.pop("memory"),
            "there are buffers, and nothing is said of the memory that they lie in",
        ),
        (in_arena(processors=["big", "gpu"]), "processor 'little' stands in 0 memories"),
        (
            in_arena(bound_bytes=100),
            (
                "the arena of 'shared memory assumed' has 192 bytes, its bound is 100, and it is "
                "said to be proven"
            ),
        ),
        (
            in_arena(bound_bytes=200),
            "the arena of 'shared memory assumed' has 192 bytes, less than its bound of 200",
        ),
        (in_arena(alignment_bytes=16), "'x' on 'big' takes 32 bytes, and has 24"),
    ],
)
def test_a_wrong_place_is_named(change, found):
    assert found in found_after(change)


def test_what_is_written_over_too_early_is_found():
    def change(document):
        del buffer(document, "e")["over"]

    assert found_after(change) == [
        "'d' on 'gpu' at 168 and 'e' on 'gpu' at 168 overlap while both are alive"
    ]


def test_a_plan_without_memory_keeps_the_rules():
    assert found_after(lambda d: (d.pop("memory"), d.pop("buffers"))) == []


SEEDS = st.integers(0, 10**9)
NAMES = Costs.processors


def system_of(rng, names):
    """One memory or two, with processors at random."""
    shuffled = rng.sample(names, len(names))
    cut = rng.randint(1, len(names))
    memories = [each for each in (shuffled[:cut], shuffled[cut:]) if each]
    pairs = [(p, q) for p in names for q in names if p != q]
    return MemorySystem(
        names=tuple(f"m{m}" for m in range(len(memories))),
        assumed=False,
        memory_of={name: m for m, each in enumerate(memories) for name in each},
        alignment_bytes=tuple(rng.choice([1, 4, 16, 64]) for _ in memories),
        usable_bytes=(None,) * len(memories),
        copying=frozenset(rng.sample(pairs, len(pairs) // 4)),
        packing={},
    )


def replay(plan):
    """Run frames in the plan's arenas, with lives that the oracle finds by itself."""
    view = mapping_view(plan)
    lives = PlanLives(plan, network_of(plan), plan.memory.system)
    lags = max(at.lag for at in view.mapping.placements)
    Replay(plan, view.mapping, lives.storage).frames(lags + 12)


def staged(seed, *, replicated=False, casts=False):
    """A plan of stages, sequential ones and hybrid ones included."""
    rng = random.Random(seed)
    count = rng.randint(2, 12)
    graph = moving_graph(rng, count, casts=casts)
    processors = rng.randint(2, 5)
    moved_s = {
        (name, p, q): rng.choice([0.0, 0.125, 0.3])
        for name in graph.tensors for p in range(5) for q in range(5)
    }  # fmt: skip
    costs = Costs([[rng.choice([0.0, 0.1, 0.7, 1.5])] * 5 for _ in range(count)], moved_s)
    costs.table[0] = [0.4] * 5
    costs.memory_system = system_of(rng, [*NAMES])
    platform = platform_of(5)
    stages = cut_into_stages(rng, count, processors)
    if replicated:
        stages = [[(v, s) for v, _ in stage] for s, stage in enumerate(stages)]
        for processor in platform.processors:
            processor.kind, processor.backend, processor.cores = "cpu", "same", ()
            processor.point = SimpleNamespace(frequency_hz=1e9, voltage_v=0.8)
    mapping = configured(graph, costs, stages)
    if replicated and len(stages) < len(NAMES):
        turn = rng.randrange(len(stages))
        mapping = mapping.with_replicas(
            [(turn, *range(len(stages), rng.randint(len(stages), 4) + 1))]
        )
    return build_plan(graph, platform, costs, mapping)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_frames_of_stages_find_what_they_read(seed):
    replay(staged(seed))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_frames_of_elements_of_many_sizes_find_what_they_read(seed):
    replay(staged(seed, casts=True))


@pytest.mark.nightly
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_frames_of_replicated_stages_find_what_they_read(seed):
    replay(staged(seed, replicated=True))


def under(plan, arena, limit_bytes, **options):
    """Bytes of an arena of a plan that is laid out again under a limit."""
    lives = PlanLives(plan, network_of(plan), plan.memory.system)
    made = laid_out(plan, lives, {arena.name: limit_bytes}, **options)
    (again,) = (each for each in made.memory.arenas if each.name == arena.name)
    return again.size_bytes


@pytest.mark.parametrize(("seed", "bound", "size"), [(0, 636, 660), (15, 600, 624)])
def test_an_arena_is_made_as_small_as_a_limit_wants_it(seed, bound, size):
    plan = staged(seed)
    (arena,) = (each for each in plan.memory.arenas if each.bound_bytes == bound)
    assert arena.size_bytes == size
    assert under(plan, arena, bound) == bound
    assert under(plan, arena, size) == size  # that is small enough
    assert under(plan, arena, 1) == bound  # nothing less is looked for


@pytest.mark.parametrize(("seed", "bound", "size"), [(0, 636, 660), (15, 600, 624)])
def test_without_work_on_smaller_arenas_the_first_one_is_taken(seed, bound, size):
    plan = staged(seed)
    (arena,) = (each for each in plan.memory.arenas if each.bound_bytes == bound)
    assert under(plan, arena, bound, arena_effort_s=0.0) >= size
    assert under(plan, arena, bound, arena_effort_s=10.0) == bound


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, most=st.integers(0, 12_000))
def test_smaller_arenas_take_no_more_work_than_they_may(seed, most):
    plan, counted = staged(seed), Counted()
    lives = PlanLives(plan, network_of(plan), plan.memory.system)
    limits = {each.name: each.bound_bytes for each in plan.memory.arenas}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ejections, "_put", counted.changes(Ejections._put))
        patch.setattr(layout, "ArenaProblem", counted.buffers(layout.ArenaProblem))
        effort_s = most / layout.CHANGES_PER_S
        made = laid_out(plan, lives, limits, arena_effort_s=effort_s)
    verify_plan(made)
    # the first circle of each memory is made anyway, and again if it is too large for the limit
    anyway = 2 * sum(len(each.offset_bytes) for each in made.buffers)
    largest = layout.PERIODS * anyway
    assert counted.changed <= most
    assert counted.made / layout.BUFFERS_PER_CHANGE <= most + anyway + largest
    whole = laid_out(plan, lives, limits)
    assert whole == laid_out(plan, lives, limits, arena_effort_s=1e6)


class Counted:
    """Counts changes of ejections, and buffers of circles."""

    def __init__(self):
        self.changed = self.made = 0

    def changes(self, put):
        def counting(ejections, buffer):
            self.changed += 1
            return put(ejections, buffer)

        return counting

    def buffers(self, problem):
        def counting(buffers, period):
            self.made += len(buffers)
            return problem(buffers, period)

        return counting


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_interleaved_frames_find_what_they_read(seed):
    rng = random.Random(seed)
    graph = moving_graph(rng, rng.randint(2, 12))
    if (document := random_document(graph, seed)) is None:
        return
    plan = plan_of(document)
    view = mapping_view(plan)
    plan = laid_out(plan, PlanLives(plan, graph, system_of(rng, [*view.resources])))
    verify_plan(plan)
    replay(plan)


@settings(max_examples=75, deadline=None)
@given(seed=SEEDS)
def test_a_buffer_that_frames_miss_is_found_by_the_rules(seed):
    rng = random.Random(seed)
    plan = staged(seed)
    buffers, other = [*plan.buffers], rng.choice(plan.buffers)
    i = rng.randrange(len(buffers))
    offsets = [*buffers[i].offset_bytes]
    offsets[rng.randrange(len(offsets))] = rng.choice(other.offset_bytes)
    buffers[i] = buffers[i].model_copy(update={"offset_bytes": tuple(offsets)})
    wrong = plan.model_copy(update={"buffers": tuple(buffers)})
    try:
        verify_plan(wrong)
    except VerificationError:
        return
    replay(wrong)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, link=st.sampled_from(["over", "within"]))
def test_a_link_that_frames_do_not_bear_is_found_by_the_rules(seed, link):
    rng = random.Random(seed)
    plan = staged(seed, casts=True)
    kinds = ELEMENTWISE if link == "over" else ("Concat", "Slice", "Reshape", "Conv", "Cast")
    pairs = [
        pair
        for each in plan.operators
        for name in each.inputs
        for pair in ((name, each.outputs[0]), (each.outputs[0], name))[: 1 + (link == "within")]
        if pair[0] != pair[1] and each.type in kinds
    ]
    for below, above in rng.sample(pairs, min(4, len(pairs))):
        shift = rng.choice([0, 64, 12, 4]) if link == "within" else 0
        wrong = linked(plan, below, above, link, shift)
        try:
            verify_plan(wrong)
        except VerificationError:
            continue
        replay(wrong)


def linked(plan, below, above, link, shift):
    """The plan with a tensor so far behind the begin of another one, and said to be over it."""
    at = {each.tensor: each.offset_bytes for each in plan.buffers if each.content == "tensor"}
    offsets = tuple(place + shift for place in at.get(below, ()))
    changed = (
        each.model_copy(update={"offset_bytes": offsets, link: below})
        if each.tensor == above and each.content == "tensor" and offsets
        else each
        for each in plan.buffers
    )
    return plan.model_copy(update={"buffers": tuple(changed)})


@pytest.mark.parametrize("alignment_bytes", [1, 64])
@pytest.mark.parametrize("count", [1, 2, 8, 9, 16, 17])
@pytest.mark.parametrize(
    ("dtype", "shares"), [("int64", False), ("float16", False), ("int32", True)]
)
def test_what_is_written_over_has_elements_of_equal_size(dtype, shares, count, alignment_bytes):
    made = [conv("a", "x"), operator("b", "a", kind="Cast"), conv("c", "b")]
    shape = (1, 1, count)
    graph = graph_of(made, inputs=["x"], outputs=["c"])
    tensors = {name: replace(each, shape=shape) for name, each in graph.tensors.items()}
    tensors["b"] = replace(tensors["b"], dtype=dtype)
    graph = replace(graph, tensors=tensors)
    costs = Costs([[1.0] * 5] * 3, {})
    costs.memory_system = replace(
        MemorySystem.assumed_for(costs.processors), alignment_bytes=(alignment_bytes,)
    )
    mapping = configured(graph, costs, [[(v, 0) for v in range(3)]])
    plan = build_plan(graph, platform_of(1), costs, mapping)
    assert shared(plan, "over") == ({"b": "a"} if shares else {})
    document = json.loads(plan.to_bytes())
    buffer(document, "b").update(over="a", offset_bytes=buffer(document, "a")["offset_bytes"])
    (arena,) = document["memory"]["arenas"]
    arena.update(size_bytes=arena["size_bytes"] + 1000, bound_bytes=0, proven=False)
    wrong = [each for each in violations(document) if "does not lie on 'a' right" in each]
    assert wrong == ([] if shares else ["'b' on 'big' does not lie on 'a' right"])
