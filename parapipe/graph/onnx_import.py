"""ONNX model to operator graph: the passes of import, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed
from parapipe.graph.data_types import attributes_of
from parapipe.graph.input_shapes import declared_types, input_types
from parapipe.graph.model_source import check_sound, check_texts, model_source
from parapipe.graph.operator_graph import (
    Granularity,
    ModelSource,
    NamedTensors,
    Operator,
    OperatorGraph,
    Work,
)
from parapipe.graph.order import has_body, inline_functions
from parapipe.graph.part_marks import PART_TYPES, is_within_buffer
from parapipe.graph.quantised import compute_dtype
from parapipe.graph.resolve import Resolved, resolve
from parapipe.graph.rewrites import absorb_flattens, fold_scales, fuse, remove_without_effect
from parapipe.graph.skim import skim
from parapipe.graph.user_shapes import Shapes, read_user_shapes, shape_text
from parapipe.graph.work import assumption_notes, work_of


def import_model(
    path: Path,
    *,
    granularity: Granularity = "fused",
    dims: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    digests: bool = True,
) -> OperatorGraph:
    """Read an ONNX file as an operator graph, without loading its weights.

    Parameters
    ----------
    path
        The model file. External data are looked for next to it and only hashed.
    granularity, dims, shapes
        As for `import_proto`.
    digests
        Whether to hash the files. A plan needs that; it takes as long as reading every weight.

    Raises
    ------
    ModelError
        If the file or its external data cannot be used, and as for `import_proto`.
    """
    model, source = open_model(path, digests=digests)
    return import_checked(model, source=source, granularity=granularity, dims=dims, shapes=shapes)


def open_model(
    path: Path, *, digests: bool, weights: bool = True
) -> tuple[onnx.ModelProto, ModelSource]:
    """Return a model without the numbers of its weights, its names all text, and its source.

    Parameters
    ----------
    path, digests
        As for `import_model`.
    weights
        Whether to hash external data, too.

    Raises
    ------
    ModelError
        If the file or its external data cannot be used.
    """
    model = skim(path)
    check_texts(model, str(path))
    return model, model_source(path, model, digests=digests, weights=weights)


def import_proto(
    model: onnx.ModelProto,
    *,
    source: ModelSource,
    granularity: Granularity = "fused",
    dims: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
) -> OperatorGraph:
    """Turn an ONNX model into an operator graph.

    What is constant is folded, what computes nothing (Identity, Dropout, a Reshape to the same
    shape, ...) is gone, batch-norm and scales are folded into the convolution before them, and a
    Flatten before a Gemm belongs to the Gemm, which then reads the unflattened tensor. Operators
    that no output needs, and graph outputs that no operator makes, are left out. Small constant
    inputs that were attributes in an earlier opset (Clip's `min`, `axes`, ...) are attributes too.

    Parameters
    ----------
    model
        It is not changed. Large tensors may lack their data.
    granularity
        "onnx": an operator per ONNX node that is left; "fused": activations joined to the
        operator before them, and quantised operators to one on integers, as runtimes do (see
        `fusion` and `quantised`).
    dims
        Sizes by name of dimension.
    shapes
        Shapes by name of graph input, or of a result of which the model does not say it; with a
        data type, as in `("float32", (1, 64))`, for a result of which not even that is known.

    Raises
    ------
    ModelError
        If tensors are damaged, if the graph is not well formed, if dimensions or shapes stay
        unknown, or if `dims` or `shapes` name nothing in the model.
    """
    check_texts(model, source.name)
    return import_checked(model, source=source, granularity=granularity, dims=dims, shapes=shapes)


def import_checked(
    model: onnx.ModelProto,
    *,
    source: ModelSource,
    granularity: Granularity = "fused",
    dims: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    at_most: int | None = None,
) -> OperatorGraph:
    """Do as `import_proto` does with a model of which it is known that names are text."""
    inputs, resolved = resolve_proto(model, source.name, dims=dims, shapes=shapes, at_most=at_most)
    return simplify(graph_of_nodes(resolved, source, inputs), resolved, granularity)


def simplify(graph: OperatorGraph, resolved: Resolved, granularity: Granularity) -> OperatorGraph:
    """Return a graph of ONNX nodes as `import_proto` does, without what runtimes leave out."""
    graph = remove_without_effect(graph, resolved.values)
    graph = fold_scales(graph)
    graph = _drop_unused(absorb_flattens(graph))
    return fuse(graph) if granularity == "fused" else graph


def resolve_proto(
    model: onnx.ModelProto,
    name: str,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    at_most: int | None = None,
) -> tuple[tuple[str, ...], Resolved]:
    """Return a model's inputs, and its nodes with all shapes known and constants folded.

    Parameters
    ----------
    model, dims, shapes
        As for `import_proto`; of the model, that names are text is known.
    name
        What to call the model in messages.
    at_most
        As for `resolve`.

    Raises
    ------
    ModelError
        As `import_proto` does.
    """
    check_sound(model, name)
    model = inline_functions(model, name)
    user_shapes = read_user_shapes(name, shapes or {})
    inputs = input_types(model, name, dims or {}, user_shapes)
    results = {each: shape for each, shape in user_shapes.items() if each not in inputs.types}
    declared = declared_types(model, inputs.sizes)
    try:
        resolved = resolve(model, name, inputs.types, declared, results, at_most=at_most)
    except ModelError:
        if inputs.doubt:
            raise ModelError(inputs.doubt) from None
        raise
    _check_outputs(name, resolved, dims or {}, shapes or {})
    if inputs.doubt and any(0 in tensor.shape for tensor in resolved.tensors.values()):
        raise ModelError(inputs.doubt)
    return tuple(inputs.types), replace(resolved, notes=(*inputs.notes, *resolved.notes))


def _check_outputs(name: str, resolved: Resolved, dims: Mapping[str, int], shapes: Shapes) -> None:
    """Raise a ModelError if a size of 0 that was given leaves nothing of an output."""
    zeros = [f"{each}=0" for each, size in dims.items() if size == 0]
    zeros += [f"{each}={shape_text(shape)}" for each, shape in shapes.items() if 0 in shape]
    tensors: NamedTensors = {**resolved.constants, **resolved.tensors}
    empty = [
        f"'{each}' [{' x '.join(map(str, tensors[each].shape))}]"
        for each in resolved.outputs
        if each in tensors and 0 in tensors[each].shape
    ]
    if zeros and empty:
        raise ModelError(
            f"'{name}' computes nothing with {listed(zeros)}: {listed(empty)} would be empty; give "
            "sizes of at least 1 there"
        )


def graph_of_nodes(
    resolved: Resolved, source: ModelSource, inputs: tuple[str, ...]
) -> OperatorGraph:
    """Return what `resolve_proto` has found as a graph with an operator for each node."""
    tensors: NamedTensors = {**resolved.constants, **resolved.tensors}
    operators = []
    for item in resolved.nodes:
        node = item.node
        attributes = attributes_of(node, resolved.values)
        work = work_of(
            node.domain, node.op_type, attributes, item.reads, item.writes, known=tensors
        )
        work = resolved.body_works.get(node.output[0], work)
        if node.op_type in PART_TYPES and is_within_buffer(
            node, tensors[item.reads[0]].shape, tensors[item.writes[0]].shape
        ):
            work = Work(0, 0, 0)  # it cuts a buffer for parts, or joins their results in one
        operators.append(
            Operator(
                id=item.writes[0],
                name=item.name,
                domain=node.domain,
                type=node.op_type,
                attributes=attributes,
                inputs=item.reads,
                outputs=item.writes,
                work=work,
                members=(item.name,),
                opaque=has_body(node),
                computes_in=compute_dtype(node.domain, node.op_type, item.reads, tensors),
            )
        )
    return OperatorGraph(
        source,
        "onnx",
        tuple(operators),
        resolved.tensors,
        resolved.constants,
        inputs,
        resolved.outputs,
        (*resolved.notes, *assumption_notes(operators)),
        resolved.opsets,
    )


def _drop_unused(graph: OperatorGraph) -> OperatorGraph:
    """Leave out operators that no output needs, and what then has nothing to do with any."""
    required = set(graph.outputs)
    retained: list[Operator] = []
    for operator in reversed(graph.operators):
        if required.intersection(operator.outputs):
            retained.append(operator)
            required.update(operator.inputs)
    operators = tuple(reversed(retained))
    singles = [single for operator in operators for single in (operator, *operator.folded)]
    read = {name for single in singles for name in single.inputs}
    in_use = read | {name for single in singles for name in single.outputs}
    return replace(
        graph,
        operators=operators,
        tensors={name: tensor for name, tensor in graph.tensors.items() if name in in_use},
        constants={name: constant for name, constant in graph.constants.items() if name in in_use},
        inputs=tuple(name for name in graph.inputs if name in read),
    )
