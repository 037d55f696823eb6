"""What a profile holds now, and what there is to know about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class UnmatchedLayer:
    """A layer of another tool's file that stands for no operator of the model.

    Parameters
    ----------
    share
        Of the time of all layers.
    """

    name: str
    time_s: float
    share: float


@dataclass(frozen=True, slots=True)
class ImportedLayers:
    """What another tool's file told of a model's layers, and what became of it.

    Parameters
    ----------
    format
        Name of the file's format.
    layers, layers_s
        How many there are, and the seconds of all of them.
    tool_s
        Seconds that the tool tells for the whole model; None where it tells none.
    imported_s
        Seconds of the operators that have a time now.
    inserted_s
        Seconds of conversions of layouts and types and of views, which count with operators.
    blocks
        How many times of the file are of several operators.
    unmatched
        Layers that stand for no operator, the longest first.
    without
        Names of operators that no layer stands for.
    """

    format: str
    layers: int
    layers_s: float
    tool_s: float | None
    imported_s: float
    inserted_s: float
    blocks: int
    unmatched: tuple[UnmatchedLayer, ...]
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What a profile holds now, and what there is to know about it.

    Parameters
    ----------
    path
        The CSV file.
    measured, kept
        Rows of the model that are new or replaced, and those that were there before; of an import,
        the rows of its file.
    others
        Rows of other operators that stand there too.
    noisy, least_spread, most_spread
        How many of the model's rows are noisy, and how far their rounds spread, as in
        `Measurement`; None if there are none.
    notes
        What was not measured, and clocks that were not as the platform has them, a sentence each.
    imported
        What another tool's file told; None for all other profiles.
    """

    path: Path
    measured: int
    kept: int
    others: int
    noisy: int
    least_spread: float | None
    most_spread: float | None
    notes: tuple[str, ...]
    imported: ImportedLayers | None = None

    def with_runs(self, runs: ProfileReport) -> ProfileReport:
        """Return this report with a later one on runs, which add rows and replace some."""
        added = runs.rows - self.rows
        return replace(self, measured=self.measured + added, notes=(*self.notes, *runs.notes))

    def with_notes(self, notes: Iterable[str]) -> ProfileReport:
        """Return this report with more to know, in front of its own notes."""
        return replace(self, notes=(*notes, *self.notes))

    @property
    def rows(self) -> int:
        """All rows of the profile."""
        return self.measured + self.kept + self.others

    def after(self, first: ProfileReport) -> ProfileReport:
        """Return this report with one that came before it, on other rows of the same profile."""
        spreads = [
            spread
            for each in (first, self)
            for spread in (each.least_spread, each.most_spread)
            if spread is not None
        ]
        return ProfileReport(
            self.path,
            measured=first.measured + self.measured,
            kept=first.kept + self.kept,
            others=self.others - first.measured - first.kept,
            noisy=first.noisy + self.noisy,
            least_spread=min(spreads, default=None),
            most_spread=max(spreads, default=None),
            notes=tuple(dict.fromkeys((*first.notes, *self.notes))),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        document = {**asdict(self), "path": str(self.path), "notes": list(self.notes)}
        if self.imported is None:
            del document["imported"]
        return document
