"""Shapes of the graph inputs: from the file, from the user, or assumed.

A batch is one frame. Another dimension is taken as 1 only where it is the one left open, no height,
width or length, and the whole model works out with it. The rest is asked for, by the model's own
names.

The user may give results shapes too, with a data type where nothing else says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import did_you_mean, listed, listed_sentences
from parapipe.graph.data_types import dtype_name, shape_of, unwrap
from parapipe.graph.required_sizes import required_sizes
from parapipe.graph.user_shapes import UserShape

Dims = Sequence[int | str]  # a size, the name of a dimension, or "?"
UNNAMED = "?"

_BATCH = re.compile(r"(^|[._-])(n|b|bs|batch|batch_?size|n_?batch|num_?batch)$", re.IGNORECASE)
_SIDE = re.compile(r"height|width|(^|_)[hw]($|_)|rows|cols", re.IGNORECASE)
_LENGTH = re.compile(r"length|seq|sample|frame|time|audio|token", re.IGNORECASE)
_PICTURE = 4  # axes of a batch of pictures
_PAST = re.compile(r"past|cache", re.IGNORECASE)
_TOTAL = re.compile(r"total", re.IGNORECASE)
_EXAMPLE_PICTURE, _EXAMPLE = 640, 128


@dataclass(slots=True)
class AssumedShapes:
    """Shapes of inputs with what is assumed of them.

    Parameters
    ----------
    shapes
        By name of input; None where not even the number of dimensions is known.
    sizes
        Of named dimensions.
    doubt
        What to ask for if the model does not work out with the one dimension left taken as 1.
    notes
        A sentence for each assumption.
    """

    shapes: dict[str, Dims | None]
    sizes: dict[str, int] = field(default_factory=dict)
    doubt: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def unknown(self) -> dict[str, Dims | None]:
        """The inputs of which something is still not known."""
        return {
            name: shape
            for name, shape in self.shapes.items()
            if shape is None or not all(isinstance(dim, int) for dim in shape)
        }

    def take(self, name: str, axis: int, taken: int = 1, why: str = "") -> None:
        """Give a dimension a size, wherever its name stands.

        Parameters
        ----------
        why
            What leaves no choice; others may be given, if nothing does.
        """
        shape = self.shapes[name] or ()
        dim = shape[axis]
        if isinstance(dim, int):
            return
        if dim == UNNAMED:
            self.shapes[name] = [*shape[:axis], taken, *shape[axis + 1 :]]
            other = f"; give another by --shape {name}={_example_shape(self.shapes[name])}"
            self.notes.append(f"dimension {axis + 1} of '{name}' is taken as {taken}{why or other}")
            return
        self.sizes[dim] = taken
        self.shapes = {
            each: dims and [taken if size == dim else size for size in dims]
            for each, dims in self.shapes.items()
        }
        other = f"; give another by --dim {dim}=…"
        self.notes.append(f"dimension '{dim}' is taken as {taken}{why or other}")


def assume_sizes(
    shapes: Mapping[str, Dims | None],
    required: Mapping[tuple[str, int], tuple[int, str]] = MappingProxyType({}),
    known: Mapping[str, int] = MappingProxyType({}),
) -> AssumedShapes:
    """Take what the model requires, batches as 1, sums, and the one dimension left, if just one.

    Parameters
    ----------
    required
        As of `required_sizes`.
    known
        Sizes by name of dimension, of which others are the sum.
    """
    result = AssumedShapes(dict(shapes))
    for name, shape in shapes.items():
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str) and (parts := _summands(dim, known)):
                why = f", {' and '.join(parts)} together; give another by --dim '{dim}=…'"
                result.take(name, axis, sum(known[part] for part in parts), why)
    for (name, axis), (size, by) in required.items():
        result.take(name, axis, size, f", as operator '{by}' requires it")
    for name, shape in shapes.items():
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str) and _is_batch(dim, axis, len(shape or ())):
                result.take(name, axis)
    left = {
        (dim, "" if dim != UNNAMED else f"{name} {axis}"): (name, axis, len(shape or ()))
        for name, shape in result.unknown.items()
        for axis, dim in enumerate(shape or ())
        if isinstance(dim, str)
    }
    if len(left) == 1 and None not in result.shapes.values():
        (((dim, _), (name, axis, rank)),) = left.items()
        if rank < _PICTURE and not any(each.search(dim) for each in (_SIDE, _LENGTH, _TOTAL)):
            result.doubt = request_text(result.unknown)
            result.take(name, axis)
    return result


def request_text(
    shapes: Mapping[str, Dims | None], sizes: Mapping[str, int] = MappingProxyType({})
) -> str:
    """Say which dimensions of which inputs are unknown, and how to give them, by their names.

    Parameters
    ----------
    sizes
        Of dimensions that are known.
    """
    texts = [
        f"'{name}' [{' x '.join(map(str, shape)) if shape is not None else 'any rank'}]"
        for name, shape in shapes.items()
    ]
    examples = _example_sizes(shapes, sizes)
    options = [f"`shapes` {name}={_example_shape(each, examples)}" for name, each in shapes.items()]
    unnamed = None in shapes.values() or any(UNNAMED in (each or ()) for each in shapes.values())
    asked = [dim for dim in examples if dim not in sizes and not _summands(dim, examples)]
    hint = " ".join(f"`dims` {dim}={examples[dim]}" for dim in asked)
    return (
        f"inputs with unknown dimensions: {listed(texts)}; give their sizes, as in "
        f"{' '.join(options)}{'' if unnamed else f', or by {hint}'}"
    )


def _example_sizes(shapes: Mapping[str, Dims | None], known: Mapping[str, int]) -> dict[str, int]:
    """Return a size for each named dimension that is unknown; all of a cache is its past and new.

    Parameters
    ----------
    known
        Sizes of dimensions, which are in the result, too.
    """
    sizes = {
        dim: _EXAMPLE if _PAST.search(dim) else _guess(axis, len(shape or ()))
        for shape in shapes.values()
        for axis, dim in enumerate(shape or ())
        if isinstance(dim, str) and dim != UNNAMED
    } | {**known}
    for dim in [each for each in sizes if each not in known]:
        if parts := _summands(dim, sizes):
            sizes[dim] = sum(sizes[part] for part in parts)
    return sizes


def _summands(dim: str, names: Collection[str]) -> list[str]:
    """Return the dimensions that one is the sum of, as its name says; none if it does not.

    Exporters write `past_sequence_length + sequence_length`, or `total_sequence_length`.
    """
    parts = [part.strip() for part in dim.split("+")]
    if _TOTAL.search(dim):
        others = [each for each in names if not _TOTAL.search(each) and "+" not in each]
        past = [each for each in others if _PAST.search(each)]
        new = [each for each in others if _LENGTH.search(each) and each not in past]
        parts = past + new if len(past) == len(new) == 1 else []
    return parts if len(parts) > 1 and all(part in names for part in parts) else []


def _is_batch(dim: str, axis: int, rank: int) -> bool:
    return bool(_BATCH.search(dim)) or (axis == 0 and rank > 1 and not _SIDE.search(dim))


def _guess(axis: int, rank: int) -> int:
    if axis == 0:
        return 1
    return _EXAMPLE_PICTURE if rank == _PICTURE and axis > 1 else _EXAMPLE


def _example_shape(shape: Dims | None, named: Mapping[str, int] = MappingProxyType({})) -> str:
    """Write a shape with sizes in place of what is unknown."""
    if shape is None:
        return "1x3x224x224"
    sizes = (
        dim if isinstance(dim, int) else named.get(dim, _guess(axis, len(shape)))
        for axis, dim in enumerate(shape)
    )
    return "x".join(map(str, sizes))


@dataclass(frozen=True, slots=True)
class Inputs:
    """The graph inputs.

    Parameters
    ----------
    types
        By name, with known shapes.
    sizes
        Of named dimensions.
    notes
        A sentence for each size that was assumed.
    doubt
        What to refuse the model with if it does not work out as assumed; empty if it must.
    """

    types: dict[str, onnx.TypeProto]
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()
    doubt: str = ""


def input_types(
    model: onnx.ModelProto,
    model_name: str,
    dims: Mapping[str, int],
    user_shapes: Mapping[str, UserShape],
) -> Inputs:
    """Return the type of every graph input, with a known shape, and the sizes of named dimensions.

    A dimension of the same name has the same size everywhere, so what is given for one input
    holds for the whole graph; `assume_sizes` says what holds for others. Initializers that are
    also listed as inputs (IR version < 4) are no inputs.

    Parameters
    ----------
    dims
        Sizes by name of dimension.
    user_shapes
        Shapes by name of input, of which they may contradict no size or type that the file states;
        names of results are left to others. A size of 0, which some exporters write for an unknown
        one, may be given too.

    Raises
    ------
    ModelError
        If dimensions stay unknown, if `dims` or `user_shapes` name nothing in the model, contradict
        each other or have another rank, or if an input is no dense tensor.
    """
    initializers = {tensor.name for tensor in model.graph.initializer}
    initializers |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    kinds = {value.name: value.type for value in inputs}
    tensors = {name: unwrap(kind).tensor_type for name, kind in kinds.items()}
    if wrong := [f"'{each}'" for each in tensors if dtype_name(tensors[each].elem_type) is None]:
        raise ModelError(
            f"'{model_name}' has inputs that are no dense tensors of a known type "
            f"({listed(wrong)}): export it with tensors as inputs"
        )
    declared = {name: _tensor_dims(tensor) for name, tensor in tensors.items()}
    results = {name for node in model.graph.node for name in node.output}
    shapes = {name: each.shape for name, each in user_shapes.items() if name not in results}
    sizes = _named_sizes(model_name, declared, dims, shapes, _wrong_types(tensors, user_shapes))
    fixed = {name: _fill_in_sizes(shapes.get(name, declared[name]), sizes) for name in declared}
    result = assume_sizes(fixed, required_sizes(model, fixed), sizes)
    if result.unknown:
        raise ModelError(f"'{model_name}' has {request_text(result.unknown, sizes)}")
    types: dict[str, onnx.TypeProto] = {}
    for name, kind in kinds.items():
        dense = onnx.helper.make_tensor_type_proto(tensors[name].elem_type, result.shapes[name])
        optional = kind.HasField("optional_type")
        types[name] = onnx.helper.make_optional_type_proto(dense) if optional else dense
    doubt = result.doubt and f"'{model_name}' has {result.doubt}"
    return Inputs(types, sizes | result.sizes, tuple(result.notes), doubt)


def declared_types(model: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, onnx.TypeProto]:
    """Return the types that the file declares for results, with `sizes` for named dimensions."""
    types: dict[str, onnx.TypeProto] = {}
    for value in (*model.graph.value_info, *model.graph.output):
        kind = deepcopy(value.type)
        if kind.HasField("tensor_type"):
            for dim in kind.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
        # A graph output may stand in value_info too, and only one of the two be complete.
        if shape_of(types.get(value.name)) is None:
            types[value.name] = kind
    return types


def _wrong_types(
    tensors: Mapping[str, onnx.TypeProto.Tensor], user_shapes: Mapping[str, UserShape]
) -> list[str]:
    """Return where a given data type contradicts that of an input."""
    return [
        f"{name} is {dtype_name(tensor.elem_type)} in the file, not {dtype_name(requested)}"
        for name, tensor in tensors.items()
        if name in user_shapes
        and (requested := user_shapes[name].element_type)
        not in (tensor.elem_type, onnx.TensorProto.UNDEFINED)
    ]


def _fill_in_sizes(declared: Dims | None, sizes: Mapping[str, int]) -> Dims | None:
    if declared is None:
        return None
    return [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in declared]


def _tensor_dims(tensor: onnx.TypeProto.Tensor) -> Dims | None:
    """Return an input's dimensions; None if even their number is unknown."""
    if not tensor.HasField("shape"):
        return None
    # Exporters write an unknown size also as -1.
    return [
        dim.dim_value
        if dim.HasField("dim_value") and dim.dim_value >= 0
        else dim.dim_param or UNNAMED
        for dim in tensor.shape.dim
    ]


