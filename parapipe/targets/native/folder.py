"""The target `native`: a folder that the C++ runner executes; `armcl` is its name of before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from parapipe.export.constants import Constants
from parapipe.export.exported import Exported, export_folder, readme, refuse_converted
from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan
from parapipe.targets.native import library_plan
from parapipe.targets.native.backends import BACKENDS, BackendName, backends_of, library_notes
from parapipe.targets.native.build import library_plan_of, lower_plan
from parapipe.targets.native.steps import Weight

WEIGHTS = "weights.bin"
_ITEM_BYTES = 4
USE = """
It needs the native runner with {}. That stands in `runtimes/native` of
parapipe's repository with its own README: build it for the board, copy this folder there, and run

    build/parapipe-native DIR --frames 100
"""
FILES = {
    "plan.json": "what runs where and when, in docs/armcl-format.md's words",
    WEIGHTS: "the constants, little-endian float32, in ONNX's layout",
    "input.bin, expected.bin": "if you put them there: frames to run on, and their results",
}
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

    def write(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        document = write_library_folder(plan, model, folder)
        shares = ", ".join(
            f"{len(each.operators)} on {each.name}"
            for stage in document.stages
            for each in stage.processors
        )
        return (
            f"operators   {len(document.operators)}: {shares}",
            f"transfers   {len(document.transfers)}",
        ), library_notes(plan)

    libraries = dict.fromkeys(BACKENDS[each].title for each in backends_of(plan).values())

    return export_folder(
        "native", destination, library_plan.SCHEMA, lambda _: (WEIGHTS, *_FRAMES), write,
        readme=readme(plan, "native", USE.format(listed([*libraries])), FILES),
    )  # fmt: skip


def write_library_folder(
    plan: Plan, model: Path, folder: Path, *, backend: BackendName | None = None
) -> library_plan.LibraryPlan:
    """Write `plan.json` and the weights file into a folder that is there and empty.

    Parameters
    ----------
    plan
        A plan that `verify_plan` accepts.
    model
        Its model file, whose digests are those of the plan.
    backend
        What runs all processors, in place of what they name.

    Raises
    ------
    ExportError
        If operators have no form in the library, or the plan is for other data types than the
        model's; then nothing is written.
    ModelError
        If a constant cannot be read or computed.
    """
    refuse_converted(plan, "native")
    with Constants(plan, model) as constants:
        backends = backends_of(plan, backend)
        into = lower_plan(plan, constants, backends)
        offsets, size_bytes = weight_offsets(into.weights)
        file = library_plan.WeightsFile(file=WEIGHTS, size_bytes=size_bytes)
        document = library_plan_of(plan, into, file, offsets, backends)
        write_weights(folder / WEIGHTS, into.weights, offsets)
    (folder / "plan.json").write_bytes(document.to_bytes())
    return document


def weight_offsets(weights: Mapping[str, Weight]) -> tuple[dict[str, int], int]:
    """Return where each constant starts, and the size of the file, in bytes."""
    offsets: dict[str, int] = {}
    end = 0
    for name, weight in weights.items():
        offsets[name] = -(-end // library_plan.ALIGNMENT_BYTES) * library_plan.ALIGNMENT_BYTES
        end = offsets[name] + prod(weight.shape) * _ITEM_BYTES
    return offsets, end


def write_weights(path: Path, weights: Mapping[str, Weight], offsets: Mapping[str, int]) -> None:
    """Write all constants as little-endian float32; only one is in memory at a time."""
    with path.open("xb") as file:
        for name, weight in weights.items():
            file.seek(offsets[name])
            file.write(np.ascontiguousarray(weight.load(), dtype="<f4").data)
        file.flush()
        os.fsync(file.fileno())
