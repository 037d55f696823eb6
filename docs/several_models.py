"""Maps groups of the zoo's models onto the A311D, and writes the table of several-models.md.

python docs/several_models.py FOLDER [--minutes N]

Each result is kept in FOLDER, and results that are there already are taken, so that the script may
be stopped and started again; after N minutes no further group is started.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import parapipe
from parapipe.files.atomic import write_atomically

PAGE = Path(__file__).with_name("several-models.md")
MARK = "<!-- Written by python docs/several_models.py. -->\n"
BOARD = "amlogic-a311d"
GROUPS: tuple[Mapping[str, float], ...] = (
    {"googlenet": 10, "squeezenet": 20},
    {"mobilenet-v1": 20, "mobilenet-v2": 20},
    {"resnet-50": 4, "mobilenet-v2": 16},
    {"bert-base": 1, "squeezenet": 10},
    {"yolo-pan": 1, "mobilenet-v1": 10},
    {"vit-b16": 0.5, "googlenet": 5},
    {"googlenet": 5, "squeezenet": 10, "mobilenet-v2": 10},
    {"inception-v3": 2, "alexnet": 4, "mobilenet-v1": 8},
    {"bert-base": 0.5, "resnet-50": 2, "squeezenet": 6},
    {"googlenet": 4, "squeezenet": 8, "mobilenet-v1": 8, "mobilenet-v2": 8},
    {"yolo-pan": 0.5, "bert-base": 0.5, "alexnet": 2, "squeezenet": 4},
)
"""Models, and in which ratio their frames come; the rates that are asked follow from it."""
LOAD = 0.7  # of what is possible by loads


def result(group: Mapping[str, float]) -> dict[str, Any]:
    """Map a group at rates that leave room; return the document of front.json."""
    models = {name: f"zoo:{name}" for name in group}
    low = {name: rate * 1e-3 for name, rate in group.items()}
    options: dict[str, Any] = {"note": lambda _note: None, "objectives": "latency-throughput"}
    several = parapipe.map(models, BOARD, rates=low, **options).document.several
    assert several is not None
    asked = {name: float(f"{rate * several.shared * LOAD:.3g}") for name, rate in low.items()}
    return parapipe.map(models, BOARD, rates=asked, **options).to_json()


def cells(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cells of a row."""
    several = document["several"]
    asked = several["models"]
    yield ", ".join(f"{each['name']} {each['rate_fps']:g}" for each in asked)
    yield " + ".join(str(each["frames"]) for each in asked)
    rows = [row["several"] for row in document["configurations"]]
    best = max([several["shared"], *(row["rate_factor"] for row in rows)])
    yield f"**{best:.2f}**"
    for way in ("own_processors", "in_turn", "one_each"):
        known = several[way]
        yield f"{known['rate_factor']:.2f}" if known else "none"
    yield f"{several['bound']:.2f}"
    yield f"{max(0.0, 1 - best / several['bound']):.1%}"
    balanced = next(row for row in document["configurations"] if "balanced" in row["names"])
    latencies = (
        f"{balanced['several']['models'][each['name']]['latency_s'] * 1e3:.0f}" for each in asked
    )
    yield " / ".join(latencies)


def table(folder: Path, minutes: float) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| models, frames/s | frames | shared | own | in turn | one each | bound | gap | ms |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
    began_s = monotonic()
    for group in GROUPS:
        path = folder / f"{'+'.join(group)}.json"
        if not path.exists() and monotonic() - began_s < minutes * 60:
            write_atomically(path, json.dumps(result(group)).encode())
            print(path.name, f"{monotonic() - began_s:.0f} s", flush=True)
        if path.exists():
            yield f"| {' | '.join(cells(json.loads(path.read_bytes())))} |"
        else:
            yield f"| {', '.join(group)} | not run yet | | | | | | | |"


def main() -> None:
    """Run what is missing, and write the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(table(given.folder, given.minutes))
    before, _, after = PAGE.read_text(encoding="utf-8").partition(MARK)
    rest = after.partition("\n\n")[2] if after.startswith("|") else after
    write_atomically(PAGE, f"{before}{MARK}{lines}\n\n{rest}".encode())


if __name__ == "__main__":
    main()
