"""Writes an ONNX graph operator by operator, with seeded weights and shapes followed along."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from math import prod, sqrt

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_IR_VERSION = 8
_OPSET = 17  # the first with LayerNormalization
_BIAS_LIMIT = 0.05

Shape = tuple[int, ...]
Pads = tuple[int, int, int, int]
Kernel = int | tuple[int, int]


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
        self._element_types = dict(element_types or {})
        self.weightless = weightless
        self._inputs = dict(inputs)
        self._shapes: dict[str, Shape] = dict(inputs)
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
        return self._shapes[tensor]

    def operator(
        self,
        operator_type: str,
        inputs: Sequence[str],
        name: str,
        shape: Shape,
        **attributes: int | float | str | Sequence[int],
    ) -> str:
        """Add any operator with one output of the given shape."""
        node = helper.make_node(operator_type, inputs, [name], name)
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        self._nodes.append(node)
        self._shapes[name] = shape
        return name

    def split(self, x: str, name: str, lengths: Sequence[int], *, axis: int) -> list[str]:
        """Cut a tensor into parts of these lengths along an axis, named `name/0`, `name/1`, ..."""
        parts = [f"{name}/{number}" for number in range(len(lengths))]
        wanted = self.constant(f"{name}/lengths", np.array(lengths, np.int64))
        self._nodes.append(helper.make_node("Split", [x, wanted], parts, name, axis=axis))
        shape = list(self.shape(x))
        for part, length in zip(parts, lengths, strict=True):
            shape[axis] = length
            self._shapes[part] = tuple(shape)
        return parts

    def weights(self, name: str, shape: Shape, limit: float, *, middle: float = 0) -> str:
        """Add a constant of uniform random numbers less than `limit` away from `middle`.

        The numbers come from the bits of PCG64, which NumPy promises never to change, seeded by
        the names of graph and constant.
        """
        self._shapes[name] = shape
        if self.weightless:
            extents = self.constant(f"{name}/shape", np.array(shape, np.int64))
            fill = numpy_helper.from_array(np.array([middle], np.float32))
            self._nodes.append(
                helper.make_node("ConstantOfShape", [extents], [name], name, value=fill)
            )
            return name
        seed = zlib.crc32(f"{self.name}/{name}".encode())
        bits = np.random.PCG64(seed).random_raw(prod(shape)) >> np.uint64(40)
        values = (bits.astype(np.float32) / np.float32(2**23) - 1) * np.float32(limit)
        return self.constant(name, (values + np.float32(middle)).reshape(shape))

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Add an initializer that holds these values, weightless or not."""
        self._model.graph.initializer.append(numpy_helper.from_array(values, name))
        return name

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
        weight_shape = (channels, inner, *_sides(kernel))
        weight = self.weights(f"{name}/weight", weight_shape, sqrt(6 / prod(weight_shape[1:])))
        bias = self.weights(f"{name}/bias", (channels,), _BIAS_LIMIT)
        return self.operator(
            "Conv",
            [x, weight, bias],
            name,
            (self.shape(x)[0], channels, *self._slid(x, kernel, stride, pads)),
            kernel_shape=_sides(kernel),
            strides=[stride, stride],
            pads=pads,
            group=group,
        )

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
        return self.operator(
            operator_type,
            [x],
            name,
            (*self.shape(x)[:2], *self._slid(x, kernel, stride, pads)),
            kernel_shape=_sides(kernel),
            strides=[stride, stride],
            pads=pads,
        )

    def batch_norm(self, x: str, name: str, *, scale: float = 1) -> str:
        """Scale and shift each channel by constants near those that only scale all of them."""
        shape = self.shape(x)[1:2]
        middles = {"scale": scale, "bias": 0, "mean": 0, "variance": 1}
        constants = [
            self.weights(f"{name}/{part}", shape, _BIAS_LIMIT, middle=middle)
            for part, middle in middles.items()
        ]
        return self.operator("BatchNormalization", [x, *constants], name, self.shape(x))

    def relu(self, x: str, name: str) -> str:
        """Set negative elements to zero."""
        return self.operator("Relu", [x], name, self.shape(x))

    def relu6(self, x: str, name: str) -> str:
        """Limit elements to between 0 and 6."""
        return self.clip(x, name, 0, 6)

    def clip(self, x: str, name: str, least: float, most: float) -> str:
        """Limit elements to between two numbers."""
        limits = [
            self.constant(f"{name}/{part}", np.array(value, np.float32))
            for part, value in (("least", least), ("most", most))
        ]
        return self.operator("Clip", [x, *limits], name, self.shape(x))

    def scale(self, x: str, name: str, factor: float) -> str:
        """Multiply all elements by a constant."""
        constant = self.constant(f"{name}/factor", np.array(factor, np.float32))
        return self.operator("Mul", [x, constant], name, self.shape(x))

    def add(self, x: str, y: str, name: str) -> str:
        """Add two tensors of one shape."""
        return self.operator("Add", [x, y], name, self.shape(x))

    def lrn(self, x: str, name: str, *, size: int, alpha: float, beta: float) -> str:
        """Normalise across `size` neighbouring channels."""
        return self.operator(
            "LRN", [x], name, self.shape(x), size=size, alpha=alpha, beta=beta, bias=1.0
        )

    def concat(self, parts: Sequence[str], name: str) -> str:
        """Join images along their channels."""
        batch, _, *size = self.shape(parts[0])
        channels = sum(self.shape(part)[1] for part in parts)
        return self.operator("Concat", parts, name, (batch, channels, *size), axis=1)

    def flatten(self, x: str, name: str) -> str:
        """Make a matrix with one row per frame."""
        batch, *rest = self.shape(x)
        return self.operator("Flatten", [x], name, (batch, prod(rest)), axis=1)

    def gemm(self, x: str, name: str, features: int) -> str:
        """Multiply a matrix with He-scaled weights, `[features, columns]`, and add a bias."""
        rows, columns = self.shape(x)
        weight = self.weights(f"{name}/weight", (features, columns), sqrt(6 / columns))
        bias = self.weights(f"{name}/bias", (features,), _BIAS_LIMIT)
        return self.operator("Gemm", [x, weight, bias], name, (rows, features), transB=1)

    def softmax(self, x: str, name: str) -> str:
        """Turn each row into a distribution."""
        return self.operator("Softmax", [x], name, self.shape(x), axis=-1)

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        """Return the model that computes `outputs`; to be asked for once."""
        graph = self._model.graph
        graph.node.extend(self._nodes)
        for name, shape in self._inputs.items():
            graph.input.append(
                _value(name, shape, self._element_types.get(name, TensorProto.FLOAT))
            )
        graph.output.extend(_value(name, self.shape(name), TensorProto.FLOAT) for name in outputs)
        return self._model

    def _slid(self, x: str, kernel: Kernel, stride: int, pads: Pads) -> tuple[int, int]:
        """Height and width of what a window makes of an image."""
        height, width = self.shape(x)[2:]
        rows, columns = _sides(kernel)
        top, left, bottom, right = pads
        return (
            (height + top + bottom - rows) // stride + 1,
            (width + left + right - columns) // stride + 1,
        )


def same(kernel: Kernel) -> Pads:
    """Return pads that keep the size of an image under an odd kernel and stride 1."""
    rows, columns = _sides(kernel)
    return (rows // 2, columns // 2, rows // 2, columns // 2)


def _sides(kernel: Kernel) -> tuple[int, int]:
    return kernel if isinstance(kernel, tuple) else (kernel, kernel)


def _value(name: str, shape: Shape, element_type: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)
