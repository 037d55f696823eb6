"""ncnn's times: of each layer, as a build with NCNN_BENCHMARK prints them, or benchncnn's table.

A layer's line has its type, its name, milliseconds, the shapes that it reads and writes, with the
width first and `*` before the elements that lie together, and a convolution's kernel. benchncnn's
has a network's name and the least, the longest and the mean time of an inference: that of a whole
network. (Tencent/ncnn, src/benchmark.cpp, benchmark/benchncnn.cpp)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from parapipe.imports.layers import Layer, ToolFile, ToolProfile, shape_in

NAME, TITLE = "ncnn", "layer times of ncnn (NCNN_BENCHMARK)"
WHOLE_NAME, WHOLE_TITLE = "benchncnn", "table of benchncnn"
_LAYER = re.compile(r"^(\S+)\s+(\S+)\s+([\d.]+)ms\s+\|(.*)$")
_WRITTEN = re.compile(r"-> \[([\d, ]+?) ?\*(\d+)\]")
_LOOPS = re.compile(r"^loop_count = ([1-9]\d*)$")
_SUFFIX = re.compile(r"(\.ncnn)?\.param$")
_KERNEL = re.compile(r"kernel: (\d+(?: x \d+)*)")
_NETWORK = re.compile(r"^\s*(\S+)\s+min =\s+([\d.]+)\s+max =\s+([\d.]+)\s+avg =\s+([\d.]+)\s*$")
_INSERTED = frozenset({"Input", "Split", "Packing", "Cast", "Noop"})


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format.

    Those inferences count that benchncnn counts, the last `loop_count`. In a file of another
    program the first of several does not count, for it warms up.
    """
    lines = [match for line in file.lines if (match := _LAYER.match(line))]
    if not lines:
        return None
    of_layer: dict[tuple[str, str], list[re.Match[str]]] = defaultdict(list)
    for match in lines:
        of_layer[match[1], match[2]].append(match)
    networks = [match for line in file.lines if (match := _NETWORK.match(line))]
    total_s = file.number(networks[-1][4], "the mean") / 1e3 if networks else None
    loops = [match[1] for line in file.lines if (match := _LOOPS.match(line))]
    last = int(loops[-1]) if loops else 0
    layers = (
        _layer(file, each[-last:] if last else each[1:] or each) for each in of_layer.values()
    )
    return ToolProfile(NAME, TITLE, tuple(layers), total_s)


def read_whole(file: ToolFile) -> ToolProfile | None:
    """Return the networks of benchncnn's table, a layer each; None if it is of another format."""
    networks = [match for line in file.lines if (match := _NETWORK.match(line))]
    layers = tuple(
        Layer(
            _SUFFIX.sub("", each[1]),
            file.number(each[4], f"the mean of '{each[1]}'") / 1e3,
            whole=True,
        )
        for each in networks
    )
    return ToolProfile(WHOLE_NAME, WHOLE_TITLE, layers) if layers else None


def _layer(file: ToolFile, lines: Sequence[re.Match[str]]) -> Layer:
    kind, name, _, rest = lines[0].groups()
    times_s = [file.number(each[3], f"the time of '{name}'") / 1e3 for each in lines]
    written, kernel = _WRITTEN.search(rest), _KERNEL.search(rest)
    shape = shape_in(written[1]) if written else ()
    if written and shape:
        shape = (*shape[:-1], shape[-1] * int(written[2]))
    return Layer(
        name=name,
        time_s=fmean(times_s),
        type=kind,
        shapes=(shape,) if shape else (),
        kernel=shape_in(kernel[1])[::-1] if kernel else (),
        inserted=kind in _INSERTED,
    )
