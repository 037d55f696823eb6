"""Writes the tables of parts.md, which a test compares: python docs/parts.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from parapipe.files.atomic import write_atomically
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph
from parapipe.parts import elementwise
from parapipe.parts.part import cut_shape, divide_axis
from parapipe.parts.run import RULES, outside_reads
from parapipe.parts.work import CutAxis, cuttable_axes, run_of

PAGE = Path(__file__).with_name("parts.md")
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)
_OPSET = 23

IMAGES = "float[4, 8, 12, 12]"
TOKENS = "float[4, 12, 24]"


class Row(NamedTuple):
    """Types that are cut in the same way, and one of them, as a model of one operator."""

    types: Sequence[str]
    example: str
    note: str = ""


def _ones(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.ones(shape, np.float32)


ARRAYS: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {
    "w": _ones(16, 8, 3, 3), "w2": _ones(16, 4, 3, 3), "wd": _ones(8, 1, 3, 3),
    "wt": _ones(8, 16, 3, 3), "b": _ones(4, 8, 12, 12), "c": _ones(8),
    "key": _ones(4, 9, 24), "t": _ones(24), "m": _ones(24, 48),
    "sizes": np.array([4, 8, 24, 24]), "begin": np.array([2]), "end": np.array([10]),
    "last": np.array([3]), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    "at": np.zeros((4, 8, 12, 12), np.int64), "places": _ones(4, 6, 6, 2),
    "scale": np.array(0.1, np.float32), "zero": np.array(0, np.uint8),
    "heads": np.array([4, 12, 4, 6]), "ids": np.array([0, 2, 5]), "tiles": np.array([1, 1, 1, 2]),
}  # fmt: skip

_SUMS = [f"Reduce{each}" for each in ["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare"]]
OF_IMAGES: Sequence[Row] = (
    Row(("Conv", "ConvInteger", "QLinearConv"), "Conv <pads = [1, 1, 1, 1]> (x, w)"),
    Row(("Conv",), "Conv <pads = [1, 1, 1, 1], group = 2> (x, w2)", "2 groups"),
    Row(("Conv",), "Conv <pads = [1, 1, 1, 1], group = 8> (x, wd)", "depthwise"),
    Row(("ConvTranspose",), "ConvTranspose <strides = [2, 2]> (x, wt)"),
    Row(
        ("MaxPool", "AveragePool", "LpPool"),
        "MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)",
    ),
    Row(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), "GlobalAveragePool (x)"),
    Row((*elementwise.RULES,), "Relu (x)"),
    Row(("BatchNormalization",), "BatchNormalization (x, c, c, c, c)"),
    Row(("InstanceNormalization",), "InstanceNormalization (x, c, c)"),
    Row(("GroupNormalization",), "GroupNormalization <num_groups = 4> (x, c, c)", "4 groups"),
    Row(("LRN",), "LRN <size = 5> (x)"),
    Row(("LpNormalization",), "LpNormalization <axis = 1> (x)", "along channels"),
    Row(("MeanVarianceNormalization",), "MeanVarianceNormalization (x)"),
    Row(("Resize", "Upsample"), 'Resize <mode = "linear"> (x, , , sizes)', "by whole ratios"),
    Row(("Concat", "Split"), "Concat <axis = 3> (x, b)",
        "along columns, where Split stays whole"),
    Row(("Slice",), "Slice (x, begin, end, last)"),
    Row(("Pad",), "Pad (x, pads)", "modes constant and edge"),
    Row(("Transpose",), "Transpose <perm = [0, 2, 3, 1]> (x)"),
    Row(("DepthToSpace",), "DepthToSpace <blocksize = 2> (x)", "mode DCR"),
    Row(("SpaceToDepth",), "SpaceToDepth <blocksize = 2> (x)"),
    Row((*_SUMS, "ReduceLogSum", "ReduceLogSumExp"), "ReduceMean <keepdims = 1> (x, last)",
        "over columns"),
    Row(("ArgMax", "ArgMin", "TopK"), "ArgMax <axis = 1> (x)", "over channels"),
    Row(("GatherElements",), "GatherElements <axis = 1> (x, at)", "along channels"),
    Row(("GridSample",), "GridSample (x, places)"),
    Row(("Tile",), "Tile (x, tiles)", "columns repeated"),
    Row(("Trilu",), "Trilu (x)"),
    Row(("QuantizeLinear", "DequantizeLinear"), "QuantizeLinear (x, scale, zero)"),
)  # fmt: skip
OF_TOKENS: Sequence[Row] = (
    Row(("MatMul", "MatMulInteger", "QLinearMatMul"), "MatMul (x, m)"),
    Row(("Einsum",), 'Einsum <equation = "btc,cd->btd"> (x, m)'),
    Row((*elementwise.RULES,), "Gelu (x)"),
    Row(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        "LayerNormalization (x, t)",
    ),
    Row(("Softmax", "LogSoftmax", "Hardmax"), "Softmax (x)", "along channels"),
    Row(("Attention",), "Attention <q_num_heads = 4, kv_num_heads = 4> (x, key, key)"),
    Row(("Gather",), "Gather <axis = 1> (x, ids)", "of tokens"),
    Row(("Transpose",), "Transpose <perm = [0, 2, 1]> (x)"),
    Row(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), "Reshape (x, heads)",
        "into heads; heads are axis 2 here"),
)  # fmt: skip
MATRICES = "float[8, 24]"
OF_MATRICES: Sequence[Row] = (Row(("Gemm",), "Gemm (x, m)"),)


def graph_of(given: str, example: str) -> OperatorGraph:
    """Return the model of one operator as an operator graph."""
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {_OPSET}]>\n'
        f"net ({given} x) => ({given} y) {{ y = {example} }}"
    )
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name)
        for name, array in ARRAYS.items()
        if name in model.graph.node[0].input
    )
    return import_proto(model, source=ModelSource("example", ""), granularity="onnx")


def cells(graph: OperatorGraph, axes: Iterable[int]) -> Iterator[str]:
    """Yield what stands in the table for each axis of an operator's result."""
    (operator,) = graph.operators
    found = cuttable_axes(graph, operator)
    for axis in axes:
        cut = found.get(axis, "")
        yield _cell(graph, operator, axis, cut) if isinstance(cut, CutAxis) else "–"


