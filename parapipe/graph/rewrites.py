"""Operators folded into neighbours, removed, or fused, as runtimes do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from parapipe.graph.operator_graph import Operator, OperatorGraph, Tensor, Work
from parapipe.graph.quantised import join_quantised

_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm"})
_BATCH_NORM_INPUTS = 5
_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze"})
_MATRIX_RANK = 2


def fold_scales(graph: OperatorGraph) -> OperatorGraph:
    """Fold constant per-channel arithmetic into convolutions and Gemms with constant weights.

    Folded are BatchNormalization (inference), and Mul and Add with a constant that is a scalar or
    has one element per channel, where nothing else reads the convolution's result. The operator
    takes over the name of the last result and lists in `folded` what vanished; the tensors
    between stay in `tensors`. ONNX Runtime (ConvBNFusion, ConvMulFusion, ConvAddFusion) and ARM
    Compute Library deploy networks this way.
    """
    result: list[Operator] = []
    place: dict[str, int] = {}  # position in `result` by what the operator there makes
    for index, operator in enumerate(graph.operators):
        source = _scaled_tensor(operator, graph)
        into = place.get(source, -1)
        if into < 0 or graph.sole_reader(source) != index or not _absorbs(result[into], graph):
            place.update(dict.fromkeys(operator.outputs, len(result)))
            result.append(operator)
            continue
        before = result[into]
        result[into] = replace(
            before,
            id=operator.outputs[0],
            outputs=operator.outputs,
            members=(*before.members, *operator.members),
            folded=(*before.folded, operator),
        )
        place[operator.outputs[0]] = into
    return replace(graph, operators=tuple(result)) if len(result) < len(graph.operators) else graph


def _scaled_tensor(operator: Operator, graph: OperatorGraph) -> str:
    """Return the tensor to which an operator applies constants per channel; empty for others."""
    if operator.domain or len(operator.outputs) != 1:
        return ""
    if operator.type == "BatchNormalization":
        plain = not operator.attributes.get("training_mode", 0)
        spatial = operator.attributes.get("spatial", 1)
        has_constants = all(name in graph.constants for name in operator.inputs[1:])
        complete = len(operator.inputs) == _BATCH_NORM_INPUTS
        return operator.inputs[0] if plain and spatial and has_constants and complete else ""
    if operator.type in ("Mul", "Add"):
        for source, constant in (operator.inputs, operator.inputs[::-1]):
            if source in graph.tensors and constant in graph.constants:
                target = graph.tensors[operator.outputs[0]].shape
                same = graph.tensors[source].shape == target
                shape = graph.constants[constant].shape
                axes = enumerate(shape, len(target) - len(shape))
                return source if same and all(n == 1 for at, n in axes if at != 1) else ""
    return ""


def _absorbs(operator: Operator, graph: OperatorGraph) -> bool:
    """Whether scales can be folded into an operator: its weights are constant."""
    constant = all(name in graph.constants for name in operator.inputs[1:] if name)
    return constant and operator.type in _WEIGHTED and not operator.domain


def absorb_flattens(graph: OperatorGraph) -> OperatorGraph:
    """Drop views `[n, ...] -> [n, rest]` that only a Gemm (or a MatMul with weights) reads.

    The Gemm then reads the unflattened tensor and lists the view's node among its members. ARM
    Compute Library's fully connected layer takes such a tensor as it is, so a runtime that needs
    the flat one adds the view, which costs nothing, again.
    """
    absorbed: dict[str, Operator] = {}
    retained = []
    for operator in graph.operators:
        reader = graph.sole_reader(operator.outputs[0])
        if (
            reader is not None
            and _is_flatten(operator, graph)
            and _reads_as_matrix(graph.operators[reader], operator.outputs[0], graph)
        ):
            absorbed[operator.outputs[0]] = operator
        elif view := absorbed.get(next(iter(operator.inputs), "")):
            inputs = (view.inputs[0], *operator.inputs[1:])
            members = (*view.members, *operator.members)
            retained.append(replace(operator, inputs=inputs, members=members))
        else:
            retained.append(operator)
    return replace(graph, operators=tuple(retained)) if absorbed else graph


def _is_flatten(operator: Operator, graph: OperatorGraph) -> bool:
    if operator.type not in _VIEWS or operator.domain or operator.inputs[0] not in graph.tensors:
        return False
    source = graph.tensors[operator.inputs[0]].shape
    target = graph.tensors[operator.outputs[0]].shape
    return len(source) > _MATRIX_RANK and target == (source[0], prod(source[1:]))


def _reads_as_matrix(operator: Operator, name: str, graph: OperatorGraph) -> bool:
    if operator.type not in ("Gemm", "MatMul") or operator.domain:
        return False
    left, right = operator.inputs[:2]
    if left != name or right not in graph.constants or operator.inputs.count(name) != 1:
        return False
    if operator.type == "MatMul":
        return len(graph.constants[right].shape) == _MATRIX_RANK
    return not operator.attributes.get("transA", 0)


_Values = Mapping[str, NDArray[np.generic]]
_TRAINING_MODE = 2  # position of Dropout's input since opset 12
_STEPS = 4  # position of Slice's input since opset 10


def remove_without_effect(graph: OperatorGraph, values: _Values) -> OperatorGraph:
    """Remove operators whose output equals their input, and rename their readers' inputs.

    Names of graph outputs survive: where such an operator makes one, its producer gets that name.
    An operator between a graph input, or another graph output, and a graph output stays.

    Parameters
    ----------
    values
        Small constants by name.
    """
    alias: dict[str, str] = {}  # what a removed operator handed on, by the name it gave it
    output_name: dict[str, str] = {}  # names of graph outputs, by what their producers called them
    retained: list[Operator] = []
    produced = {name for operator in graph.operators for name in operator.outputs}
    outputs = set(graph.outputs)
    for original in graph.operators:
        operator = _rename_tensors(original, alias)
        if not _has_no_effect(operator, graph, values):
            retained.append(operator)
            continue
        source, target = operator.inputs[0], operator.outputs[0]
        if target not in outputs:
            alias[target] = source
        elif source in produced and source not in outputs and source not in output_name:
            alias[target] = source
            output_name[source] = target
        else:
            retained.append(operator)
    if len(retained) == len(graph.operators):
        return graph
    tensors = dict(graph.tensors)
    for old, new in output_name.items():
        tensors[new] = replace(graph.tensors[old], name=new)
    operators = tuple(_rename_tensors(operator, output_name) for operator in retained)
    return replace(graph, operators=operators, tensors=tensors)


def _rename_tensors(operator: Operator, new_name: Mapping[str, str]) -> Operator:
    inputs = tuple(new_name.get(name, name) for name in operator.inputs)
    outputs = tuple(new_name.get(name, name) for name in operator.outputs)
    if inputs == operator.inputs and outputs == operator.outputs:
        return operator
    return replace(operator, id=outputs[0], inputs=inputs, outputs=outputs)


def _has_no_effect(operator: Operator, graph: OperatorGraph, values: _Values) -> bool:
    rule = _RULES.get(operator.type) if not operator.domain else None
    source = graph.tensors.get(operator.inputs[0]) if operator.inputs else None
    if rule is None or source is None or len(operator.outputs) != 1:
        return False
    target = graph.tensors[operator.outputs[0]]
    same = source.shape == target.shape and source.dtype == target.dtype
    return same and rule(operator, source, values)


def _drops_nothing(operator: Operator, _source: Tensor, values: _Values) -> bool:
    training = next(iter(operator.inputs[_TRAINING_MODE:]), "")
    return not training or (training in values and not values[training].any())


def _pads_nothing(operator: Operator, _source: Tensor, _values: _Values) -> bool:
    pads = operator.attributes.get("pads", operator.attributes.get("paddings"))
    return isinstance(pads, tuple) and not any(pads)


def _slices_in_order(operator: Operator, _source: Tensor, _values: _Values) -> bool:
    steps = operator.attributes.get("steps")
    return not any(operator.inputs[_STEPS:]) or (isinstance(steps, tuple) and {*steps} == {1})


def _keeps_axes(operator: Operator, source: Tensor, _values: _Values) -> bool:
    order = tuple(range(len(source.shape)))
    return operator.attributes.get("perm", order[::-1]) == order


def _keeps_size(operator: Operator, _source: Tensor, _values: _Values) -> bool:
    plain = operator.attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize"
    scales = operator.attributes.get("scales")
    return plain and (not isinstance(scales, tuple) or all(scale == 1 for scale in scales))


# The shape and the type are known to be the same when a rule is asked.
_RULES: Mapping[str, Callable[[Operator, Tensor, _Values], bool]] = {
    **dict.fromkeys(("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"), lambda *_: True),
    **dict.fromkeys(("Expand", "Tile"), lambda *_: True),
    **dict.fromkeys(
        ("Concat", "Sum", "Mean", "Max", "Min"), lambda operator, *_: len(operator.inputs) == 1
    ),
    # float8 is the name of four formats
    **dict.fromkeys(("Cast", "CastLike"), lambda _operator, source, _: source.dtype != "float8"),
    **dict.fromkeys(("Resize", "Upsample"), _keeps_size),
    "Dropout": _drops_nothing,
    "Pad": _pads_nothing,
    "Slice": _slices_in_order,
    "Transpose": _keeps_axes,
}


_ACTIVATIONS = frozenset(
    {"Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu"}
)
_ACTIVATED = frozenset({"Conv", "Gemm", "BatchNormalization", "Add"})
_OPERANDS_OF_ADD = 2


def fuse(graph: OperatorGraph) -> OperatorGraph:
    """Join operators that runtimes run at one go; a graph that is fused already stays as it is.

    An activation (Relu, Clip with constant bounds, LeakyRelu, Sigmoid, Tanh, HardSwish,
    HardSigmoid, Elu) joins the Conv, Gemm, BatchNormalization, Add, Sum of two, or MatMul with
    constant weights before it; an Add of one constant per column joins such a MatMul as its bias.
    The condition is that nothing else reads the tensor between, and that it is no graph output.
    That tensor stays in `tensors`. What a quantised model computes with integers is joined before
    (see `quantised`), and no activation joins it.

    Practice: ARM Compute Library's graph API fuses activations into convolution, depthwise
    convolution, fully connected and batch-norm layers, and, on OpenCL, into element-wise ones
    (`NodeFusionMutator`); ONNX Runtime fuses Conv and Gemm with them (ConvActivationFusion,
    GemmActivationFusion) and MatMul with its bias (MatMulAddFusion). Neither fuses into
    ConvTranspose, so this does not either.
    """
    if graph.granularity == "fused":
        return graph
    graph = join_quantised(graph)
    runs: list[list[Operator]] = []
    run_of: dict[str, list[Operator]] = {}  # by the tensor that its last operator makes
    for index, operator in enumerate(graph.operators):
        reads = graph.reads(operator)
        run = run_of.get(reads[0]) if len(reads) == 1 else None
        if run and graph.sole_reader(reads[0]) == index and _can_join(operator, run[-1], graph):
            run.append(operator)
        else:
            run = [operator]
            runs.append(run)
        run_of[operator.outputs[0]] = run
    operators = tuple(run[0] if len(run) == 1 else join_parts(run) for run in runs)
    return replace(graph, granularity="fused", operators=operators)


def _can_join(operator: Operator, last: Operator, graph: OperatorGraph) -> bool:
    """Whether an operator that alone reads what `last` makes may join it."""
    if operator.domain or last.domain or operator.computes_in or last.computes_in:
        return False
    weights = last.type == "MatMul" and last.inputs[1] in graph.constants
    if operator.type == "Add":
        return weights and _is_bias(operator, graph)
    bounds_known = all(name in graph.constants for name in operator.inputs[1:] if name)
    if operator.type not in _ACTIVATIONS or not bounds_known:
        return False
    if last.type == "Sum":
        return len(last.inputs) == _OPERANDS_OF_ADD
    return weights or last.type in _ACTIVATED


def _is_bias(operator: Operator, graph: OperatorGraph) -> bool:
    """Whether an Add adds one constant per column (last axis), and no more."""
    shapes = [graph.constants[name].shape for name in operator.inputs if name in graph.constants]
    columns = graph.tensors[operator.outputs[0]].shape[-1:]
    return any(shape[-1:] == columns and set(shape[:-1]) <= {1} for shape in shapes)


def join_parts(parts: Sequence[Operator]) -> Operator:
    """Join parts that are run one after the other, each reading one before."""
    inside = {name for part in parts[:-1] for name in part.outputs}
    return replace(
        parts[0],
        id=parts[-1].id,
        inputs=(
            *parts[0].inputs,
            *(name for part in parts[1:] for name in part.inputs if name not in inside and name),
        ),
        outputs=parts[-1].outputs,
        work=Work.total([part.work for part in parts]),
        members=tuple(name for part in parts for name in part.members),
        parts=tuple(parts),
        folded=tuple(folded for part in parts for folded in part.folded),
    )
