"""`parapipe inspect`: what a model holds, and where it can be cut."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.front_table import coverage_lines
from parapipe.cli.options import json_option, model_options
from parapipe.cli.output import WIDTH, print_json, print_note, print_table, print_text

if TYPE_CHECKING:
    from rich.table import Table

    from parapipe.api import Shapes

STANDARD_OUTPUT = Path("-")
MEGA = 1e6
INDENT = 17  # columns before the values


@click.command()
@click.argument("model")
@model_options
@click.option(
    "--platform", help="Say how a platform runs the model: a shipped name, or path of a YAML."
)
@click.option(
    "--dot",
    type=click.Path(path_type=Path),
    help="Write the subgraphs in Graphviz's language; - prints that and nothing else.",
)
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    help="Write a picture of the subgraphs; - prints that and nothing else.",
)
@json_option
def command(
    *,
    model: str,
    dims: Mapping[str, int],
    shapes: Shapes,
    rules: Path | None,
    platform: str | None,
    dot: Path | None,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Show the operators and subgraphs of MODEL."""
    _check_usage(dot, svg, as_json=as_json)
    from parapipe import api

    found = api.inspect_model(
        model, dims=dims, shapes=shapes, rules=rules, platform=platform, note=print_note
    )
    found.write_structure(
        dot=None if dot == STANDARD_OUTPUT else dot, svg=None if svg == STANDARD_OUTPUT else svg
    )
    if dot == STANDARD_OUTPUT:
        print_text(found.to_dot().rstrip())
    elif svg == STANDARD_OUTPUT:
        print_text(found.to_svg().rstrip())
    elif as_json:
        print_json(found.to_json())
    else:
        _print_tables(found.to_json())


def _check_usage(dot: Path | None, svg: Path | None, *, as_json: bool) -> None:
    if dot and svg and os.path.realpath(dot) == os.path.realpath(svg):
        raise click.UsageError(f"--dot and --svg both name '{dot}': give each a file of its own")
    if as_json and STANDARD_OUTPUT in (dot, svg):
        raise click.UsageError("--json takes standard output: give --dot and --svg files")


def _print_tables(document: Mapping[str, Any]) -> None:
    for line in _summary(document):
        print_text(_wrapped(line))
    print_text("")
    print_table(_subgraphs(document["subgraph_table"]))
    if document["coverage"]:
        print_text("")
        for line in _coverage(document["coverage"], document["operators_fused"]):
            print_text(_wrapped(line))


def _coverage(coverage: Mapping[str, Any], operators: int) -> list[str]:
    lines = [f"platform         {coverage['platform']}"]
    for processor, types in coverage["unsupported"].items():
        runs = f"{processor} runs {operators - sum(types.values())} of {operators} fused operators"
        lines.append(f"{'':<{INDENT}}{runs}{'; not ' if types else ''}{_counts(types)}")
    return [*lines, *coverage_lines(coverage["times"])]


def _summary(document: Mapping[str, Any]) -> list[str]:
    peak_mb = document["peak_activation_bytes"] / MEGA
    lines = [
        f"model            {document['model']}",
        f"inputs           {_shapes(document['inputs'])}",
        f"outputs          {_shapes(document['outputs'])}",
        f"operators        {document['operators']}; {document['operators_fused']} once fused",
        f"subgraphs        {document['subgraphs']}",
        f"max parallelism  {document['max_parallelism']}",
        f"work             {document['macs'] / MEGA:.1f} M multiply-accumulates",
        f"constants        {document['constant_bytes'] / MEGA:.1f} MB",
        f"peak activations {peak_mb:.2f} MB, while {document['peak_operator']} runs",
        f"operator types   {_counts(document['operator_types'])}",
    ]
    lines += [
        f"{kind:<{INDENT}}{_counts(document[kind])}"
        for kind in ("unmodelled", "opaque", "ruled")
        if document[kind]
    ]
    return lines


def _wrapped(line: str) -> str:
    """Break a line at spaces, the rest below the first value; a long path stays whole."""
    return fill(
        line,
        WIDTH,
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shapes(tensors: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in tensors.items())


def _counts(types: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in types.items())


def _subgraphs(rows: Sequence[Mapping[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for title in (
        "sub-\ngraph", "opera-\ntors", "units", "bran-\nches", "paral-\nlelism", "M\nMACs",
        "MB passed\non",
    ):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("first\noperator", "last\noperator"):
        table.add_column(title, overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row['number']}",
            f"{row['operators']}",
            f"{row['units']}",
            f"{row['branches']}",
            f"{row['parallelism']}",
            f"{row['macs'] / MEGA:.1f}",
            f"{row['boundary_bytes'] / MEGA:.2f}",
            row["first_operator"],
            row["last_operator"],
        )
    return table
