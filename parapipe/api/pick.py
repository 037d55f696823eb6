"""A front read back from the folder that `map` wrote, and questions to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from parapipe.api.checked import Folder, checked
from parapipe.files.checked_arguments import Must
from parapipe.pipeline.options import MaxMemory

if TYPE_CHECKING:
    from pandas import DataFrame

    from parapipe.api.plan import Plan
    from parapipe.formats.front import ConfigurationRow, FrontDocument
    from parapipe.front.confidence import Certainty
    from parapipe.pipeline.chances import DrawnFront


def _positive(unit: str) -> Must:
    return Must(f"a positive number of {unit}", gt=0, infinite=True)


Minimise = Literal["latency", "period", "energy", "power", "memory"]
Fps = Annotated[float, Must("a number of at least 0", ge=0)]
Latency = Annotated[float, _positive("seconds")]
Energy = Annotated[float, _positive("joules")]
Power = Annotated[float, _positive("watts")]
Confidence = Annotated[float, Must("a number above 0 and at most 1", gt=0, le=1)]


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
        return f"<Pick {self.configuration} of {self.plan}>"

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
    front: Folder | StoredFront,
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
        Take the configuration with the least of this among those that meet all demands; the least
        period is the highest throughput.
    min_fps
        Frames per second, at least.
    max_latency_s
        Time of one frame through all stages, at most, as in 150ms.
    max_energy_j
        Joules per frame, at most, as in 120mJ.
    max_power_w
        Watts at full throughput, at most, as in 4W.
    max_memory_bytes
        Bytes at one moment, at most, as in 64MB: activations, queues and weights in all memories;
        or, in one memory of the platform, as in dram=64MB, which may be repeated.
    board
        Count the board's idle power in energy and power.
    sustained
        Take throughput, energy and power at the sustained rate (`sust. fps`), not at one frame per
        longest stage.
    confidence
        Take one that meets the demands in at least this share of the draws of the costs, as in 0.9,
        in place of one whose stated figures meet them; and the least of what is minimised is what a
        configuration keeps in that share.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    DemandError
        None meets them all; the message says which are missed and by how much. Or confidence is
        asked for, and there are no draws.
    """
    from parapipe.front.confidence import certainty, surest
    from parapipe.front.demands import Demands, best, figure

    stored = front if isinstance(front, StoredFront) else load_front(front)
    demands = Demands(
        min_fps=min_fps,
        max_latency_s=max_latency_s,
        max_energy_j=max_energy_j,
        max_power_w=max_power_w,
        max_memory_bytes=max_memory_bytes,
        board=board,
        sustained=sustained,
    )
    rows, drawn = stored.document.configurations, stored.drawn
    row = (
        best(rows, minimise, demands)
        if confidence is None
        else surest(rows, drawn, minimise, demands, confidence)
    )
    figures = {
        "throughput_fps": 1 / figure(row, "period", sustained=sustained),
        "energy_j": figure(row, "energy", sustained=sustained),
        "board_energy_j": figure(row, "energy", board=True, sustained=sustained),
        "power_w": figure(row, "power", sustained=sustained),
        "board_power_w": figure(row, "power", board=True, sustained=sustained),
    }
    sure = None
    if drawn and not sustained:
        sure = certainty(rows, drawn, minimise, demands, rows.index(row))
    return Pick(row, stored.plan_file(row), figures, sure)


class StoredFront:
    """A front that `map` wrote to a folder.

    Parameters
    ----------
    folder
        Where its files are.
    document
        What its front.json holds.
    """

    best = pick

    def __init__(self, folder: Path, document: FrontDocument) -> None:
        self.folder = folder
        self.document = document

    def __repr__(self) -> str:
        """Return a line: the whole front would be long."""
        return f"<StoredFront of {self.document.model} on {self.document.platform}: {self.folder}>"

    def __len__(self) -> int:
        return len(self.document.configurations)

    def __iter__(self) -> Iterator[ConfigurationRow]:
        return iter(self.document.configurations)

    def __getitem__(self, key: str | int) -> ConfigurationRow:
        """Return the configuration with this id ("c07"), name ("hybrid-T") or place (0)."""
        return self.document.configuration(key)

    @property
    def drawn(self) -> DrawnFront | None:
        """What the configurations take in draws of the costs, if the folder has any.

        Raises
        ------
        FrontError
            They cannot be read.
        """
        from parapipe.formats.front_folder import load_drawn

        return load_drawn(self.folder, self.document)

    def plan(self, key: str | int) -> Plan:
        """Read the plan of the configuration with this id, name or place."""
        from parapipe.api.load import load_plan

        return load_plan(self.plan_file(self[key]))

    def plan_file(self, row: ConfigurationRow) -> Path:
        """Return where the plan of a configuration is."""
        from parapipe.formats.front_folder import PLANS

        return self.folder / PLANS / f"{row.id}.json"

    def to_pandas(self) -> DataFrame:
        """Return one row per configuration, units in the column names."""
        from parapipe.formats.flat_front import front_frame

        return front_frame(self.document.configurations)


@checked
def load_front(directory: Folder) -> StoredFront:
    """Read the front that `map` wrote to a folder, which may be named by its front.json.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    """
    from parapipe.formats.front_folder import FRONT, folder_of
    from parapipe.formats.front_folder import load_front as load

    folder = folder_of(Path(directory))
    return StoredFront(folder, load(folder / FRONT))
