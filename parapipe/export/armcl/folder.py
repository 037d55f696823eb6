"""`parapipe export PLAN --to armcl DIR`: the folder that `runtimes/armcl` runs."""

from __future__ import annotations

from pathlib import Path

from parapipe.export.armcl.build import folder_of, lowered
from parapipe.export.armcl.weights_file import NAME, layout, write_weights
from parapipe.export.constants import Constants
from parapipe.plan import armcl_plan
from parapipe.plan.schema import Plan


def write_library_folder(plan: Plan, model: Path, folder: Path) -> armcl_plan.LibraryPlan:
    """Write `plan.json` and the weights file into a folder that is there and empty.

    Parameters
    ----------
    plan
        A plan that `verify_plan` accepts.
    model
        Its model file, whose digests are those of the plan.

    Raises
    ------
    ExportError
        If operators have no form in the library; then nothing is written.
    ModelError
        If a constant cannot be read or computed.
    """
    with Constants(plan, model) as constants:
        into = lowered(plan, constants)
        offsets, size_bytes = layout(into.weights)
        document = folder_of(
            plan, into, armcl_plan.WeightsFile(file=NAME, size_bytes=size_bytes), offsets
        )
        write_weights(folder / NAME, into.weights, offsets)
    (folder / "plan.json").write_bytes(document.to_bytes())
    return document
