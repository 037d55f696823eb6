"""Questions to a folder that `map` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parapipe.arguments import check_arguments

if TYPE_CHECKING:
    from parapipe.formats.front import ConfigurationRow
    from parapipe.front.demands import Objective


@dataclass(frozen=True, slots=True)
class Pick:
    """A configuration of a folder, and where its plan is.

    Parameters
    ----------
    figures
        Frames per second, joules per frame and watts at full throughput, or at the one that can be
        sustained if that was asked for.
    """

    configuration: ConfigurationRow
    plan: Path
    figures: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: the configuration as in front.json, plan and figures."""
        return {
            "configuration": self.configuration.model_dump(mode="json"),
            "plan": str(self.plan),
            "figures": dict(self.figures),
        }


def pick_configuration(
    directory: str | Path,
    minimise: Objective = "latency",
    *,
    min_throughput_fps: float = 0.0,
    max_latency_s: float = inf,
    max_energy_j: float = inf,
    max_power_w: float = inf,
    board: bool = False,
    sustained: bool = False,
) -> Pick:
    """Return the configuration of a folder that is least in one figure and keeps all demands.

    Parameters
    ----------
    directory
        Folder that `map` wrote, or the front.json in it.
    minimise, min_throughput_fps, max_latency_s, max_energy_j, max_power_w, board, sustained
        As for `ParetoFront.best`.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    DemandError
        None keeps them all; the message says which stand in the way and by how much.
    """
    check_arguments("pick_configuration", locals())
    from parapipe.formats.front_folder import FRONT, PLANS, folder_of, load_front
    from parapipe.front.demands import Demands, best, figure

    demands = Demands(
        min_throughput_fps, max_latency_s, max_energy_j, max_power_w, board, sustained
    )
    folder = folder_of(Path(directory))
    front = load_front(folder / FRONT)
    row = best(front.configurations, minimise, demands)
    figures = {
        "throughput_fps": 1 / figure(row, "period", sustained=sustained),
        "energy_j": figure(row, "energy", sustained=sustained),
        "board_energy_j": figure(row, "energy", board=True, sustained=sustained),
        "power_w": figure(row, "power", sustained=sustained),
        "board_power_w": figure(row, "power", board=True, sustained=sustained),
    }
    return Pick(row, folder / PLANS / f"{row.id}.json", figures)
