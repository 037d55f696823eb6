"""A decoder in the style of Llama for any prompt behind any cache, with random weights.

Why: `map --shape-set` wants one model whose shapes are open; those of the zoo have one shape each.
It has what exporters write: `input_ids`, `attention_mask`, which leaves empty slots of a cache out,
`position_ids`, by which rows turn (RoPE), and caches that grow at their end. With 12 layers of
768 columns, as GPT-2's smallest has (Radford et al., 2019), it has 98 million weights. Norms,
turns and softmax are single operators of ONNX Runtime, as its own exporter writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_OPSET = 17
_NEVER = -1e9  # added to the score of what may not be seen
_THETA = 100_000
BITS, BLOCK = 4, 32  # of a weight, and how many share a scale
INT8 = 4  # ONNX Runtime's accuracy level in which it multiplies in int8


@dataclass(frozen=True, slots=True)
class DecoderSizes:
    """Sizes of a decoder; `longest` bounds positions."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    key_heads: int = 2
    inner: int = 2048
    vocabulary: int = 16384
    longest: int = 1024

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.width // self.heads


class _Writer:
    """Collects nodes and weights."""

    def __init__(self, sizes: DecoderSizes, seed: int, *, int4: bool) -> None:
        self.sizes, self._random, self._int4 = sizes, np.random.default_rng(seed), int4
        self.nodes: list[onnx.NodeProto] = []
        self.stored: dict[str, onnx.TensorProto] = {}

    def add(self, kind: str, reads: list[str], name: str, domain: str = "", **said: Any) -> str:  # noqa: ANN401 - of ONNX
        """Add an operator of one result."""
        self.nodes.append(helper.make_node(kind, reads, [name], name, domain=domain, **said))
        return name

    def numbers(self, array: Any, name: str) -> str:  # noqa: ANN401 - what numpy takes
        """Store numbers."""
        self.stored[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def integers(self, *values: int) -> str:
        """Store whole numbers, once."""
        return self.numbers(np.array(values, np.int64), "_".join(["numbers", *map(str, values)]))

    def product(self, x: str, name: str, rows: int, columns: int) -> str:
        """Multiply rows with weights."""
        weight = self._random.standard_normal((rows, columns), np.float32)
        weight *= np.float32(rows**-0.5)
        if not self._int4:
            return self.add("MatMul", [x, self.numbers(weight, f"{name}/weight")], name)
        packed, scales = quantized(weight)
        reads = [x, self.numbers(packed, f"{name}/weight"), self.numbers(scales, f"{name}/scales")]
        return self.add(
            "MatMulNBits", reads, name, "com.microsoft", K=rows, N=columns, bits=BITS,
            block_size=BLOCK, accuracy_level=INT8,
        )  # fmt: skip

    def norm(self, x: str, name: str) -> str:
        """Give rows a mean square of one (Zhang and Sennrich, RMSNorm, 2019)."""
        scale = self.numbers(np.ones(self.sizes.width, np.float32), f"{name}/scale")
        return self.add("SimplifiedLayerNormalization", [x, scale], name, axis=-1, epsilon=1e-5)

    def heads(self, x: str, name: str, count: int) -> str:
        """Return [1, heads, tokens, head] of [1, tokens, heads * head]."""
        split = self.add("Reshape", [x, self.integers(0, 0, count, self.sizes.head)], f"{name}/4d")
        return self.add("Transpose", [split], f"{name}/heads", perm=[0, 2, 1, 3])

    def turned(self, x: str, name: str) -> str:
        """Turn pairs of elements by the angles of their positions."""
        reads = [x, "position_ids", "cosines", "sines"]
        return self.add("RotaryEmbedding", reads, name, "com.microsoft", interleaved=0)

    def mask(self) -> str:
        """Return what is added to scores: a token sees itself and what is before it."""
        zero, one = (self.numbers(np.array(n, np.int64), f"number_{n}") for n in (0, 1))
        ends = {}
        for name in ("input_ids", "attention_mask"):
            sizes = self.add("Shape", [name], f"{name}/sizes")
            ends[name] = self.add("Gather", [sizes, one], f"{name}/length")
        total = ends["attention_mask"]
        first = self.add("Sub", [total, ends["input_ids"]], "first")
        columns = self.add("Range", [zero, total, one], "columns")
        rows = self.add("Range", [first, total, one], "rows")
        rows = self.add("Unsqueeze", [rows, self.integers(1)], "rows/2d")
        before = self.add("LessOrEqual", [columns, rows], "before")
        filled = self.add("Cast", ["attention_mask"], "filled", to=TensorProto.BOOL)
        filled = self.add("Unsqueeze", [filled, self.integers(1, 2, 3)], "filled/5d")
        seen = self.add("And", [filled, before], "seen")
        no, never = (self.numbers(np.array(n, np.float32), f"add_{k}")
                     for k, n in (("no", 0), ("never", _NEVER)))  # fmt: skip
        return self.add("Where", [seen, no, never], "mask")

    def attention(self, x: str, name: str, layer: int, mask: str) -> str:
        """Let tokens attend to the cache and to themselves, several heads to one of keys."""
        it, group = self.sizes, self.sizes.heads // self.sizes.key_heads
        queries = self.product(x, f"{name}/q", it.width, it.width)
        queries = self.heads(queries, f"{name}/q", it.heads)
        queries = self.turned(queries, f"{name}/q/turned")
        into = self.integers(0, it.key_heads, group, -1, it.head)
        queries = self.add("Reshape", [queries, into], f"{name}/q/groups")
        kept = {}
        for what in ("key", "value"):
            new = self.product(x, f"{name}/{what}", it.width, it.key_heads * it.head)
            new = self.heads(new, f"{name}/{what}", it.key_heads)
            if what == "key":
                new = self.turned(new, f"{name}/{what}/turned")
            past = f"past_key_values.{layer}.{what}"
            every = self.add("Concat", [past, new], f"present.{layer}.{what}", axis=2)
            kept[what] = self.add("Unsqueeze", [every, self.integers(2)], f"{name}/{what}/5d")
        keys = self.add("Transpose", [kept["key"]], f"{name}/columns", perm=[0, 1, 2, 4, 3])
        scores = self.add("MatMul", [queries, keys], f"{name}/scores")
        share = self.numbers(np.array(it.head**-0.5, np.float32), "share")
        scores = self.add("Mul", [scores, share], f"{name}/scaled")
        scores = self.add("Add", [scores, mask], f"{name}/masked")
        shares = self.add("Softmax", [scores], f"{name}/shares", axis=-1)
        mixed = self.add("MatMul", [shares, kept["value"]], f"{name}/mixed")
        mixed = self.add("Reshape", [mixed, self.integers(0, it.heads, -1, it.head)], f"{name}/4d")
        mixed = self.add("Transpose", [mixed], f"{name}/tokens", perm=[0, 2, 1, 3])
        mixed = self.add("Reshape", [mixed, self.integers(0, 0, it.width)], f"{name}/3d")
        return self.product(mixed, f"{name}/out", it.width, it.width)

    def gated(self, x: str, name: str) -> str:
        """Widen each token twice, gate one by the other, and narrow it again (SwiGLU)."""
        it = self.sizes
        gate = self.product(x, f"{name}/gate", it.width, it.inner)
        gate = self.add("Mul", [gate, self.add("Sigmoid", [gate], f"{name}/open")], f"{name}/silu")
        wide = self.product(x, f"{name}/wide", it.width, it.inner)
        return self.product(self.add("Mul", [gate, wide], f"{name}/mul"), name, it.inner, it.width)


def quantized(weight: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return weights of 4 bits as ONNX Runtime's MatMulNBits has them, and their scales.

    Parameters
    ----------
    weight
        `[rows, columns]`; rows are a multiple of 32.

    Returns
    -------
    tuple
        `[columns, blocks, 16]` of two weights each, the first in the lower half, 8 for zero; and
        `[columns * blocks]`.
    """
    blocks = np.ascontiguousarray(weight.T).reshape(weight.shape[1], -1, BLOCK)
    at = np.abs(blocks).argmax(-1)[..., None]
    scales = np.take_along_axis(blocks, at, -1) / np.float32(-8)
    whole = np.clip(np.rint(blocks / scales) + 8, 0, 15).astype(np.uint8)
    packed = whole[..., ::2] | whole[..., 1::2] << 4
    return packed, scales.astype(np.float32).reshape(-1)


def decoder(sizes: DecoderSizes, *, int4: bool = False, seed: int = 0) -> onnx.ModelProto:
    """Return the model; its dimensions are `sequence`, `past` and `total`, the two added up.

    Parameters
    ----------
    int4
        Whether weights of products have 4 bits, in blocks of 32.
    """
    write = _Writer(sizes, seed, int4=int4)
    angles = np.outer(
        np.arange(sizes.longest), _THETA ** (-np.arange(0, sizes.head, 2) / sizes.head)
    )
    write.numbers(np.cos(angles).astype(np.float32), "cosines")
    write.numbers(np.sin(angles).astype(np.float32), "sines")
    table = np.random.default_rng(seed + 1).standard_normal(
        (sizes.vocabulary, sizes.width), np.float32
    )
    x = write.add("Gather", [write.numbers(table, "words/table"), "input_ids"], "words")
    mask = write.mask()
    for layer in range(sizes.layers):
        name = f"layer{layer}"
        made = write.attention(write.norm(x, f"{name}/norm1"), f"{name}/attention", layer, mask)
        x = write.add("Add", [x, made], f"{name}/add1")
        made = write.gated(write.norm(x, f"{name}/norm2"), f"{name}/ffn")
        x = write.add("Add", [x, made], f"{name}/add2")
    write.product(write.norm(x, "norm"), "logits", sizes.width, sizes.vocabulary)

    def value(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    def caches(begin: str, slots: str) -> list[onnx.ValueInfoProto]:
        names = [f"{begin}.{n}.{what}" for n in range(sizes.layers) for what in ("key", "value")]
        shape = (1, sizes.key_heads, slots, sizes.head)
        return [value(name, TensorProto.FLOAT, *shape) for name in names]

    lengths = {"input_ids": "sequence", "attention_mask": "total", "position_ids": "sequence"}
    graph = helper.make_graph(
        write.nodes, "decoder",
        [*(value(name, TensorProto.INT64, 1, size) for name, size in lengths.items()),
         *caches("past_key_values", "past")],
        [value("logits", TensorProto.FLOAT, 1, "sequence", sizes.vocabulary),
         *caches("present", "total")],
        [*write.stored.values()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
