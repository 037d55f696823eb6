"""`parapipe zoo`: the benchmark models that parapipe builds itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import print_document, print_text
from parapipe.cli.verb_options import VerbCommand, options


@click.group()
def command() -> None:
    """List and build the benchmark models.

    Where a command takes a MODEL, zoo:NAME stands for it.
    """


@command.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the models that can be built."""
    import parapipe

    names = list(parapipe.zoo_names())
    print_document({"models": names}, lambda document: document["models"], as_json=as_json)


@command.command(cls=VerbCommand)
@click.argument("name")
@click.option("--out", type=FILE, help="File to write; NAME.onnx (gpt-12.onnx) if not given.")
@options("build_zoo", "weightless")
def build(*, name: str, out: Path | None, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Write the model NAME as an ONNX file, its random weights always the same."""
    import parapipe

    name = name.removeprefix("zoo:")
    path = out or Path(f"{name.replace(':', '-')}.onnx")
    parapipe.build_zoo(name, path, **given)
    print_text(f"wrote {path}")
