"""`parapipe simulate`: frames through a plan, event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from parapipe.cli.options import contention_given, json_option, percent_given
from parapipe.cli.output import print_note
from parapipe.cli.run_report import print_run

ASK_PLATFORM = "platform"


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--frames", type=click.IntRange(min=1), default=100, show_default=True, help="How many."
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    metavar="SLOTS",
    help="Slots of every channel between processors.  [default: as the plan says]",
)
@click.option(
    "--jitter",
    default="0%",
    show_default=True,
    metavar="SHARE",
    callback=percent_given,
    help="How much times vary: their standard deviation, as in 5%.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the jitter."
)
@click.option(
    "--saturate",
    is_flag=True,
    help="Let frames in as fast as they are taken, not one each predicted period.",
)
@click.option(
    "--contention",
    is_flag=False,
    flag_value=ASK_PLATFORM,
    metavar="[SHARE]",
    callback=contention_given,
    help="Let processors that share the memory slow each other down: as the platform says, or by "
    "that share while the others use all of the bandwidth.",
)
@click.option(
    "--platform", help="Whose memory it is.  [default: the shipped platform that the plan names]"
)
@click.option(
    "--unit",
    type=click.Choice(["operator", "segment"]),
    default="operator",
    show_default=True,
    help="What a processor runs at one go; ONNX Runtime runs segments.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a trace for chrome://tracing and ui.perfetto.dev.",
)
@json_option
def command(
    *,
    plan: Path,
    frames: int,
    queue: int | None,
    jitter: float,
    seed: int,
    saturate: bool,
    contention: float | bool,
    platform: str | None,
    unit: Literal["operator", "segment"],
    trace: Path | None,
    as_json: bool,
) -> None:
    """Send frames through a plan as an executor would, event by event.

    One thread for each processor takes its operators in the plan's order; channels have as many
    slots as the plan says. Without jitter and contention, a saturated pipeline comes to repeat
    itself with exactly the plan's sustained period.
    """
    if platform is not None and contention is False:
        raise click.UsageError(
            "--platform says whose memory is contended: it takes --contention, too"
        )
    from parapipe import simulating

    run = simulating.simulate_plan(
        plan,
        frames=frames,
        queue=queue,
        jitter=jitter,
        seed=seed,
        saturate=saturate,
        contention=contention,
        platform=platform,
        unit=unit,
    )
    if trace is not None:
        run.save_trace(trace)
    for note in run.notes:
        print_note(note)
    print_run(run.to_json(), trace, as_json=as_json)