def _cell(graph: OperatorGraph, operator: Operator, axis: int, cut: CutAxis) -> str:
    run, ranges = run_of(graph, operator), divide_axis(axis, cut.extent, cut.step, (1, 1))
    reads = [outside_reads(run.part(asked)) for asked in ranges]
    shape = graph.tensors["x"].shape
    read = sum(np.prod(cut_shape(shape, part["x"])) for part in reads if "x" in part)
    told = "own" if read <= np.prod(shape) else "halo"
    if all(part.get("x") == () for part in reads):
        told = "all"
    return told if cut.step == 1 else f"{told}, at multiples of {cut.step}"


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    images, tokens = ("batch", "channels", "rows", "columns"), ("batch", "tokens", "channels")
    return {
        "images": "\n".join(_table(OF_IMAGES, IMAGES, images)),
        "tokens": "\n".join(_table(OF_TOKENS, TOKENS, tokens)),
        "matrices": "\n".join(_table(OF_MATRICES, MATRICES, ("batch", "channels"))),
        "kernels": ", ".join(f"`{name}`" for name in sorted(RULES["com.microsoft"])) + ".",
    }


def _table(rows: Iterable[Row], given: str, names: Sequence[str]) -> Iterator[str]:
    yield f"| operator | {' | '.join(names)} |\n|---|{'---|' * len(names)}"
    for row in rows:
        common = row.types == (*elementwise.RULES,)
        types = "element by element (Add, Relu, …)" if common else _ticked(row.types)
        note = f" ({row.note})" if row.note else ""
        answers = " | ".join(cells(graph_of(given, row.example), range(len(names))))
        yield f"| {types}{note} | {answers} |"


def _ticked(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page(text: str, found: Mapping[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found[match[2]], text)


if __name__ == "__main__":
    write_atomically(PAGE, page(PAGE.read_text(encoding="utf-8"), tables()).encode())
