"""Shapes of ONNX Runtime's own operators, compared with what ONNX Runtime computes."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cases.small_models import floats, imported, value

WORDS = floats(2, 5, 8)
IMAGE = floats(1, 3, 6, 6)
BYTES = np.ones((1, 3, 6, 6), np.uint8)
ONE, ZERO = np.float32(1), np.uint8(0)

CASES = [
    ("Gelu", [WORDS], [], {}),
    ("FastGelu", [WORDS], [floats(8)], {}),
    ("BiasGelu", [WORDS], [floats(8)], {}),
    ("QuickGelu", [WORDS], [], {}),
    ("SkipLayerNormalization", [WORDS, WORDS], [floats(8)], {}),
    ("FusedConv", [IMAGE], [floats(4, 3, 3, 3)], {"activation": "Relu", "strides": [2, 2]}),
    ("FusedGemm", [floats(5, 8)], [floats(3, 8)], {"transB": 1, "activation": "Relu"}),
    ("FusedMatMul", [WORDS, WORDS], [], {"transB": 1}),
    ("FusedMatMul", [WORDS, WORDS], [], {"transA": 1}),
    ("QLinearAdd", [BYTES], [ONE, ZERO, np.ones((3, 1, 1), np.uint8), ONE, ZERO, ONE, ZERO], {}),
    ("QLinearGlobalAveragePool", [BYTES], [ONE, ZERO, ONE, ZERO], {}),
    ("QLinearSigmoid", [BYTES], [ONE, ZERO, ONE, ZERO], {}),
    ("Attention", [WORDS], [floats(8, 24), floats(24)], {"num_heads": 2}),
    ("MultiHeadAttention", [WORDS, floats(2, 7, 8), floats(2, 7, 12)], [], {"num_heads": 2}),
    (
        "QLinearConv",
        [BYTES],
        [ONE, ZERO, np.ones((4, 3, 3, 3), np.uint8), ONE, ZERO, ONE, ZERO],
        {"strides": [2, 2]},
    ),
    ("QLinearLeakyRelu", [BYTES], [ONE, ZERO, ONE, ZERO], {"alpha": 0.5}),
    ("QLinearMul", [BYTES], [ONE, ZERO, np.ones((1, 6), np.uint8), ONE, ZERO, ONE, ZERO], {}),
    (
        "QLinearWhere",
        [np.ones((3, 1, 1), bool)],
        [BYTES, ONE, ZERO, np.ones((6,), np.uint8), ONE, ZERO, ONE, ZERO],
        {},
    ),
    (
        "QAttention",
        [np.ones((2, 5, 8), np.uint8)],
        [np.ones((8, 24), np.uint8), floats(24), ONE, ONE, np.full(2, 5, np.int32), ZERO, ZERO],
        {"num_heads": 2},
    ),
    (
        "MatMulNBits",
        [floats(2, 5, 32)],
        [np.ones((6, 1, 16), np.uint8), floats(6)],
        {"K": 32, "N": 6, "bits": 4, "block_size": 32},
    ),
    ("DynamicQuantizeMatMul", [WORDS], [np.ones((8, 3), np.uint8), ONE, ZERO], {}),
    ("FusedMatMul", [floats(5, 2, 3), floats(2, 3, 7)], [], {"transBatchA": 1}),
    ("FusedMatMul", [floats(2, 5, 7), floats(3, 2, 7)], [], {"transBatchB": 1, "transB": 1}),
    ("MultiHeadAttention", [WORDS, floats(2, 2, 7, 4), floats(2, 2, 7, 4)], [], {"num_heads": 2}),
    ("DequantizeLinear", [BYTES], [ONE, ZERO], {}),
    (
        "MoE",
        [WORDS, floats(10, 4)],
        [floats(4, 16, 8), floats(4, 16), floats(4, 8, 16)],
        {"k": 2, "activation_type": "relu"},
    ),
]


def model_of(operator, arrays, constants, attributes):
    names = [f"i{number}" for number in range(len(arrays))]
    weights = [f"c{number}" for number in range(len(constants))]
    node = helper.make_node(operator, names + weights, ["y"], domain="com.microsoft", **attributes)
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
    graph = helper.make_graph(
        [node],
        "g",
        [value(n, a.shape, kind) for n, a, kind in zip(names, arrays, kinds, strict=True)],
        [value("y", None, TensorProto.UINT8 if operator.startswith("QLinear") else 1)],
        [
            numpy_helper.from_array(np.asarray(c), n)
            for n, c in zip(weights, constants, strict=True)
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), names


@pytest.mark.parametrize(("operator", "arrays", "constants", "attributes"), CASES)
def test_the_shape_is_what_onnx_runtime_computes(operator, arrays, constants, attributes):
    model, names = model_of(operator, arrays, constants, attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (result,) = session.run(None, dict(zip(names, arrays, strict=True)))
    graph = imported(model)
    assert graph.tensors["y"].shape == result.shape
    assert graph.tensors["y"].dtype == result.dtype.name
    assert graph.operators[0].work.modelled


@pytest.mark.parametrize(("direction", "count"), [("forward", 1), ("bidirectional", 2)])
def test_a_quantised_lstm_makes_what_onnx_runtime_computes(direction, count):
    steps, batch, read, size = 7, 2, 3, 4
    scale, zero = np.ones(count, np.float32), np.zeros(count, np.uint8)
    weights, recurrent = (np.ones((count, rows, 4 * size), np.uint8) for rows in (read, size))
    constants = [weights, recurrent, scale, zero]
    names = ["w", "r", "s", "z"]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"],
        ["y", "h", "c"],
        domain="com.microsoft",
        direction=direction,
        hidden_size=size,
    )
    graph = helper.make_graph(
        [node], "g", [value("x", [steps, batch, read])],
        [value(name, None) for name in ("y", "h", "c")],
        [numpy_helper.from_array(c, n) for n, c in zip(names, constants, strict=True)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = imported(model)
    for name, result in zip(
        "yhc", session.run(None, {"x": floats(steps, batch, read)}), strict=True
    ):
        assert found.tensors[name].shape == result.shape
    macs = steps * batch * count * (read + size) * 4 * size
    assert found.operators[0].work.macs == macs


def test_the_sum_that_skip_layer_normalization_hands_on_has_the_same_shape():
    node = helper.make_node(
        "SkipLayerNormalization", ["x", "x", "g"], ["y", "", "", "s"], domain="com.microsoft"
    )
    relu = helper.make_node("Add", ["y", "s"], ["z"])
    graph = helper.make_graph(
        [node, relu], "g", [value("x", [2, 5, 8])], [value("z", None)],
        [numpy_helper.from_array(floats(8), "g")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    found = imported(helper.make_model(graph, opset_imports=opsets))
    assert found.tensors["s"].shape == (2, 5, 8)
    assert found.operators[0].outputs == ("y", "s")


def test_layer_normalization_is_known_before_the_opset_that_has_it():
    node = helper.make_node("LayerNormalization", ["x", "g"], ["y"])
    graph = helper.make_graph(
        [node], "g", [value("x", [2, 8])], [value("y", None)],
        [numpy_helper.from_array(floats(8), "g")],
    )  # fmt: skip
    found = imported(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
    assert found.tensors["y"].shape == (2, 8)


def test_concatenated_quantised_maps_add_their_channels():
    node = helper.make_node("QLinearConcat", ["s", "z", "a", "s", "z", "b", "s", "z"], ["y"],
                            domain="com.microsoft", axis=1)  # fmt: skip
    byte = TensorProto.UINT8
    constants = [numpy_helper.from_array(ONE, "s"), numpy_helper.from_array(np.asarray(ZERO), "z")]
    inputs = [value("a", [1, 3, 4, 4], byte), value("b", [1, 5, 4, 4], byte)]
    graph = helper.make_graph([node], "g", inputs, [value("y", None, byte)], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    found = imported(helper.make_model(graph, opset_imports=opsets))
    assert (found.tensors["y"].shape, found.tensors["y"].dtype) == ((1, 8, 4, 4), "uint8")


def test_grouped_queries_hand_on_the_keys_and_values_of_all_words_so_far():
    arrays = {"q": floats(1, 1, 16), "k": floats(1, 1, 8), "v": floats(1, 1, 8)}
    arrays |= {"pk": floats(1, 1, 6, 8), "pv": floats(1, 1, 6, 8)}
    node = helper.make_node(
        "GroupQueryAttention",
        [*arrays, "last", "total"],
        ["y", "nk", "nv"],
        domain="com.microsoft",
        num_heads=2,
        kv_num_heads=1,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [value(name, array.shape) for name, array in arrays.items()],
        [value(name, None) for name in node.output],
        [
            numpy_helper.from_array(np.array([6], np.int32), "last"),
            numpy_helper.from_array(np.array(7, np.int32), "total"),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, arrays)
    found = imported(model)
    assert [found.tensors[name].shape for name in node.output] == [r.shape for r in results]
    # Two heads of size 8, one query, seven words: scores, and values weighted by them.
    assert found.operators[0].work.macs == 2 * 2 * 8 * 7


LONG, INT = np.int64, np.int32
KEYS = floats(1, 2, 6, 4)
SEVERAL = {
    "grouped queries with a cache of 16 slots": (
        "GroupQueryAttention",
        [floats(1, 1, 16), floats(1, 1, 8), floats(1, 1, 8), floats(1, 1, 16, 8)],
        [3, np.array([6], INT), np.array(7, INT)],
        {"num_heads": 2, "kv_num_heads": 1},
    ),
    "heads with a cache": (
        "MultiHeadAttention",
        [floats(1, 1, 8), floats(1, 1, 8), floats(1, 1, 8), None, None, None, KEYS, KEYS],
        [],
        {"num_heads": 2},
    ),
    "a packed cache": (
        "Attention",
        [floats(1, 1, 8), floats(8, 24), floats(24), None, floats(2, 1, 2, 6, 4)],
        [],
        {"num_heads": 2},
    ),
    "a state": (
        "LinearAttention",
        [floats(1, 3, 16), floats(1, 3, 8), floats(1, 3, 12), floats(1, 2, 4, 6)],
        [floats(1, 3, 2), floats(1, 3, 2)],
        {"q_num_heads": 4, "kv_num_heads": 2, "scale": 1.0},
    ),
    "rows of four bits": (
        "GatherBlockQuantized",
        [np.ones((20, 32), np.uint8), np.ones((1, 3), LONG)],
        [floats(20, 2)],
        {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1},
    ),
    "experts of four bits": (
        "QMoE",
        [floats(10, 32), floats(10, 4), np.ones((4, 32, 16), np.uint8), floats(4, 32), None],
        [2, 3],
        {"k": 2, "expert_weight_bits": 4, "activation_type": "silu"},
    ),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_all_results_have_the_shapes_that_onnx_runtime_computes(case):
    operator, arrays, more, attributes = SEVERAL[case]
    arrays = [*arrays, *(arrays[each] if isinstance(each, int) else each for each in more)]
    names = [f"i{at}" if array is not None else "" for at, array in enumerate(arrays)]
    wide = operator in ("GroupQueryAttention", "MultiHeadAttention")
    outputs = ["y", "k", "v"][: 3 if wide else 2 if "Attention" in operator else 1]
    constants = {name: array for name, array in zip(names, arrays, strict=True) if name}
    feeds = {"i0": constants.pop("i0")}
    if operator == "GatherBlockQuantized":
        constants["i0"], feeds = feeds["i0"], {"i1": constants["i1"]}
    (read,) = feeds
    node = helper.make_node(operator, names, outputs, domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node], "g", [value(read, feeds[read].shape, 7 if read == "i1" else 1)],
        [value(name, None) for name in outputs],
        [numpy_helper.from_array(array, n) for n, array in constants.items() if n != read],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    tensors = imported(model).tensors
    assert [tensors[name].shape for name in outputs] == [each.shape for each in results]
    assert [tensors[name].dtype for name in outputs] == [each.dtype.name for each in results]
