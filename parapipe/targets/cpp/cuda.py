"""The target `cuda`: the same program for an NVIDIA GPU, on cuDNN and cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parapipe.errors import ExportError
from parapipe.export.exported import Exported
from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan
from parapipe.targets.cpp.folder import Form, export_program
from parapipe.targets.native.backends import BackendName
from parapipe.targets.native.runner import BACKEND_OPTIONS, DEBIAN_PACKAGES

SCHEMA = "parapipe/cuda/1"
KIND = "cuda"
_USE = f"""The computer needs a GPU of NVIDIA, its driver, the CUDA toolkit (13; 12 was not tried)
with cuBLAS, and cuDNN 9; on Debian also `sudo apt-get install --yes {DEBIAN_PACKAGES}`. If CMake
does not find cuDNN or cuBLAS, name their folders, separated by semicolons, in
`-DCMAKE_PREFIX_PATH=`. `-DCMAKE_CUDA_ARCHITECTURES=90` compiles for your GPU alone. **This form was
compiled, and its source run without a GPU in tests; no GPU has run it yet.**
"""


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write the folder; an earlier export that stands there is replaced.

    Raises
    ------
    ExportError
        If no folder is named, if the plan uses anything but one GPU and its streams or works on
        several frames at a time, or if operators have no form in the library; it names all of them.
    ModelError
        If a constant cannot be read or computed.
    OutputError
        If the folder holds anything else, or cannot be written.
    """
    if obstacles := list(_obstacles(plan)):
        raise ExportError(
            f"{plan.model.name}: a program for CUDA runs on one GPU, frame by frame, and "
            f"{'; '.join(obstacles)}; map with --max-stages 1 --interleave none, and leave the "
            "other processors out with --exclude"
        )
    options = {**dict.fromkeys(BACKEND_OPTIONS.values(), False), "PARAPIPE_CUDA": True}
    form = Form("cuda", SCHEMA, "CXX CUDA", "parapipe_gpu_program", options, _USE)
    # Lowered as for the runner's own loops: functions for GPUs take the same operators.
    backends: dict[str, BackendName] = {each.name: "plain" for each in plan.processors}
    return export_program(plan, model, destination, form, backends, kind=KIND)


def _obstacles(plan: Plan) -> Iterator[str]:
    others = [f"'{each.name}' ({each.kind})" for each in plan.processors if each.kind != "gpu"]
    if others:
        yield f"the plan uses {listed(others)}"
    gpus = {p.stream.of if p.stream else p.name for p in plan.processors if p.kind == "gpu"}
    if len(gpus) > 1:
        names = [f"'{name}'" for name in sorted(gpus)]
        yield f"it uses the GPUs {listed(names)}"
    lags = {at.lag for stage in plan.stages for p in stage.processors for at in p.operators}
    if len(plan.stages) > 1 or len(lags) > 1:
        yield "it has several frames on their way"
