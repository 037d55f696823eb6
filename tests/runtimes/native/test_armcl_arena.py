"""The runner with its tensors at the plan's offsets: results, bytes, and what is refused."""

import json
import random

import numpy as np
import pytest

from parapipe.targets.native.folder import write_library_folder
from tests.cases.arena_runs import interleaved, laid, moving_model, staged
from tests.cases.armcl_cases import inception, write_case
from tests.cases.armcl_plans import ARRANGEMENTS, taking_turns
from tests.cases.folders import Network, write_document
from tests.cases.nightly import nightly_from
from tests.cases.runner import on_this_machine, refused

ON_CPUS = [name for name in ARRANGEMENTS if "gpu" not in name]


def document_of(folder):
    return json.loads((folder / "plan.json").read_text())


def on_the_stub(plan, path, folder):
    """Export a plan for the stub, which computes anything."""
    folder.mkdir()
    write_library_folder(plan, path, folder)
    document = document_of(folder)
    for processor in document["processors"]:
        processor |= {"backend": "stub", "cores": [], "threads": 1}
    write_document(folder, document)
    count = sum(np.prod(document["tensors"][name]["shape"]) for name in document["inputs"])
    frames = np.random.default_rng(0).uniform(-1, 1, 3 * count).astype("<f4")
    (folder / "input.bin").write_bytes(frames.tobytes())
    return folder


def check_equal(stub, folder):
    """Results are those of a run in which every tensor has memory of its own."""
    apart, wanted = folder / "apart.bin", ["--input", folder / "input.bin", "--frames", 30]
    told = stub.measured(folder, *wanted, "--output", apart, "--no-arena")
    assert (told["arena_bytes"], told["inside_bytes"]) == (0, 0)
    report = stub.measured(folder, *wanted, "--check", apart)
    assert report["agrees"]
    assert report["in_order"]
    return report


@pytest.mark.parametrize("seed", nightly_from(8, range(25)))
def test_stages_in_an_arena_give_what_they_give_apart(stub, tmp_path, seed):
    rng, path = random.Random(seed), tmp_path / "model.onnx"
    moving_model(path, rng, rng.randint(4, 14))
    folder = on_the_stub(staged(path, rng, cpus=True), path, tmp_path / "out")
    report = check_equal(stub, folder)
    assert report["arena_bytes"] == sum(
        each["size_bytes"] for each in document_of(folder)["arena"]["memories"]
    )


@pytest.mark.parametrize("seed", nightly_from(8, range(25)))
def test_processors_that_take_turns_give_in_an_arena_what_they_give_apart(stub, tmp_path, seed):
    rng, path = random.Random(seed), tmp_path / "model.onnx"
    moving_model(path, rng, rng.randint(4, 14))
    if (plan := interleaved(path, seed, processors=2)) is not None:
        check_equal(stub, on_the_stub(plan, path, tmp_path / "out"))


def test_what_needs_no_padding_lies_in_the_arena(stub, tmp_path):
    rng, path = random.Random(1), tmp_path / "model.onnx"
    moving_model(path, rng, 10)
    folder = on_the_stub(staged(path, rng, cpus=True), path, tmp_path / "out")
    document = document_of(folder)
    placed = {each["tensor"] for each in document["arena"]["places"]}
    sizes = {name: 4 * np.prod(document["tensors"][name]["shape"]) for name in placed}
    report = check_equal(stub, folder)
    assert report["inside_bytes"] == sum(sizes.values())


@pytest.mark.parametrize("arrangement", ON_CPUS)
def test_an_inception_network_lies_in_the_arena_and_gives_what_onnx_runtime_does(
    arm, tmp_path, arrangement
):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, arrangement=arrangement)
    report, made, wanted = arm.outputs(folder, "--frames", 9, *on_this_machine(folder))
    assert np.abs(made - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert report["arena_bytes"] > 0
    assert report["inside_bytes"] > report["arena_bytes"] / 4  # the library pads the others


def test_an_interleaved_network_lies_in_the_arena_and_gives_what_onnx_runtime_does(arm, tmp_path):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, plan_of=lambda path: laid(taking_turns(path, 3)))
    report, made, wanted = arm.outputs(folder, "--frames", 40, *on_this_machine(folder))
    assert np.abs(made - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert report["inside_bytes"] > 0
    assert report["in_order"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a: a["places"][0].update(offset_bytes=[2]), "no multiple of 4"),
        (lambda a: a["memories"][0].update(size_bytes=0), "reaches beyond the end of the arena"),
        (lambda a: a["places"].append(a["places"][0]), "has two places for"),
        (lambda a: a["places"][0].update(memory="sram"), "which is no memory of this plan"),
        (lambda a: a["places"][0].update(offset_bytes=[]), "should have a processor and an offset"),
        (lambda a: a["spans"].clear(), "lacks the field"),
        (lambda a: a.update(points=0), "should be an integer from 1"),
    ],
)
def test_a_damaged_arena_is_refused(stub, tmp_path, change, told):
    rng, path = random.Random(1), tmp_path / "model.onnx"
    moving_model(path, rng, 6)
    folder = on_the_stub(staged(path, rng, cpus=True), path, tmp_path / "out")
    document = document_of(folder)
    change(document["arena"])
    write_document(folder, document)
    assert told in refused(stub.run(folder))


def test_after_the_last_frame_nobody_waits_for_a_later_one(stub, tmp_path):
    """r lies where p was until q has read it: of the next frame, since r comes two periods later.

    Processor two does q for the frame before it hears, at z, whether there is another frame.
    """
    network = Network(
        shapes={name: [1, 2, 3, 4] for name in "xpqrsz"},
        operators=[(name, "Relu", [read]) for name, read in ("px", "qp", "rq", "sr", "zx")],
        places={"p": "one", "r": "one", "q": "two", "s": "two", "z": "two"},
        stages=[["one", "two"]],
        outputs=["s", "z"],
        orders={"one": ["r", "p"], "two": ["q", "s", "z"]},
        lags={"p": 0, "z": 0, "q": 1, "r": 2, "s": 2},
    )
    folder = network.write(tmp_path)
    document = document_of(folder)
    place = {"processors": ["one", "two"], "memory": "dram", "offset_bytes": [0]}
    document["arena"] = {
        "points": 20,
        "memories": [{"name": "dram", "size_bytes": 96}],
        "places": [{"tensor": name} | place for name in "pr"],
        "spans": {"p": [15, 17], "q": [20, 22], "r": [43, 45], "s": [46, 48], "z": [10, 11]},
    }
    write_document(folder, document)
    for count in (1, 2, 20):
        files = ("--input", folder / "input.bin", "--check", folder / "expected.bin")
        report = stub.measured(folder, *files, "--frames", count, "--warmup", 0)
        assert report["agrees"]
        assert (report["arena_bytes"], report["inside_bytes"]) == (96, 192)
