"""Segments as compilers take them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from parapipe.compilers import prepare as module
from parapipe.compilers.contract import CompileError
from parapipe.compilers.prepare import is_quantized, load_segment, model_files, prepare
from tests.cases.compiler_models import (
    conv,
    frame_for,
    gelu,
    half,
    left_to_the_cpu,
    model,
    newer,
    normalised,
    quantised,
    saved,
    weights,
)


def outputs(network, frame):
    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, frame)


def opset(network) -> int:
    return next(each.version for each in network.opset_import if not each.domain)


@pytest.mark.parametrize("version", [17, 19, 20, 21, 22, 23])
def test_an_opset_is_lowered_to_19_and_outputs_stay(version) -> None:
    original, frame = newer(version), frame_for(newer(version))
    lowered = prepare(newer(version), "m.onnx")
    assert opset(lowered) == min(version, 19)
    onnx.checker.check_model(lowered, full_check=True)
    for mine, expected in zip(outputs(lowered, frame), outputs(original, frame), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)
    assert [node.name for node in lowered.graph.node] == [node.name for node in original.graph.node]


@pytest.mark.parametrize("version", [20, 21, 22])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_a_gelu_is_written_as_older_opsets_have_it(approximate, version) -> None:
    lowered = prepare(gelu(approximate, version), "m.onnx")
    assert "Gelu" not in {node.op_type for node in lowered.graph.node}
    assert lowered.graph.node[-1].name.startswith("gelu/")
    frame = frame_for(gelu())
    np.testing.assert_allclose(
        outputs(lowered, frame)[0], outputs(gelu(approximate, version), frame)[0], atol=1e-6
    )


def test_what_an_older_opset_cannot_say_is_named() -> None:
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], "norm")
    network = model([node], constants=[weights("scale", 16)], opset=23)
    words = r"m\.onnx: .* opset 19, .* RMSNormalization is of opset 23"
    with pytest.raises(CompileError, match=words) as raised:
        prepare(network, "m.onnx")
    assert raised.value.cause == "refused"


def test_defaults_that_compilers_miss_are_written_down() -> None:
    attributes = {each.name: each for each in prepare(normalised(), "m").graph.node[0].attribute}
    assert attributes["epsilon"].f == pytest.approx(1e-5)
    assert attributes["axis"].i == -1
    written = {
        each.name: each.f for each in prepare(left_to_the_cpu(), "m").graph.node[1].attribute
    }
    assert (written["alpha"], written["beta"], written["bias"]) == pytest.approx((1e-4, 0.75, 1.0))


def test_an_attribute_that_is_there_stays() -> None:
    network = normalised()
    network.graph.node[0].attribute.append(helper.make_attribute("epsilon", 0.1))
    names = [each.name for each in prepare(network, "m").graph.node[0].attribute]
    assert sorted(names) == ["axis", "epsilon"]


@pytest.mark.parametrize(("version", "written"), [(11, False), (12, False), (13, True)])
def test_the_axis_of_a_softmax_is_written_where_the_last_is_meant(version, written) -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], "softmax")
    network = prepare(model([node], opset=version), "m")
    assert bool(network.graph.node[0].attribute) == written


def test_every_node_has_a_name_of_its_own() -> None:
    nodes = [conv("x", "a", ""), conv("a", "b", "same"), conv("b", "y", "same")]
    network = prepare(model(nodes, constants=[weights("w", 8, 8, 3, 3)]), "m")
    assert [node.name for node in network.graph.node] == ["a", "same", "y"]


@pytest.mark.parametrize("shape", [("batch", 8), (None, 8), (0, 8), None])
def test_a_shape_that_is_not_fixed_is_refused(shape) -> None:
    network = model([helper.make_node("Relu", ["x"], ["y"])], [("x", 1, shape)])
    with pytest.raises(CompileError, match="the input 'x' has no fixed shape"):
        prepare(network, "m.onnx")


def test_a_scalar_is_a_fixed_shape() -> None:
    network = model([helper.make_node("Relu", ["x"], ["y"])], [("x", 1, ())], [("y", 1, ())])
    assert prepare(network, "m.onnx").graph.node[0].name == "y"


def test_scales_of_its_own_make_a_model_quantised() -> None:
    assert is_quantized(quantised())
    assert not is_quantized(half())


def test_weights_in_other_files_belong_to_a_model(tmp_path) -> None:
    path = saved(
        left_to_the_cpu(), tmp_path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    assert model_files(path) == [path, tmp_path / "w.bin"]
    (loaded,) = load_segment(path).graph.initializer
    assert loaded.raw_data == left_to_the_cpu().graph.initializer[0].raw_data
    (tmp_path / "w.bin").unlink()
    with pytest.raises(CompileError, match=r"'w\.bin' with its weights is not there"):
        load_segment(path)


def test_a_segment_of_more_than_two_gigabytes_is_refused(tmp_path, monkeypatch) -> None:
    path = saved(left_to_the_cpu(), tmp_path)
    monkeypatch.setattr(module, "MOST_BYTES", path.stat().st_size)
    assert load_segment(path)
    monkeypatch.setattr(module, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(CompileError, match="a compiler takes at most"):
        load_segment(path)


@pytest.mark.parametrize("content", [b"", b"no model", None])
def test_what_is_no_model_is_named(tmp_path, content) -> None:
    path = tmp_path / "m.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CompileError, match=r"^m\.onnx: "):
        load_segment(path)
