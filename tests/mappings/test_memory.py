"""Peak memory of mappings: counted by hand, and against frames run event by event."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.graph.lifetimes import peak_activations
from parapipe.graph.operator_graph import Constant, Tensor
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.mapping import Placement
from parapipe.mappings.memory import peak_memory
from parapipe.plan.mapped import mapping_view
from parapipe.platform.memories import MemorySystem
from tests.cases.interleaved import plan_of, random_document
from tests.cases.memory_oracle import Run
from tests.cases.plan_cases import Costs, graph_of, mapping_of, operator, random_case

NAMES = ("big", "little", "gpu", "npu", "dsp")
TENSOR = 6 * 4  # bytes of a tensor of graph_of


def system(*memories, alignment_bytes=1, copying=(), packing=None):
    """Memories of these processors each; one of all if none is given."""
    memories = memories or (NAMES,)
    return MemorySystem(
        names=tuple("+".join(each) for each in memories),
        assumed=False,
        memory_of={name: m for m, each in enumerate(memories) for name in each},
        alignment_bytes=(alignment_bytes,) * len(memories),
        usable_bytes=(None,) * len(memories),
        copying=frozenset(copying),
        packing=packing or {},
    )


def peak(graph, mapping, memories, period_s, working=(None,) * 5):
    return peak_memory(mapping, Storage(graph, memories, NAMES, working), period_s)


def chain(*names, constants=(), reads=""):
    made = [operator(name, f"{before} {reads}") for before, name in pairwise(("x", *names))]
    return graph_of(made, inputs=["x"], outputs=[names[-1]], constants=constants)


def staged(graph, *where):
    """One operator after the other, each a second; (processor, lag, start) of each."""
    costs = Costs([[1.0] * 5 for _ in where], {})
    placements = [Placement(v, p, s, s + 1.0, lag) for v, (p, lag, s) in enumerate(where)]
    return mapping_of(graph, costs, placements)


ALONE = [(0, 0, 0.0), (0, 0, 1.0), (0, 0, 2.0)]


def test_on_one_processor_it_is_what_the_graph_needs_in_that_order():
    graph = chain("a", "b", "c")
    found = peak(graph, staged(graph, *ALONE), system(), 3.0)
    assert found.total.size_bytes == peak_activations(graph, range(3)).size_bytes == 2 * TENSOR
    assert (found.total.at_s, [each.name for each in found.total.alive]) == (0.0, ["a", "x"])
    assert found.total.usage == ((0.0, 48), (1.0, 48), (2.0, 48))


def test_the_queue_between_two_stages_has_its_slots_at_any_time():
    graph = chain("a", "b", "c")
    # x, a: in the first second; then b in two slots; c until the frame's end, a quarter later
    mapping = staged(graph, (0, 0, 0.0), (0, 0, 1.0), (1, 1, 0.25))
    found = peak(graph, mapping, system(), 2.0)
    assert found.total.size_bytes == (2 + 2 + 1) * TENSOR
    assert found.total.at_s == 0.25
    assert {(a.name, a.content, a.frames) for a in found.total.alive} == {
        ("x", "tensor", 1), ("a", "tensor", 1), ("b", "queue", 2), ("c", "tensor", 1)
    }  # fmt: skip


def test_a_tensor_in_another_memory_is_a_copy_and_stays_until_it_has_arrived():
    graph = chain("a", "b")
    # a ends at 1 s and arrives at 1.25 s; b reads the copy until 2.25 s
    mapping = staged(graph, (0, 0, 0.0), (2, 0, 1.25))
    found = peak(graph, mapping, system(("big",), ("gpu",)), 2.25)
    assert [each.size_bytes for each in found.memories] == [2 * TENSOR, 2 * TENSOR]
    assert found.memories[0].usage == ((0.0, 48), (1.0, 24), (1.25, 0))
    assert found.memories[1].usage == ((0.0, 0), (1.0, 24), (1.25, 48))
    assert found.total.size_bytes == 2 * TENSOR


def test_processors_that_share_a_memory_read_the_same_tensor_unless_the_link_converts():
    graph = chain("a", "b")
    mapping = staged(graph, (0, 0, 0.0), (2, 0, 1.25))
    shared = peak(graph, mapping, system(), 2.25)
    assert shared.total.usage == ((0.0, 48), (1.0, 24), (1.25, 48))
    converting = peak(graph, mapping, system(copying=[("big", "gpu")]), 2.25)
    assert converting.total.usage == ((0.0, 48), (1.0, 48), (1.25, 48))


def test_processors_that_work_in_other_types_keep_their_own():
    graph = chain("a", "b")
    mapping = staged(graph, (0, 0, 0.0), (2, 0, 1.25))
    found = peak(graph, mapping, system(), 2.25, working=(None, None, "float16", None, None))
    assert found.total.usage == ((0.0, 48), (1.0, 24 + 12), (1.25, 12 + 12))


def test_a_graph_output_waits_for_the_end_of_its_frame():
    made = [operator("a", "x"), operator("b", "a"), operator("c", "b")]
    graph = graph_of(made, inputs=["x"], outputs=["a", "c"])
    found = peak(graph, staged(graph, *ALONE), system(), 3.0)
    assert found.total.usage == ((0.0, 48), (1.0, 48), (2.0, 72))


def test_a_skipped_stage_needs_one_more_slot():
    made = [operator("a", "x"), operator("b", "a"), operator("c", "b a")]
    graph = graph_of(made, inputs=["x"], outputs=["c"])
    mapping = staged(graph, (0, 0, 0.0), (1, 1, 0.25), (2, 2, 0.25))
    queues = {a.name: a.frames for a in peak(graph, mapping, system(), 1.25).total.alive}
    assert queues["a"] == 3
    assert queues["b"] == 2


@pytest.mark.parametrize(
    ("memories", "weights_bytes"),
    [
        (system(), 100),
        (system(alignment_bytes=64), 128),
        (system(("big",), ("little", "gpu")), 200),
        (system(packing={"little": 1.0}), 200),
        (system(packing={"little": 1.5}), 250),
    ],
)
def test_weights_are_kept_once_a_memory_and_for_each_processor_with_its_own(
    memories, weights_bytes
):
    graph = chain("a", "b", constants=[Constant("w", (25,), "float32")], reads="w")
    found = peak(graph, staged(graph, (0, 0, 0.0), (1, 0, 1.25)), memories, 2.25)
    assert found.total.weights_bytes == weights_bytes
    assert sum(each.weights_bytes for each in found.memories) == weights_bytes


def test_weights_have_the_type_that_their_processor_works_in_unless_they_are_stored_in_another():
    constants = [Constant("w", (100,), "float32"), Constant("q", (100,), "float32", stored="int8")]
    graph = chain("a", constants=constants, reads="w q")
    found = peak(
        graph, staged(graph, (0, 0, 0.0)), system(), 1.0, working=("float16",) + (None,) * 4
    )
    assert found.total.weights_bytes == 200 + 100


def test_what_takes_no_time_still_reads_and_makes_at_once():
    graph = chain("a", "b", "c")
    placements = [Placement(0, 0, 0.0, 1.0), Placement(1, 0, 1.0, 1.0), Placement(2, 0, 1.0, 2.0)]
    mapping = mapping_of(graph, Costs([[1.0] * 5] * 3, {}), placements)
    graph = replace(graph, tensors={**graph.tensors, "x": Tensor("x", (1,), "float32")})
    found = peak(graph, mapping, system(), 2.0)
    assert (found.total.size_bytes, found.total.at_s) == (2 * TENSOR, 1.0)
    assert found.total.usage == ((0.0, 4 + TENSOR), (1.0, 2 * TENSOR))
    assert {each.name for each in found.total.alive} == {"a", "b"}


def varied(graph, rng):
    """The graph with tensors of many sizes."""
    tensors = {
        name: replace(each, shape=(rng.randint(1, 50),)) for name, each in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


def check(graph, mapping, period_s, names, rng):
    shuffled = rng.sample(names, len(names))
    cut = rng.randint(1, len(names))
    memories = [each for each in (shuffled[:cut], shuffled[cut:]) if each]
    pairs = [(p, q) for p in names for q in names if p != q]
    known = system(*memories, copying=rng.sample(pairs, len(pairs) // 3))
    working = tuple(rng.choice([None, None, "float16"]) for _ in names)
    storage = Storage(graph, known, tuple(names), working)
    found = peak_memory(mapping, storage, period_s)
    run = Run(
        mapping,
        graph,
        period_s,
        memory_of=storage.memory_of,
        copies=storage.copies,
        size_bytes=storage.tensor_bytes,
    )
    weights = [each.weights_bytes for each in found.memories]
    peaks, total = run.peak()
    expected = [peaks.get(m, 0) + weights[m] for m in range(len(memories))]
    assert [each.size_bytes for each in found.memories] == expected
    assert found.total.size_bytes == total + sum(weights)
    for each in (found.total, *found.memories):
        alive_bytes = sum(alive.size_bytes for alive in each.alive)
        assert alive_bytes + each.weights_bytes == each.size_bytes


SEEDS = st.integers(0, 10**9)


@settings(max_examples=300)
@given(seed=SEEDS)
def test_stages_need_what_frames_run_one_by_one_hold(seed):
    graph, _, costs, mapping = random_case(seed)
    rng = random.Random(seed)
    check(varied(graph, rng), mapping, evaluate(mapping, graph, costs).period_s, [*NAMES], rng)


@settings(max_examples=200)
@given(seed=SEEDS)
def test_interleaved_frames_need_what_frames_run_one_by_one_hold(seed):
    graph, *_ = random_case(seed)
    if (document := random_document(graph, seed)) is None:
        return
    view = mapping_view(plan_of(document))
    rng = random.Random(seed)
    names = [*view.resources]
    check(varied(graph, rng), view.mapping, view.plan.predicted.period_s, names, rng)
