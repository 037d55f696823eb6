"""`parapipe split`: a model whose operators are split into parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import Row, print_document, print_note
from parapipe.cli.verb_options import VerbCommand, options

SHOWN = 5


@click.command(cls=VerbCommand)
@click.argument("model")
@options("split", "parts", parts={"metavar": "RULE", "required": True})
@click.option("--out", type=FILE, required=True, help="ONNX file to write.")
@options("split", "granularity")
@options("MapOptions", "dims", "shapes", "at_most")
@json_option
def command(*, model: str, out: Path, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Split operators of MODEL into parts, for several processors at once.

    Writes an ONNX model with the same results.
    """
    import parapipe

    result = parapipe.split(model, out, note=print_note, **given)
    print_document(result.to_json(), _text, as_json=as_json)


def _text(document: Row) -> Iterator[str]:
    split, unsplit = document["split"], document["whole"]
    parts = sum(len(each["ranges"]) for each in split)
    yield f"wrote {document['file']}: {_count(len(split), 'operator')} split into {parts} parts"
    yield from _first([f"{each['name']}: axis {each['axis']} {_ranges(each)}" for each in split])
    if unsplit:
        yield f"{_count(len(unsplit), 'operator')} stay{'s' * (len(unsplit) == 1)} whole"
        yield from _first([f"{each['name']} ({each['type']}): {each['why']}" for each in unsplit])


def _ranges(each: Row) -> str:
    return " ".join(f"{begin}-{end}" for begin, end in each["ranges"])


def _first(lines: list[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"  and {len(lines) - SHOWN} more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
