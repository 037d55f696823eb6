"""Models of one operator each."""

from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import parapipe
from parapipe.graph.onnx_import import resolve_proto
from parapipe.graph.weights import Weights
from parapipe.profiling.single_models import distinct_units, opsets_of, single_model
from tests.cases.small_network import saved, small_network


@pytest.fixture
def network(tmp_path):
    proto = small_network()
    graph = parapipe.load_model(saved(tmp_path))
    return graph, proto, resolve_proto(proto, "small")[1]


def models(network):
    graph, proto, resolved = network
    return {
        unit.operator.members: single_model(unit, graph, resolved, opsets_of(proto))
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
    told = single_model(unit, graph, odd, opsets_of(proto))
    assert told == "its data type bfloat16 has no NumPy array"


def test_weights_are_those_of_the_model_where_it_has_them(network, tmp_path):
    graph, proto, resolved = network
    with Weights(saved(tmp_path)) as own:
        units = distinct_units(graph)
        found = [single_model(unit, graph, resolved, opsets_of(proto), own) for unit in units]
    kept = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    held = [tensor for model in found for tensor in model.graph.initializer]
    assert {"w1", "w2", "w3", "fc"} <= {tensor.name for tensor in held}
    for tensor in held:
        assert np.array_equal(numpy_helper.to_array(tensor), kept[tensor.name])
