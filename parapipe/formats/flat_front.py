"""The configurations of a front as a flat table: front.csv, and a DataFrame."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from parapipe.formats.figure_table import DRAWN_FIELDS
from parapipe.formats.front import ConfigurationRow

if TYPE_CHECKING:
    from pandas import DataFrame


def front_frame(configurations: Sequence[ConfigurationRow]) -> DataFrame:
    """Return the configurations as a DataFrame in the order given, units in the column names."""
    from pandas import DataFrame

    return DataFrame([_flat(row) for row in configurations])


def front_csv(configurations: Sequence[ConfigurationRow]) -> str:
    """Return the same table as CSV text."""
    text = StringIO()
    rows = [_flat(row) for row in configurations]
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _flat(row: ConfigurationRow) -> dict[str, Any]:
    figures = row.model_dump(
        exclude={"stages", "memories", "evaluated", "intervals", "medians", "chances", "several"}
    )
    figures["names"] = " ".join(row.names)
    if row.several:
        figures["rate_factor"] = row.several.rate_factor
        figures["power_w"] = row.several.power_w
        for name, each in row.several.models.items():
            figures[f"latency_s_{name}"] = each.latency_s
    figures["divided"] = ", ".join(row.divided)
    return {
        **{"stages" if name == "drawing" else name: value for name, value in figures.items()},
        **{f"evaluated_{figure}": getattr(row.evaluated, figure, None) for figure in DRAWN_FIELDS},
        **{
            f"{end}_{figure}": getattr(row.intervals, figure)[i] if row.intervals else None
            for figure in DRAWN_FIELDS
            for i, end in enumerate(("low", "high"))
        },
        **{f"median_{figure}": getattr(row.medians, figure, None) for figure in DRAWN_FIELDS},
        "chance_pareto": row.chances.pareto if row.chances else None,
    }
