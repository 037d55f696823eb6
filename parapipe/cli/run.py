"""`parapipe run`: frames through a plan, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, json_option, quiet_option, trace_option
from parapipe.cli.progress import progress_shown
from parapipe.cli.run_report import print_run
from parapipe.cli.verb_options import VerbCommand, options

RANDOM = "random"


def _cores(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Read values of the form PROCESSOR=0,2-3."""
    if not values:
        return {}
    from parapipe.api.run import cores_given

    try:
        return cores_given(values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


@click.command(cls=VerbCommand)
@click.argument("plan", type=FILE)
@options(
    "run_plan", "model", "frames", "input", "warmup", "saturate", "period_s", "queue", "in_step",
    "arena", "cores", "patience_s", "keep", "strategy", "unit",
    input={"type": str, "metavar": "random|FILE.npz", "default": RANDOM,
           "show_default": True},
    queue={"type": click.IntRange(min=2), "metavar": "SLOTS"},
    cores={"type": str, "metavar": "PROCESSOR=CORES", "multiple": True, "callback": _cores},
    keep={"metavar": "FILE.npz"},
)  # fmt: skip
@trace_option
@quiet_option
@json_option
def command(
    *,
    plan: Path,
    input: str,
    trace: Path | None,
    quiet: bool,
    as_json: bool,
    **others: Any,  # noqa: ANN401 - click checks
) -> None:
    """Run PLAN with ONNX Runtime, and show measured beside predicted figures.

    Each processor is a thread, bound to its cores, and frames overlap: while one stage works on a
    frame, the next one works on the frame before.
    """
    if others["saturate"] and others["period_s"] is not None:
        raise click.UsageError("--saturate admits frames as fast as it can: it takes no --period")
    import parapipe
    from parapipe.api.run import check_place

    if trace is not None:
        check_place(trace)
    frames = None if input == RANDOM else input
    with progress_shown(quiet=quiet) as progress:
        run = parapipe.run_plan(plan, input=frames, progress=progress, **others)
    print_run(run, trace, as_json=as_json)
