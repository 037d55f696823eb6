"""Removes operators that hand on their input unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from parapipe.graph.operator_graph import Operator, OperatorGraph, Tensor

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
    kept: list[Operator] = []
    made = {name for operator in graph.operators for name in operator.outputs}
    outputs = set(graph.outputs)
    for original in graph.operators:
        operator = _renamed(original, alias)
        if not _has_no_effect(operator, graph, values):
            kept.append(operator)
            continue
        source, target = operator.inputs[0], operator.outputs[0]
        if target not in outputs:
            alias[target] = source
        elif source in made and source not in outputs and source not in output_name:
            alias[target] = source
            output_name[source] = target
        else:
            kept.append(operator)
    if len(kept) == len(graph.operators):
        return graph
    tensors = dict(graph.tensors)
    for old, new in output_name.items():
        tensors[new] = replace(graph.tensors[old], name=new)
    operators = tuple(_renamed(operator, output_name) for operator in kept)
    return replace(graph, operators=operators, tensors=tensors)


def _renamed(operator: Operator, new_name: Mapping[str, str]) -> Operator:
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


def _dropout(operator: Operator, _source: Tensor, values: _Values) -> bool:
    training = next(iter(operator.inputs[_TRAINING_MODE:]), "")
    return not training or (training in values and not values[training].any())


def _pad(operator: Operator, _source: Tensor, _values: _Values) -> bool:
    pads = operator.attributes.get("pads", operator.attributes.get("paddings"))
    return isinstance(pads, tuple) and not any(pads)


def _slice(operator: Operator, _source: Tensor, _values: _Values) -> bool:
    steps = operator.attributes.get("steps")
    return not any(operator.inputs[_STEPS:]) or (isinstance(steps, tuple) and {*steps} == {1})


def _transpose(operator: Operator, source: Tensor, _values: _Values) -> bool:
    order = tuple(range(len(source.shape)))
    return operator.attributes.get("perm", order[::-1]) == order


def _resize(operator: Operator, _source: Tensor, _values: _Values) -> bool:
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
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "Dropout": _dropout,
    "Pad": _pad,
    "Slice": _slice,
    "Transpose": _transpose,
}
