"""What the runner refuses: one clear line and exit code 1; 2 for a command line without sense."""

import json

import numpy as np
import pytest

from tests.cases.folders import Network, diamond, write_document
from tests.cases.runner import refused


def changed(document, *path, to):
    """Replace, or without `to` remove, what stands at the path."""
    at = document
    for key in path[:-1]:
        at = at[key]
    if to is None:
        del at[path[-1]]
    else:
        at[path[-1]] = to


MISTAKES = {
    "another version": (("schema",), "parapipe/armcl/2", "this runner reads 'parapipe/armcl/1'"),
    "a field is missing": (("tensors", "x", "shape"), None, "tensors.x lacks the field 'shape'"),
    "an unknown field": (("operators", 0, "note"), "x", "operators[0].note is not known"),
    "an unknown attribute": (("operators", 0, "attributes", "axis"), 1, "is no attribute of Mul"),
    "an unknown operator": (("operators", 0, "type"), "Cos", "'Cos', which the runner has no"),
    "a negative extent": (("tensors", "x", "shape"), [1, -2], "shape[1] should be an integer from"),
    "five dimensions": (("tensors", "x", "shape"), [1] * 5, "has more than four dimensions"),
    "a huge tensor": (("tensors", "x", "shape"), [2**31, 2**31], "more than 2^31 elements"),
    "integers": (("tensors", "x", "dtype"), "int64", 'should be "float32"'),
    "a constant beyond": (("tensors", "w", "offset"), 60, "beyond the end of the weights file"),
    "an odd offset": (("tensors", "w", "offset"), 2, "should be a multiple of 4"),
    "other folders": (("weights", "file"), "../w", "should be the bare name of a file"),
    "a wrong shape": (("tensors", "stem", "shape"), [1, 2, 4, 5], "'stem' (Mul) gives the shape"),
    "no such input": (("operators", 0, "inputs"), ["q", "w"], "names 'q', which is no tensor"),
    "a circle": (
        ("stages", 1, "processors", 0, "operators"),
        ["side", "left"],
        "would wait for ever",
    ),
    "a lag too few": (
        ("stages", 1, "processors", 0, "lags"),
        [0],
        "lags has 1 entries, and 2 operators stand beside it",
    ),
    "a negative lag": (
        ("stages", 1, "processors", 0, "lags"),
        [0, -1],
        "lags[1] should be an integer from",
    ),
    "a frame too late": (
        ("stages", 1, "processors", 0, "lags"),
        [1, 0],
        "would wait for ever",
    ),
    "placed nowhere": (("stages", 1, "processors", 0, "operators"), ["left"], "'side' is placed 0"),
    "no transfer": (("transfers",), [], "there is no transfer of 'left' to 'three'"),
    "no queue": (("transfers", 0, "queue_depth"), 0, "queue_depth should be an integer from 1"),
    "no outputs": (("outputs",), [], "outputs is empty"),
    "a window too large": (
        ("operators", 1, "attributes", "kernel_shape"),
        [9, 9],
        "window larger than its padded input",
    ),
    "a library that is not there": (("processors", 0, "backend"), "neon", "'one' needs a backend"),
    "an unknown backend": (
        ("processors", 0, "backend"),
        "npu",
        'should be "neon", "opencl", "onednn", "xnnpack" or "plain"',
    ),
    "threads without cores": (("processors", 0, "threads"), 65, "threads should be an integer"),
    "no core": (("processors", 0, "cores"), [4000], "needs core 4000, which is not there"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_plan_is_refused_in_one_line(stub, tmp_path, mistake):
    path, value, words = MISTAKES[mistake]
    folder = diamond().write(tmp_path)
    document = json.loads((folder / "plan.json").read_text())
    changed(document, *path, to=value)
    write_document(folder, document)
    assert words in refused(stub.run(folder))


def test_a_queue_too_short_for_frames_that_take_turns_is_refused(stub, tmp_path):
    network = Network(
        shapes={name: [1, 2, 3, 4] for name in "xabc"},
        operators=[("a", "Relu", ["x"]), ("b", "Relu", ["a"]), ("c", "Add", ["b", "a"])],
        places={"a": "one", "b": "two", "c": "one"},
        stages=[["one", "two"]],
        outputs=["c"],
        lags={"a": 0, "b": 0, "c": 2},
    )
    document = json.loads((network.write(tmp_path) / "plan.json").read_text())
    assert stub.run(tmp_path).returncode == 0
    for transfer in document["transfers"]:
        transfer["queue_depth"] = 1  # `b` of three frames is there when `c` takes the first
    write_document(tmp_path, document)
    assert "would wait for ever" in refused(stub.run(tmp_path))


def test_a_plan_larger_than_memory_is_refused_before_it_is_allocated(stub, tmp_path):
    document = diamond().document()
    for tensor in document["tensors"].values():
        tensor["shape"] = [2**15, 2**16] if "offset" not in tensor else [1]
    document["operators"][1] |= {"type": "Relu", "attributes": {}}
    document["transfers"][0]["queue_depth"] = 1024
    (tmp_path / "weights.bin").write_bytes(bytes(64))
    write_document(tmp_path, document)
    assert "this machine has" in refused(stub.run(tmp_path))


NO_PLANS = ("", "{", "[1]", "null", '{"a": "\\n"', "\x00", '"' * 9, "[" * 99999)


@pytest.mark.parametrize("text", NO_PLANS, ids=range(len(NO_PLANS)))
def test_what_is_no_plan_is_refused_in_one_line(stub, tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    assert "plan.json" in refused(stub.run(tmp_path))


def test_files_that_are_missing_or_cut_short_are_refused(stub, tmp_path):
    assert "plan.json: cannot be read" in refused(stub.run(tmp_path))
    folder = diamond().write(tmp_path)
    weights = (folder / "weights.bin").read_bytes()
    (folder / "weights.bin").write_bytes(weights[:-4])
    assert "has 60 bytes, and 64 by the plan" in refused(stub.run(folder))
    (folder / "weights.bin").unlink()
    assert "weights.bin: cannot be read" in refused(stub.run(folder))
    (folder / "weights.bin").write_bytes(weights)
    (folder / "input.bin").write_bytes(b"1234567")
    assert "give whole frames" in refused(stub.run(folder, "--input", folder / "input.bin"))


def test_weights_may_be_any_bytes(stub, tmp_path):
    folder = diamond().write(tmp_path)
    for seed in range(3):
        (folder / "weights.bin").write_bytes(np.random.default_rng(seed).bytes(64))
        assert stub.run(folder, "--frames", 1).returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--frames", "0"],
        ["--frames", "many"],
        ["--frames"],
        ["--cores", "one"],
        ["--cores", "one=x"],
        ["--cores", "one="],
        ["--tolerance", "-1"],
        ["--speed"],
        ["--check", "expected.bin"],
    ],
    ids=" ".join,
)
def test_a_command_line_without_sense_ends_with_2(stub, tmp_path, options):
    folder = [str(diamond().write(tmp_path))] if options else []
    done = stub.run(*folder, *options) if folder else stub.run("--json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_cores_are_chosen_by_the_command_line(stub, tmp_path):
    folder = diamond().write(tmp_path)
    assert stub.run(folder, "--cores", "one=0").returncode == 0
    assert "no processor 'four'" in refused(stub.run(folder, "--cores", "four=0"))
    assert "needs core 4000" in refused(stub.run(folder, "--cores", "one=4000"))


def test_help_lists_every_option(stub):
    done = stub.run("--help")
    assert done.returncode == 0
    for option in ("frames", "warmup", "period", "input", "check", "profile", "cores", "governor"):
        assert f"--{option}" in done.stdout
