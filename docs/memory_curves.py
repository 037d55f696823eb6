"""Maps models under limits of memory and writes the tables of that into memory.md.

python docs/memory_curves.py FOLDER [--minutes N]

A limit leaves room for the weights and a share of what the fastest configuration needs beside them.
Each front is kept in FOLDER, and those that are there already are taken, so that the script may be
stopped and started again; after N minutes no further one is searched for.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any

PAGE = Path(__file__).with_name("memory.md")
PLATFORM = "amlogic-a311d"
CURVES = ("unet", "inception-v4", "yolo-pan")
OTHERS = ("squeezenet", "googlenet", "mobilenet-v2", "resnet-50")
SHARES = (100, 75, 50, 25)
MORE_SHARES = (100, 75, 60, 50, 40, 30, 25, 20, 15, 10)

Row = Mapping[str, Any]


def fastest(rows: Sequence[Row]) -> Row:
    """Return the configuration of most throughput."""
    return min(rows, key=lambda row: (row["period_s"], row["latency_s"]))


def soonest(rows: Sequence[Row]) -> Row:
    """Return the configuration of least latency."""
    return min(rows, key=lambda row: (row["latency_s"], row["period_s"]))


class Fronts:
    """Fronts of a folder, searched for where they are missing."""

    def __init__(self, folder: Path, minutes: float) -> None:
        self.folder = folder
        self.until_s = monotonic() + minutes * 60

    def at(self, model: str, share: int | None, limit_bytes: float | None = None) -> list[Row]:
        """Return the configurations of a model within a limit; none if nothing fits.

        Raises
        ------
        TimeoutError
            The front is not there, and the time is over.
        """
        place = self.folder / model / ("free" if share is None else f"{share:03d}")
        known = place / "front.json"
        if not known.exists() and not (none := place.with_suffix(".none")).exists():
            if monotonic() > self.until_s:
                raise TimeoutError
            limit = [] if limit_bytes is None else ["--max-memory", f"{ceil(limit_bytes)}B"]
            command = [
                *(sys.executable, "-m", "parapipe.cli.main", "map", f"zoo:{model}"),
                *("--platform", PLATFORM, "--interleave", "auto"),
                *("--objectives", "latency-throughput", *limit, "--jobs", "1", "--out", str(place)),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode and "was found that fits" not in done.stderr:
                raise RuntimeError(done.stderr)
            if done.returncode:
                none.parent.mkdir(parents=True, exist_ok=True)
                none.write_text(done.stderr, encoding="utf-8")
        if not known.exists():
            return []
        rows: list[Row] = json.loads(known.read_text(encoding="utf-8"))["configurations"]
        return rows

    def points(
        self, model: str, shares: Sequence[int]
    ) -> Iterator[tuple[int, float, list[Row], list[Row]]]:
        """Yield each share and limit, what fits of the front without one, and what is found."""
        free = self.at(model, None)
        most = fastest(free)
        weights = sum(each["weights_bytes"] for each in most["memories"])
        for share in shares:
            limit = weights + share / 100 * (most["peak_memory_bytes"] - weights)
            fits = [row for row in free if row["peak_memory_bytes"] <= limit]
            yield share, limit, fits, self.at(model, share, limit)


def limits(fronts: Fronts) -> Iterator[str]:
    """Yield the table of throughput under four limits."""
    yield (
        "| model | weights, MB | beside them | "
        + " | ".join(f"{share} % | of the front | gain" for share in SHARES)
        + " |"
    )
    yield "|---|" + "---:|" * (2 + 3 * len(SHARES))
    for model in (*OTHERS, *CURVES):
        try:
            free = fastest(fronts.at(model, None))
            cells = [*_throughput(fronts.points(model, SHARES))]
        except TimeoutError:
            continue
        weights = sum(each["weights_bytes"] for each in free["memories"])
        beside = free["peak_memory_bytes"] - weights
        yield f"| `{model}` | {weights / 1e6:.1f} | {beside / 1e6:.1f} | {' | '.join(cells)} |"


def _throughput(points: Iterator[tuple[int, float, list[Row], list[Row]]]) -> Iterator[str]:
    for _, _, fits, found in points:
        fps = [1 / fastest(rows)["period_s"] if rows else None for rows in (found, fits)]
        yield from ("—" if each is None else f"{each:.3f}" for each in fps)
        now, before = fps
        yield "" if now is None or before is None else f"{now / before - 1:+.1%}"


def curves(fronts: Fronts) -> Iterator[str]:
    """Yield the table of least latency and best throughput against the limit."""
    yield "| model | limit, MB | least latency, ms | MB | best throughput, fps | kind | ms | MB |"
    yield "|---|---:|---:|---:|---:|---|---:|---:|"
    for model in CURVES:
        try:
            for _, limit, _, found in fronts.points(model, MORE_SHARES):
                if found:
                    yield _point(model, limit, soonest(found), fastest(found))
        except TimeoutError:
            continue


def _point(model: str, limit: float, first: Row, most: Row) -> str:
    cells = [
        f"`{model}`",
        f"{limit / 1e6:.1f}",
        f"{first['latency_s'] * 1e3:.0f}",
        f"{first['peak_memory_bytes'] / 1e6:.1f}",
        f"{1 / most['period_s']:.3f}",
        most["kind"],
        f"{most['latency_s'] * 1e3:.0f}",
        f"{most['peak_memory_bytes'] / 1e6:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Search for what is missing, and write the tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=600.0)
    given = parser.parse_args()
    fronts = Fronts(given.folder, given.minutes)
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in (("curves", curves(fronts)), ("limits", limits(fronts))):
        table = re.compile(rf"(<!-- {name}: .*? -->\n)(.*?)(?=\n\n|\Z)", re.DOTALL)
        lines = "\n".join(rows)
        heading, old = table.findall(text)[0]
        text = text.replace(heading + old, heading + lines)
    PAGE.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
