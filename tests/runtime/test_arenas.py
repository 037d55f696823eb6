"""Runs whose tensors lie at the plan's offsets: where they lie, and that nobody is disturbed."""

import json
import os
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import onnx
import pytest

from parapipe.export.onnxruntime.arena import COPIES, OTHER_TYPE, RESULTS
from parapipe.graph.onnx_import import import_model
from parapipe.plan.build import build_plan
from parapipe.runtime.arena import SOURCE, arena_waits, restrict_places
from parapipe.runtime.document import Arena, Place
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import RunError, open_folder
from parapipe.runtime.frames import random_frames
from parapipe.runtime.sessions import open_sessions
from parapipe.runtime.views import Views
from tests.cases.arena_runs import (
    casting_model,
    check,
    exported,
    interleaved,
    laid,
    moving_model,
    staged,
)
from tests.cases.hand_made import Piece, folder_of, node
from tests.cases.plan_cases import Costs, configured, platform_of
from tests.runtime.test_views import by_part, written
from tests.runtime.test_views import exported as split_folder

ONE = min(os.sched_getaffinity(0))
SEEDS = range(10)


def drawn(tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "model.onnx"
    return rng, path, moving_model(path, rng, rng.randint(4, 14))


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_stages_in_an_arena_give_what_one_session_gives(seed, single, tmp_path, monkeypatch):
    rng, path, model = drawn(tmp_path, seed)
    folder = exported(staged(path, rng), path, tmp_path / "out", single=single)
    check(folder, model, monkeypatch, seed=seed)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_frames_of_any_interleaving_in_an_arena_give_what_one_session_gives(
    seed, single, tmp_path, monkeypatch
):
    _, path, model = drawn(tmp_path, seed)
    if (plan := interleaved(path, seed)) is not None:
        folder = exported(plan, path, tmp_path / "out", single=single)
        check(folder, model, monkeypatch, seed=seed)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_processors_in_turn_in_an_arena_give_what_one_session_gives(
    seed, single, tmp_path, monkeypatch
):
    rng, path, model = drawn(tmp_path, seed)
    plan = staged(path, rng, replicated=True)
    check(exported(plan, path, tmp_path / "out", single=single), model, monkeypatch, seed=seed)


def check_casts(seed, alignment_bytes, tmp_path, monkeypatch):
    rng, path = random.Random(seed), tmp_path / "model.onnx"
    model = casting_model(path, rng, rng.randint(4, 12))
    plan = laid(staged(path, rng), alignment_bytes=alignment_bytes)
    for single in (True, False):
        folder = exported(plan, path, tmp_path / f"single={single}", single=single)
        check(folder, model, monkeypatch, count=3, seed=seed)


@pytest.mark.parametrize("alignment_bytes", [1, 64])
@pytest.mark.parametrize("seed", range(24, 32))
def test_elements_of_all_sizes_in_an_arena_give_what_one_session_gives(
    seed, alignment_bytes, tmp_path, monkeypatch
):
    check_casts(seed, alignment_bytes, tmp_path, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("alignment_bytes", [1, 2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("seed", range(100, 140))
def test_elements_of_all_sizes_at_any_alignment_give_what_one_session_gives(
    seed, alignment_bytes, tmp_path, monkeypatch
):
    check_casts(seed, alignment_bytes, tmp_path, monkeypatch)


def test_what_has_another_type_here_than_in_the_plan_lies_outside(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    text = "m (float[1,8] x) => (bool[1,8] y) { a = Mul(x, x)  b = Less(a, x)  y = Not(b) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17]> {text}')
    onnx.save(model, path)
    graph = import_model(path)
    costs = Costs([[1.0] * 5] * 3, {})
    mapping = configured(graph, costs, [[(v, 0) for v in range(3)]])
    plan = build_plan(graph, platform_of(1), costs, mapping)
    (cpu,) = plan.processors
    converted = cpu.model_copy(update={"data_type": "int8"})
    plan = plan.model_copy(update={"precision": "int8", "processors": (converted,)})
    plan = laid(plan, alignment_bytes=64)
    assert {each.tensor: each.over for each in plan.buffers}["b"] == "a"  # one byte each
    folder = exported(plan, path, tmp_path / "out", single=True)
    assert {each.tensor: each.why for each in folder.outside}["a"] == OTHER_TYPE
    check(folder, model, monkeypatch, count=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_single_operators_have_all_their_tensors_in_the_arena_but_results(seed, tmp_path):
    rng, path, _ = drawn(tmp_path, seed)
    plan = staged(path, rng)
    folder = exported(plan, path, tmp_path / "out", single=True)
    assert {each.why for each in folder.outside} == {RESULTS}
    assert {each.tensor for each in folder.places} == {
        each.tensor for each in plan.buffers if each.tensor not in plan.outputs
    }


def row(tmp_path):
    """x, p, q, r, y in a row of one second each, on a and b in turn; a frame each four seconds."""
    pieces = [
        Piece(name, processor, [node("Neg", read, name)], [read], [name], 0)
        for name, processor, read in (("p", "a", "x"), ("q", "b", "p"), ("r", "a", "q"))
    ]
    pieces.append(Piece("s", "b", [node("Neg", "r", "y")], ["r"], ["y"], 0))
    shapes = {name: [2, 3] for name in "xpqry"}
    cores = {name: [ONE] for name in "ab"}
    folder = folder_of(
        tmp_path, pieces, inputs=["x"], outputs=["y"], shapes=shapes, cores=cores, predicted_s=4.0
    )
    timed = tuple(
        replace(each, start_s=float(i), end_s=i + 1.0)
        for each in folder.segments
        for i in ["pqrs".index(each.id)]
    )
    return replace(folder, segments=timed, arenas=(Arena("dram", 72),))


def placed(folder, **offsets):
    places = (Place(name, "dram", offset) for name, offset in offsets.items())
    return replace(folder, places=tuple(places))


def test_who_writes_waits_for_the_last_that_used_the_same_bytes(tmp_path):
    # p is read until second 2, r until 4, when the next frame comes
    folder = placed(row(tmp_path), x=(24,), p=(0,), r=(0,))
    assert {name: {*each} for name, each in arena_waits(folder).items()} == {
        SOURCE: {("p", -1)},
        "p": {("s", -1)},
        "r": {("s", -1), ("q", 0)},
    }


def test_a_tensor_with_two_offsets_waits_for_the_frame_before_the_last(tmp_path):
    assert arena_waits(placed(row(tmp_path), p=(0, 24))) == {"p": (("q", -2),)}
    assert arena_waits(placed(row(tmp_path), p=(0, 20))) == {
        "p": (("q", -1),)
    }  # four bytes of both
    assert arena_waits(placed(row(tmp_path), p=(0, 24, 0, 24))) == {"p": (("q", -2),)}


def test_bytes_next_to_each_other_are_not_waited_for(tmp_path):
    assert arena_waits(placed(row(tmp_path), p=(0,), r=(24,))) == {
        "p": (("q", -1),),
        "r": (("s", -1),),
    }
    assert ("q", 0) in arena_waits(placed(row(tmp_path), p=(0,), r=(23,)))["r"]


def test_a_frame_without_later_ones_comes_out_at_the_end(tmp_path):
    folder = placed(row(tmp_path), x=(24,), p=(0,), q=(48,), r=(0,))
    executor = Executor(folder, arena=True)
    (made,) = executor.run([{"x": np.ones((2, 3), np.float32)}])
    np.testing.assert_array_equal(made["y"], np.ones((2, 3)))
    frames = [*random_frames(folder, 3), {"x": "no array"}]
    out = []
    with pytest.raises(RunError, match="frame 3"):
        out += executor.run(frames)
    assert executor.in_arenas.inside_bytes == 4 * 24


def test_nothing_grows_over_a_thousand_frames(tmp_path):
    folder = placed(row(tmp_path), x=(24,), p=(0,), q=(48,), r=(0,))
    executor = Executor(folder, arena=True)
    peaks, sizes = [], []
    for count in (10, 1000):
        tracemalloc.start()
        for made in executor.run(random_frames(folder, count)):
            assert made["y"].shape == (2, 3)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        peaks.append(executor.record.peak_outside_bytes)
        executor = Executor(folder, arena=True, remembered=10)
    assert peaks == [24, 24]  # the result that is made
    assert sizes[1] < sizes[0] + 100_000


def test_each_memory_has_an_arena_and_what_is_copied_lies_outside(tmp_path, monkeypatch):
    rng, path, model = drawn(tmp_path, 3)
    plan = laid(staged(path, rng), ("one", "two"), lambda name: int(name != "big"))
    folder = exported(plan, path, tmp_path / "out", single=True)
    assert {each.name for each in folder.arenas} == {"one", "two"}
    executor = check(folder, model, monkeypatch)
    assert executor.in_arenas.outside.keys() == {RESULTS, COPIES}


def test_parts_lie_in_the_arena_with_what_they_are_parts_of(tmp_path, monkeypatch):
    model = written(tmp_path / "m.onnx", "a = MatMul(x, w)  b = Softmax<axis=1>(a)  y = Relu(b)")
    folder = split_folder(model, ["a:tokens=5,7"], by_part, tmp_path / "out")
    assert "a" in {each.tensor for each in folder.places}
    assert not {"a/part0", "a/part1"}.intersection(each.tensor for each in folder.outside)
    executor = check(folder, model, monkeypatch)
    views = Views(executor.folder, executor._arenas)
    (whole,) = (each for each in folder.places if each.tensor == "a")
    part = views._array_of("a/part1", 0, {})
    begin = executor._arenas[whole.arena].ctypes.data + whole.offset_bytes[0]
    assert part.ctypes.data == begin + 5 * 8 * 4


def test_what_another_provider_makes_lies_outside(tmp_path):
    folder = placed(row(tmp_path), x=(24,), p=(0,), q=(48,))
    sessions, used = open_sessions(folder)
    other = [replace(used[0], provider="OpenVINOExecutionProvider"), used[1]]
    left = restrict_places(folder, sessions, other)
    assert [each.tensor for each in left.places] == ["x", "q"]
    assert [each.why for each in left.outside] == ["OpenVINOExecutionProvider makes them"]


def test_what_cannot_be_run_with_arenas_is_refused(tmp_path):
    folder = row(tmp_path)
    with pytest.raises(RunError, match="the slots that the plan says"):
        Executor(folder, arena=True, queue=3)
    with pytest.raises(RunError, match="says no offsets: map the model again"):
        Executor(replace(folder, arenas=()), arena=True)
    for change, told in (
        ({"arena": "sram"}, "lies in the arena 'sram', which is not there"),
        ({"offset_bytes": [49]}, "ends at 73, and the arena 'dram' has 72 bytes"),
        ({"offset_bytes": []}, "has a place without an offset"),
    ):
        document = json.loads((folder.path / "plan.json").read_text())
        document["arenas"] = [{"name": "dram", "size_bytes": 72}]
        document["places"] = [{"tensor": "p", "arena": "dram", "offset_bytes": [0]} | change]
        (tmp_path / "plan.json").write_text(json.dumps(document))
        with pytest.raises(RunError, match=told):
            open_folder(tmp_path)


@pytest.mark.nightly
def test_an_exported_folder_runs_with_arenas_by_itself(tmp_path):
    rng, path, _ = drawn(tmp_path, 1)
    folder = exported(staged(path, rng), path, tmp_path / "out", single=False)
    cores = [f"--cores={each.name}={ONE}" for each in folder.processors]
    done = subprocess.run(
        [sys.executable, folder.path / "run.py", "--frames=10", "--json", "--arena", *cores],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "lie in an arena of" in done.stderr
    told = json.loads(done.stdout)["arenas"]
    assert sum(told["size_bytes"].values()) == sum(each.size_bytes for each in folder.arenas)
