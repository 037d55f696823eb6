"""Prefill and decode placed apart, against one placement for both and one processor for both.

    python -m benchmarks.prefill_decode [--layers N] [--budget SECONDS] [--work DIR]

Why: a prompt of hundreds of tokens is bound by arithmetic, a step of one token by the bytes of
weights and cache that it reads, so that the best place for the one need not be that for the other.
A request is a prompt of 64 to 2,048 tokens and 128 tokens of answer, behind a cache as long as
the prompt. The model has the sizes of TinyLlama-1.1B (Zhang et al., 2024), planned in int8; norms
stand as LayerNormalization, which the lists of the NPUs' operators have, positions are left out,
and all tokens of a prompt have logits. Platforms are of the catalogue, all figures nominal.

The checks that are not fitted are the makers' own benchmarks: on the RK3588, TinyLlama-1.1B in
w8a8, a prompt of 128 tokens (rknn-llm, benchmark.md of its repository; its runtime has three cores
of the NPU, of which one is left here); on the Snapdragon 8 Gen 2, Llama-2-7B in w4a16, a prompt of
1,024 tokens, on the NPU alone (ai-hub-models, the model's perf.yaml). `--published` prints the
second one, whose weights are integers of 4 bits that the NPU dequantises.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper

import parapipe
from parapipe.documents.shapes_schema import CombinationRow, ShapesDocument

PROMPTS = (64, 128, 512, 2048)
LAYERS = 22
ANSWER = 128  # tokens
PUBLISHED_RK3588 = "| rk3588 | 128 | published | 3 npu | 244 | 24.4 | | | 1.09 | |"
"""rknn-llm, benchmark.md, RK3588: TinyLLAMA 1.1B in w8a8, prompt of 128, 64 new tokens."""
PUBLISHED_SM8550 = "| sm8550 | 1024 | published | npu | 2579 | 8.5 | | | | |"
"""ai-hub-models, llama_v2_7b_chat_quantized/perf.yaml of January 2024, Snapdragon 8 Gen 2, Galaxy
S23 Ultra: 2,578,521 µs for the prompt's processor, 117,812 µs for the tokens' generator."""
CHIPS: Mapping[str, tuple[str, ...]] = {
    "rk3588": ("little", "npu1", "npu2"),
    "sm8550": ("little", "a715", "a710"),
}
"""Chips, and which of their processors are left out: small cores, and copies of the NPU."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a decoder in the style of Llama."""

    layers: int = LAYERS
    width: int = 2048
    heads: int = 32
    key_heads: int = 4
    inner: int = 5632
    vocabulary: int = 32000
    weight_bits: int = 32

    @property
    def head(self) -> int:
        """Columns of a head."""
        return self.width // self.heads


LLAMA_2_7B = Sizes(32, 4096, key_heads=32, inner=11008, weight_bits=4)
"""Touvron et al., Llama 2 (2023)."""


