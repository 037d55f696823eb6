"""`parapipe run`: frames through a plan, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option, quiet_option, trace_option
from parapipe.cli.plan_arguments import plans_argument
from parapipe.cli.progress import progress_shown
from parapipe.cli.run_report import print_runs, refuse_for_several
from parapipe.cli.verb_options import VerbCommand, options

if TYPE_CHECKING:
    from parapipe import Run

RANDOM = "random"


def _take_cores(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Read values of the form PROCESSOR=0,2-3."""
    if not values:
        return {}
    from parapipe.api.run import read_cores

    try:
        return read_cores(values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


@click.command(cls=VerbCommand)
@plans_argument
@options(
    "run_plan", "model", "frames", "input", "warmup", "saturate", "period_s",
    "random_arrivals", "seed", "queue", "in_step", "arena", "cores", "patience_s", "keep",
    "strategy", "unit", "runtime",
    input={"type": str, "metavar": "random|FILE.npz", "default": RANDOM,
           "show_default": True},
    queue={"type": click.IntRange(min=2), "metavar": "SLOTS"},
    cores={"metavar": "PROCESSOR=CORES", "callback": _take_cores},
    keep={"metavar": "FILE.npz"},
)  # fmt: skip
@trace_option
@quiet_option
@json_option
def command(
    *,
    plans: list[Path],
    input: str,
    trace: Path | None,
    quiet: bool,
    as_json: bool,
    **others: Any,  # noqa: ANN401 - click checks
) -> None:
    """Run PLAN, and show measured beside predicted figures.

    DIR is a folder that map wrote, ID the id or a name of a configuration in it; default: the
    balanced one. Several plans are run together, with --strategy ready-pool: their work is in one
    pool.

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
        runs: tuple[Run, ...]
        if len(plans) == 1:
            runs = (parapipe.run_plan(plans[0], input=frames, progress=progress, **others),)
        else:
            refuse_for_several(
                others,
                "model",
                "in_step",
                "arena",
                "random_arrivals",
                "seed",
                "runtime",
                trace=trace,
            )
            runs = parapipe.run_plans(plans, input=frames, progress=progress, **others)
    print_runs(runs, plans, trace, as_json=as_json)
