"""Maps networks of the zoo on two platforms into stages, and writes fronts.md.

python -m docs.fronts FOLDER keeps each result in FOLDER and takes those that are there already.
The page's section on interleaved frames is left as it is: interleaved_fronts.py writes that.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from docs.networks import NETWORKS

PLATFORMS = ("amlogic-a311d", "bst-a1000")
PAGE = Path(__file__).with_name("fronts.md")
INTERLEAVED = "\n## Interleaved frames\n"
INTRODUCTION = """# Fronts of the zoo's models

The networks are 17 of the zoo's [models](models.md), the same as in other pages. Each row is one
command, and looks at stages only; what processors add that take turns on
several frames is [below](#interleaved-frames):

    parapipe map zoo:MODEL --platform PLATFORM --interleave none

*ms* is the least latency of the front, *fps* its highest throughput, each next to the best that one
processor alone does; *frames/J* counts the joules of the processors. *Configurations* are those
written down. *Gap* is how far a schedule is from the best at most, within a minute for
each subproblem. Loading a frame and reading the result come on top, see `input_s` and `output_s` in
`front.json`. Made by `python -m docs.fronts FOLDER`.
"""
HEADER = """
| model | ms, least | alone | fps, most | alone | frames/J, most | configurations | gap |
|---|---:|---:|---:|---:|---:|---:|---:|"""

Front = Mapping[str, object]


def front_of(model: str, platform: str, folder: Path) -> Path:
    """Map the model on the platform unless that was done before; return where its front is."""
    out = folder / platform / model.replace(":", "-")
    front = out / "front.json"
    if not front.exists():
        subprocess.run(
            [sys.executable, "-m", "parapipe.cli.main", "map", f"zoo:{model}", "--platform",
             platform, "--interleave", "none", "--out", str(out)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return front


def row(model: str, document: Front) -> str:
    """Return the table's row for a front."""
    found: list[Mapping[str, object]] = list(document["configurations"])  # type: ignore[call-overload]
    alone = [each for each in found if each["kind"] == "sequential"]
    cells = [
        f"`{model}`",
        _figure(_least(found, "latency_s") * 1e3),
        _figure(_least(alone, "latency_s") * 1e3) if alone else "none",
        f"{1 / _least(found, 'period_s'):.4g}",
        f"{1 / _least(alone, 'period_s'):.4g}" if alone else "none",
        f"{1 / _least(found, 'energy_j'):.4g}",
        str(len(found)),
        f"{max(_number(each['gap']) for each in found):.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def page(folder: Path) -> Iterator[str]:
    """Yield the parts of the page."""
    yield INTRODUCTION
    for platform in PLATFORMS:
        yield f"\n## {platform}\n{HEADER}\n"
        for model in NETWORKS:
            path = front_of(model, platform, folder)
            yield row(model, json.loads(path.read_text(encoding="utf-8"))) + "\n"


def _least(configurations: Sequence[Mapping[str, object]], key: str) -> float:
    return min(_number(each[key]) for each in configurations)


def _figure(value: float) -> str:
    return f"{value:.4g}" if value < 1e4 else f"{value:.0f}"


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


if __name__ == "__main__":
    _, heading, behind = PAGE.read_text(encoding="utf-8").partition(INTERLEAVED)
    PAGE.write_text("".join(page(Path(sys.argv[1]))) + heading + behind, encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
