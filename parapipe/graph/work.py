"""What one run of an operator multiplies and moves, and the class it is of.

Formulas count one multiply-accumulate per weight (or per pair of elements) and output element,
padding included, as is usual; biases, activations and scalings count nothing.

MACs count for convolutions and matrix products only (see `macs`). Bytes are those of each
distinct tensor, read or written once. A view (Reshape, Flatten, ...) moves nothing; an operator
that picks elements (Gather, Slice, ...) reads only as much as it writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import Literal

from parapipe.graph.language_work import RULES
from parapipe.graph.operands import Count, Macs, Operands, matrix_of, operands_of
from parapipe.graph.operator_graph import (
    AttributeValue,
    Constant,
    NamedTensors,
    Operator,
    OperatorGraph,
    Work,
    size_in_bytes,
)


def convolution_macs(weights: int) -> Macs:
    """MACs of a convolution whose weights, `[out, in/group, *kernel]`, are input `weights`."""
    return lambda operands: prod(operands.output()) * prod(operands.shape(weights)[1:])


def matrix_product_macs(right: int, *, transposed: str = "", by_batch: str = "") -> Macs:
    """MACs of A (input 0) times B (input `right`); the inner length is read from B.

    `transposed` and `by_batch` name the attributes that say how B's axes are swapped, see
    `matrix_of`.
    """

    def macs(operands: Operands) -> int:
        swaps = (name != "" and operands.integer(name, 0) != 0 for name in (by_batch, transposed))
        batch, last = swaps
        b = matrix_of(operands.shape(right), batch=batch, last=last)
        return prod(operands.output()) * (b[0] if len(b) == 1 else b[-2])

    return macs


def _recurrent_macs(operands: Operands) -> int:
    # X is [steps, batch, input] in either layout; W and R hold every gate of every direction.
    steps_and_batch = prod(operands.shape(0)[:2])
    return steps_and_batch * (prod(operands.shape(1)) + prod(operands.shape(2)))


def _einsum_macs(operands: Operands) -> int | None:
    equation = operands.text("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if "." in equation or not arrow or len(terms) > 2:
        return None
    length = {
        axis: size
        for position, term in enumerate(terms)
        for axis, size in zip(term, operands.shape(position), strict=False)
    }
    if len(terms) == 1 or set(length) == set(result):
        return 0
    return prod(length.values())


# Operators of com.microsoft that are a standard one, which reads the inputs at these positions.
LIKE_STANDARD: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "FusedConv": ("Conv", (0, 1)),
    "FusedGemm": ("Gemm", (0, 1)),
    "FusedMatMul": ("MatMul", (0, 1)),
    **dict.fromkeys(
        ("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "FusedMatMulActivation", "GemmFastGelu"),
        ("MatMul", (0, 1)),
    ),
    "QGemm": ("Gemm", (0, 3)),
    "QLinearConv": ("Conv", (0, 3)),
    "QLinearWhere": ("Where", (0, 1, 4)),
    "QLinearAdd": ("Add", (0, 3)),
    "QLinearMul": ("Mul", (0, 3)),
    "QLinearAveragePool": ("AveragePool", (0,)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,)),
}
_STANDARD: Mapping[str, Macs] = {
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), convolution_macs(1)),
    "ConvTranspose": lambda operands: prod(operands.shape(0)) * prod(operands.shape(1)[1:]),
    "QLinearConv": convolution_macs(3),
    "Gemm": matrix_product_macs(1, transposed="transB"),
    "MatMul": matrix_product_macs(1),
    "MatMulInteger": matrix_product_macs(1),
    "QLinearMatMul": matrix_product_macs(3),
    "Einsum": _einsum_macs,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent_macs),
}
_FUSED_PRODUCT = partial(matrix_product_macs, transposed="transB", by_batch="transBatchB")
_PRODUCTS: Mapping[str, Callable[[int], Macs]] = {
    "Conv": convolution_macs,
    **dict.fromkeys(("Gemm", "MatMul"), _FUSED_PRODUCT),
}
_MICROSOFT: Mapping[str, Macs] = {
    **{
        name: _PRODUCTS[standard](positions[1])
        for name, (standard, positions) in LIKE_STANDARD.items()
        if standard in _PRODUCTS
    },
    **dict.fromkeys(
        ("MatMulNBits", "MatMulBnb4"),
        lambda operands: prod(operands.output()) * operands.integer("K", 0),
    ),
    "DynamicQuantizeLSTM": _recurrent_macs,
}
_MACS: Mapping[str, Mapping[str, Macs]] = {"": _STANDARD, "com.microsoft": _MICROSOFT}


OperatorClass = Literal[
    "conv1x1",  # convolution with a kernel of one element, grouped or not, not depthwise
    "conv3x3",  # convolution with a 3x3 kernel, grouped or not, not depthwise
    "conv-other",  # any other, transposed and deformable ones included
    "depthwise",  # convolution with one group per input channel
    "gemm",  # matrix product with constant weights, recurrent layers included
    "matmul",  # matrix product of activations, attention included
    "pool",  # pooling and reductions
    "norm",  # normalisation
    "elementwise",  # one output element from one element of each input
    "softmax",
    "concat",
    "move",  # elements are copied, not computed
    "view",  # the same bytes under another shape
    "other",  # anything else, and every type that stands in no table
]

CONVOLUTIONS = frozenset(
    {"Conv", "ConvInteger", "QLinearConv", "FusedConv", "ConvTranspose", "DeformConv"}
)


def _class(kind: OperatorClass, names: str) -> dict[str, OperatorClass]:
    return dict.fromkeys(names.split(), kind)


_STANDARD_CLASS: Mapping[str, OperatorClass] = {
    **_class("view", "Reshape Flatten Squeeze Unsqueeze Identity Dropout"),
    **_class(
        "pool",
        "MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool MaxRoiPool "
        "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceSumSquare ArgMax ArgMin",
    ),
    **_class(
        "norm",
        "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization LRN "
        "RMSNormalization LpNormalization MeanVarianceNormalization SimplifiedLayerNormalization",
    ),
    **_class("softmax", "Softmax LogSoftmax Hardmax"),
    **_class("concat", "Concat"),
    **_class(
        "elementwise",
        "Relu LeakyRelu PRelu ThresholdedRelu Elu Celu Selu Gelu Mish Swish HardSwish HardSigmoid "
        "Sigmoid Tanh Softplus Softsign Clip Shrink Erf Exp Log Sqrt Reciprocal Abs Neg Sign Ceil "
        "Floor Round Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Add Sub Mul Div Pow "
        "Mod Max Min Sum Mean And Or Xor Not Equal Greater GreaterOrEqual Less LessOrEqual IsNaN "
        "IsInf Where Cast CastLike BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot "
        "QuantizeLinear DequantizeLinear DynamicQuantizeLinear Bernoulli SwiGLU",
    ),
    **_class(
        "move",
        "Transpose Gather GatherElements GatherND Slice Split Pad Expand Tile Resize Upsample "
        "DepthToSpace SpaceToDepth Scatter ScatterElements ScatterND TensorScatter Compress "
        "ReverseSequence GridSample RoiAlign Trilu CenterCropPad Col2Im OneHot EyeLike Range "
        "ConstantOfShape Shape Size MaxUnpool ImageDecoder",
    ),
    **_class(
        "other",
        "TopK NonMaxSuppression NonZero Unique CumSum CumProd Det Multinomial RandomNormal "
        "RandomUniform RandomNormalLike RandomUniformLike RotaryEmbedding "
        "DFT STFT HannWindow HammingWindow BlackmanWindow MelWeightMatrix",
    ),
}
_MICROSOFT_CLASS: Mapping[str, OperatorClass] = {
    **_class("pool", "NhwcMaxPool QLinearGlobalAveragePool QLinearAveragePool QLinearReduceMean"),
    **_class(
        "norm",
        "SkipLayerNormalization SimplifiedLayerNormalization SkipSimplifiedLayerNormalization "
        "EmbedLayerNormalization GroupNorm SkipGroupNorm",
    ),
    **_class("softmax", "QLinearSoftmax BiasSoftmax"),
    **_class("concat", "QLinearConcat"),
    **_class(
        "elementwise",
        "Gelu FastGelu BiasGelu QuickGelu BiasAdd BiasSplitGelu QLinearAdd QLinearMul "
        "QLinearSigmoid QLinearLeakyRelu QLinearWhere QuantizeLinear DequantizeLinear BiasDropout",
    ),
    **_class("move", "GatherBlockQuantized"),
    **_class("other", "RotaryEmbedding"),
    **_class("gemm", "MoE QMoE"),
}
_CLASSES = {"": _STANDARD_CLASS, "com.microsoft": _MICROSOFT_CLASS}

# Types of which only as much is read as is written, and the indices.
_PICKING = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Compress"})
# Types that read their first input's shape, not its elements.
_SHAPE_ONLY = frozenset({"Shape", "Size", "EyeLike", "RandomNormalLike", "RandomUniformLike"})


def work_of(
    domain: str,
    operator_type: str,
    attributes: Mapping[str, AttributeValue],
    inputs: Sequence[str],
    outputs: Iterable[str],
    *,
    known: NamedTensors,
) -> Work:
    """Work of a single operator.

    Parameters
    ----------
    inputs, outputs
        Names by position; "" where an optional input is omitted.
    known
        All tensors and constants that they name.
    """
    operands = operands_of(attributes, inputs, outputs, known)
    static = _CLASSES.get(domain, {}).get(operator_type)
    if static == "view":
        return Work(0, 0, 0)
    count = _count_of(domain, operator_type, operands)
    read: dict[str, int] = {}
    for position, operand in enumerate(operands.inputs):
        if operand:
            size_bytes = operand.size_bytes
            read_bytes = count.read.get(position, size_bytes) if count else size_bytes
            read[operand.name] = max(read_bytes, read.get(operand.name, 0))
    written = count.written if count else None
    if written is None:
        written = sum(tensor.size_bytes for tensor in operands.outputs)
    if static and operands.inputs and (data := operands.inputs[0]):
        if operator_type in _PICKING:
            read[data.name] = min(_picked_bytes(operands, written), data.size_bytes)
        elif operator_type in _SHAPE_ONLY:
            read[data.name] = 0
    modelled = count is not None
    total, assumption = sum(read.values()), count.assumption if count else ""
    return Work(count.macs if count else 0, total, written, modelled, assumption=assumption)


def _count_of(domain: str, operator_type: str, operands: Operands) -> Count | None:
    """Return what the tables say of an operator; None if nothing, or nothing of its form."""
    # ONNX has no schema of com.microsoft that would have caught operands of another form.
    with suppress(IndexError, ZeroDivisionError, ValueError):
        if rule := RULES.get((domain, operator_type)):
            return rule(operands)
        if count := _MACS.get(domain, {}).get(operator_type):
            macs = count(operands)
            return None if macs is None else Count(macs)
        return Count(0) if operator_type in _CLASSES.get(domain, {}) else None
    return None


def _picked_bytes(operands: Operands, written: int) -> int:
    """Return the bytes that are picked, as they are stored."""
    data = operands.inputs[0]
    if not isinstance(data, Constant) or not data.stored:
        return written
    return size_in_bytes(operands.output(), data.stored) or 0


def assumption_notes(operators: Iterable[Operator]) -> tuple[str, ...]:
    """Return a sentence for each assumption that the work of operators rests on."""
    times = Counter((each.type, each.work.assumption) for each in operators)
    return tuple(
        f"{operator_type} ({count} operator{'' if count == 1 else 's'}): {assumption}"
        for (operator_type, assumption), count in times.items()
        if assumption
    )


def operator_class(operator: Operator, graph: OperatorGraph) -> OperatorClass:
    """Class of an operator; of a fused one that is not quantised, that of its first part."""
    single = operator.singles[0]
    static = _CLASSES.get(single.domain, {}).get(single.type)
    if static in ("move", "concat") and not single.work.written_bytes and single.work.modelled:
        return "view"  # of parts in one buffer
    if static:
        return static
    if single.opaque and single.work.macs:
        return "gemm"  # as of recurrent layers: bodies multiply by weights
    if (single.domain, single.type) in RULES:
        return "matmul"  # of activations, which attention is
    if single.type not in _MACS.get(single.domain, {}):
        return "other"
    operands = _operands_in(single, graph)
    if single.type in CONVOLUTIONS:
        return _convolution_class(single.type, operands)
    return _product_class(single.type, operands)


def input_channels(operator: Operator, graph: OperatorGraph) -> int:
    """Channels of the input that each filter of a convolution reads.

    0 of all other operators, and of depthwise convolutions. Of a fused operator that is not
    quantised, those of its first part.
    """
    single = operator.singles[0]
    if single.type not in CONVOLUTIONS or operator_class(operator, graph) == "depthwise":
        return 0
    operands = _operands_in(single, graph)
    weights = operands.shape(3 if single.type == "QLinearConv" else 1)
    if single.type == "ConvTranspose":
        return weights[0] // operands.integer("group", 1)
    return weights[1]


def _operands_in(single: Operator, graph: OperatorGraph) -> Operands:
    names = (*single.inputs, *single.outputs)
    tensors = {n: at for n in names if (at := graph.tensors.get(n) or graph.constants.get(n))}
    return operands_of(single.attributes, single.inputs, single.outputs, tensors)


def _convolution_class(operator_type: str, operands: Operands) -> OperatorClass:
    weights = operands.shape(3 if operator_type == "QLinearConv" else 1)
    kernel = set(weights[2:])
    group = operands.integer("group", 1)
    if group > 1 and group == operands.shape(0)[1]:
        return "depthwise"
    if operator_type in ("ConvTranspose", "DeformConv"):
        return "conv-other"
    if kernel == {1}:
        return "conv1x1"
    return "conv3x3" if weights[2:] == (3, 3) else "conv-other"


def _product_class(operator_type: str, operands: Operands) -> OperatorClass:
    right = 3 if operator_type in ("QLinearMatMul", "QGemm") else 1
    sides = (*operands.inputs[:1], *operands.inputs[right : right + 1])
    return "gemm" if any(isinstance(side, Constant) for side in sides) else "matmul"
