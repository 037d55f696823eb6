"""The placements of several shapes that meet demands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from parapipe.api.checked import Folder, checked
from parapipe.api.shapes import folder_of_shapes
from parapipe.documents.figure_table import DemandKeywords, Demands, Minimise

if TYPE_CHECKING:
    from parapipe.documents.shapes_schema import CombinationRow


@dataclass(frozen=True, slots=True)
class ShapesPick:
    """Placements of several shapes, and where their plans are.

    Parameters
    ----------
    plans
        By shape.
    power_w
        Of a request, on average.
    """

    configuration: CombinationRow
    plans: Mapping[str, Path]
    power_w: float

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: the configuration as in shapes.json, plans and power."""
        return {
            "configuration": self.configuration.to_json(),
            "plans": {name: str(each) for name, each in self.plans.items()},
            "power_w": self.power_w,
        }


@checked
def pick_shapes(
    directory: Folder, minimise: Minimise = "latency", **demands: Unpack[DemandKeywords]
) -> ShapesPick:
    """Return the placements of several shapes that meet all demands and have the least of a figure.

    Latency is the time to the first token; throughput, energy and power are those of requests.

    Parameters
    ----------
    directory
        Folder that `map_shapes` was written to, or the shapes.json in it.
    minimise
        As of `pick`.
    demands
        Fields of `Demands`, without `max_segments`, `board`, `sustained` and `confidence`.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    DemandError
        None meets them all; the message says what there is. Or shapes.json does not state what is
        asked for.
    """
    from parapipe.documents.front_folder import PLANS
    from parapipe.documents.shapes_schema import load_shapes
    from parapipe.front.shapes_demands import best_combination, figure

    folder = folder_of_shapes(directory)
    row = best_combination(load_shapes(folder).configurations, minimise, Demands(**demands))
    plans = {
        name: folder / name / PLANS / f"{each.id}.json" for name, each in row.placements.items()
    }
    return ShapesPick(row, plans, figure(row, "power"))
