"""Joins what a quantised model says in several nodes to operators that compute with integers.

A quantised model says so in one of two forms. In the form *QDQ*, tensors are integers between a
QuantizeLinear and a DequantizeLinear, and operators stand between them in floating point; a runtime
joins DequantizeLinear, operator and QuantizeLinear to one kernel for integers. In the form
*QOperator*, the kernel is a node of its own, such as QLinearConv. Here both become an operator of
the standard type (Conv) whose tensors are integers, so that one price and one rule of a platform
hold for both. Practice: ONNX Runtime's QDQ selectors, which its execution providers for NPUs share
(`core/optimizer/qdq_transformer/selectors_actions/qdq_selectors.cc` and `shared/utils.cc`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from parapipe.graph.operator_graph import NamedTensors, Operator, OperatorGraph
from parapipe.graph.work import work_of

QUANTISES, DEQUANTISES = "QuantizeLinear", "DequantizeLinear"

_FIRST = (0,)
_BOTH = (0, 1)
_ALL = ()
# Positions of the inputs that must be integers, by type; `_ALL` stands for all of them.
_DATA: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            *("Gather", "GatherElements", "Reshape", "Flatten", "Transpose", "Expand", "Slice"),
            *("Squeeze", "Unsqueeze", "Tile", "Split", "Pad", "DepthToSpace", "SpaceToDepth"),
            *("Resize", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
            *("ReduceMean", "ReduceMin", "ReduceMax", "ReduceProd", "ReduceSum", "Relu", "Clip"),
            *("LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Gelu", "Sigmoid", "Tanh", "Softmax"),
            *("LogSoftmax", "Sqrt", "Exp", "Log", "Abs", "Neg", "Ceil", "Floor", "Round", "Sign"),
            *("Sin", "Cos", "Asin", "Atan", "InstanceNormalization", "LayerNormalization", "LRN"),
            *("LpNormalization", "BatchNormalization"),
        ),
        _FIRST,
    ),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "PRelu"), _BOTH),
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul"), _BOTH),
    **dict.fromkeys(("Concat", "Max", "Min"), _ALL),
    "Where": (1, 2),
}
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
# Types with kernels that give floating point where no QuantizeLinear follows.
_INTEGER_TO_FLOAT = frozenset({"Gemm", "MatMul"})
# What may stand between an operator and its QuantizeLinear: a kernel only has to clamp.
_CLAMPS = frozenset({"Relu", "Clip"})
_CLAMPED = _PRODUCTS | {"Add", "Mul"}

# Types of the form QOperator: the standard type, and where the inputs of that one stand.
_STANDARD: Mapping[tuple[str, str], tuple[str, tuple[int, ...]]] = {
    ("", "QLinearConv"): ("Conv", (0, 3, 8)),
    ("", "QLinearMatMul"): ("MatMul", (0, 3)),
    ("com.microsoft", "QLinearConv"): ("Conv", (0, 3, 8)),
    ("com.microsoft", "QGemm"): ("Gemm", (0, 3, 6)),
    ("com.microsoft", "QLinearAdd"): ("Add", (0, 3)),
    ("com.microsoft", "QLinearMul"): ("Mul", (0, 3)),
    ("com.microsoft", "QLinearWhere"): ("Where", (0, 1, 4)),
    ("com.microsoft", "QLinearConcat"): ("Concat", _ALL),
    **{
        ("com.microsoft", f"QLinear{kind}"): (kind, _FIRST)
        for kind in (
            *("AveragePool", "GlobalAveragePool", "ReduceMean"),
            *("Sigmoid", "LeakyRelu", "Softmax"),
        )
    },
}
_MIXED = ("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QAttention")
_INTEGER_TYPES = frozenset(
    {("", "ConvInteger"), ("", "MatMulInteger"), *_STANDARD}
    | {("com.microsoft", name) for name in _MIXED}
)
# The input of integers that says what a type computes in, where that is not the first.
_TELLING = {"QLinearConcat": 2, "QLinearWhere": 1, "DynamicQuantizeMatMul": 1}


def compute_dtype(
    domain: str, operator_type: str, inputs: Sequence[str], tensors: NamedTensors
) -> str:
    """Return the data type that a kernel for integers computes in; empty for other operators.

    Parameters
    ----------
    inputs
        Names by position.
    tensors
        All tensors and constants that they name.
    """
    if (domain, operator_type) not in _INTEGER_TYPES:
        return ""
    position = _TELLING.get(operator_type, 0)
    data = tensors.get(inputs[position]) if position < len(inputs) else None
    return data.dtype if data else ""


def join_quantised(graph: OperatorGraph) -> OperatorGraph:
    """Join what runtimes compute with integers at one go; all else stays as it is.

    An operator is joined if each activation that it computes with comes from a DequantizeLinear
    that nothing else reads, if its weights are stored as integers, and if a QuantizeLinear to the
    same data type alone reads each result; a Relu, or a Clip with constant bounds, may stand
    before that one. A Gemm or MatMul may also hand out floating point. Scales and zero points must
    be constants. A lone QuantizeLinear or DequantizeLinear, at the border of what is quantised,
    stays an operator, and so does a pair of them with nothing between.
    """
    joined: dict[int, Operator] = {}
    gone: set[int] = set()
    for index, operator in enumerate(graph.operators):
        if (operator.domain, operator.type) in _STANDARD:
            joined[index] = _convert_to_standard(operator, graph)
        elif members := _joinable_members(index, graph):
            joined[index] = _join_members(operator, [graph.operators[v] for v in members], graph)
            gone.update(members)
    if not joined:
        return graph
    operators = tuple(
        joined.get(index, operator)
        for index, operator in enumerate(graph.operators)
        if index in joined or index not in gone
    )
    return replace(graph, operators=operators)


def _convert_to_standard(operator: Operator, graph: OperatorGraph) -> Operator:
    """Return an operator of the form QOperator as the standard one, unless scales are computed."""
    kind, positions = _STANDARD[operator.domain, operator.type]
    count = len(operator.inputs)
    chosen = positions or range(2, count, 3)
    others = (name for at, name in enumerate(operator.inputs) if at not in chosen)
    if any(name in graph.tensors for name in others):
        return operator
    inputs = [operator.inputs[at] if at < count else "" for at in chosen]
    return _integer_operator(replace(operator, domain="", type=kind), [operator], inputs, graph)


def _join_members(operator: Operator, parts: Sequence[Operator], graph: OperatorGraph) -> Operator:
    """Join an operator with the DequantizeLinears before it and what is behind it."""
    integers = {part.outputs[0]: part.inputs[0] for part in parts if part.type == DEQUANTISES}
    inputs = [integers.get(name, name) for name in operator.inputs]
    outputs = tuple(part.outputs[0] for part in parts if part.type == QUANTISES)
    main = replace(operator, outputs=outputs or operator.outputs)
    return _integer_operator(main, parts, inputs, graph)


def _integer_operator(
    main: Operator, parts: Sequence[Operator], inputs: Sequence[str], graph: OperatorGraph
) -> Operator:
    """Return the operator on integers that parts make up.

    Parameters
    ----------
    main
        It has the standard type, and the results of the whole.
    inputs
        Tensors of integers and constants, in the positions of the standard type.
    """
    names = (*inputs, *main.outputs)
    tensors = {n: at for n in names if (at := graph.tensors.get(n) or graph.constants.get(n))}
    work = work_of("", main.type, main.attributes, inputs, main.outputs, known=tensors)
    dequantised = [part.inputs[0] for part in parts if part.type == DEQUANTISES]
    read = [graph.tensors[name].dtype for name in dequantised]
    stored = [graph.constants[name].stored for name in inputs if name in graph.constants]
    return replace(
        main,
        id=main.outputs[0],
        inputs=tuple(inputs),
        work=main.work if main.work.rule else work,
        members=tuple(name for part in parts for name in part.members),
        parts=tuple(parts),
        computes_in=main.computes_in or next(filter(None, (*read, *stored))),
    )


def _joinable_members(index: int, graph: OperatorGraph) -> list[int]:
    """Return the operators that are joined with one, in order; none if it is not joined."""
    operator = graph.operators[index]
    if operator.domain or operator.type not in _DATA or operator.folded:
        return []
    positions = _DATA[operator.type] or range(len(operator.inputs))
    operands = [operator.inputs[at] for at in positions if at < len(operator.inputs)]
    sources = [_dequantised_source(name, index, graph) for name in operands if name]
    dtypes = [dtype for dtype, _ in sources]
    read = [dtype for dtype, maker in sources if maker >= 0] or dtypes
    if "" in dtypes or not (operator.type in _PRODUCTS or len(set(dtypes)) == 1):
        return []
    behind = _quantisers_behind(index, read[0], graph)
    if behind is None and operator.type not in _INTEGER_TO_FLOAT:
        return []
    return [*sorted(maker for _, maker in sources if maker >= 0), index, *(behind or ())]


def _dequantised_source(name: str, reader: int, graph: OperatorGraph) -> tuple[str, int]:
    """Return the data type of the integers behind an operand, and the DequantizeLinear.

    The type is empty if the operand is none of integers; the index is -1 for a constant.
    """
    if name in graph.constants:
        return graph.constants[name].stored, -1
    maker = graph.producer.get(name, -1)
    if maker < 0 or graph.operators[maker].type != DEQUANTISES or graph.sole_reader(name) != reader:
        return "", -1
    before = graph.operators[maker]
    scaled = _has_constant_parameters(before, graph)
    return graph.tensors[before.inputs[0]].dtype if scaled else "", maker


def _quantisers_behind(index: int, dtype: str, graph: OperatorGraph) -> list[int] | None:
    """Return the operators that quantise each result of one to a type; None if one is not."""
    operator = graph.operators[index]
    quantisers: list[int] = []
    for name in filter(None, operator.outputs):
        reader = graph.sole_reader(name)
        if reader is not None and _is_clamp(graph.operators[reader], operator, graph):
            quantisers.append(reader)
            reader = graph.sole_reader(graph.operators[reader].outputs[0])
        if reader is None or not _is_quantiser(graph.operators[reader], dtype, graph):
            return None
        quantisers.append(reader)
    return quantisers


def _is_quantiser(operator: Operator, dtype: str, graph: OperatorGraph) -> bool:
    """Whether an operator is a QuantizeLinear to a data type."""
    fits = operator.type == QUANTISES and graph.tensors[operator.outputs[0]].dtype == dtype
    return fits and _has_constant_parameters(operator, graph)


def _is_clamp(operator: Operator, before: Operator, graph: OperatorGraph) -> bool:
    """Whether an operator clamps what the one before it makes, as its kernel can."""
    fits = operator.type in _CLAMPS and before.type in _CLAMPED
    return fits and _has_constant_parameters(operator, graph)


def _has_constant_parameters(operator: Operator, graph: OperatorGraph) -> bool:
    """Whether all inputs but the first, such as scales, are constants."""
    return all(name in graph.constants for name in operator.inputs[1:] if name)
