"""`parapipe explain`: why a configuration is what it is, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import WIDTH, print_json, print_table, print_text, text_table
from parapipe.cli.progress import progress_shown

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
MOST_TERMS = 8  # of a sum that is written out in the summary


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("configuration", metavar="[ID]", required=False)
@click.option(
    "--what-if",
    is_flag=True,
    help="Find the front again with faster processors, links and memory, and with more operator "
    "types on a processor: what would help most?",
)
@click.option("--figures", is_flag=True, help="Show how each figure follows, and from which files.")
@click.option("--sources", is_flag=True, help="List the time of every operator and transfer too.")
@click.option(
    "--operator",
    "operators",
    metavar="NAME",
    multiple=True,
    help="Show how one operator's time and energy follow; may be repeated.",
)
@json_option
def command(
    *,
    directory: Path,
    configuration: str | None,
    what_if: bool,
    figures: bool,
    sources: bool,
    operators: Sequence[str],
    as_json: bool,
) -> None:
    """Say why a configuration is what it is, and where its numbers come from.

    DIR is a folder that `parapipe map` wrote, ID a configuration in it by its number or a name of
    its own; the balanced one if left out.
    """
    if operators and (figures or sources):
        raise click.UsageError("--operator shows nothing else; leave --figures and --sources out")
    from parapipe import api

    with progress_shown(quiet=not what_if) as progress:
        document = api.explain_configuration(
            directory, configuration, operators=operators, what_if=what_if, progress=progress
        ).model_dump(mode="json", by_alias=True)
    if as_json:
        print_json(document)
        return
    if operators:
        for row in document["operators"]:
            print_text("\n".join(_operator(row)))
        if what_if:
            print_text("\n".join(_what_if(document)))
        return
    print_text("\n".join(_heading(document)))
    if not (figures or sources) or what_if:
        print_text("\n".join(_reasons(document)))
    if figures:
        print_text("\n".join(_summary(document)))
    if sources:
        print_text("\nthe operators; * on the longest way, whose times add up to the stage's")
        print_table(_operators_table(document))
        if document["transfers"]:
            print_text("\nthe transfers")
            print_table(_transfers_table(document))


def _heading(document: Row) -> Iterator[str]:
    names = f" ({', '.join(document['names'])})" if document["names"] else ""
    yield f"{document['id']}{names}: {document['drawing']}"
    yield f"{document['model']} on {document['platform']}"


def _reasons(document: Row) -> Iterator[str]:
    """Yield the sentences, and what would help."""
    about = ""
    for row in document["reasons"]:
        if row["about"] != about:
            yield ""
            about = row["about"]
        yield from wrap(row["text"], WIDTH, break_long_words=False, break_on_hyphens=False)
    if document["what_if"] is not None:
        yield from _what_if(document)
        return
    yield ""
    yield "--what-if: what would help. --figures, --sources: where the numbers come from."


def _what_if(document: Row) -> Iterator[str]:
    """Yield what each change of the chip would bring."""
    yield ""
    yield "What would help, by finding the front again:"
    for row in document["what_if"]:
        remark = f" ({row['remark']})" if row["remark"] else ""
        if row["latency_s"] is None:
            told = "not known"
        else:
            told = (
                f"least latency {row['latency_change']:+.1%}, "
                f"highest throughput {row['throughput_change']:+.1%}"
            )
        yield from wrap(f"{row['change']}: {told}{remark}", WIDTH, subsequent_indent="    ")


def _summary(document: Row) -> Iterator[str]:
    yield ""
    for name, figure in document["figures"].items():
        yield from _derivation(name, figure)
    yield ""
    for stage in document["stages"]:
        kinds = [step["kind"] for step in stage["steps"]]
        told = ", ".join(
            f"{count} {kind}{'' if count == 1 else 's'}"
            for kind in ("operator", "transfer", "wait")
            if (count := kinds.count(kind))
        )
        names = "+".join(stage["processors"])
        yield f"stage {stage['number']} ({names}) = {_value(stage['time'])}: {told} in a row"
        if len(kinds) <= MOST_TERMS:
            yield f"  = {stage['time']['numbers']}"
    for processor in document["processors"]:
        yield ""
        yield (
            f"{processor['name']}, stage {processor['stage']}: {processor['operators']} operators, "
            f"{processor['busy_s'] * 1e3:.4g} ms, {processor['dynamic_energy_j'] * 1e3:.4g} mJ"
        )
        yield from _given(processor["frequency_hz"])
        yield from _given(processor["voltage_v"])
        yield from _given(processor["alpha_w_per_v2_hz"])
        yield from _derivation("static power", processor["static_power_w"])
    yield from _links(document["transfers"])
    yield from _evaluated(document)
    yield ""
    parts = sum(len(row["parts"]) for row in document["operators"])
    fused = len(document["operators"])
    yield f"times of {parts} operators{f' ({fused} once fused)' if fused < parts else ''}"
    for row in document["sources"]:
        yield (
            f"    {row['provenance']}: {row['operators']}, {row['time_s'] * 1e3:.4g} ms  "
            f"{_shown(row['source'])}"
        )


def _links(transfers: Sequence[Row]) -> Iterator[str]:
    """Yield what goes over each link, and what the link's times are made of."""
    for pair in dict.fromkeys((row["from"], row["to"]) for row in transfers):
        times = [row["time"] for row in transfers if (row["from"], row["to"]) == pair]
        total_s = sum(time["value"] for time in times)
        yield ""
        yield f"{pair[0]} to {pair[1]}: {len(times)} transfers, {total_s * 1e3:.4g} ms"
        yield f"  each = {times[0]['rule']}"
        for given in times[0]["givens"]:
            if given["file"]:
                yield from _given(given)


