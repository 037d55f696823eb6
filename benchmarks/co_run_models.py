"""Ten models of several kinds, each a row of equal blocks: half of them is a stage.

Memory-bound: products of one token with large weights, large look-ups, element-wise operators on
large tensors. Compute-bound: convolutions, and products that stay in caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from parapipe.profiling.figures import model_of

LOOKED_UP = 200_000  # rows of a table
BLOCKS = 4  # of which half are a stage
Block = Callable[[str, str, str], tuple[str, dict[str, tuple[int, ...]]]]
"""From the names of its input, its output and a prefix to its operators and its weights' shapes."""


def _product(rows: int, width: int, inner: int = 0) -> tuple[str, Block]:
    def block(x: str, y: str, p: str) -> tuple[str, dict[str, tuple[int, ...]]]:
        if not inner:
            return f"{y} = MatMul({x}, {p}w)", {f"{p}w": (width, width)}
        text = f"{p}a = MatMul({x}, {p}w) {p}b = Relu({p}a) {y} = MatMul({p}b, {p}v)"
        return text, {f"{p}w": (width, inner), f"{p}v": (inner, width)}

    return f"{rows},{width}", block


def _pointwise(size: str, *types: str) -> tuple[str, Block]:
    def block(x: str, y: str, p: str) -> tuple[str, dict[str, tuple[int, ...]]]:
        names = [x, *(f"{p}{i}" for i in range(len(types) - 1)), y]
        return " ".join(
            f"{after} = {kind}({before}{', ' + before if kind in ('Add', 'Mul') else ''})"
            for kind, before, after in zip(types, names, names[1:], strict=False)
        ), {}

    return size, block


def _convolution(size: str, channels: int, kernel: int, group: int = 1) -> tuple[str, Block]:
    def block(x: str, y: str, p: str) -> tuple[str, dict[str, tuple[int, ...]]]:
        pad, shape = kernel // 2, (channels, channels // group, kernel, kernel)
        keys = f"pads=[{pad},{pad},{pad},{pad}], group={group}"
        return f"{p}a = Conv<{keys}>({x}, {p}w) {y} = Relu({p}a)", {f"{p}w": shape}

    return size, block


def _pool(size: str) -> tuple[str, Block]:
    def block(x: str, y: str, p: str) -> tuple[str, dict[str, tuple[int, ...]]]:
        del p
        return f"{y} = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>({x})", {}

    return size, block


def _look_up(width: int) -> tuple[str, Block]:
    """Look up rows of a large table by seeded numbers, to which zero times the input is added."""

    def block(x: str, y: str, p: str) -> tuple[str, dict[str, tuple[int, ...]]]:
        text = (
            f"{p}s = Mul({x}, {p}z) {p}m = Add({p}s, {p}k) {p}n = Cast<to=6>({p}m) "
            f"{p}g = Gather({p}t, {p}n) {y} = ReduceMean<axes=[1], keepdims=0>({p}g)"
        )
        return text, {f"{p}t": (LOOKED_UP + 2, width), f"{p}k": (16_384,), f"{p}z": ()}

    return "16384", block


MODELS: Mapping[str, tuple[str, Block]] = {
    "one token, 3072 wide": _product(1, 3072),
    "feed-forward of one token": _product(1, 2048, 6144),
    "look-ups of 200,000 rows": _look_up(96),
    "element-wise, 128 MB": _pointwise("1,64,512,1024", "Neg", "Abs", "Add"),
    "products, 128 MB": _pointwise("1,64,512,1024", "Mul", "Sqrt"),
    "softmax, 96 MB": _pointwise("24576,1024", "Softmax"),
    "largest of 3 x 3, 64 MB": _pool("1,64,512,512"),
    "convolutions 3 x 3": _convolution("1,64,56,56", 64, 3),
    "depthwise 3 x 3": _convolution("1,256,56,56", 256, 3, group=256),
    "products of 128 tokens": _product(128, 512),
}
MEMORY_BOUND = tuple(MODELS)[:7]


def model_named(name: str, blocks: range) -> onnx.ModelProto:
    """Return some consecutive blocks of a model."""
    size, block = MODELS[name]
    texts, weights = [], dict[str, tuple[int, ...]]()
    for number in blocks:
        text, own = block(f"x{number}", f"x{number + 1}", f"b{number}_")
        texts.append(text)
        weights |= own
    first, last = f"x{blocks.start}", f"x{blocks.stop}"
    model = model_of(f"(float[{size}] {first}) => (float[{size}] {last}) {{ {' '.join(texts)} }}")
    for weight, shape in weights.items():
        most = 0.0 if not shape else LOOKED_UP if len(shape) == 1 else 1 / shape[-1]
        values = np.random.default_rng(0).uniform(0, most, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, weight))
    return model
