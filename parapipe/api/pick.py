"""The configuration of a folder that meets demands, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from parapipe.api.checked import StoredFrontLike, checked
from parapipe.documents.figure_table import DemandKeywords, Demands, Minimise

if TYPE_CHECKING:
    from parapipe.documents.front_schema import ConfigurationRow
    from parapipe.front.configurations import Configurations, Row
    from parapipe.front.demands import Certainty


@checked
def best(
    self: Configurations[Row],
    minimise: Minimise = "latency",
    **demands: Unpack[DemandKeywords],
) -> Row:
    """Return the same configuration as `pick`: the best in one figure, all demands met.

    Raises
    ------
    DemandError
        None meets them all; the message says which are missed and by how much. Or confidence is
        asked for, and there are no draws.
    """
    return best_of(self, minimise, Demands(**demands))


def best_of(front: Configurations[Row], minimise: Minimise, demands: Demands) -> Row:
    """Return the best configuration in one figure of those that meet all demands."""
    from parapipe.front import demands as stated

    if demands.confidence is None:
        return stated.best(front.configurations, minimise, demands)
    return stated.surest(front.configurations, front.drawn, minimise, demands)


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
    front: StoredFrontLike,
    minimise: Minimise = "latency",
    **demands: Unpack[DemandKeywords],
) -> Pick:
    """Return the configuration of a folder that meets all demands and has the least of one figure.

    Parameters
    ----------
    front
        What `load_front` returned, the folder that `map` wrote, or the front.json in it.
    minimise
        Take the configuration with the least of this among those that meet all demands; throughput
        stands for the highest one, which is the least period.
    demands
        Fields of `Demands`.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    DemandError
        None meets them all; the message says which are missed and by how much. Or confidence is
        asked for, and there are no draws.
    """
    from parapipe.api.front import load_front
    from parapipe.front.demands import figure

    stored = load_front(front) if isinstance(front, str | Path) else front
    requested = Demands(**demands)
    row = best_of(stored, minimise, requested)
    own, board = (replace(requested, board=each) for each in (False, True))
    figures = {
        "throughput_fps": 1 / figure(row, "throughput", own),
        "energy_j": figure(row, "energy", own),
        "board_energy_j": figure(row, "energy", board),
        "power_w": figure(row, "power", own),
        "board_power_w": figure(row, "power", board),
    }
    return Pick(row, row.plan_file, figures, certainty_of(stored, row, minimise, requested))


def certainty_of(
    front: Configurations[Row], row: Row, minimise: Minimise, demands: Demands
) -> Certainty | None:
    """Return how sure it is that a row of a front is the right choice, as `pick` says it."""
    from parapipe.front.demands import certainty

    if front.drawn is None or demands.sustained:
        return None
    rows = front.configurations
    return certainty(rows, front.drawn, minimise, demands, rows.index(row))
