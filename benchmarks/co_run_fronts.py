"""What plans promise that know nothing of co-runs: python -m benchmarks.co_run_fronts.

Networks are mapped on two chips twice: on the platform as it is, and with the law of co-runs in
which the memory is shared (docs/co-runs.md). For the configuration of the most throughput of each
front, the page has what the first one promises, what it really has by the law, the best that any
configuration of that front has by the law, and what the second front has.

Why this exists: docs/co-run-fronts.md is what it writes, so that a user sees how far a plan is off
on a board whose processors share a memory, and what it gains to know that before.

What a processor draws at most is what one core of it was seen to move, by tinymembench in
ThomasKaiser/sbc-bench (commit 53f79517): copies count twice, since they read and write. The A311D's
memory is taken to give no more than its fastest core was seen to draw, which is the least that it
gives; that of the RK3588 what the catalogue says.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

import parapipe
from benchmarks.tables import markdown_table
from parapipe import ParetoFront
from parapipe.digits import plain
from parapipe.files.atomic import write_atomically
from parapipe.mappings.evaluate import settle
from parapipe.platform.load import find_platform, platform_text

Law = Literal["shared", "phone"]
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/co-run-fronts.md"
TEXT = Path(__file__).with_name("co_run_fronts.txt")
NETWORKS = ("squeezenet", "mobilenet-v1", "googlenet", "alexnet", "gpt:2")
CHIPS: Mapping[str, Mapping[str, float]] = {  # bytes a second that one core was seen to move
    "amlogic-a311d": {"big": 2 * 4.9939e9, "little": 7.4658e9},  # copy; fill: results/1MFD.txt
    "rk3588": {"big": 2 * 10.8257e9, "little": 2 * 6.1143e9},  # copies: results/41BH.txt
}
PHONE = (  # published co-runs: 4.1 ms become 7.9 on the big cluster, 3.8 become 8.9 on the GPU
    {"processor": "big", "busy": ["gpu"], "factor": 7.9 / 4.1},
    {"processor": "gpu", "busy": ["big"], "factor": 8.9 / 3.8},
)
ONE_NPU = ("npu1", "npu2")  # of three identical ones, one is enough here


def platform_texts(chip: str, law: Law) -> tuple[str, str]:
    """Return a platform's file without a law of co-runs and with one."""
    raw: dict[str, Any] = yaml.safe_load(_text_of(chip))
    raw["memory"].pop("lower_bound", None)
    if "evaluation" in raw:
        raw["evaluation"].pop("contention", None)
    blind = yaml.safe_dump(raw, sort_keys=False)
    for processor in raw["processors"]:
        if processor["name"] in CHIPS[chip]:
            processor["memory"]["draw_bytes_per_s"] = CHIPS[chip][processor["name"]]
    stated = {"bandwidth": "shared"} if law == "shared" else {"slowdowns": list(PHONE)}
    raw["co_run"] = {**stated, "source": raw["memory"]["source"]}
    return blind, yaml.safe_dump(raw, sort_keys=False)


def _text_of(chip: str) -> str:
    if chip == "rk3588":
        return parapipe.new_platform(chip=chip, full=True).text
    return platform_text(find_platform(chip))


@cache
def fronts(network: str, chip: str, law: Law) -> tuple[ParetoFront, ParetoFront]:
    """Map a network on both platforms of a chip."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for number, text in enumerate(platform_texts(chip, law)):
            file = Path(folder) / f"{number}.yaml"
            file.write_text(text, encoding="utf-8")
            front = parapipe.map(
                f"zoo:{network}", file, objectives="latency-throughput", interleave="none",
                exclude=ONE_NPU if chip == "rk3588" else (), note=lambda _: None,
            )  # fmt: skip
            found.append(front)
    return found[0], found[1]


def row(network: str, chip: str, law: Law = "shared") -> list[str]:
    """Return the line of a network on a chip."""
    blind, aware = fronts(network, chip, law)
    costs = aware[0].costs
    real = {}
    for each in blind:
        mapping, graph = each.configuration.mapping, each.graph
        _, taken = settle(mapping, graph, costs)
        real[each.id] = 1 / taken.period_s
    best = max(blind, key=lambda each: each.throughput_fps)
    most, gain = max(aware, key=lambda each: each.throughput_fps), real[best.id]
    fps = (best.throughput_fps, real[best.id], max(real.values()), most.throughput_fps)
    return [
        network,
        best.drawing,
        *(plain(value) for value in fps[:3]),
        most.drawing,
        plain(fps[3]),
        _percent(1 - fps[1] / fps[0]),
        _percent(fps[3] / gain - 1),
    ]


def _percent(share: float) -> str:
    return f"{max(0.0, 100 * share):.1f} %"


def table(chip: str, law: Law = "shared") -> str:
    """Return the table of a chip."""
    head = [
        "network", "stages, blind", "promised", "really", "best of the blind front",
        "stages, aware", "aware", "lost", "gained",
    ]  # fmt: skip
    return markdown_table(head, [row(network, chip, law) for network in NETWORKS])


def page() -> str:
    """Return docs/co-run-fronts.md, the text beside this file with its tables."""
    return TEXT.read_text(encoding="utf-8").format(
        a311d=table("amlogic-a311d"),
        rk3588=table("rk3588"),
        phone=table("amlogic-a311d", "phone"),
    )


def main() -> None:
    """Write the page."""
    text = page()
    write_atomically(PAGE, text.encode())
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
