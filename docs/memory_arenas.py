"""Writes the table of arenas into memory.md: python docs/memory_arenas.py FOLDER.

FOLDER/MODEL has, or gets, the front of each model of the zoo on the platform.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean

import parapipe
from parapipe.formats.front_folder import load_folder
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import mapped
from parapipe.plan.network import network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.schema import Plan
from parapipe.platform.memories import MemorySystem
from parapipe.zoo.registry import examples

PAGE = Path(__file__).with_name("memory.md")
PLATFORM = "amlogic-a311d"
_TABLE = re.compile(r"(<!-- arenas: .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def arenas(fronts: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| model | plans | above the bound | mean | proven | of the peak: least | mean | most |"
    yield f"|---|{'---:|' * 7}"
    for model in examples():
        folder = fronts / model
        if not (folder / "front.json").exists():
            parapipe.map(f"zoo:{model}", PLATFORM).write(folder)
        yield row(model, folder)


def row(model: str, folder: Path) -> str:
    """Return the table's row of a model.

    Parameters
    ----------
    folder
        Of its front, on a platform with one memory.
    """
    front = load_folder(folder)
    assert front.document.memory is not None
    system = front.document.memory.system
    above, shares, proven = [], [], 0
    for each in front.document.configurations:
        size_bytes, bound_bytes = sizes(front.plans[each.id], system)
        above.append(size_bytes / bound_bytes)
        proven += size_bytes == bound_bytes
        (memory,) = each.memories
        shares.append(size_bytes / (memory.peak_bytes - memory.weights_bytes))
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
    return f"| {' | '.join(cells)} |"


def sizes(plan: Plan, system: MemorySystem) -> tuple[int, int]:
    """Return the bytes of a plan's arena, and its bound."""
    found = laid_out(plan, PlanLives(mapped(plan), network_of(plan), system))
    assert found.memory is not None
    (arena,) = found.memory.arenas
    return arena.size_bytes, arena.bound_bytes


if __name__ == "__main__":
    table = "\n".join(arenas(Path(sys.argv[1])))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda match: match[1] + table, text), encoding="utf-8")
