"""front.csv: the configurations of a front as a flat table, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parapipe.formats.front_schema import ConfigurationRow

if TYPE_CHECKING:
    from pandas import DataFrame

FIGURES = (
    "latency_s",
    "period_s",
    "sustained_period_s",
    "throughput_fps",
    "energy_j",
    "board_energy_j",
    "frames_per_joule",
    "board_frames_per_joule",
    "input_s",
    "output_s",
    "latency_with_io_s",
    "proven",
    "gap",
)
EVALUATED = ("latency_s", "period_s", "energy_j")


def front_frame(configurations: Sequence[ConfigurationRow]) -> DataFrame:
    """Return the configurations as a DataFrame in the order given, units in the column names."""
    from pandas import DataFrame

    return DataFrame([_flat(row) for row in configurations])


def _flat(row: ConfigurationRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "names": " ".join(row.names),
        "pareto": row.pareto,
        "pareto_latency_throughput": row.pareto_latency_throughput,
        "stages": row.drawing,
        **{figure: getattr(row, figure) for figure in FIGURES},
        **{f"evaluated_{figure}": getattr(row.evaluated, figure, None) for figure in EVALUATED},
    }
