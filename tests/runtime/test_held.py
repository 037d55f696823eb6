"""Bytes that a run holds between segments: by hand, against its spans, and against the plan."""

import os
from dataclasses import replace

import pytest

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.lifetimes import peak_activations
from parapipe.graph.onnx_import import import_model
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import peak_memory
from parapipe.plan.mapped import mapping_view
from parapipe.platform.memories import MemorySystem
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import RunError, open_folder
from parapipe.runtime.frames import random_frames
from tests.cases.hand_made import Piece, folder_of, hybrid, node
from tests.cases.interleaved import plan_of, random_document
from tests.cases.split_models import MODELS, placed_plan, random_plan, written

CORE = min(os.sched_getaffinity(0))
X = 24  # bytes of 2x3 numbers


def doubling(path, last):
    """t = x beside x, on a; u = t beside t, on b; y = -u, on `last`."""
    pieces = [
        Piece("0-a", "a", [node("Concat", "x", "x", "t")], ["x"], ["t"], 0),
        Piece("1-b", "b", [node("Concat", "t", "t", "u")], ["t"], ["u"], 1),
        Piece("2-c", last, [node("Neg", "u", "y")], ["u"], ["y"], 2),
    ]
    for piece in pieces[:2]:
        piece.nodes[0].attribute.add(name="axis", i=0, type=2)
    shapes = {"x": [2, 3], "t": [4, 3], "u": [8, 3], "y": [8, 3]}
    cores = {name: [CORE] for name in "abc"}
    return folder_of(path, pieces, inputs=["x"], outputs=["y"], shapes=shapes, cores=cores)


@pytest.mark.parametrize("last", ["b", "c"])
def test_one_frame_holds_at_most_what_a_segment_reads_and_makes(tmp_path, last):
    executor = Executor(doubling(tmp_path, last))
    assert len(list(executor.run(random_frames(executor.folder, 1)))) == 1
    assert executor.record.peak_tensor_bytes == 4 * X + 4 * X  # u and y


def held_bytes(record, folder, tensors):
    """The most at one time, from spans: from a maker's start to the end of the last reader."""
    changes = []
    for name, maker, readers in tensors:
        for frame in record.frames:
            spans = {each.name: each for each in record.spans if each.frame == frame.index}
            size_bytes = folder.tensors[name].size_bytes
            changes.append((spans[maker].start_s, size_bytes))
            changes.append((max(spans[each].end_s for each in (maker, *readers)), -size_bytes))
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def test_many_frames_hold_what_their_spans_say_and_no_more_than_queues_have_slots(tmp_path):
    folder = hybrid(tmp_path, cores={name: [CORE] for name in "abc"}, shape=(200, 300))
    executor = Executor(folder)
    assert len(list(executor.run(random_frames(folder, 30)))) == 30
    tensors = [
        ("t", "s0-a-0", ["s1-b-0", "s1-c-0"]),
        ("u", "s1-b-0", ["s1-b-1"]),
        ("v", "s1-c-0", ["s1-c-1"]),
        ("w", "s1-b-1", ["s1-c-1"]),
    ]
    found = executor.record.peak_tensor_bytes
    one = 200 * 300 * 4
    assert held_bytes(executor.record, folder, tensors) <= found
    # x of a frame that begins; t in its two slots; u, v, w in theirs; y that is made
    assert found <= one * (1 + 2 + 2 + 2 + 2 + 1)


@pytest.mark.parametrize("name", ["folded", "shared", "old"])
def test_operators_apart_hold_what_the_plan_counts(tmp_path, name):
    path = written(MODELS[name](), tmp_path)
    plan = placed_plan(path, lambda _v, _count: (0, 0))
    place = tmp_path / "folder"
    place.mkdir()
    document = write_session_folder(plan, path, place, single=True, in_place=False)
    assert [len(each.operators) for each in document.segments] == [1] * len(plan.operators)
    folder = open_folder(place)
    executor = Executor(folder.on_cores({each.name: (CORE,) for each in folder.processors}))
    assert len(list(executor.run(random_frames(folder, 1)))) == 1
    graph = replace(import_model(path), outputs=())  # results are the caller's
    number = {operator.id: v for v, operator in enumerate(graph.operators)}
    order = [number[each.operators[0]] for each in document.segments]
    assert executor.record.peak_tensor_bytes == peak_activations(graph, order).size_bytes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["folded", "shared", "shapes"])
def test_in_step_any_interleaving_holds_no_more_than_its_plan(tmp_path, name, seed):
    path = written(MODELS[name](), tmp_path)
    graph = import_model(path)
    if (document := random_document(graph, seed)) is None:
        return
    view = mapping_view(plan_of(document))
    names = view.resources
    storage = Storage(graph, MemorySystem.assumed_for(names), names, (None,) * len(names))
    promised = peak_memory(view.mapping, storage, view.plan.predicted.period_s).total
    place = tmp_path / "folder"
    place.mkdir()
    write_session_folder(view.plan, path, place, single=True, in_place=False)
    folder = open_folder(place)
    folder = folder.on_cores({each.name: (CORE,) for each in folder.processors})
    executor = Executor(folder, in_step=True, patience_s=20)
    assert len(list(executor.run(random_frames(folder, 25)))) == 25
    limit_bytes = promised.size_bytes - promised.weights_bytes
    assert executor.record.peak_tensor_bytes <= limit_bytes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["folded", "shared", "shapes"])
@pytest.mark.parametrize("staged", [True, False])
def test_in_step_segments_of_several_operators_never_wait_in_a_circle(tmp_path, name, seed, staged):
    path = written(MODELS[name](), tmp_path)
    if staged:
        plan = random_plan(path, seed)
    elif document := random_document(import_model(path), seed):
        plan = plan_of(document)
    else:
        return
    place = tmp_path / "folder"
    place.mkdir()
    write_session_folder(plan, path, place)
    folder = open_folder(place)
    folder = folder.on_cores({each.name: (CORE,) for each in folder.processors})
    executor = Executor(folder, in_step=True, patience_s=20)
    assert len(list(executor.run(random_frames(folder, 25)))) == 25


def test_in_step_frames_before_a_wrong_one_come_out(tmp_path):
    folder = hybrid(tmp_path, cores={name: [CORE] for name in "abc"})
    executor = Executor(folder, in_step=True, patience_s=20)
    good = list(random_frames(folder, 6))
    out = []
    with pytest.raises(RunError, match="frame 4"):
        out += executor.run([*good[:4], {"x": "no array"}, good[5]])
    assert len(list(Executor(folder, in_step=True).run(good))) == 6


def test_in_step_takes_no_other_queues(tmp_path):
    folder = hybrid(tmp_path, cores={name: [CORE] for name in "abc"})
    with pytest.raises(RunError, match="the slots that the plan says"):
        Executor(folder, in_step=True, queue=3)