def _named_sizes(
    model_name: str,
    by_input: Mapping[str, Dims | None],
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    mistakes: Sequence[str],
) -> dict[str, int]:
    """Return the size of each named dimension that is given; ModelError tells all `mistakes`."""
    names = sorted({dim for row in by_input.values() for dim in row or () if isinstance(dim, str)})
    _check_names(model_name, "dimension", list(dims), [name for name in names if name != UNNAMED])
    _check_names(model_name, "input", list(shapes), sorted(by_input))
    errors = (f"{name}={size} is no size" for name, size in dims.items() if size < 0)
    mistakes = [*mistakes, *errors]
    sizes = dict(dims)
    for name, shape in shapes.items():
        declared = by_input[name]
        if any(size < 0 for size in shape):
            mistakes.append(f"{name}={'x'.join(map(str, shape))} has a dimension below 0")
        elif declared is not None and len(declared) != len(shape):
            mistakes.append(f"{name} has {len(declared)} dimensions, not {len(shape)}")
        else:
            mistakes += _find_contradictions(name, declared or (), shape, sizes)
    if mistakes:
        raise ModelError(
            f"the shapes given for '{model_name}' are wrong: {listed_sentences(mistakes)}"
        )
    return sizes


def _find_contradictions(
    name: str, declared: Sequence[int | str], shape: Sequence[int], sizes: dict[str, int]
) -> list[str]:
    """Return where a given shape contradicts the file or `sizes`, which learns new names."""
    mistakes = []
    for dim, size in zip(declared, shape, strict=False):
        if isinstance(dim, str):
            if dim != UNNAMED and sizes.setdefault(dim, size) != size:
                mistakes.append(f"{dim} is both {sizes[dim]} and {size}")
        elif dim not in (0, size):
            stated = " x ".join(map(str, declared))
            mistakes.append(f"{name} is [{stated}] in the file, not {'x'.join(map(str, shape))}")
            break
    return mistakes


def _check_names(model_name: str, what: str, requested: list[str], existing: list[str]) -> None:
    wrong = [name for name in requested if name not in existing]
    if wrong:
        have = f"it has {listed(existing)}" if existing else "it has none that is named"
        meant = did_you_mean(wrong[0], existing)
        raise ModelError(f"'{model_name}' has no {what} named {listed(wrong)}: {have}{meant}")
