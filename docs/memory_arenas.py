"""Writes the tables of arenas into memory.md: python -m docs.memory_arenas FOLDER [MODEL ...].

FOLDER/MODEL has, or gets, the front of each model of the zoo on the platform, and
FOLDER/split/MODEL that with operators split, of which the second table tells. Given models, it
writes no page, but prints their rows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Literal

import parapipe
from docs.networks import NETWORKS
from parapipe.documents.front_folder import load_folder
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.schema import Plan
from parapipe.platform.memories import MemorySystem

PAGE = Path(__file__).with_name("memory.md")
PLATFORM = "amlogic-a311d"
TABLES: dict[str, Literal["none", "auto"]] = {"arenas": "none", "split arenas": "auto"}
"""What each table is called in the page, and the option `split` of its fronts."""


def arenas(
    fronts: Path, split: Literal["none", "auto"], models: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| model | plans | above the bound | mean | proven | of the peak: least | mean | most |"
    yield f"|---|{'---:|' * 7}"
    for model in models or NETWORKS:
        folder = fronts / model if split == "none" else fronts / "split" / model
        if not (folder / "front.json").exists():
            parapipe.map(f"zoo:{model}", PLATFORM, split=split).write(folder)
        yield from row(model, folder, only_split=split == "auto")


def row(model: str, folder: Path, *, only_split: bool) -> Iterator[str]:
    """Yield the table's row of a model, if there is any plan to tell of.

    Parameters
    ----------
    folder
        Of its front, on a platform with one memory.
    only_split
        Whether only plans with split operators count.
    """
    front = load_folder(folder)
    assert front.document.memory is not None
    system = front.document.memory.system
    above, shares, proven = [], [], 0
    for each in front.document.configurations:
        if only_split and not each.split:
            continue
        size_bytes, bound_bytes = sizes(front.plans[each.id], system)
        above.append(size_bytes / bound_bytes)
        proven += size_bytes == bound_bytes
        (memory,) = each.memories
        shares.append(size_bytes / (memory.peak_bytes - memory.weights_bytes))
    if not above:
        return
    cells = [
        f"`{model}`",
        f"{len(above)}",
        f"{max(above) - 1:.2%}",
        f"{geometric_mean(above) - 1:.2%}",
        f"{proven}",
        f"{min(shares):.1%}",
        f"{geometric_mean(shares):.1%}",
        f"{max(shares):.1%}",
    ]
    yield f"| {' | '.join(cells)} |"


def sizes(plan: Plan, system: MemorySystem) -> tuple[int, int]:
    """Return the bytes of a plan's arena, and its bound."""
    found = laid_out(plan, PlanLives(plan, network_of(plan), system))
    assert found.memory is not None
    (arena,) = found.memory.arenas
    return arena.size_bytes, arena.bound_bytes


def main(fronts: Path, models: Sequence[str]) -> None:
    """Write both tables, or print the rows of models."""
    text = PAGE.read_text(encoding="utf-8")
    for name, split in TABLES.items():
        table = "\n".join(arenas(fronts, split, models))
        place = re.compile(rf"(<!-- {name}: .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)
        text = place.sub(rf"\g<1>{table}", text)
        if models:
            print(table)
    if not models:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
