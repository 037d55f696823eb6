"""The target `onnxruntime`: a folder that ONNX Runtime executes on the board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parapipe.errors import ExportError
from parapipe.export.exported import Exported, exported_folder, refuse_others
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.files.atomic import whole_folder
from parapipe.plan.schema import Plan
from parapipe.runtime.copied import runner_files
from parapipe.runtime.document import SCHEMA, SessionPlan


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write the folder; an earlier export that stands there is replaced.

    Raises
    ------
    ExportError
        If no folder is named, or a segment is too large for a file.
    OutputError
        If the folder holds anything else, or cannot be written.
    PlanError
        If the plan's operators are not those of the model.
    """
    if destination is None:
        raise ExportError("the target onnxruntime makes a folder: name it, as in `… DIR`")
    refuse_others(destination, SCHEMA, _earlier)
    with whole_folder(destination) as folder:
        document = write_session_folder(plan, model, folder)
    return exported_folder("onnxruntime", destination, _summary(document), _notes(document))


def _earlier(document: Mapping[str, Any]) -> set[str]:
    """Return the names that an earlier export has put beside its plan."""
    return {*(Path(name).parts[0] for name in runner_files()), *document.get("files", ())}


def _summary(document: SessionPlan) -> tuple[str, ...]:
    counts = {
        processor.name: sum(each.processor == processor.name for each in document.segments)
        for processor in document.processors
    }
    shares = ", ".join(f"{count} on {name}" for name, count in counts.items())
    return (
        f"segments    {len(document.segments)}: {shares}",
        f"channels    {sum(each.producer is not None for each in document.channels)}",
    )


def _notes(document: SessionPlan) -> tuple[str, ...]:
    return tuple(
        f"segments of '{processor.name}' run on the CPU: {processor.substitute}"
        for processor in document.processors
        if processor.substitute
    )
