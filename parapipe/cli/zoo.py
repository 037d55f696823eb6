"""`parapipe zoo`: the benchmark models that parapipe builds itself."""

from __future__ import annotations

from pathlib import Path

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_text


@click.group()
def command() -> None:
    """List and build the benchmark models.

    Where a command takes a MODEL, zoo:NAME stands for it.
    """


@command.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the models that can be built."""
    from parapipe import api

    names = list(api.zoo_names())
    if as_json:
        print_json({"models": names})
    else:
        print_text("\n".join(names))


@command.command()
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; NAME.onnx if not given (gpt-12.onnx for gpt:12).",
)
@click.option(
    "--weightless",
    is_flag=True,
    help="Make weights by nodes, all elements equal: a file of kilobytes that still runs.",
)
def build(*, name: str, out: Path | None, weightless: bool) -> None:
    """Write the model NAME as an ONNX file, its random weights always the same."""
    from parapipe import api

    name = name.removeprefix("zoo:")
    path = out or Path(f"{name.replace(':', '-')}.onnx")
    api.build_zoo(name, path, weightless=weightless)
    print_text(f"wrote {path}")
