"""Open dimensions of inputs that weights or attributes leave no choice of; ONNX Runtime agrees."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource

MICROSOFT = "com.microsoft"
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]


def model_of(nodes, inputs, outputs, **weights):
    """A model with open dimensions; weights are random."""
    rng = np.random.default_rng(0)
    stored = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    values = [
        [helper.make_tensor_value_info(n, kind, s) for n, (kind, s) in some.items()]
        for some in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "g", *values, stored)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8)


def imported(model, **options):
    return import_proto(model, source=ModelSource("m", ""), **options)


def floats(*shape):
    return TensorProto.FLOAT, shape


def runs(model, graph):
    """Whether ONNX Runtime takes inputs of the sizes that were found, and makes what was told."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    types = {"float32": np.float32, "int32": np.int32, "int64": np.int64}
    feed = {
        name: np.ones(graph.tensors[name].shape, types[graph.tensors[name].dtype])
        for name in graph.inputs
    }
    made = session.run([*graph.outputs], feed)
    return all(
        array.shape == graph.tensors[name].shape
        for name, array in zip(graph.outputs, made, strict=True)
    )


def cached_attention(kind, *, packed=False):
    """Projections of 96 columns and an operator of attention of 4 heads: a head holds 24."""
    columns = {"query": 96, "key": 96, "value": 96}
    attributes = {"num_heads": 4}
    if kind == "GroupQueryAttention":
        columns = {"query": 96 + 2 * 48} if packed else {"query": 96, "key": 48, "value": 48}
        attributes["kv_num_heads"] = 2
    nodes = [helper.make_node("MatMul", ["x", f"w_{n}"], [n], n) for n in columns]
    caches = ["past_key", "past_value"]
    reads = [*columns, *[""] * (3 - len(columns))]
    grouped = kind == "GroupQueryAttention"
    reads += [*caches, "lengths", "total"] if grouped else ["", "", "", *caches]
    made = ["y", "present_key", "present_value"]
    nodes.append(helper.make_node(kind, reads, made, "attend", domain=MICROSOFT, **attributes))
    inputs = {"x": floats("batch", 1, "hidden")}
    inputs |= {name: floats("batch", f"{name}_heads", "past", f"{name}_dim") for name in caches}
    if grouped:
        inputs |= {
            "lengths": (TensorProto.INT32, ("batch",)),
            "total": (TensorProto.INT32, ()),
        }
    outputs = {"y": floats("batch", 1, 96)}
    outputs |= {f"present_{n}": floats("batch", "heads", "all", "dim") for n in ("key", "value")}
    weights = {f"w_{name}": (80, size) for name, size in columns.items()}
    return model_of(nodes, inputs, outputs, **weights)


@pytest.mark.parametrize(
    ("kind", "packed", "heads"),
    [
        ("GroupQueryAttention", False, 2),
        ("GroupQueryAttention", True, 2),
        ("MultiHeadAttention", False, 4),
    ],
)
def test_a_cache_has_the_heads_of_its_operator_and_their_width(kind, packed, heads):
    graph = imported(cached_attention(kind, packed=packed), dims={"past": 8})
    assert graph.tensors["x"].shape == (1, 1, 80)
    assert graph.tensors["past_key"].shape == (1, heads, 8, 24)
    assert graph.tensors["past_value"].shape == (1, heads, 8, 24)
    said = [note for note in graph.notes if "as operator 'attend' requires it" in note]
    assert len(said) == 4


def test_onnx_runtime_takes_a_cache_of_the_size_that_is_required():
    model = cached_attention("MultiHeadAttention")
    assert runs(model, imported(model, dims={"past": 8}))


@pytest.mark.parametrize(
    ("node", "weights", "size"),
    [
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": (768, 5)}, 768),
        (helper.make_node("Gemm", ["x", "w"], ["y"]), {"w": (768, 5)}, 768),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), {"w": (5, 768)}, 768),
        (helper.make_node("LayerNormalization", ["x", "w"], ["y"]), {"w": (768,)}, 768),
    ],
)
def test_columns_are_as_many_as_the_rows_of_weights(node, weights, size):
    model = model_of([node], {"x": floats(2, "hidden")}, {"y": floats(2, "k")}, **weights)
    graph = imported(model)
    assert graph.tensors["x"].shape == (2, size)
    assert runs(model, graph)


def test_channels_of_a_grouped_convolution_are_those_of_all_groups():
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=3)
    model = model_of(
        [node], {"x": floats(1, "c", 8, 8)}, {"y": floats(1, "k", 6, 6)}, w=(6, 2, 3, 3)
    )
    graph = imported(model)
    assert graph.tensors["x"].shape == (1, 6, 8, 8)
    assert runs(model, graph)


def test_a_recurrent_layer_reads_the_columns_of_its_weights():
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    model = model_of(
        [node], {"x": floats(3, 1, "features")}, {"y": floats(3, 1, 1, 4)},
        w=(1, 16, 7), r=(1, 16, 4),
    )  # fmt: skip
    graph = imported(model)
    assert graph.tensors["x"].shape == (3, 1, 7)
    assert runs(model, graph)


def test_a_size_that_is_given_counts_and_one_that_two_operators_disagree_on_is_asked_for():
    nodes = [helper.make_node("MatMul", ["x", name], [f"y_{name}"]) for name in ("a", "b")]
    outputs = {f"y_{name}": floats(2, "k") for name in ("a", "b")}
    one = model_of(nodes, {"x": floats(2, "hidden")}, outputs, a=(5, 3), b=(5, 3))
    assert imported(one).tensors["x"].shape == (2, 5)
    other = model_of(nodes, {"x": floats(2, "hidden")}, outputs, a=(5, 3), b=(6, 3))
    with pytest.raises(ModelError):
        imported(other)
    assert onnx.checker.check_model(one) is None
