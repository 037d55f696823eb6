"""`parapipe export`: a plan as files for a runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, Name, explicit_options, json_option, quiet_option
from parapipe.cli.output import print_json, print_note, print_text
from parapipe.cli.plan_arguments import ShapesFolder, plan_and_destination
from parapipe.cli.progress import progress_shown
from parapipe.cli.verb_options import VerbCommand, options

KILO, MEGA = 1e3, 1e6


@click.command(cls=VerbCommand)
@plan_and_destination
@click.option(
    "--to",
    "target",
    type=Name("plan", "export_targets", "check_target"),
    required=True,
    help="The runtime.",
)
@click.option("--model", help="The plan's model, if it has moved since it was mapped.")
@click.option("--force", is_flag=True, help="Replace a file that no export has written.")
@options("export_plan", "calibration", "check", "token_plan", token_plan={"type": FILE})
@quiet_option
@json_option
def command(
    *,
    named: tuple[Path | ShapesFolder, Path | None],
    target: str,
    quiet: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401
) -> None:
    """Write PLAN for a runtime, weights included, to DESTINATION.

    DIR is a folder that map wrote, ID the id or a name of a configuration in it.

    onnxruntime: a folder with one ONNX file per segment, and run.py, which needs only onnxruntime
    and numpy. A segment is a run of operators that a processor executes without waiting for another
    one.

    rknn: a folder for boards with Rockchip's NPU: its segments compiled, and run.py.

    ncnn: a folder for ncnn, on CPUs and, by Vulkan, on GPUs: its segments converted by pnnx, and
    run.py.

    segments: a folder with one plain ONNX model per segment and a manifest, for NPU
    compilers.

    genai: a folder of ONNX Runtime GenAI, whose decoder runs the prompt by PLAN, and the tokens
    after it by the plan that --token-plan names. Of a folder of several shapes, by both plans.

    native (or armcl): a folder for the C++ runner, on ARM Compute Library, oneDNN, XNNPACK or its
    own loops, as each processor's backend says.

    cpp: the same as a C++ program of its own: source, weights and the library, to be compiled.

    cuda: such a program for a GPU of NVIDIA, on cuDNN and cuBLAS.

    perfetto: a trace of the predicted schedule, for ui.perfetto.dev or chrome://tracing.

    model-explorer: a folder of node data for Model Explorer, to colour the ONNX model's nodes by
    stage, processor, time and energy.

    arm-co-up: the command line of the public ARM-CO-UP runtime, printed, or written as a script.
    """
    import parapipe

    plan, destination = named
    with progress_shown(quiet=quiet) as progress:
        if isinstance(plan, ShapesFolder):
            exported = _export_shapes(plan, target, destination, given)
        else:
            exported = parapipe.export_plan(plan, target, destination, progress=progress, **given)
    if as_json:
        print_json(exported.to_json())
        return
    for sentence in exported.notes:
        print_note(sentence)
    if exported.text:
        print_text(exported.text)
        return
    files = len(exported.files)
    size = f"{files} file{'s' * (files != 1)}, {_size_text(exported.size_bytes)}"
    print_text("\n".join([f"wrote {destination}: {size}", *exported.summary]))


def _export_shapes(
    shapes: ShapesFolder, target: str, destination: Path | None, given: dict[str, Any]
) -> Any:  # noqa: ANN401 - what the verb returns
    """Export the plans of a configuration of several shapes."""
    import parapipe

    if others := explicit_options() & {"calibration", "check", "token_plan"}:
        names = ", ".join(f"--{each.replace('_', '-')}" for each in sorted(others))
        raise click.UsageError(f"{names}: of one plan, and the folder holds several shapes")
    return parapipe.export_shapes(
        shapes.folder, shapes.configuration or "", target, destination, model=given["model"],
        force=given["force"],
    )  # fmt: skip


def _size_text(size_bytes: int) -> str:
    if size_bytes < KILO:
        return f"{size_bytes} bytes"
    if size_bytes < MEGA:
        return f"{size_bytes / KILO:.0f} kB"
    return f"{size_bytes / MEGA:.1f} MB"
