"""A run of a plan, real or simulated: its figures, and what every resource did."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from parapipe.documents.run_schema import RunDocument
from parapipe.files.atomic import write_atomically
from parapipe.files.titles import model_title
from parapipe.runtime.record import Record, chrome_trace


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A run of a plan.

    Parameters
    ----------
    document
        Its figures beside what was predicted.
    record
        What every processor and link did when.
    notes
        What else there is to know, a sentence each.
    """

    document: RunDocument
    record: Record
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return a line: what every processor did when would be long."""
        run = self.document
        return (
            f"<{run.how} of {run.model} on {run.platform}: {run.frames} frames, median "
            f"{run.latency.median_s * 1e3:.1f} ms>"
        )

    def to_json(self) -> dict[str, object]:
        """Return the figures as plain values for JSON."""
        return self.document.to_json()

    def save_trace(self, path: str | Path) -> None:
        """Write a trace for chrome://tracing and ui.perfetto.dev.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        run = self.document
        simulated = ", simulated" if run.how == "simulation" else ""
        title = f"{model_title(run.model)} on {run.platform}{simulated}"
        trace = json.dumps(chrome_trace(self.record, title), allow_nan=False)
        write_atomically(Path(path), trace.encode())
