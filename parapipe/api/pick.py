"""The configuration of a folder that meets demands, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parapipe.api.best import (
    Confidence,
    Energy,
    Fps,
    Latency,
    Minimise,
    Power,
    best_of,
    objective_of,
)
from parapipe.api.checked import StoredGiven, checked
from parapipe.pipeline.options import MaxMemory

if TYPE_CHECKING:
    from parapipe.formats.front import ConfigurationRow
    from parapipe.front.confidence import Certainty
    from parapipe.front.configurations import Configurations, Row
    from parapipe.front.demands import Demands


@dataclass(frozen=True, slots=True, repr=False)
class Pick:
    """A configuration of a folder, and where its plan is.

    Parameters
    ----------
    figures
        Frames per second, joules per frame and watts at full throughput, or at the one that can be
        sustained if that was asked for.
    certainty
        How sure the choice is, by draws; None without draws, or at the sustained throughput.
    """

    configuration: ConfigurationRow
    plan: Path
    figures: Mapping[str, float]
    certainty: Certainty | None = None

    def __repr__(self) -> str:
        sure = self.certainty
        met = f", demands met in {sure.keeps:.0%} of draws" if sure and sure.keeps < 1 else ""
        return f"<Pick {self.configuration} of {self.plan}{met}>"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: the configuration as in front.json, plan, figures, certainty."""
        return {
            "configuration": self.configuration.model_dump(mode="json"),
            "plan": str(self.plan),
            "figures": dict(self.figures),
            "certainty": asdict(self.certainty) if self.certainty else None,
        }


@checked
def pick(
    front: StoredGiven,
    minimise: Minimise = "latency",
    *,
    min_fps: Fps = 0.0,
    max_latency_s: Latency = inf,
    max_energy_j: Energy = inf,
    max_power_w: Power = inf,
    max_memory_bytes: MaxMemory | None = None,
    board: bool = False,
    sustained: bool = False,
    confidence: Confidence | None = None,
) -> Pick:
    """Return the configuration of a folder that meets all demands and has the least of one figure.

    Parameters
    ----------
    front
        What `load_front` returned, the folder that `map` wrote, or the front.json in it.
    minimise
        Take the configuration with the least of this among those that meet all demands; throughput
        stands for the highest one, which is the least period.
    min_fps
        Frames per second, at least.
    max_latency_s
        Time of one frame through all stages, at most.
    max_energy_j
        Joules per frame, at most.
    max_power_w
        Watts at full throughput, at most.
    max_memory_bytes
        Bytes at any moment, at most, of activations, queues and weights: in all memories together,
        or in memories of the platform by their names.
    board
        Count the board's idle power in energy and power.
    sustained
        Take throughput, energy and power at the sustained rate (`sust. fps`), not at one frame per
        longest stage.
    confidence
        Take one that meets the demands in at least this share of the draws of the costs, as in 0.9
        for nine of ten, in place of one whose stated figures meet them. What is minimised is then
        the value that it keeps in that share of the draws.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    DemandError
        None meets them all; the message says which are missed and by how much. Or confidence is
        asked for, and there are no draws.
    """
    from parapipe.api.stored_front import load_front
    from parapipe.front.demands import Demands, figure

    stored = load_front(front) if isinstance(front, str | Path) else front
    demands = Demands(
        min_fps=min_fps,
        max_latency_s=max_latency_s,
        max_energy_j=max_energy_j,
        max_power_w=max_power_w,
        max_memory_bytes=max_memory_bytes,
        board=board,
        sustained=sustained,
    )
    row = best_of(stored, minimise, demands, confidence)
    figures = {
        "throughput_fps": 1 / figure(row, "period", sustained=sustained),
        "energy_j": figure(row, "energy", sustained=sustained),
        "board_energy_j": figure(row, "energy", board=True, sustained=sustained),
        "power_w": figure(row, "power", sustained=sustained),
        "board_power_w": figure(row, "power", board=True, sustained=sustained),
    }
    return Pick(row, row.plan_file, figures, _certainty(stored, row, minimise, demands))


def certainty_of(
    front: Configurations[Row], row: Row, minimise: Minimise, asked: Mapping[str, Any]
) -> Certainty | None:
    """Return how sure it is that a row of a front is the right choice, as `pick` says it.

    Parameters
    ----------
    asked
        The demands that `pick` takes.
    """
    from parapipe.front.demands import Demands

    demands = Demands(**{name: each for name, each in asked.items() if name != "confidence"})
    return _certainty(front, row, minimise, demands)


def _certainty(
    front: Configurations[Row], row: Row, minimise: Minimise, demands: Demands
) -> Certainty | None:
    from parapipe.front.confidence import certainty

    if front.drawn is None or demands.sustained:
        return None
    rows = front.configurations
    return certainty(rows, front.drawn, objective_of(minimise), demands, rows.index(row))
