"""Least latency with operators split over processors against without, for the models of the zoo.

    python -m benchmarks.split_latency [MODEL ...]

Each model is mapped without and with `--split auto`, for latency and throughput. The page is
written after each model, and the rows of models that are not named stay as they are.
"""

from __future__ import annotations

import json
import sys
from math import exp, log
from pathlib import Path
from time import process_time
from typing import Literal

import parapipe
from benchmarks.machine import description
from parapipe.zoo.registry import examples

RESULTS = Path(__file__).with_name("results")
ROWS, PAGE = RESULTS / "split_latency.json", RESULTS / "split_latency.md"
PLATFORM = "amlogic-a311d-2024"


def measured(model: str) -> dict[str, float]:
    """Map a model; return milliseconds, the bound's among them, and how much is split."""

    def mapped(split: Literal["none", "auto"]) -> parapipe.Configuration:
        return parapipe.map(
            f"zoo:{model}",
            PLATFORM,
            split=split,
            interleave="none",
            objectives="latency-throughput",
            note=lambda _: None,
        ).best("latency")

    none, begin_s = mapped("none"), process_time()
    auto = mapped("auto")
    return {
        "none": none.latency_s * 1e3,
        "auto": auto.latency_s * 1e3,
        "bound": auto.latency_s * 1e3 * (1 - auto.gap) if auto.split else 0.0,
        "rules": len(auto.split),
        "seconds": process_time() - begin_s,
    }


def page(rows: dict[str, dict[str, float]]) -> str:
    """Return the page with its table."""
    gains = [row["auto"] / row["none"] for row in rows.values()]
    mean = exp(sum(map(log, gains)) / len(gains))
    lines = [
        f"| `{model}` | {row['none']:.4g} | {row['auto']:.4g} "
        f"| {row['auto'] / row['none'] - 1:+.1%} | {_bound(row)} | {row['rules']:.0f} "
        f"| {row['seconds']:.0f} |"
        for model, row in sorted(rows.items())
    ]
    return f"""# Least latency with split operators

Written by `python -m benchmarks.split_latency` on {description()["CPU"]}. Each model is mapped to
`{PLATFORM}` for latency and throughput; *none* is the least latency, in ms, with `--split none`,
*auto* that with `--split auto`. Parts cost what fits say in proportion to the whole operator, and
every hand-over costs the platform's full synchronisation overhead. *Bound*: no way to split on the
grid takes less, by work shared freely between the processors. *Rules*: operators, or runs of them,
that are split; where there are none, no way to split was found that takes less. *s* is processor
time of the main process for `map --split auto`, with the subgraphs solved before.

Geometric mean of {len(rows)} models: {mean - 1:+.1%}.

| model | none | auto | change | bound | rules | s |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}
"""


def _bound(row: dict[str, float]) -> str:
    return f"{row['bound']:.4g}" if row["rules"] else "–"


def main() -> None:
    """Map the models that are named, or all, and write the page after each."""
    rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    for model in sys.argv[1:] or examples():
        rows[model] = measured(model)
        ROWS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(page(rows), encoding="utf-8")
        sys.stdout.write(f"{model} {rows[model]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
