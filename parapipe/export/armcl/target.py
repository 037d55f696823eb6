"""The target `armcl`: a folder that the runner on ARM Compute Library executes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from parapipe.errors import ExportError
from parapipe.export.armcl.folder import write_library_folder
from parapipe.export.armcl.weights_file import NAME
from parapipe.export.exported import Exported, exported_folder, refuse_others
from parapipe.files.atomic import whole_folder
from parapipe.plan.armcl_plan import SCHEMA, LibraryPlan
from parapipe.plan.schema import Plan

_FRAMES = ("input.bin", "expected.bin")  # what a user may have put beside the plan


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write the folder; an earlier export that stands there is replaced.

    Raises
    ------
    ExportError
        If no folder is named, or operators have no form in the library; it names all of them.
    ModelError
        If a constant cannot be read or computed.
    OutputError
        If the folder holds anything else, or cannot be written.
    """
    if destination is None:
        raise ExportError("the target armcl makes a folder: name it, as in `… DIR`")
    refuse_others(destination, SCHEMA, lambda _: (NAME, *_FRAMES))
    with whole_folder(destination) as folder:
        document = write_library_folder(plan, model, folder)
    return exported_folder("armcl", destination, _summary(document))


def _summary(document: LibraryPlan) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for stage in document.stages:
        counts.update({each.name: len(each.operators) for each in stage.processors})
    shares = ", ".join(f"{count} on {name}" for name, count in counts.items())
    return (
        f"operators   {len(document.operators)}: {shares}",
        f"transfers   {len(document.transfers)}",
    )
