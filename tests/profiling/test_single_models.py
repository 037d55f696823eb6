"""Models of one operator each."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import parapipe
from parapipe.export.constants import Constants
from parapipe.graph.onnx_import import resolve_proto
from parapipe.graph.skim import skim
from parapipe.profiling.single_models import distinct_units, opsets_of, single_model
from tests.cases.quantised_models import small_qdq
from tests.cases.small_network import saved, small_network


@pytest.fixture
def network(tmp_path):
    proto = small_network()
    graph = parapipe.load_model(saved(tmp_path))
    return graph, proto, resolve_proto(proto, "small")[1]


def unreadable(_name):
    return None


def models(network, read=unreadable):
    graph, proto, resolved = network
    return {
        unit.operator.members: single_model(unit, graph, resolved, opsets_of(proto), read).proto
        for unit in distinct_units(graph)
    }


def test_equal_operators_are_one_unit_and_views_are_none(network):
    units = distinct_units(network[0])
    assert [(u.operator.members[0], u.then, u.count) for u in units] == [
        ("conv1", "Relu", 1),
        ("left1", "Relu", 2),
        ("left3", "", 1),
        ("join", "", 1),
        ("flatten", "", 1),
        ("prob", "", 1),
    ]


def test_a_unit_holds_the_nodes_that_it_stands_for_joined_over_what_was_removed(network):
    model = models(network)["conv1", "norm", "relu1"]
    assert [node.op_type for node in model.graph.node] == ["Conv", "BatchNormalization", "Relu"]
    assert [value.name for value in model.graph.input] == ["data"]
    assert [value.name for value in model.graph.output] == ["r1"]


def test_onnx_runtime_runs_each_unit_and_makes_the_shapes_of_the_graph(network):
    graph = network[0]
    for members, model in models(network).items():
        session = ort.InferenceSession(model.SerializeToString())
        feeds = {v.name: np.ones(v.shape, np.float32) for v in session.get_inputs()}
        (made,) = session.run(None, feeds)
        operator = next(each for each in graph.operators if each.members == members)
        assert made.shape == graph.tensors[operator.outputs[0]].shape
        assert np.isfinite(made).all()


def test_the_same_unit_has_the_same_bytes(network):
    assert models(network) == models(network)


def test_a_type_that_numpy_does_not_have_is_told_instead_of_a_model(network):
    graph, proto, resolved = network
    tensors = dict(resolved.tensors)
    tensors["data"] = type(tensors["data"])("data", (1, 3, 16, 16), "bfloat16")
    odd = replace(resolved, tensors=tensors)
    unit = distinct_units(graph)[0]
    told = single_model(unit, graph, odd, opsets_of(proto), unreadable)
    assert told == "its data type bfloat16 has no NumPy array"


def convolution(path, weights):
    """Write a 3x3 convolution of 3 x 8 x 8, its weights in a file of their own."""
    shapes = {"x": (1, 3, 8, 8), "y": (1, 8, 6, 6)}
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
    held = numpy_helper.from_array(weights, "w")
    graph = helper.make_graph([node], "conv", ends[:1], ends[1:], [held])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(
        model, path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )


def test_weights_are_the_models_own_to_the_last_bit_also_denormal_ones(tmp_path):
    weights = np.full((8, 3, 3, 3), 1e-40, np.float32)
    weights[0] = 0.5
    path = tmp_path / "denormal.onnx"
    convolution(path, weights)
    graph = parapipe.load_model(path)
    with Constants(graph, path) as constants:
        resolved = resolve_proto(skim(path), "denormal")[1]
        (unit,) = distinct_units(graph)
        single = single_model(unit, graph, resolved, {"": 17}, constants.read)
    assert (single.weights, single.random) == ("own", ())
    (held,) = single.proto.graph.initializer
    assert numpy_helper.to_array(held).tobytes() == weights.tobytes()


def test_weights_that_cannot_be_read_or_are_of_another_shape_are_random(tmp_path):
    path = tmp_path / "random.onnx"
    convolution(path, np.zeros((8, 3, 3, 3), np.float32))
    graph = parapipe.load_model(path)
    resolved = resolve_proto(skim(path), "random")[1]
    (unit,) = distinct_units(graph)
    for read in (unreadable, lambda _name: np.ones(3, np.float32)):
        single = single_model(unit, graph, resolved, {"": 17}, read)
        assert (single.weights, single.random) == ("random", ("w",))
        (held,) = single.proto.graph.initializer
        assert (numpy_helper.to_array(held) > 0).all()


def test_weights_are_those_of_the_model_where_it_has_them(network, tmp_path):
    graph, proto, resolved = network
    with Constants(graph, saved(tmp_path)) as own:
        units = distinct_units(graph)
        found = [single_model(unit, graph, resolved, opsets_of(proto), own.read) for unit in units]
    kept = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    held = [tensor for model in found for tensor in model.proto.graph.initializer]
    assert {"w1", "w2", "w3", "fc"} <= {tensor.name for tensor in held}
    for tensor in held:
        assert np.array_equal(numpy_helper.to_array(tensor), kept[tensor.name])


def test_units_of_a_quantised_model_run_with_kernels_for_integers(tmp_path):
    proto = small_qdq()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    found = models((parapipe.load_model(path), proto, resolve_proto(proto, "small")[1]))
    kernels = {}
    for members, model in found.items():
        options = ort.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        session = ort.InferenceSession(model.SerializeToString(), options)
        feeds = {
            v.name: np.ones(v.shape, np.float32 if "float" in v.type else np.uint8)
            for v in session.get_inputs()
        }
        session.run(None, feeds)
        kernels[members[-1]] = {
            n.op_type for n in onnx.load(tmp_path / "optimised.onnx").graph.node
        }
    assert "QLinearConv" in kernels["rq"] & kernels["eq"]
    assert kernels["aq"] == {"QLinearAdd"}
    assert kernels["pq"] == {"QLinearGlobalAveragePool"}
    assert kernels["g"] == {"MatMulIntegerToFloat"}
