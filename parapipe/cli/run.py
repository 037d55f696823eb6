"""`parapipe run`: frames through a plan, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import explicit_options, json_option, quiet_option, trace_option
from parapipe.cli.output import print_document
from parapipe.cli.plan_arguments import ShapesFolder, plans_or_shapes
from parapipe.cli.progress import progress_shown
from parapipe.cli.request_report import refuse_others, refuse_requests, request_lines
from parapipe.cli.run_report import print_runs, refuse_for_several
from parapipe.cli.verb_options import VerbCommand, options

if TYPE_CHECKING:
    from parapipe import Run

RANDOM = "random"
_OF_SHAPES = ("input", "warmup", "model", "cores", "patience_s", "keep")
"""Options that requests of several shapes have, too."""


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
@plans_or_shapes
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
@options("run_shapes", "tokens", "requests")
@trace_option
@quiet_option
@json_option
def command(
    *,
    plans: list[Path] | ShapesFolder,
    input: str,
    trace: Path | None,
    tokens: int | None,
    requests: int,
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

    Of a folder of several shapes, ID is that of a configuration in shapes.json: a prompt runs by
    one placement and the tokens after it by the other, the state handed on.
    """
    if isinstance(plans, ShapesFolder):
        refuse_others(_OF_SHAPES)
        given = {name: others[name] for name in explicit_options() if name in others}
        given |= {"input": None if input == RANDOM else input, "tokens": tokens}
        _run_requests(plans, {**given, "requests": requests}, quiet=quiet, as_json=as_json)
        return
    refuse_requests()
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


def _run_requests(
    shapes: ShapesFolder, given: dict[str, Any], *, quiet: bool, as_json: bool
) -> None:
    """Run requests of several shapes."""
    import parapipe

    with progress_shown(quiet=quiet) as progress:
        document = parapipe.run_shapes(
            shapes.folder, shapes.configuration, progress=progress, **given
        )
    print_document(document.to_json(), request_lines, as_json=as_json)
