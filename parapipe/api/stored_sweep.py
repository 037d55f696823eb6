"""The folder of a sweep, and questions to all its fronts at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from parapipe.api.checked import Folder, checked
from parapipe.api.pick import Pick, pick
from parapipe.api.stored_front import StoredFront, load_front
from parapipe.errors import DemandError
from parapipe.formats.figure_table import DemandKeywords, Demands, Minimise

if TYPE_CHECKING:
    from pandas import DataFrame

    from parapipe.formats.sweep import SweepDocument, SweepRow


@dataclass(frozen=True, slots=True)
class SweepPick:
    """What is picked from one front of a sweep.

    Parameters
    ----------
    missed
        Which demands no configuration of the front meets, and by how much; empty if one does.
    """

    row: SweepRow
    picked: Pick | None
    missed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "result": self.row.to_json(),
            "picked": self.picked.to_json() if self.picked else None,
            "missed": self.missed or None,
        }


class StoredSweep:
    """A sweep that `sweep` wrote to a folder.

    Parameters
    ----------
    folder
        Where its files are.
    document
        What its sweep.json holds.
    """

    def __init__(self, folder: Path, document: SweepDocument) -> None:
        self.folder = folder
        self.document = document

    def __repr__(self) -> str:
        """Return a line."""
        return f"<StoredSweep in {self.folder}: {len(self.document.results)} results>"

    def __len__(self) -> int:
        return len(self.document.results)

    def __iter__(self) -> Iterator[tuple[SweepRow, StoredFront]]:
        """Yield the results that have a front."""
        for row in self.document.results:
            if row.error is None:
                yield row, self[row.name]

    def __getitem__(self, name: str) -> StoredFront:
        """Return the front of a result by its name."""
        from parapipe.formats.sweep import RESULTS

        return load_front(self.folder / RESULTS / name)

    def to_json(self) -> dict[str, Any]:
        """Return the document of sweep.json as plain data."""
        return self.document.to_json()

    def to_pandas(self) -> DataFrame:
        """Return one row per configuration of all fronts, units in the column names."""
        from parapipe.formats.sweep import sweep_frame

        return sweep_frame((row, front.document) for row, front in self)

    def pick(
        self, minimise: Minimise = "latency", **demands: Unpack[DemandKeywords]
    ) -> tuple[SweepPick, ...]:
        """Pick a configuration of each front, as `pick` does.

        Returns
        -------
        Model by model; for each, those that meet all demands come first, the best of them first.
        """
        made = [_picked(row, front, minimise, demands) for row, front in self]
        models = list(dict.fromkeys(each.row.model for each in made))

        def rank(each: SweepPick) -> tuple[int, float]:
            """Return the place of the model, and what is to be least: infinite without a pick."""
            from parapipe.front.demands import figure

            row = each.picked.configuration if each.picked else None
            least = figure(row, minimise, Demands(**demands)) if row else inf
            return models.index(each.row.model), least

        return tuple(sorted(made, key=rank))


def _picked(
    row: SweepRow, front: StoredFront, minimise: Minimise, demands: DemandKeywords
) -> SweepPick:
    try:
        return SweepPick(row, pick(front, minimise, **demands))
    except DemandError as error:
        return SweepPick(row, None, str(error))


@checked
def load_sweep(directory: Folder) -> StoredSweep:
    """Read the sweep that `sweep` wrote to a folder.

    Raises
    ------
    SweepError
        Its sweep.json cannot be read.
    """
    from parapipe.formats.sweep import load_sweep_document

    folder = Path(directory)
    return StoredSweep(folder, load_sweep_document(folder))


def is_sweep(directory: Path) -> bool:
    """Tell whether a folder is one of a sweep."""
    from parapipe.formats.sweep import DOCUMENT

    return (directory / DOCUMENT).is_file()
