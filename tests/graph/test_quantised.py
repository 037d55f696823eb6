"""Quantised models become operators on integers, in either form, as ONNX Runtime runs them."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest

from parapipe.cost.signature import signature_of
from parapipe.graph.onnx_import import import_model
from parapipe.graph.work import operator_class
from parapipe.zoo.registry import build
from tests.cases.quantised_models import SCALES, WEIGHTS, quantise, small_qdq
from tests.cases.small_models import floats, graph_of, imported, parsed, types_of


def fused(body, *, source="uint8[1,4,8,8]", result="uint8[1,4,8,8]", opset=17, **arrays):
    text = f"g ({source} x) => ({result} y) {{ {body} }}"
    return graph_of(text, granularity="fused", opset=opset, **SCALES, **arrays)


def computing(graph):
    return [(operator.type, operator.computes_in) for operator in graph.operators]


def test_a_small_model_by_hand():
    graph = imported(small_qdq(), granularity="fused")
    assert computing(graph) == [
        ("QuantizeLinear", ""), ("Conv", "uint8"), ("Conv", "uint8"), ("Add", "uint8"),
        ("DequantizeLinear", ""), ("GlobalAveragePool", "uint8"), ("Flatten", "uint8"),
        ("MatMul", "uint8"), ("Softmax", ""),
    ]  # fmt: skip
    conv = graph.operators[1]
    assert (conv.id, conv.name, conv.domain) == ("rq", "c", "")
    assert (conv.inputs, conv.outputs) == (("xq", "w", "b"), ("rq",))
    assert conv.members == ("xd", "c", "r", "rq")
    assert types_of_parts(conv) == ["DequantizeLinear", "Conv", "Relu", "QuantizeLinear"]
    assert conv.singles == (conv,)
    assert conv.attributes == {"pads": (1, 1, 1, 1)}
    assert str(signature_of(conv, graph)) == "Conv 3x3 /1x1: 3x8x8 -> 4x8x8 uint8"
    assert operator_class(conv, graph) == "conv3x3"


def types_of_parts(operator):
    return [part.type for part in operator.parts]


def test_work_is_that_of_the_integers():
    graph = imported(small_qdq(), granularity="fused")
    conv, add, flatten, product = (graph.operators[v] for v in (1, 3, 6, 7))
    weights, bias = 4 * 3 * 3 * 3, 4 * 4  # int8 and int32
    assert conv.work.macs == 4 * 64 * 27
    assert conv.work.read_bytes == 3 * 64 + weights + bias
    assert conv.work.written_bytes == 4 * 64
    assert (add.work.read_bytes, add.work.written_bytes) == (2 * 4 * 64, 4 * 64)
    assert (flatten.work.read_bytes, flatten.work.written_bytes) == (0, 0)
    assert (product.work.macs, product.work.written_bytes) == (20, 5 * 4)  # floating point


def test_weights_keep_the_size_that_they_are_stored_in():
    graph = imported(small_qdq())
    weights = graph.constants["w"]
    assert (weights.dtype, weights.stored, weights.nodes) == ("float32", "int8", ("w",))
    assert weights.size_bytes == 4 * 27
    assert graph.constants["b"].size_bytes == 4 * 4


def test_each_reader_has_a_dequantize_linear_of_its_own():
    graph = imported(small_qdq())
    own = {op.id: op.inputs[0] for op in graph.operators if op.type == "DequantizeLinear"}
    assert {name: own[name] for name in ("rd", "rd/2", "seen", "seen/2")} == {
        "rd": "rq", "rd/2": "rq", "seen": "aq", "seen/2": "aq",
    }  # fmt: skip
    reads = {op.id: op.inputs for op in graph.operators}
    assert reads["e"][0] == "rd"
    assert reads["a"] == ("rd/2", "ed")
    assert reads["p"] == ("seen/2",)  # `seen` is a graph output and stays one


def test_an_operator_that_reads_a_tensor_twice_has_two_copies():
    graph = fused(
        "d = DequantizeLinear (x, s, z) m = Mul (d, d) y = QuantizeLinear (m, t, z)",
    )
    (operator,) = graph.operators
    assert operator.members == ("d", "d/2", "m", "y")
    assert operator.inputs == ("x", "x")


def test_a_name_that_is_taken_is_no_copys_name():
    model = parsed(
        """g (uint8[4] x) => (uint8[4] y) {
          d = DequantizeLinear (x, s, z)
          taken = Neg (d)
          a = Add (d, taken)
          y = QuantizeLinear (a, t, z)
        }""",
        **SCALES,
    )
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["d/2" if name == "taken" else name for name in names]
    names = [name for op in imported(model).operators for name in op.members]
    assert names == ["d", "d/3", "d/2", "a", "y"]


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("c = Concat <axis = 1> (d, e) y = QuantizeLinear (c, t, z)", "uint8[1,8,8,8]"),
        ("c = Resize (d, , sizes) y = QuantizeLinear (c, s, z)", "uint8[1,4,16,16]"),
    ],
)
def test_an_operator_that_changes_the_size_is_one_as_well(body, result):
    graph = fused(
        f"d = DequantizeLinear (x, s, z) e = DequantizeLinear (x, t, z) {body}",
        result=result, sizes=np.array([1, 1, 2, 2], np.float32),
    )  # fmt: skip
    assert [(op.computes_in, op.outputs) for op in graph.operators] == [("uint8", ("y",))]


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv (d, w) y = QuantizeLinear (c, t, z)",
        "c = Conv (d, w) r = Relu (c) y = QuantizeLinear (r, t, zero)",
        "c = Conv (d, w) r = Clip (c, low, high) y = QuantizeLinear (r, t, zero)",
        "c = MaxPool <kernel_shape = [1, 1]> (d) y = QuantizeLinear (c, s, z)",
        "c = Sigmoid (d) y = QuantizeLinear (c, t, zero)",
        "c = LeakyRelu (d) y = QuantizeLinear (c, t, zero)",
        "c = Transpose <perm = [0, 1, 3, 2]> (d) y = QuantizeLinear (c, s, z)",
        "k = DequantizeLinear (kq, s, z) c = Add (d, k) y = QuantizeLinear (c, t, z)",
    ],
)
def test_what_stands_between_the_pair_is_one_operator(body):
    graph = fused(
        f"d = DequantizeLinear (x, s, z) w = DequantizeLinear (vq, m_s) {body}",
        vq=WEIGHTS["vq"], m_s=WEIGHTS["m_s"], low=np.float32(0), high=np.float32(6),
        kq=np.full((1, 4, 1, 1), 7, np.uint8),
    )  # fmt: skip
    (operator,) = graph.operators
    assert operator.computes_in == "uint8"
    assert (operator.inputs[0], operator.outputs) == ("x", ("y",))


def test_a_split_hands_out_all_its_integers():
    graph = graph_of(
        """g (uint8[2,6] x) => (uint8[2,3] y, uint8[2,3] u) {
          d = DequantizeLinear (x, s, z)
          a, b = Split <axis = 1> (d, half)
          y = QuantizeLinear (a, s, z)
          u = QuantizeLinear (b, s, z)
        }""",
        granularity="fused", half=np.array([3, 3], np.int64), **SCALES,
    )  # fmt: skip
    (operator,) = graph.operators
    assert (operator.type, operator.outputs, operator.computes_in) == ("Split", ("y", "u"), "uint8")


def test_a_table_of_integers_is_gathered_as_it_is():
    graph = graph_of(
        """g (int64[5] x) => (uint8[5, 4] y) {
          d = DequantizeLinear (table, s, z)
          c = Gather (d, x)
          y = QuantizeLinear (c, s, z)
        }""",
        granularity="fused", table=np.ones((9, 4), np.uint8), **SCALES,
    )  # fmt: skip
    (operator,) = graph.operators
    assert (operator.type, operator.computes_in, operator.inputs) == ("Gather", "uint8", ("d", "x"))


@pytest.mark.parametrize(
    ("element", "zero"), [("int8", np.int8), ("int16", np.int16), ("uint16", np.uint16)]
)
def test_an_operator_computes_in_the_type_of_its_first_activation(element, zero):
    graph = fused(
        "d = DequantizeLinear (x, s, o) c = Conv (d, w) y = QuantizeLinear (c, t, o)"
        " w = DequantizeLinear (vq, m_s)",
        source=f"{element}[1,4,8,8]", result=f"{element}[1,4,8,8]", opset=21, o=zero(0),
        vq=WEIGHTS["vq"], m_s=WEIGHTS["m_s"],
    )  # fmt: skip
    assert computing(graph) == [("Conv", element)]


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv (d, w) y = QuantizeLinear (c, t, z)",  # weights in floating point
        "k = Sigmoid (d) c = Add (k, k) y = QuantizeLinear (c, t, z)",
        "c = Softplus (d) y = QuantizeLinear (c, t, z)",  # of a type without a kernel
        "c = Relu (d) y = QuantizeLinear (c, c0, z)",  # a scale that is computed
    ],
)
def test_what_no_kernel_for_integers_takes_stays_in_floating_point(body):
    graph = fused(
        f"d = DequantizeLinear (x, s, z) e = ReduceMax <keepdims = 0> (d) c0 = Abs (e) {body}",
        w=floats(4, 4, 1, 1),
    )
    assert {operator.computes_in for operator in graph.operators} == {""}


def test_a_pair_with_nothing_between_stays_two_operators():
    graph = fused("d = DequantizeLinear (x, s, z) y = QuantizeLinear (d, t, z)")
    assert computing(graph) == [("DequantizeLinear", ""), ("QuantizeLinear", "")]


def test_a_result_that_is_also_read_in_floating_point_is_not_joined():
    graph = graph_of(
        """g (uint8[4] x) => (uint8[4] y, float[4] f) {
          d = DequantizeLinear (x, s, z)
          f = Sigmoid (d)
          y = QuantizeLinear (f, t, z)
        }""",
        granularity="fused", **SCALES,
    )  # fmt: skip
    assert types_of(graph) == ["DequantizeLinear", "Sigmoid", "QuantizeLinear"]


def test_weights_alone_in_integers_leave_the_operator_in_floating_point():
    graph = graph_of(
        """g (float[2, 4] x) => (float[2, 5] y) {
          w = DequantizeLinear (mq, m_s)
          y = MatMul (x, w)
        }""",
        granularity="fused", mq=WEIGHTS["mq"], m_s=WEIGHTS["m_s"],
    )  # fmt: skip
    (operator,) = graph.operators
    assert (operator.computes_in, operator.parts) == ("", ())
    assert signature_of(operator, graph).dtype == "float32"
    assert operator.work.read_bytes == 2 * 4 * 4 + 4 * 5


@pytest.mark.parametrize(
    ("call", "element", "computes_in"),
    [
        ("QLinearAdd (x, s, z, x, s, z, t, z)", "uint8", ("Add", "uint8")),
        ("QLinearMul (x, s, z, x, s, z, t, z)", "uint8", ("Mul", "uint8")),
        ("QLinearConcat <axis = 1> (t, z, x, s, z)", "uint8", ("Concat", "uint8")),
        ("QLinearSigmoid (x, s, z, t, z)", "uint8", ("Sigmoid", "uint8")),
        ("QLinearLeakyRelu (x, s, z, t, z)", "uint8", ("LeakyRelu", "uint8")),
        ("QLinearSoftmax <axis = 1, opset = 13> (x, s, z, t, z)", "uint8", ("Softmax", "uint8")),
        ("QGemm <transB = 0> (x, s, z, w, s, z, , t, z)", "uint8", ("Gemm", "uint8")),
        ("QGemm <transB = 0> (x, s, z, w, s, z)", "float", ("Gemm", "uint8")),
        ("MatMulIntegerToFloat (x, w, s, s)", "float", ("MatMulIntegerToFloat", "uint8")),
    ],
)
def test_operators_of_the_other_form_are_standard_ones_on_integers(call, element, computes_in):
    contrib = "com.microsoft." + call
    graph = graph_of(
        f"g (uint8[4, 4] x) => ({element}[4, 4] y) {{ y = {contrib} }}",
        granularity="fused", domains=("com.microsoft",), w=np.ones((4, 4), np.uint8), **SCALES,
    )  # fmt: skip
    assert computing(graph) == [computes_in]
    assert signature_of(graph.operators[0], graph).dtype == "uint8"


def test_scales_that_are_computed_keep_the_operator_what_it_is():
    graph = graph_of(
        """g (uint8[4] x, float r) => (uint8[4] y) {
          y = com.microsoft.QLinearSigmoid (x, r, z, t, z)
        }""",
        granularity="fused", domains=("com.microsoft",), **SCALES,
    )  # fmt: skip
    (operator,) = graph.operators
    assert (operator.type, operator.inputs[1]) == ("QLinearSigmoid", "r")


def test_dynamic_quantisation_computes_in_integers_between_floats():
    graph = graph_of(
        """g (float[2, 4] x) => (int32[2, 5] y) {
          q, a, b = DynamicQuantizeLinear (x)
          y = MatMulInteger (q, mq, b)
        }""",
        granularity="fused", mq=WEIGHTS["mq"],
    )  # fmt: skip
    dtypes = [signature_of(operator, graph).dtype for operator in graph.operators]
    assert dtypes == ["float32", "uint8"]
    assert graph.operators[1].work.macs == 2 * 4 * 5


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_all_products_of_a_quantised_mobilenet_compute_in_integers(form, tmp_path):
    model = build("mobilenet-v2")
    path = quantise(model, tmp_path, form)
    graph = import_model(path)
    on_integers = Counter(op.type for op in graph.operators if op.computes_in == "uint8")
    views = {"Flatten": 1} if form == "QDQ" else {}  # in the other form it is one as it stands
    products = {"Conv": 52, "Gemm": 1}
    assert on_integers == products | {"Add": 10, "AveragePool": 1, "Softmax": 1} | views
    rest = [op.type for op in graph.operators if not op.computes_in and op.type != "Flatten"]
    assert rest == ["QuantizeLinear", "DequantizeLinear"]
    plain = imported(model, granularity="fused")
    assert sum(op.work.macs for op in graph.operators) == sum(
        op.work.macs for op in plain.operators
    )
    assert runtimes_products(path, tmp_path) == 53


def runtimes_products(path, folder):
    """How many products ONNX Runtime computes with integers in the model."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    types = [node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node]
    return sum(kind in ("QLinearConv", "QGemm") for kind in types)


def test_both_forms_of_a_model_do_the_same_work(tmp_path):
    graphs = [
        import_model(quantise(build("squeezenet"), tmp_path, form)) for form in ("QDQ", "QOperator")
    ]
    found = [
        Counter(
            (str(signature_of(op, graph)), op.work.macs)
            for op in graph.operators
            if op.computes_in and op.work.macs
        )
        for graph in graphs
    ]
    assert found[0] == found[1]
    assert sum(found[0].values()) == 26
