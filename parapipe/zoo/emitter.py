"""Writes an ONNX graph operator by operator, with seeded weights, and its file piece by piece.

Protobuf writes fields by ascending numbers, and what has a length as tag, length and content.
Sources: protobuf's "Encoding" page, and `onnx.proto` for the numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from math import prod, sqrt
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

IMAGENET_CLASSES = 1000
_IR_VERSION = 8
_OPSET = 17  # the first with LayerNormalization
_CONTRIBUTED = "com.microsoft"
_BIAS_LIMIT = 0.05
_MOST_INTEGERS = 64

Shape = tuple[int, ...]
Pads = tuple[int, int, int, int]
Kernel = int | tuple[int, int]
WeightMaker = Callable[[], NDArray[np.float32]]
"""Makes the numbers of a weight."""

_weight_makers: ContextVar[dict[str, WeightMaker] | None] = ContextVar("left out", default=None)


@contextmanager
def without_weights() -> Iterator[Mapping[str, WeightMaker]]:
    """Within it, weights have names, shapes and types only; yields what makes their numbers."""
    makers: dict[str, WeightMaker] = {}
    token = _weight_makers.set(makers)
    try:
        yield makers
    finally:
        _weight_makers.reset(token)


class Emitter:
    """A graph of float32 tensors that grows by one operator per call.

    Each method adds one operator and returns the name of its output, which is the name of the
    operator too. Images are NCHW; `pads` are those of the top, left, bottom and right edge.

    Parameters
    ----------
    name
        Of the graph; the same name and layers give the same weights.
    inputs
        Shapes by name.
    element_types
        By name of the inputs that are not float32; one of TensorProto's numbers.
    weightless
        A ConstantOfShape node stands in for each weight, all elements the middle of its range: the
        same network in a few kilobytes, which still runs.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Shape],
        *,
        element_types: Mapping[str, int] | None = None,
        weightless: bool = False,
    ) -> None:
        self.name = name
        self.weightless = weightless
        self._inputs = tuple(inputs)
        self._types: dict[str, onnx.TypeProto] = {}
        for input_name, shape in inputs.items():
            element_type = (element_types or {}).get(input_name, TensorProto.FLOAT)
            self._types[input_name] = helper.make_tensor_type_proto(element_type, shape)
        self._integers: dict[str, TensorProto] = {}  # constants from which shapes may follow
        self._nodes: list[onnx.NodeProto] = []
        # Weights go into the model at once: they may be large, and each copy would count.
        self._model = helper.make_model(
            helper.make_graph([], name, [], []),
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="parapipe",
        )

    def shape(self, tensor: str) -> Shape:
        """Return the shape of a tensor made so far."""
        return tuple(dim.dim_value for dim in self._types[tensor].tensor_type.shape.dim)

    def operator(
        self,
        operator_type: str,
        inputs: Sequence[str],
        name: str,
        *,
        outputs: Sequence[str] = (),
        **attributes: int | float | str | Sequence[int] | TensorProto,
    ) -> str:
        """Add any operator, whose outputs' shapes follow by ONNX's own inference.

        Parameters
        ----------
        outputs
            Their names, where there is not one that is called like the operator.
        """
        node = helper.make_node(operator_type, inputs, outputs or [name], name)
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        self._nodes.append(node)
        reads = [read for read in inputs if read]
        inferred = onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(operator_type, _OPSET),
            node,
            {read: self._types[read] for read in reads},
            {read: self._integers[read] for read in reads if read in self._integers},
            opset_imports=list(self._model.opset_import),
            ir_version=_IR_VERSION,
        )
        self._types.update(inferred)
        return name

    def contributed(
        self,
        operator_type: str,
        inputs: Sequence[str],
        name: str,
        **attributes: int | float | str,
    ) -> str:
        """Add an operator of ONNX Runtime's own, whose output has the type of its first input."""
        node = helper.make_node(operator_type, inputs, [name], name, domain=_CONTRIBUTED)
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        self._nodes.append(node)
        self._types[name] = self._types[inputs[0]]
        if all(each.domain != _CONTRIBUTED for each in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(_CONTRIBUTED, 1))
        return name

    def split(self, x: str, name: str, lengths: Sequence[int], *, axis: int) -> list[str]:
        """Cut a tensor into parts of these lengths along an axis, named `name/0`, `name/1`, ..."""
        parts = [f"{name}/{number}" for number in range(len(lengths))]
        part_lengths = self.integers(f"{name}/lengths", lengths)
        self.operator("Split", [x, part_lengths], name, outputs=parts, axis=axis)
        return parts

    def weights(self, name: str, shape: Shape, limit: float, *, middle: float = 0) -> str:
        """Add a constant of uniform random numbers less than `limit` away from `middle`.

        The numbers come from the bits of PCG64, which NumPy promises never to change, seeded by
        the names of graph and constant.
        """
        if self.weightless:
            extents = self.integers(f"{name}/shape", shape)
            fill = numpy_helper.from_array(np.array([middle], np.float32))
            return self.operator("ConstantOfShape", [extents], name, value=fill)
        make = partial(_weight_values, f"{self.name}/{name}", shape, limit, middle)
        if (makers := _weight_makers.get()) is None:
            return self.constant(name, make())
        makers[name] = make
        return self._initializer(TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT))

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Add an initializer that holds these values, weightless or not."""
        tensor = numpy_helper.from_array(values, name)
        if values.size <= _MOST_INTEGERS:
            self._integers[name] = tensor
        return self._initializer(tensor)

    def _initializer(self, tensor: TensorProto) -> str:
        self._types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        self._model.graph.initializer.append(tensor)
        name: str = tensor.name
        return name

    def integers(self, name: str, values: int | Sequence[int]) -> str:
        """Add an initializer of 64-bit integers, or of one."""
        return self.constant(name, np.array(values, np.int64))

    def scalar(self, name: str, value: float) -> str:
        """Add an initializer of one number."""
        return self.constant(name, np.array(value, np.float32))

    def conv(
        self,
        x: str,
        name: str,
        channels: int,
        kernel: Kernel,
        *,
        stride: int = 1,
        pads: Pads = (0, 0, 0, 0),
        group: int = 1,
    ) -> str:
        """Convolve with He-scaled weights and a bias."""
        inner = self.shape(x)[1] // group
        weight_shape = (channels, inner, *_kernel_sides(kernel))
        weight = self.weights(f"{name}/weight", weight_shape, sqrt(6 / prod(weight_shape[1:])))
        bias = self.weights(f"{name}/bias", (channels,), _BIAS_LIMIT)
        window = _window_attributes(kernel, stride, pads)
        return self.operator("Conv", [x, weight, bias], name, **window, group=group)

    def pool(
        self,
        operator_type: str,
        x: str,
        name: str,
        kernel: Kernel,
        *,
        stride: int = 1,
        pads: Pads = (0, 0, 0, 0),
    ) -> str:
        """Add a MaxPool or an AveragePool; the latter leaves padding out of its means."""
        return self.operator(operator_type, [x], name, **_window_attributes(kernel, stride, pads))

    def batch_norm(self, x: str, name: str, *, scale: float = 1) -> str:
        """Scale and shift each channel by constants near those that only scale all of them."""
        shape = self.shape(x)[1:2]
        middles = {"scale": scale, "bias": 0, "mean": 0, "variance": 1}
        constants = [
            self.weights(f"{name}/{part}", shape, _BIAS_LIMIT, middle=middle)
            for part, middle in middles.items()
        ]
        return self.operator("BatchNormalization", [x, *constants], name)

    def relu(self, x: str, name: str) -> str:
        """Set negative elements to zero."""
        return self.operator("Relu", [x], name)

    def relu6(self, x: str, name: str) -> str:
        """Limit elements to between 0 and 6."""
        return self.clip(x, name, 0, 6)

    def clip(self, x: str, name: str, least: float, most: float) -> str:
        """Limit elements to between two numbers."""
        limits = [self.scalar(f"{name}/least", least), self.scalar(f"{name}/most", most)]
        return self.operator("Clip", [x, *limits], name)

    def scale(self, x: str, name: str, factor: float) -> str:
        """Multiply all elements by a constant."""
        return self.operator("Mul", [x, self.scalar(f"{name}/factor", factor)], name)

    def add(self, x: str, y: str, name: str) -> str:
        """Add two tensors of one shape."""
        return self.operator("Add", [x, y], name)

    def lrn(self, x: str, name: str, *, size: int, alpha: float, beta: float) -> str:
        """Normalise across `size` neighbouring channels."""
        return self.operator("LRN", [x], name, size=size, alpha=alpha, beta=beta, bias=1.0)

    def concat(self, parts: Sequence[str], name: str, *, axis: int = 1) -> str:
        """Join tensors along an axis: images along their channels."""
        return self.operator("Concat", parts, name, axis=axis)

    def flatten(self, x: str, name: str) -> str:
        """Make a matrix with one row per frame."""
        return self.operator("Flatten", [x], name, axis=1)

    def gemm(self, x: str, name: str, features: int) -> str:
        """Multiply a matrix with He-scaled weights, `[features, columns]`, and add a bias."""
        columns = self.shape(x)[1]
        weight = self.weights(f"{name}/weight", (features, columns), sqrt(6 / columns))
        bias = self.weights(f"{name}/bias", (features,), _BIAS_LIMIT)
        return self.operator("Gemm", [x, weight, bias], name, transB=1)

    def softmax(self, x: str, name: str) -> str:
        """Turn each row into a distribution."""
        return self.operator("Softmax", [x], name, axis=-1)

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        """Return the model that computes `outputs`; to be asked for once."""
        graph = self._model.graph
        graph.node.extend(self._nodes)
        for values, names in ((graph.input, self._inputs), (graph.output, outputs)):
            values.extend(helper.make_value_info(name, self._types[name]) for name in names)
        return self._model


def same_pads(kernel: Kernel) -> Pads:
    """Return pads that keep the size of an image under an odd kernel and stride 1."""
    rows, columns = _kernel_sides(kernel)
    return (rows // 2, columns // 2, rows // 2, columns // 2)


def _weight_values(seed: str, shape: Shape, limit: float, middle: float) -> NDArray[np.float32]:
    """Return the numbers that `Emitter.weights` describes."""
    bits = np.random.PCG64(zlib.crc32(seed.encode())).random_raw(prod(shape)) >> np.uint64(40)
    values = (bits.astype(np.float32) / np.float32(2**23) - 1) * np.float32(limit)
    return (values + np.float32(middle)).reshape(shape)


def _window_attributes(kernel: Kernel, stride: int, pads: Pads) -> dict[str, Any]:
    return {"kernel_shape": _kernel_sides(kernel), "strides": (stride, stride), "pads": pads}


def _kernel_sides(kernel: Kernel) -> tuple[int, int]:
    return kernel if isinstance(kernel, tuple) else (kernel, kernel)


_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_LENGTH = 2  # wire type
_ITEM_BYTES = 4


def pieces(model: onnx.ModelProto, makers: Mapping[str, WeightMaker]) -> Iterator[bytes]:
    """Yield a file piece by piece.

    Parameters
    ----------
    model
        One of `Emitter`, without the numbers of its weights.
    makers
        What makes them, by name.
    """
    graph = model.graph
    nodes = _content(onnx.GraphProto(node=graph.node, name=graph.name))
    ends = _content(onnx.GraphProto(input=graph.input, output=graph.output))
    tensors: list[tuple[bytes, WeightMaker | None]] = []
    length = len(nodes) + len(ends)
    for tensor in graph.initializer:
        content, make = _content(tensor), makers.get(tensor.name)
        count = _ITEM_BYTES * prod(tensor.dims) if make else 0
        if make:
            content += _field_head(_RAW_DATA, count)
        content = _field_head(_INITIALIZER, len(content) + count) + content
        tensors.append((content, make))
        length += len(content) + count
    yield _content(onnx.ModelProto(ir_version=model.ir_version, producer_name=model.producer_name))
    yield _field_head(_GRAPH, length) + nodes
    for content, make in tensors:
        yield content
        if make:
            yield make().tobytes()
    yield ends
    yield _content(onnx.ModelProto(opset_import=model.opset_import))


def digest(model: onnx.ModelProto, makers: Mapping[str, WeightMaker]) -> str:
    """Return the SHA-256 of the file whose `pieces` are given likewise."""
    hasher = sha256()
    for piece in pieces(model, makers):
        hasher.update(piece)
    return hasher.hexdigest()


def _content(message: onnx.GraphProto | onnx.ModelProto | onnx.TensorProto) -> bytes:
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def _field_head(field: int, length: int) -> bytes:
    """Return tag and length of a field, as numbers of seven bits a byte, the lowest first."""
    written = bytearray([field << 3 | _LENGTH])
    while length >= 0x80:
        written.append(length & 0x7F | 0x80)
        length >>= 7
    written.append(length)
    return bytes(written)
