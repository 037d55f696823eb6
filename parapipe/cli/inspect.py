"""`parapipe inspect`: what a model holds, and where it can be cut."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from parapipe.cli.front_table import coverage_lines
from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import (
    Columns,
    Row,
    Shown,
    paragraph,
    print_document,
    print_note,
    print_text,
    text_table,
)
from parapipe.cli.verb_options import VerbCommand, options

STANDARD_OUTPUT = Path("-")
MEGA = 1e6
INDENT = 17  # columns before the values
_wrapped = partial(paragraph, indent=INDENT)
SUBGRAPHS: Columns = {
    " sub-\ngraph": "number",
    " opera-\ntors": "operators",
    " units": "units",
    " bran-\nches": "branches",
    " paral-\nlelism": "parallelism",
    " M\nMACs": lambda row: f"{row['macs'] / MEGA:.1f}",
    " MB passed\non": lambda row: f"{row['boundary_bytes'] / MEGA:.2f}",
    "first\noperator…": "first_operator",
    "last\noperator…": "last_operator",
}


@click.command(cls=VerbCommand)
@click.argument("model")
@options("MapOptions", "dims", "shapes", "rules", "at_most")
@options("inspect", "platform")
@options("MapOptions", "precision")
@options("inspect", "compiler", "compile_time_s")
@click.option("--dot", type=FILE, help="Write the subgraphs for Graphviz; - prints them alone.")
@click.option("--svg", type=FILE, help="Write a picture of the subgraphs; - prints it alone.")
@json_option
def command(
    *,
    model: str,
    dot: Path | None,
    svg: Path | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Show the operators and subgraphs of MODEL."""
    if dot and svg and os.path.realpath(dot) == os.path.realpath(svg):
        raise click.UsageError(f"--dot and --svg both name '{dot}': give each a file of its own")
    if as_json and STANDARD_OUTPUT in (dot, svg):
        raise click.UsageError("--json takes standard output: give --dot and --svg files")
    import parapipe
    from parapipe.api.models import structure_text

    inspection = parapipe.inspect(model, note=print_note, **given)
    parapipe.draw_structure(
        inspection,
        dot=None if dot == STANDARD_OUTPUT else dot,
        svg=None if svg == STANDARD_OUTPUT else svg,
    )
    if STANDARD_OUTPUT in (dot, svg):
        picture = structure_text(inspection, "dot" if dot == STANDARD_OUTPUT else "svg")
        print_text(picture.rstrip())
    else:
        print_document(inspection.to_json(), _text, as_json=as_json)


def _text(document: Row) -> Shown:
    yield from map(_wrapped, _summary_lines(document))
    yield ""
    yield text_table(SUBGRAPHS, document["subgraph_table"])
    if document["coverage"]:
        yield ""
        yield from map(_wrapped, _coverage_lines(document["coverage"], document["operators_fused"]))
    for row in document["compiled"]:
        yield ""
        yield from map(_wrapped, _compiled_lines(row))


def _coverage_lines(coverage: Row, operators: int) -> Iterator[str]:
    from parapipe.api.checked import together

    precision = coverage["precision"]
    planned = "in its own types" if precision == "model" else f"after conversion to {precision}"
    yield f"platform         {coverage['platform']}, the model {planned} (--precision)"
    complete = f"runs {operators} of {operators} fused operators"
    sentences = {
        processor: f"{processor} runs {operators - sum(types.values())} of {operators} fused "
        f"operators; not {_counts(types)}"
        for processor, types in coverage["unsupported"].items()
        if types
    }
    shown = {names[0]: text for names, text in together(sentences).items()}
    for processor, types in coverage["unsupported"].items():
        if not types:
            yield f"{'':<{INDENT}}{processor} {complete}"
        elif processor in shown:
            yield f"{'':<{INDENT}}{shown[processor]}"
    yield from coverage_lines(coverage["times"])


def _compiled_lines(row: Row) -> Iterator[str]:
    """Say what a compiler runs on its processors, then each operator that it does not."""
    from parapipe.api.models import fallback_sentences

    names = ", ".join(row["processors"])
    asked = f"{row['version']} for {row['target']} in {row['precision']}"
    count = f"{row['on_processor']} of {row['operators']} fused operators"
    yield f"{row['compiler']:<{INDENT}}{asked} runs {count} on {names}"
    for sentence in fallback_sentences(row):
        yield f"{'':<{INDENT}}{sentence}"


def _summary_lines(document: Row) -> Iterator[str]:
    peak_mb = document["peak_activation_bytes"] / MEGA
    yield f"model            {document['model']}"
    yield f"inputs           {_shapes_text(document['inputs'])}"
    yield f"outputs          {_shapes_text(document['outputs'])}"
    yield f"operators        {document['operators']}; {document['operators_fused']} once fused"
    yield f"subgraphs        {document['subgraphs']}"
    yield f"max parallelism  {document['max_parallelism']}"
    yield f"work             {document['macs'] / MEGA:.1f} M multiply-accumulates"
    yield f"constants        {document['constant_bytes'] / MEGA:.1f} MB"
    yield f"peak activations {peak_mb:.2f} MB, while {document['peak_operator']} runs"
    yield f"least peak       {_least_peak_text(document)}"
    yield f"operator types   {_counts(document['operator_types'])}"
    if len(document["data_types"]) > 1:
        yield f"data types       {_data_types_text(document)}"
    for kind in ("unmodelled", "opaque", "ruled"):
        if document[kind]:
            yield f"{kind:<{INDENT}}{_counts(document[kind])}"


def _least_peak_text(document: Row) -> str:
    """Say how low the peak is in the best order that was found, and how low it could be."""
    least, bound = document["least_peak_activation_bytes"], document["least_peak_bound_bytes"]
    text = f"{least / MEGA:.2f} MB in the order of least memory"
    if bound == least:
        return f"{text}, proven"
    return f"{text} that was found; no order needs less than {bound / MEGA:.2f} MB"


def _data_types_text(document: Row) -> str:
    """Say how many fused operators compute in each data type, and their share of the work."""
    macs = max(document["macs"], 1)
    return ", ".join(
        f"{each['operators']} operators in {dtype} ({each['macs'] / macs:.1%} of the work)"
        for dtype, each in document["data_types"].items()
    )


def _shapes_text(tensors: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in tensors.items())


def _counts(types: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in types.items())
