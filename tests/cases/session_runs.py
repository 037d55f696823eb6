"""Runs exported folders one segment after the other, and whole models, with ONNX Runtime."""

import json

import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(3)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def frame(document, seed=0):
    """Random numbers for all inputs."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for name in document["inputs"]:
        tensor = document["tensors"][name]
        drawn = rng.uniform(-1, 1, tensor["shape"])
        feeds[name] = drawn.astype(tensor["dtype"]) if "float" in tensor["dtype"] else (drawn > 0)
        feeds[name] = feeds[name].astype(tensor["dtype"])
    return feeds


def run_in_turn(folder, feeds):
    """Run the segments in the order of `plan.json`; return the results by name."""
    document = json.loads((folder / "plan.json").read_text())
    there = dict(feeds)
    for segment in document["segments"]:
        opened = session(folder / segment["file"])
        assert [value.name for value in opened.get_inputs()] == segment["inputs"]
        assert [value.name for value in opened.get_outputs()] == segment["outputs"]
        made = opened.run(None, {name: there[name] for name in segment["inputs"]})
        for name, array in zip(segment["outputs"], made, strict=True):
            there[name] = array
            if not isinstance(array, list) and name in document["tensors"]:
                said = document["tensors"][name]
                assert (str(array.dtype), list(array.shape)) == (said["dtype"], said["shape"])
    return {each["tensor"]: there[each["tensor"]] for each in document["outputs"]}


def run_whole(path, feeds, names):
    """Run one session on a whole model; inputs of no use are zeros."""
    opened = session(path)
    given = {}
    for value in opened.get_inputs():
        extents = [size if isinstance(size, int) else 1 for size in value.shape]
        given[value.name] = feeds.get(value.name, np.zeros(extents, np.float32))
    return dict(zip(names, opened.run(names, given), strict=True))


def assert_equal(found, expected):
    """Check that results differ by at most 1e-5 of the output's scale."""
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        scale = np.abs(wanted.astype(np.float64)).max()
        error = np.abs(found[name].astype(np.float64) - wanted).max()
        assert error <= 1e-5 * scale, f"{name}: {error} of {scale}"
