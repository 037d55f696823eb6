"""Writes the tables of chips.md, which a test compares with the catalogue: python docs/chips.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.graph.rewrites import fuse
from parapipe.platform.catalogue import Achieved, Part, catalogue
from parapipe.platform.load import load_platform, read_platform
from parapipe.platform.platform import Platform
from parapipe.zoo.registry import build

PAGE = Path(__file__).with_name("chips.md")
BOARDS = {"a311d": "amlogic-a311d", "rk3399": "rockchip-rk3399pro"}
NETWORKS = ("alexnet", "googlenet", "mobilenet-v1", "resnet-50")
PROCESSORS = ("big", "little", "gpu")
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    found = {"chips": _chips, "measured": _measured, "parts": _parts, "rates": _rates}
    found |= {"memories": _memories, "kinds": _kinds, "links": _links, "sources": _sources}
    return {name: "\n".join(rows()) for name, rows in found.items()}


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found[match[2]], text)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _chips() -> Iterator[str]:
    yield "| chip | what it is | processors | memory |\n|---|---|---|---|"
    for chip in parapipe.list_catalogue().chips:
        what = chip.description.removesuffix("; nominal")
        yield _row(f"`{chip.name}`", what, ", ".join(chip.processors), chip.memory)


def _measured() -> Iterator[str]:
    heads = [f"{chip}, {name}" for chip in BOARDS for name in PROCESSORS]
    yield f"| network | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}"
    for network in NETWORKS:
        model = build(network, weightless=True)
        graph = fuse(import_proto(model, source=ModelSource(network, ""), granularity="onnx"))
        cells = []
        for chip, board in BOARDS.items():
            nominal, measured = (_times_s(graph, p) for p in (of_chip(chip), load_platform(board)))
            cells += [f"{nominal[name] / measured[name]:.2f}" for name in PROCESSORS]
        yield _row(network, *cells)


def of_chip(chip: str) -> Platform:
    """Return the platform of a chip, under a name that no profile has."""
    return read_platform(f"schema: parapipe/platform/1\nname: nominal\nchip: {chip}\n", chip)


def _times_s(graph: OperatorGraph, platform: Platform) -> dict[str, float]:
    """Return the seconds of all operators, one after the other, on each processor."""
    table = build_cost_table(graph, platform)
    operators = range(len(graph.operators))
    return {
        name: sum(table.time_s(v, platform.index(name)) for v in operators) for name in PROCESSORS
    }


def _parts() -> Iterator[str]:
    yield (
        "| part | kind | MACs per cycle, a unit | reached | top clock | bandwidth | α | backend |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for row in parapipe.list_catalogue().parts:
        part = catalogue().parts[row.name]
        rates = ", ".join(f"{rate:g} {dtype}" for dtype, rate in row.macs_per_cycle.items())
        clock = f"{part.clock.frequency_hz / 1e9:g} GHz, {part.clock.voltage_v:g} V"
        units = f", {part.units} units" if part.units > 1 else ""
        yield _row(
            f"`{row.name}`",
            part.kind,
            f"{rates}{units} ({part.peak.source})",
            f"{row.share:.0%} ({_achieved(part).source})",
            f"{clock} ({part.clock.source})",
            _bandwidth(part),
            f"{part.power.alpha_w_per_v2_hz:.4g} W/(V²·Hz) ({part.power.source})",
            part.backend,
        )


def _achieved(part: Part) -> Achieved:
    return part.achieved or catalogue().kinds[part.kind].achieved


def _bandwidth(part: Part) -> str:
    if part.memory is None:
        return "the memory's"
    return f"{part.memory.bandwidth_bytes_per_s / 1e9:g} GB/s ({part.memory.source})"


def _rates() -> Iterator[str]:
    yield "| part | operator class | compute | bandwidth | source |\n|---|---|---:|---:|---|"
    for name, part in catalogue().parts.items():
        if part.rates is None:
            continue
        for key, ratio in part.rates.compute.items():
            bandwidth = f"{part.rates.bandwidth[key]:g}"
            yield _row(f"`{name}`", key, f"{ratio:g}", bandwidth, part.rates.source)


def _memories() -> Iterator[str]:
    yield "| memory | what it is | GB/s | source |\n|---|---|---:|---|"
    for name, each in catalogue().memories.items():
        rate = f"{each.bandwidth_bytes_per_s / 1e9:g}"
        yield _row(f"`{name}`", each.description, rate, each.source)


def _kinds() -> Iterator[str]:
    yield ("| kind | launch | static power | frame | other data types |\n|---|---|---|---|---|")
    for name, each in catalogue().kinds.items():
        types = [
            f"{dtype} ({derived.share:g} × {derived.of})"
            for dtype, derived in each.data_types.types.items()
        ]
        rate = f"{(each.frame.bandwidth_bytes_per_s or 0) / 1e9:g}"
        yield _row(
            name,
            f"{each.launch.overhead_s * 1e6:g} µs ({each.launch.source})",
            f"{each.power.static_share:.0%} of the dynamic ({each.power.source})",
            f"{each.frame.latency_s * 1e6:g} µs and {rate} GB/s ({each.frame.source})",
            f"{', '.join(types)} ({each.data_types.source})",
        )


def _links() -> Iterator[str]:
    yield "| between | latency | bandwidth | source |\n|---|---:|---:|---|"
    for link in catalogue().links:
        rate = f"{(link.bandwidth_bytes_per_s or 0) / 1e9:g} GB/s"
        yield _row(" and ".join(link.between), f"{link.latency_s * 1e6:g} µs", rate, link.source)


def _sources() -> Iterator[str]:
    yield "| source | where it is | how the figures follow |\n|---|---|---|"
    for key, each in sorted(catalogue().sources.items()):
        where = f"[{each.title}]({each.url})" if each.url else each.title
        yield _row(key, where, each.reasoning)


if __name__ == "__main__":
    written = page(PAGE.read_text(encoding="utf-8"), tables())
    PAGE.write_text(written, encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
