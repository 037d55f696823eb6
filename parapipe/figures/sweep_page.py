"""index.html of a sweep: which board for a model, and which model on a board, at what demands.

It is made as the report of a front is: one file that needs no network, names are data only.
"""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.figures.page import filled_page
from parapipe.formats.front import FrontDocument
from parapipe.formats.sweep import SweepDocument, SweepRow

SCRIPTS = ("elements.js", "numbers.js", "sweep.js")
_FIGURES = (
    "id", "drawing", "latency_s", "period_s", "energy_j", "board_energy_j", "peak_memory_bytes"
)  # fmt: skip


def sweep_page(document: SweepDocument, fronts: Sequence[tuple[SweepRow, FrontDocument]]) -> bytes:
    """Return the page of a sweep."""
    data = {
        "parapipe": document.parapipe,
        "results": [row.to_json() for row in document.results],
        "figures": _FIGURES,
        "configurations": {
            row.name: [[getattr(each, name) for name in _FIGURES] for each in front.configurations]
            for row, front in fronts
        },
    }
    count = len(document.results)
    return filled_page("sweep.html", SCRIPTS, f"Sweep of {count} results", data)
