"""`parapipe evaluate`: what a given mapping takes, without a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from parapipe.cli.front_table import coverage_lines
from parapipe.cli.options import json_option, model_options
from parapipe.cli.output import print_json, print_note, print_table, print_text

if TYPE_CHECKING:
    from rich.table import Table

    from parapipe.api import Shapes


@click.command()
@click.argument("model")
@click.option(
    "--platform", required=True, help="Name of a shipped platform, or path of a YAML file."
)
@click.option(
    "--assignment",
    type=click.Path(path_type=Path),
    help="YAML or JSON file: a processor for each operator or subgraph, and stages.",
)
@click.option(
    "--order",
    metavar="LETTERS",
    help="In its place: a letter for each block of a measured network, as in GGGGBBBBBBG.",
)
@click.option(
    "--granularity",
    type=click.Choice(["fused", "onnx"]),
    default="fused",
    show_default=True,
    help="Whether an activation goes with the operator before it.",
)
@click.option(
    "--view",
    type=click.Choice(["deployed", "as-measured"]),
    help="Whether what a runtime folds away is free; as measured for a measured network.",
)
@click.option(
    "--profile",
    "profiles",
    type=click.Path(path_type=Path),
    multiple=True,
    help="CSV file of measured times, in place of the platform's own; may be repeated.",
)
@model_options
@json_option
def command(
    *,
    model: str,
    platform: str,
    assignment: Path | None,
    order: str | None,
    granularity: Literal["fused", "onnx"],
    view: Literal["deployed", "as-measured"] | None,
    profiles: Sequence[Path],
    dims: Mapping[str, int],
    shapes: Shapes,
    rules: Path | None,
    as_json: bool,
) -> None:
    """Say what a given mapping of MODEL takes: latency, period, energy."""
    from parapipe import api

    if (assignment is None) == (order is None):
        raise click.UsageError("give either --assignment FILE or --order LETTERS")
    document = api.evaluate_mapping(
        model,
        platform,
        assignment=assignment,
        order=order,
        granularity=granularity,
        view=view,
        profiles=profiles,
        dims=dims,
        shapes=shapes,
        rules=rules,
        note=print_note,
    ).model_dump(mode="json", by_alias=True)
    if as_json:
        print_json(document)
        return
    print_table(_stages(document["stages"]))
    print_text("")
    print_text("\n".join(_figures(document)))


def _stages(stages: Sequence[Mapping[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for title in ("stage", "time\nms", "opera-\ntors"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("processors")
    table.add_column("first operator", overflow="ellipsis", no_wrap=True)
    table.add_column("last operator", overflow="ellipsis", no_wrap=True)
    for number, stage in enumerate(stages, start=1):
        mark = " (shared)" if stage["shared_processor"] else ""
        table.add_row(
            f"{number}",
            f"{stage['time_s'] * 1e3:.2f}",
            f"{stage['operators']}",
            " + ".join(stage["processors"]) + mark,
            stage["first_operator"],
            stage["last_operator"],
        )
    return table


def _figures(document: Mapping[str, Any]) -> list[str]:
    sequential = document["sequential"]
    shared = document["shared_processor"]
    apart = f"{_ms(document, 'input_s')} of input and {_ms(document, 'output_s')} of output apart"
    sustained_fps = 1 / document["sustained_period_s"]
    executor = "a thread for each processor and queues of two"
    longest = f"longest stage {_ms(document, 'longest_stage_s')}"
    return [
        f"latency     {_ms(document, 'latency_s')}; {apart}",
        f"period      {_ms(document, 'period_s')}, {document['throughput_fps']:.2f} fps; {longest}",
        f"sustained   {_ms(document, 'sustained_period_s')}, {sustained_fps:.2f} fps by {executor}",
        *(
            [f"shared      {', '.join(shared)} works for a frame in several stages"]
            if shared
            else []
        ),
        f"energy      {_mj(document)}",
        f"in sequence {_mj(sequential)}: one frame at a time",
        *coverage_lines(document["coverage"]),
    ]


def _ms(document: Mapping[str, Any], key: str) -> str:
    return f"{document[key] * 1e3:.2f} ms"


def _mj(row: Mapping[str, Any]) -> str:
    board = f"{row['board_energy_j'] * 1e3:.1f} with the board's idle power"
    return f"{row['energy_j'] * 1e3:.1f} mJ per frame; {board}"