def _evaluated(document: Row) -> Iterator[str]:
    """Yield the figures of the final evaluation, and what it goes by."""
    row = document["evaluated"]
    if row is None:
        return
    yield ""
    whose = f", times of {row['network']} as it ran" if row["network"] else ""
    yield (
        f"by the final evaluation{whose}: latency {row['latency_s'] * 1e3:.4g} ms, period "
        f"{row['period_s'] * 1e3:.4g} ms, energy {row['energy_j'] * 1e3:.4g} mJ"
    )
    for given in document["evaluation"]:
        yield from _given(given)


def _derivation(name: str, row: Row) -> Iterator[str]:
    """Yield a number, its rule, the rule with numbers, and the places of those from files."""
    yield f"{name} = {_value(row)}"
    if row["rule"] == row["numbers"]:
        yield f"  {row['rule']}: a view, free unless measured"
        return
    if len(row["givens"]) > 1:
        yield f"  = {row['rule']}"
    yield f"  = {row['numbers']}"
    for given in row["givens"]:
        if given["file"] or given["note"]:
            yield from _given(given)


def _given(given: Row) -> Iterator[str]:
    yield f"    {given['name']} {given['value']:.7g} {given['unit']}".rstrip() + _place(given)
    for told in (given["source"], given["note"]):
        if told:
            yield f"      {told}"


def _place(given: Row) -> str:
    if not given["file"]:
        return ""
    line = f":{given['line']}" if given["line"] else ""
    key = f" {given['key']}" if given["key"] else ""
    return f"  {_shown(given['file'])}{line}{key}"


def _shown(file: str) -> str:
    """Return a file's path from here, if it is below here."""
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _value(row: Row) -> str:
    return f"{row['value']:.7g} {row['unit']}"


def _operator(row: Row) -> Iterator[str]:
    yield (
        f"{row['id']} ({row['type']}) on {row['processor']}, stage {row['stage']}: "
        f"{row['time_s'] * 1e3:.7g} ms, {row['energy_j'] * 1e3:.7g} mJ"
    )
    for part in row["parts"]:
        yield f"{part['operator']} ({part['type']}): {part['provenance']}, {part['source']}"
        yield from _derivation("time", part["time"])
        yield from _derivation("energy", part["energy"])


def _operators_table(document: Row) -> Table:
    table = text_table(" stage", "processor", "operator", " ms", " mJ", "", "from")
    longest = {
        step["name"]
        for stage in document["stages"]
        for step in stage["steps"]
        if step["kind"] == "operator"
    }
    for row in document["operators"]:
        for part in row["parts"]:
            table.add_row(
                str(row["stage"]),
                row["processor"],
                part["operator"],
                f"{part['time']['value'] * 1e3:.4f}",
                f"{part['energy']['value'] * 1e3:.4f}",
                "*" if row["id"] in longest else "",
                f"{part['provenance']} {_first_place(part['time'])}",
            )
    return table


def _transfers_table(document: Row) -> Table:
    table = text_table("tensor", "from", "to", " bytes", " ms", "", "from")
    longest = {
        (step["name"], step["processor"])
        for stage in document["stages"]
        for step in stage["steps"]
        if step["kind"] == "transfer"
    }
    for row in document["transfers"]:
        table.add_row(
            row["tensor"],
            row["from"],
            row["to"],
            str(row["size_bytes"]),
            f"{row['time']['value'] * 1e3:.4f}",
            "*" if (row["tensor"], row["to"]) in longest else "",
            _first_place(row["time"]),
        )
    return table


def _first_place(row: Row) -> str:
    """Return file and line of the first value that stands in one; of a sum, they are close."""
    for given in row["givens"]:
        if given["file"]:
            line = f":{given['line']}" if given["line"] else ""
            return f"{Path(given['file']).name}{line}"
    return ""
