"""`parapipe run`: frames through a plan, on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from parapipe.cli.options import json_option, seconds_given
from parapipe.cli.output import print_note
from parapipe.cli.progress import progress_shown
from parapipe.cli.run_report import print_run

RANDOM = "random"


def cores_given(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Read values of the form PROCESSOR=0,2-3."""
    if not values:
        return {}
    from parapipe import running

    try:
        return running.cores_given(values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def positive_given(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Take a positive number of seconds, or nothing."""
    return None if value is None else seconds_given(ctx, param, value)


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--model", help="The plan's model, if it is not where it was when it was mapped.")
@click.option(
    "--frames",
    type=click.IntRange(min=1),
    help="How many.  [default: those of --input, or 100]",
)
@click.option(
    "--input",
    "given",
    default=RANDOM,
    show_default=True,
    metavar="random|FILE.npz",
    help="An array for each graph input, of its shape or with one more axis of frames in front.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Frames to run before, which count nowhere.",
)
@click.option(
    "--saturate",
    is_flag=True,
    help="Let frames in as fast as they are taken, not one each predicted period.",
)
@click.option(
    "--period",
    "period_s",
    type=float,
    metavar="SECONDS",
    callback=positive_given,
    help="Let a frame in so often.  [default: the predicted period]",
)
@click.option(
    "--queue",
    type=click.IntRange(min=2),
    metavar="SLOTS",
    help="Slots of every channel between processors.  [default: as the plan says]",
)
@click.option(
    "--cores",
    multiple=True,
    metavar="PROCESSOR=CORES",
    callback=cores_given,
    help="Run a processor on other cores than the plan's, as in big=0,1 or big=0-3; repeatable.",
)
@click.option(
    "--patience",
    "patience_s",
    type=float,
    metavar="SECONDS",
    callback=positive_given,
    help="Give up after so long without progress.  "
    "[default: a minute, or ten times the predicted latency]",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Write the results, those of an unfinished run too.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a trace for chrome://tracing and ui.perfetto.dev.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@json_option
def command(
    *,
    plan: Path,
    model: str | None,
    frames: int | None,
    given: str,
    warmup: int,
    saturate: bool,
    period_s: float | None,
    queue: int | None,
    cores: Mapping[str, tuple[int, ...]],
    patience_s: float | None,
    keep: Path | None,
    trace: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run PLAN with ONNX Runtime, and tell what was measured beside what was predicted.

    Each processor is a thread, bound to its cores, and frames overlap: while one stage works on a
    frame, the next one works on the frame before.
    """
    if saturate and period_s is not None:
        raise click.UsageError("--saturate lets frames in as fast as it can: it takes no --period")
    from parapipe import running

    if trace is not None:
        running.check_place(trace)
    with progress_shown(quiet=quiet) as progress:
        run = running.run_plan(
            plan,
            model=model,
            frames=frames,
            given=None if given == RANDOM else given,
            warmup=warmup,
            saturate=saturate,
            period_s=period_s,
            queue=queue,
            cores=cores,
            patience_s=patience_s,
            keep=keep,
            progress=progress,
        )
    if trace is not None:
        run.save_trace(trace)
    for note in run.notes:
        print_note(note)
    print_run(run.to_json(), trace, as_json=as_json)
