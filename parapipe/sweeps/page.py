"""index.html of a sweep: which board for a model, and which model on a board, at what demands.

It is made as the report of a front is: one file that needs no network, names are data only.
"""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.documents.figure_table import choices, for_pages
from parapipe.documents.front_schema import FrontDocument
from parapipe.figures.page import filled_page
from parapipe.sweeps.document import SweepDocument, SweepRow

SCRIPTS = ("elements.js", "numbers.js", "sweep.js")


def sweep_page(document: SweepDocument, fronts: Sequence[tuple[SweepRow, FrontDocument]]) -> bytes:
    """Return the page of a sweep."""
    figures = choices()
    columns = ("id", "drawing", *(each.field for each in figures))
    data = {
        "parapipe": document.parapipe,
        "results": [row.to_json() for row in document.results],
        "figures": for_pages(figures),
        "columns": columns,
        "configurations": {
            row.name: [[getattr(each, name) for name in columns] for each in front.configurations]
            for row, front in fronts
        },
    }
    count = len(document.results)
    return filled_page("sweep.html", SCRIPTS, f"Sweep of {count} results", data)
