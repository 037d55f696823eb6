"""`parapipe simulate`: frames through a plan, event by event."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option, number, trace_option
from parapipe.cli.output import print_document
from parapipe.cli.plan_arguments import ShapesFolder, plans_or_shapes
from parapipe.cli.request_report import refuse_others, refuse_requests, request_lines
from parapipe.cli.run_report import print_runs, refuse_for_several
from parapipe.cli.verb_options import VerbCommand, options

if TYPE_CHECKING:
    from parapipe import Run

ONE_PLAN = (
    "contention", "model", "random_arrivals", "jitter_from", "p99_latency_s", "p99_period_s", "out",
)  # fmt: skip

_OF_SHAPES = ("jitter", "disturb", "seed")
"""Options that requests of several shapes have, too."""


def _take_contention(ctx: click.Context, param: click.Parameter, value: str | None) -> float | bool:
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
@plans_or_shapes
@options(
    "simulate_plan",
    "frames",
    "queue",
    "jitter",
    "jitter_from",
    "disturb",
    "seed",
    "saturate",
    "random_arrivals",
    queue={"metavar": "SLOTS"},
)
@click.option(
    "--contention",
    is_flag=False,
    flag_value="platform",
    metavar="[SHARE]",
    callback=_take_contention,
    help="Let processors that share the memory slow each other down: by the platform's law, or by "
    "that share while the others use all of the bandwidth.",
)
@options(
    "simulate_plan",
    "platform",
    "unit",
    "strategy",
    "patience_s",
    "model",
    "p99_latency_s",
    "p99_period_s",
    "out",
)
@options("simulate_shapes", "tokens", "requests")
@trace_option
@json_option
def command(
    *,
    plans: list[Path] | ShapesFolder,
    trace: Path | None,
    tokens: int | None,
    requests: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Simulate frames through a plan, event by event.

    DIR is a folder that map wrote, ID the id or a name of a configuration in it; default: the
    balanced one. Several plans are simulated together, with --strategy ready-pool: their work is in
    one pool.

    As in a real run, one thread per processor takes its operators in the plan's order; channels
    have as many slots as the plan says. Without jitter and contention, a saturated pipeline reaches
    exactly the plan's sustained period.

    Of a folder of several shapes, ID is that of a configuration in shapes.json: a prompt runs by
    one placement and the tokens after it by the other, the state handed on.
    """
    if isinstance(plans, ShapesFolder):
        refuse_others(_OF_SHAPES)
        given = {name: given[name] for name in _OF_SHAPES} | {"tokens": tokens}
        _simulate_requests(plans, {**given, "requests": requests}, as_json=as_json)
        return
    refuse_requests()
    idle = given["contention"] is False and given["strategy"] == "plan"
    if given["platform"] is not None and idle:
        raise click.UsageError(
            "--platform names the memory that is shared, or says what operators take elsewhere: it "
            "needs --contention or --strategy, too"
        )
    import parapipe

    runs: tuple[Run, ...]
    if len(plans) == 1:
        runs = (parapipe.simulate_plan(plans[0], **given),)
    else:
        refuse_for_several(given, *ONE_PLAN, trace=trace)
        runs = parapipe.simulate_plans(plans, **given)
    print_runs(runs, plans, trace, as_json=as_json)


def _simulate_requests(shapes: ShapesFolder, given: dict[str, Any], *, as_json: bool) -> None:
    """Simulate requests of several shapes."""
    import parapipe

    document = parapipe.simulate_shapes(shapes.folder, shapes.configuration, **given)
    print_document(document.to_json(), request_lines, as_json=as_json)
