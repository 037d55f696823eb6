"""GoogLeNet: what it must have in common with the network that was measured on the A311D."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse
from parapipe.zoo.convolutional import googlenet
from parapipe.zoo.registry import serialize

# Of the board's run; profiles/SOURCES.md says where it comes from.
MEASURED = Path(__file__).parents[2] / "profiles/amlogic-a311d/measured/operators.csv"


@pytest.fixture(scope="module")
def model():
    return googlenet()


@pytest.fixture(scope="module")
def graph(model):
    return import_proto(model, source=ModelSource("zoo:googlenet", ""), granularity="onnx")


@pytest.fixture(scope="module")
def measured():
    with MEASURED.open() as file:
        return [row for row in csv.DictReader(file) if row["model"] == "GoogLeNet"]


def chw(shape):
    """Shape as the measured data write it: without the batch and without trailing ones."""
    batch, channels, *size = shape
    assert batch == 1
    return "x".join(map(str, [channels] if set(size) <= {1} else [channels, *size]))


def test_every_operator_has_the_name_type_shapes_and_macs_of_the_measured_one(graph, measured):
    found = [
        (
            operator.name,
            operator.type,
            chw(graph.tensors[operator.inputs[0]].shape),
            chw(graph.tensors[operator.outputs[0]].shape),
            operator.work.macs,
        )
        for operator in graph.operators
    ]
    wanted = [
        (
            row["layer"],
            row["op"],
            row["input0_shape_chw"],
            row["output_shape_chw"],
            int(row["macs_derived"]),
        )
        for row in measured
    ]
    # The board's Concats list only the first of their inputs, as this does.
    assert found == wanted


def test_it_has_141_operators_1583_million_macs_and_84_operators_when_fused(graph):
    assert len(graph.operators) == 141
    assert Counter(operator.type for operator in graph.operators) == {
        "Conv": 57, "Relu": 57, "MaxPool": 13, "LRN": 2, "Concat": 9,
        "AveragePool": 1, "Gemm": 1, "Softmax": 1,
    }  # fmt: skip
    assert round(sum(operator.work.macs for operator in graph.operators) / 1e6) == 1583
    assert len(fuse(graph).operators) == 141 - 57


def test_it_has_the_11_subgraphs_and_4_branches_of_the_paper(graph):
    for each in (graph, fuse(graph)):
        found = partition(each)
        assert len(found.subgraphs) == 11
        assert max(subgraph.parallelism for subgraph in found.subgraphs) == 4


def test_kernels_are_those_of_the_measured_network(graph, measured):
    for operator, row in zip(graph.operators, measured, strict=True):
        if row["kernel"]:
            kernel = operator.attributes["kernel_shape"]
            assert "x".join(map(str, kernel)) == row["kernel"], operator.name


def test_the_flatten_before_the_classifier_belongs_to_it(graph):
    (classifier,) = (operator for operator in graph.operators if operator.type == "Gemm")
    assert classifier.members == ("pool5/flatten", "loss3/classifier")
    assert graph.tensors[classifier.inputs[0]].shape == (1, 1024, 1, 1)


def test_onnx_finds_it_valid_and_infers_the_same_shapes(model, graph):
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    shapes = {
        info.name: tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
        for info in inferred.graph.value_info
    }
    assert len(shapes) == 141
    for name, tensor in graph.tensors.items():
        assert shapes.get(name, tensor.shape) == tensor.shape


def test_onnx_runtime_computes_a_distribution_that_depends_on_the_image(model):
    session = onnxruntime.InferenceSession(serialize(model))
    images = np.random.default_rng(0).standard_normal((2, 1, 3, 224, 224)).astype(np.float32)
    first, second = (session.run(None, {"data": image})[0] for image in images)
    assert first.shape == (1, 1000)
    for result in (first, second):
        assert np.isfinite(result).all()
        assert result.sum() == pytest.approx(1, abs=1e-5)
        assert result.max() > 2 / 1000
    assert np.abs(first - second).max() > 1e-4