class Decoder:
    """Writes a decoder of any prompt behind any cache, its weights made by nodes of the model."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []

    def weights(self, name: str, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        """Add weights that are all identical."""
        self.numbers(f"{name}/shape", shape)
        number = 0.01 if kind == TensorProto.FLOAT else 1
        value = helper.make_tensor("value", kind, [1], [number])
        self.nodes.append(
            helper.make_node("ConstantOfShape", [f"{name}/shape"], [name], name, value=value)
        )
        return name

    def numbers(self, name: str, values: tuple[int, ...]) -> str:
        """Add whole numbers."""
        self.stored.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, kind: str, reads: list[str], name: str, **attributes: Any) -> str:  # noqa: ANN401 - of ONNX
        """Add an operator of one result."""
        self.nodes.append(helper.make_node(kind, reads, [name], name, **attributes))
        return name

    def product(self, x: str, name: str, rows: int, columns: int) -> str:
        """Multiply with weights, of 4 bits with a scale for each column where sizes say so."""
        weights = f"{name}/w"
        if self.sizes.weight_bits == 4:
            integers = self.weights(f"{weights}/int4", rows, columns, kind=TensorProto.INT4)
            scales = self.weights(f"{weights}/scales", columns)
            self.add("DequantizeLinear", [integers, scales], weights, axis=1)
        else:
            self.weights(weights, rows, columns)
        return self.add("MatMul", [x, weights], name)

    def norm(self, x: str, name: str) -> str:
        """Add a norm over the columns."""
        scale = self.weights(f"{name}/scale", self.sizes.width)
        return self.add("LayerNormalization", [x, scale], name, axis=-1)

    def attention(self, x: str, name: str, layer: int) -> str:
        """Let tokens attend to the cache and to themselves, several heads to one of keys."""
        it, group = self.sizes, self.sizes.heads // self.sizes.key_heads
        queries = self.product(x, f"{name}/query", it.width, it.width)
        into = self.numbers(f"{name}/groups", (0, 0, it.key_heads, group, it.head))
        queries = self.add("Reshape", [queries, into], f"{name}/query/heads")
        queries = self.add("Transpose", [queries], f"{name}/query/rows", perm=[0, 2, 3, 1, 4])
        into = self.numbers(f"{name}/keys", (0, 0, it.key_heads, it.head))
        axis, cached = self.numbers(f"{name}/axis", (2,)), {}
        for what in ("key", "value"):
            new = self.product(x, f"{name}/{what}", it.width, it.key_heads * it.head)
            new = self.add("Reshape", [new, into], f"{name}/{what}/heads")
            new = self.add("Transpose", [new], f"{name}/{what}/rows", perm=[0, 2, 1, 3])
            past = f"past_key_values.{layer}.{what}"
            every = self.add("Concat", [past, new], f"present.{layer}.{what}", axis=2)
            cached[what] = self.add("Unsqueeze", [every, axis], f"{name}/{what}/all")
        keys = self.add("Transpose", [cached["key"]], f"{name}/columns", perm=[0, 1, 2, 4, 3])
        scores = self.add("MatMul", [queries, keys], f"{name}/scores")
        shares = self.add("Softmax", [scores], f"{name}/shares", axis=-1)
        mixed = self.add("MatMul", [shares, cached["value"]], f"{name}/mixed")
        mixed = self.add("Transpose", [mixed], f"{name}/tokens", perm=[0, 3, 1, 2, 4])
        into = self.numbers(f"{name}/joined", (0, 0, it.width))
        mixed = self.add("Reshape", [mixed, into], f"{name}/heads")
        return self.product(mixed, f"{name}/out", it.width, it.width)

    def gated(self, x: str, name: str) -> str:
        """Add the gated layers behind attention."""
        it = self.sizes
        gate = self.product(x, f"{name}/gate", it.width, it.inner)
        gate = self.add(
            "Mul", [gate, self.add("Sigmoid", [gate], f"{name}/sigmoid")], f"{name}/silu"
        )
        up = self.product(x, f"{name}/up", it.width, it.inner)
        return self.product(self.add("Mul", [gate, up], f"{name}/mul"), name, it.inner, it.width)

    def model(self) -> onnx.ModelProto:
        """Return the whole model; its dimensions are `tokens` and `past`."""
        it = self.sizes
        table = self.weights("words", it.vocabulary, it.width)
        x = self.add("Gather", [table, "input_ids"], "embedded")
        for layer in range(it.layers):
            name = f"layer{layer}"
            made = self.attention(self.norm(x, f"{name}/norm1"), f"{name}/attention", layer)
            x = self.add("Add", [x, made], f"{name}/add1")
            made = self.gated(self.norm(x, f"{name}/norm2"), f"{name}/ffn")
            x = self.add("Add", [x, made], f"{name}/add2")
        self.product(self.norm(x, "norm"), "logits", it.width, it.vocabulary)

        def values(begin: str, slots: str) -> list[onnx.ValueInfoProto]:
            shape = (1, it.key_heads, slots, it.head)
            names = [f"{begin}.{n}.{what}" for n in range(it.layers) for what in ("key", "value")]
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in names]

        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, (1, "tokens"))
        logits = helper.make_tensor_value_info(
            "logits", TensorProto.FLOAT, (1, "tokens", it.vocabulary)
        )
        graph = helper.make_graph(
            self.nodes, "decoder", [ids, *values("past_key_values", "past")],
            [logits, *values("present", "total")], self.stored,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 21)]  # the first one with integers of 4 bits
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def mapped(
    model: Path,
    platform: Path,
    chip: str,
    prompt: int,
    budget_s: float,
    *,
    precision: Literal["float16", "int8"] = "int8",
) -> ShapesDocument:
    """Return the front of a prompt and its answer."""
    return parapipe.map_shapes(
        model,
        platform,
        shape_sets={
            "prefill": {"tokens": prompt, "past": 0},
            "decode": {"tokens": 1, "past": prompt},
        },
        mix={"prefill": 1, "decode": ANSWER},
        precision=precision,
        exclude=CHIPS[chip],
        mapper="heft",
        interleave="none",
        max_stages=1,
        objectives="latency-throughput",
        budget_s=budget_s,
    ).document


def row_text(what: str, row: CombinationRow) -> str:
    """Return a row of the table."""
    prefill, decode = row.placements.values()
    moved_s = sum(each.time_s for each in row.moves)
    tokens = ANSWER / decode.steps_s
    return (
        f"{what} | {prefill.latency_s * 1e3:.0f} | {tokens:.1f} | {moved_s * 1e3:.1f} | "
        f"{row.request_s:.2f} | {row.memory_bytes / 1e9:.2f} |"
    )


def table(chip: str, prompt: int, document: ShapesDocument) -> Iterator[str]:
    """Yield the rows of a prompt."""
    rows = {name: document.configuration(name) for name in
            ("most-throughput", "one-placement", "one-processor")}  # fmt: skip
    best = rows["most-throughput"]
    for what, row in rows.items():
        places = " / ".join(used(each.drawing) for each in row.placements.values())
        gain = row.request_s / best.request_s
        label = "apart" if what == "most-throughput" else what.replace("-", " ")
        yield f"| {chip} | {prompt} | {label} | {places} | {row_text('', row)[3:]} {gain:.2f} |"


def used(drawing: str) -> str:
    """Return the processors of a drawing, without what they run."""
    return drawing.partition("[")[0]


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of each search")
    parser.add_argument("--chip", choices=[*CHIPS], action="append")
    parser.add_argument("--prompt", type=int, action="append")
    parser.add_argument("--published", action="store_true", help="only the Snapdragon's check")
    options = parser.parse_args()
    precision: Literal["float16", "int8"] = "float16" if options.published else "int8"
    if options.published:
        chips, prompts, sizes = ["sm8550"], [1024], LLAMA_2_7B
        published = PUBLISHED_SM8550
    else:
        chips, prompts = options.chip or list(CHIPS), options.prompt or list(PROMPTS)
        sizes, published = Sizes(layers=options.layers), PUBLISHED_RK3588
    with TemporaryDirectory() as folder:
        model = Path(folder) / "decoder.onnx"
        onnx.save(Decoder(sizes).model(), model)
        print("| chip | prompt | | prefill / decode on | prefill ms | tokens/s | moved ms | "
              "request s | memory GB | × |")  # fmt: skip
        print("|---|---:|---|---|---:|---:|---:|---:|---:|---:|")
        for chip in chips:
            platform = Path(folder) / f"{chip}.yaml"
            parapipe.new_platform(chip=chip).write(platform)
            for prompt in prompts:
                document = mapped(
                    model, platform, chip, prompt, options.budget, precision=precision
                )
                for line in table(chip, prompt, document):
                    print(line, flush=True)
        print(published)


if __name__ == "__main__":
    main()
