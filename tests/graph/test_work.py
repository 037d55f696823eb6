"""MACs, bytes and classes of operators, worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from parapipe.graph.work import OperatorClass, input_channels, operator_class
from tests.cases.small_models import floats, graph_of, imported, parsed, value


def only(body, *, opset=17, domains=(), declared=None, result="float[?]", **arrays):
    """The single operator of a graph, and the graph; `body` holds inputs and the operator."""
    inputs, operator = body.split("|")
    model = parsed(f"g ({inputs}) => ({result} y) {{ y = {operator} }}", opset=opset,
                   domains=domains, **arrays)  # fmt: skip
    if declared is not None:
        model.graph.value_info.append(value("y", declared))
    graph = imported(model)
    (found,) = graph.operators
    return found, graph


MACS = [
    # 64 channels of 112x112, each from 3 channels of 7x7.
    ("float[1,3,224,224] x | Conv<strides = [2, 2], pads = [3, 3, 3, 3]>(x, w)",
     {"w": floats(64, 3, 7, 7)}, 118_013_952, "conv-other"),
    ("float[1,192,28,28] x | Conv(x, w)", {"w": floats(64, 192, 1, 1)}, 9_633_792, "conv1x1"),
    ("float[1,4,6,6] x | Conv<pads = [1, 1, 1, 1]>(x, w)", {"w": floats(8, 4, 3, 3)},
     8 * 36 * 36, "conv3x3"),
    ("float[1,4,6,6] x | Conv<group = 2, pads = [1, 1, 1, 1]>(x, w)", {"w": floats(8, 2, 3, 3)},
     8 * 36 * 18, "conv3x3"),
    ("float[1,4,6,6] x | Conv<group = 4, pads = [1, 1, 1, 1]>(x, w)", {"w": floats(4, 1, 3, 3)},
     4 * 36 * 9, "depthwise"),
    ("float[1,1,6,6] x | Conv<pads = [1, 1, 1, 1]>(x, w)", {"w": floats(4, 1, 3, 3)},
     4 * 36 * 9, "conv3x3"),
    ("float[1,4,9] x | Conv(x, w)", {"w": floats(2, 4, 3)}, 2 * 7 * 12, "conv-other"),
    # Every input element meets every weight of its channel.
    ("float[1,4,6,6] x | ConvTranspose<strides = [2, 2]>(x, w)", {"w": floats(4, 8, 2, 2)},
     4 * 36 * 8 * 4, "conv-other"),
    ("float[1,1024] x | Gemm<transB = 1>(x, w)", {"w": floats(1000, 1024)}, 1_024_000, "gemm"),
    ("float[5,2] x | Gemm<transA = 1>(x, w)", {"w": floats(5, 3)}, 2 * 3 * 5, "gemm"),
    ("float[4,6,8] x | MatMul(x, w)", {"w": floats(8, 10)}, 4 * 6 * 8 * 10, "gemm"),
    ("float[4,6,8] x | MatMul(x, w)", {"w": floats(8)}, 4 * 6 * 8, "gemm"),
    ("float[4,6,8] x, float[4,8,6] z | MatMul(x, z)", {}, 4 * 6 * 6 * 8, "matmul"),
    ("float[2,3,4] x, float[2,5,4] z | Einsum<equation = \"bik,bjk->bij\">(x, z)", {},
     2 * 3 * 5 * 4, "matmul"),
    ("float[2,3] x, float[4] z | Einsum<equation = \"ij,k->ijk\">(x, z)", {}, 0, "matmul"),
    # Four gates; weights of 3 inputs and 5 outputs, for 7 steps of 2.
    ("float[7,2,3] x | LSTM<hidden_size = 5>(x, w, r)",
     {"w": floats(1, 20, 3), "r": floats(1, 20, 5)}, 7 * 2 * 20 * (3 + 5), "gemm"),
    ("float[7,2,3] x | GRU<hidden_size = 5>(x, w, r)",
     {"w": floats(1, 15, 3), "r": floats(1, 15, 5)}, 7 * 2 * 15 * (3 + 5), "gemm"),
    ("float[1,4,6,6] x | MaxPool<kernel_shape = [3, 3]>(x)", {}, 0, "pool"),
    ("float[1,4,6,6] x | ReduceMean<axes = [2, 3]>(x)", {}, 0, "pool"),
    ("float[1,4,6,6] x | LRN<size = 5>(x)", {}, 0, "norm"),
    ("float[1,9] x | Softmax(x)", {}, 0, "softmax"),
    ("float[1,9] x | Sigmoid(x)", {}, 0, "elementwise"),
    ("float[1,9] x | Concat<axis = 1>(x, x)", {}, 0, "concat"),
    ("float[3,9] x | Transpose<perm = [1, 0]>(x)", {}, 0, "move"),
    ("float[1,9] x | Reshape(x, s)", {"s": np.array([9])}, 0, "view"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "arrays", "macs", "kind"), MACS)
def test_macs_and_class_by_hand(body, arrays, macs, kind):
    operator, graph = only(body, **arrays)
    assert operator.work.macs == macs
    assert operator.work.modelled
    assert operator_class(operator, graph) == kind
    assert kind in OperatorClass.__args__


CHANNELS = [
    ("float[1,3,8,8] x | Conv(x, w)", floats(64, 3, 7, 7), 3),
    ("float[1,4,6,6] x | Conv<group = 2>(x, w)", floats(8, 2, 3, 3), 2),
    ("float[1,4,6,6] x | ConvTranspose<group = 2>(x, w)", floats(4, 8, 2, 2), 2),
    ("float[1,1,6,6] x | Conv(x, w)", floats(4, 1, 3, 3), 1),
    # depthwise, and no convolution
    ("float[1,4,6,6] x | Conv<group = 4>(x, w)", floats(4, 1, 3, 3), 0),
    ("float[1,4] x | Gemm(x, w)", floats(4, 8), 0),
]


@pytest.mark.parametrize(("body", "weights", "channels"), CHANNELS)
def test_input_channels_are_those_that_a_filter_reads(body, weights, channels):
    operator, graph = only(body, w=weights)
    assert input_channels(operator, graph) == channels


BYTES = [
    # Both operands and the result, 4 bytes each.
    ("float[2,3] x, float[3] z | Add(x, z)", {}, 24 + 12, 24),
    ("float[2,3] x | Mul(x, x)", {}, 24, 24),
    ("float[1,2,5,5] x | Conv(x, w, b)", {"w": floats(4, 2, 1, 1), "b": floats(4)}, 248, 400),
    ("float[2,3] x | Reshape(x, s)", {"s": np.array([6])}, 0, 0),
    ("float[2,3] x | Unsqueeze(x, s)", {"s": np.array([0])}, 0, 0),
    # 2 of 1000 rows, and two indices of 8 bytes.
    ("float[1000,4] x | Gather(x, s)", {"s": np.array([5, 6])}, 32 + 16, 32),
    ("int64[2] x | Gather(w, x)", {"w": floats(1000, 4)}, 32 + 16, 32),
    ("float[1000,4] x | Slice(x, s, e)", {"s": np.array([0]), "e": np.array([2])}, 32 + 16, 32),
    ("float[2] x | Expand(x, s)", {"s": np.array([3, 2])}, 8 + 16, 24),
    ("float[2] x | Cast<to = 10>(x)", {}, 8, 4),
    ("float[2] x | RandomNormalLike(x)", {}, 0, 8),
]


@pytest.mark.parametrize(("body", "arrays", "read", "written"), BYTES)
def test_bytes_by_hand(body, arrays, read, written):
    operator, _ = only(body, **arrays)
    assert (operator.work.read_bytes, operator.work.written_bytes) == (read, written)


def test_a_quantised_convolution_counts_its_weights_at_their_place():
    arrays = {
        "xs": np.float32(1), "xz": np.uint8(0), "w": np.ones((4, 2, 1, 1), np.uint8),
        "ws": np.float32(1), "wz": np.uint8(0), "ys": np.float32(1), "yz": np.uint8(0),
    }  # fmt: skip
    operator, graph = only(
        "uint8[1,2,5,5] x | QLinearConv(x, xs, xz, w, ws, wz, ys, yz)", result="uint8[?]", **arrays
    )
    assert operator.work.macs == 4 * 25 * 2
    assert operator.work.written_bytes == 100
    assert operator_class(operator, graph) == "conv1x1"


def test_an_operator_of_no_table_is_unmodelled_and_counts_its_tensors():
    operator, graph = only(
        "float[2,3] x | my.Twist(x, w)", domains=["my"], declared=[2, 3], w=floats(5)
    )
    assert not operator.work.modelled
    assert (operator.work.macs, operator.work.read_bytes, operator.work.written_bytes) == (
        0,
        44,
        24,
    )
    assert operator_class(operator, graph) == "other"


def test_an_einsum_that_is_no_plain_product_is_unmodelled():
    operator, _ = only('float[2,3] x | Einsum<equation = "ij,jk,kl->il">(x, w, w)', w=floats(3, 3))
    assert not operator.work.modelled


def microsoft(operator, *, declared, **arrays):
    return only(operator, domains=["com.microsoft"], declared=declared, **arrays)


def test_attention_of_onnx_runtime_counts_the_projection_and_both_products():
    # Batch 2, length 5, width 8: one product by [8, 24], then scores and weighted values.
    operator, graph = microsoft(
        "float[2,5,8] x | com.microsoft.Attention<num_heads = 2>(x, w, b)",
        declared=[2, 5, 8], w=floats(8, 24), b=floats(24),
    )  # fmt: skip
    assert operator.work.macs == 2 * 5 * 8 * 24 + 2 * (2 * 5 * 5 * 8)
    assert operator_class(operator, graph) == "matmul"


def test_multi_head_attention_counts_both_products():
    operator, _ = microsoft(
        "float[2,5,8] q, float[2,7,8] k, float[2,7,12] v "
        "| com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v)",
        declared=[2, 5, 12],
    )
    assert operator.work.macs == 2 * 5 * 7 * (8 + 12)


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        ("float[2,4,5,8] q, float[2,4,7,8] k, float[2,4,7,6] v", ""),
        (
            "float[2,5,32] q, float[2,7,32] k, float[2,7,24] v",
            "<q_num_heads = 4, kv_num_heads = 4>",
        ),
    ],
)
def test_attention_of_onnx_counts_both_products(inputs, attributes):
    operator, graph = only(f"{inputs} | Attention{attributes}(q, k, v)", opset=23)
    assert operator.work.macs == 2 * 4 * 5 * 7 * (8 + 6)
    assert operator_class(operator, graph) == "matmul"


def test_weights_of_four_bits_are_counted_by_their_attributes():
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft",
                            K=64, N=32, bits=4, block_size=32)  # fmt: skip
    inputs = [value("x", [3, 64]), value("w", [32, 2, 16], TensorProto.UINT8), value("s", [64])]
    graph = helper.make_graph([node], "g", inputs, [value("y", [3, 32])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    (operator,) = imported(helper.make_model(graph, opset_imports=opsets)).operators
    assert operator.work.macs == 3 * 64 * 32


def test_a_fused_operator_has_the_class_of_its_first_part():
    text = "g (float[1,2,5,5] x) => (float[1,4,5,5] y) { a = Conv(x, w) y = Relu(a) }"
    graph = graph_of(text, granularity="fused", w=floats(4, 2, 1, 1))
    assert operator_class(graph.operators[0], graph) == "conv1x1"


sizes = st.integers(1, 5)


@given(images=st.tuples(sizes, sizes, sizes), filters=sizes, group=sizes, kernel=sizes)
def test_a_convolution_has_the_macs_of_its_loops(images, filters, group, kernel):
    batch, channels, places = images
    size = kernel + places - 1
    weights = floats(filters * group, channels, kernel, kernel)
    operator, _ = only(
        f"float[{batch},{channels * group},{size},{size}] x | Conv<group = {group}>(x, w)",
        w=weights,
    )
    count = batch * (filters * group) * places * places * channels * kernel * kernel
    assert operator.work.macs == count
    assert operator.work.written_bytes == 4 * batch * filters * group * places * places
    assert operator.work.read_bytes == 4 * (batch * channels * group * size**2 + weights.size)
