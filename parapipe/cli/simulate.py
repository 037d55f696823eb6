"""`parapipe simulate`: frames through a plan, event by event."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, json_option, number, trace_option
from parapipe.cli.run_report import print_run
from parapipe.cli.verb_options import VerbCommand, options


def _contention(ctx: click.Context, param: click.Parameter, value: str | None) -> float | bool:
    """Take nothing, the word platform, or a positive number."""
    if value is None or value == "platform":
        return value is not None
    share = number(value)
    if not 0 < share < math.inf:
        raise click.BadParameter(
            f"'{value}' is not a positive number, as in 0.3; write PLAN first, then --contention",
            ctx,
            param,
        )
    return share


@click.command(cls=VerbCommand)
@click.argument("plan", type=FILE)
@options(
    "simulate_plan",
    "frames",
    "queue",
    "jitter",
    "disturb",
    "seed",
    "saturate",
    queue={"metavar": "SLOTS"},
)
@click.option(
    "--contention",
    is_flag=False,
    flag_value="platform",
    metavar="[SHARE]",
    callback=_contention,
    help="Let processors that share the memory slow each other down: as the platform says, or by "
    "that share while the others use all of the bandwidth.",
)
@options("simulate_plan", "platform", "unit", "strategy", "model")
@trace_option
@json_option
def command(*, plan: Path, trace: Path | None, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Simulate frames through a plan, event by event.

    As in a real run, one thread per processor takes its operators in the plan's order; channels
    have as many slots as the plan says. Without jitter and contention, a saturated pipeline reaches
    exactly the plan's sustained period.
    """
    idle = given["contention"] is False and given["strategy"] == "plan"
    if given["platform"] is not None and idle:
        raise click.UsageError(
            "--platform names the memory that is shared, or says what operators take elsewhere: it "
            "needs --contention or --strategy, too"
        )
    import parapipe

    print_run(parapipe.simulate_plan(plan, **given), trace, as_json=as_json)
