"""What one run of an operator multiplies and moves, and the class it belongs to, by type.

MACs count for convolutions and matrix products only (see `macs`). Bytes are those of each
distinct tensor, read or written once. A view (Reshape, Flatten, ...) moves nothing; an operator
that picks elements (Gather, Slice, ...) reads only as much as it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from parapipe.graph.macs import MACS, Operands
from parapipe.graph.operator_graph import (
    AttributeValue,
    Constant,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)

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


def _named(kind: OperatorClass, names: str) -> dict[str, OperatorClass]:
    return dict.fromkeys(names.split(), kind)


_STANDARD_CLASS: Mapping[str, OperatorClass] = {
    **_named("view", "Reshape Flatten Squeeze Unsqueeze Identity Dropout"),
    **_named(
        "pool",
        "MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool MaxRoiPool "
        "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceSumSquare ArgMax ArgMin",
    ),
    **_named(
        "norm",
        "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization LRN "
        "RMSNormalization LpNormalization MeanVarianceNormalization SimplifiedLayerNormalization",
    ),
    **_named("softmax", "Softmax LogSoftmax Hardmax"),
    **_named("concat", "Concat"),
    **_named(
        "elementwise",
        "Relu LeakyRelu PRelu ThresholdedRelu Elu Celu Selu Gelu Mish Swish HardSwish HardSigmoid "
        "Sigmoid Tanh Softplus Softsign Clip Shrink Erf Exp Log Sqrt Reciprocal Abs Neg Sign Ceil "
        "Floor Round Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Add Sub Mul Div Pow "
        "Mod Max Min Sum Mean And Or Xor Not Equal Greater GreaterOrEqual Less LessOrEqual IsNaN "
        "IsInf Where Cast CastLike BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot "
        "QuantizeLinear DequantizeLinear DynamicQuantizeLinear Bernoulli SwiGLU",
    ),
    **_named(
        "move",
        "Transpose Gather GatherElements GatherND Slice Split Pad Expand Tile Resize Upsample "
        "DepthToSpace SpaceToDepth Scatter ScatterElements ScatterND TensorScatter Compress "
        "ReverseSequence GridSample RoiAlign Trilu CenterCropPad Col2Im OneHot EyeLike Range "
        "ConstantOfShape Shape Size MaxUnpool ImageDecoder",
    ),
    **_named(
        "other",
        "TopK NonMaxSuppression NonZero Unique CumSum CumProd Det Multinomial RandomNormal "
        "RandomUniform RandomNormalLike RandomUniformLike RotaryEmbedding "
        "DFT STFT HannWindow HammingWindow BlackmanWindow MelWeightMatrix",
    ),
}
_MICROSOFT_CLASS: Mapping[str, OperatorClass] = {
    **_named("pool", "NhwcMaxPool QLinearGlobalAveragePool QLinearAveragePool QLinearReduceMean"),
    **_named(
        "norm",
        "SkipLayerNormalization SimplifiedLayerNormalization SkipSimplifiedLayerNormalization "
        "EmbedLayerNormalization GroupNorm SkipGroupNorm",
    ),
    **_named("softmax", "QLinearSoftmax BiasSoftmax"),
    **_named("concat", "QLinearConcat"),
    **_named(
        "elementwise",
        "Gelu FastGelu BiasGelu QuickGelu BiasAdd BiasSplitGelu QLinearAdd QLinearMul "
        "QLinearSigmoid QLinearLeakyRelu QLinearWhere QuantizeLinear DequantizeLinear BiasDropout",
    ),
    **_named("move", "GatherBlockQuantized"),
    **_named("other", "RotaryEmbedding"),
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
    known: Mapping[str, Tensor | Constant],
) -> Work:
    """Work of a single operator.

    Parameters
    ----------
    inputs, outputs
        Names by position; "" where an optional input is omitted.
    known
        All tensors and constants that they name.
    """
    operands = _operands(attributes, inputs, outputs, known)
    static = _CLASSES.get(domain, {}).get(operator_type)
    if static == "view":
        return Work(0, 0, 0)
    written = sum(tensor.size_bytes for tensor in operands.outputs)
    read = {tensor.name: tensor.size_bytes for tensor in operands.inputs if tensor}
    if static and operands.inputs and (data := operands.inputs[0]):
        if operator_type in _PICKING:
            read[data.name] = min(written, data.size_bytes)
        elif operator_type in _SHAPE_ONLY:
            read[data.name] = 0
    count = MACS.get(domain, {}).get(operator_type)
    macs = 0 if static and not count else None
    # ONNX has no schema of com.microsoft that would have caught operands of another form.
    with suppress(IndexError, ZeroDivisionError, ValueError):
        macs = count(operands) if count else macs
    return Work(macs or 0, sum(read.values()), written, modelled=macs is not None)


def operator_class(operator: Operator, graph: OperatorGraph) -> OperatorClass:
    """Class of an operator; of a fused one that is not quantised, that of its first part."""
    single = operator.singles[0]
    static = _CLASSES.get(single.domain, {}).get(single.type)
    if static in ("move", "concat") and not single.work.written_bytes and single.work.modelled:
        return "view"  # of parts in one buffer
    if static:
        return static
    if single.type not in MACS.get(single.domain, {}):
        return "other"
    names = (*single.inputs, *single.outputs)
    known = {n: at for n in names if (at := graph.tensors.get(n) or graph.constants.get(n))}
    operands = _operands(single.attributes, single.inputs, single.outputs, known)
    if single.type in CONVOLUTIONS:
        return _convolution_class(single.type, operands)
    return _product_class(single.type, operands)


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
    if "Attention" in operator_type:
        return "matmul"
    right = 3 if operator_type in ("QLinearMatMul", "QGemm") else 1
    sides = (*operands.inputs[:1], *operands.inputs[right : right + 1])
    return "gemm" if any(isinstance(side, Constant) for side in sides) else "matmul"


def _operands(
    attributes: Mapping[str, AttributeValue],
    inputs: Iterable[str],
    outputs: Iterable[str],
    known: Mapping[str, Tensor | Constant],
) -> Operands:
    written = (known[name] for name in outputs if name)
    return Operands(
        attributes,
        tuple(known.get(name) if name else None for name in inputs),
        tuple(tensor for tensor in written if isinstance(tensor, Tensor)),
    )
