"""`parapipe explain`: why a configuration is what it is, and where its numbers come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from parapipe.cli.front_table import noisy_text
from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import Columns, Row, Shown, paragraph, print_document, text_table
from parapipe.cli.progress import progress_shown
from parapipe.cli.shapes_table import token_lines
from parapipe.cli.verb_options import VerbCommand, options
from parapipe.digits import plain

MOST_TERMS = 8  # of a sum that is written out in the summary


@click.command(cls=VerbCommand)
@click.argument("directory", metavar="PLAN|DIR", type=FILE)
@click.argument("configuration", metavar="[ID]", required=False)
@options("explain", "what_if")
@click.option(
    "--figures", is_flag=True, help="Show how each figure is computed, and from which files."
)
@click.option("--sources", is_flag=True, help="Also list the time of every operator and transfer.")
@options("explain", "operators", operators={"metavar": "NAME"})
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
    """Explain a configuration: what limits it, and where its numbers come from.

    DIR is a folder that `parapipe map` wrote. ID is the id or a name of a configuration in it, such
    as c07 or hybrid-T; default: the balanced one. PLAN is the file of a plan in such a folder. Of a
    folder of several shapes, each shape's placement is explained.
    """
    if operators and (figures or sources):
        raise click.UsageError("--operator shows nothing else; leave --figures and --sources out")
    import parapipe
    from parapipe.api.checked import model_title
    from parapipe.api.shapes import shapes_folder

    if folder := shapes_folder(directory):
        one_shape = any((operators, figures, sources, what_if))
        _explain_shapes(folder, configuration, one_shape=one_shape, as_json=as_json)
        return
    with progress_shown(quiet=not what_if) as progress:
        document = parapipe.explain(
            directory, configuration, operators=operators, what_if=what_if, progress=progress
        ).model_dump(mode="json", by_alias=True)

    def text(document: Row) -> Shown:
        if operators:
            for row in document["operators"]:
                yield from _operator_lines(row)
            if what_if:
                yield from _what_if_lines(document)
            return
        names = f" ({', '.join(document['names'])})" if document["names"] else ""
        yield f"{document['id']}{names}: {document['drawing']}"
        yield f"{model_title(document['model'])} on {document['platform']}"
        if not (figures or sources) or what_if:
            yield from _reason_lines(document)
        if figures:
            yield from _figure_lines(document)
        if sources:
            yield from _source_tables(document)

    print_document(document, text, as_json=as_json)


def _explain_shapes(
    folder: Path, configuration: str | None, *, one_shape: bool, as_json: bool
) -> None:
    """Explain the placements of several shapes.

    Parameters
    ----------
    one_shape
        Whether an option of one shape is given, which is refused.
    """
    if one_shape:
        raise click.UsageError(
            "--operator, --figures, --sources and --what-if are for one shape: name its folder, "
            f"as in {folder / 'decode'}"
        )
    import parapipe
    from parapipe.api.shapes import load_placements

    explained = parapipe.explain_shapes(folder, configuration)
    _, row, _ = load_placements(folder, configuration)

    def text(documents: Row) -> Shown:
        yield from token_lines(row.to_json())
        for number, (name, document) in enumerate(documents.items()):
            if number:
                yield ""
            yield f"{name}: {document['id']}, {document['drawing']}"
            yield from _reason_lines(document)

    plain_data = {n: each.model_dump(mode="json", by_alias=True) for n, each in explained.items()}
    print_document(plain_data, text, as_json=as_json)


def _reason_lines(document: Row) -> Iterator[str]:
    """Yield the sentences, and what would help."""
    about = ""
    for row in document["reasons"]:
        if row["about"] != about:
            yield ""
            about = row["about"]
        yield paragraph(row["text"])
    if document["noisy"]["count"]:
        yield ""
        yield noisy_text(document["noisy"])
    if document["what_if"] is not None:
        yield from _what_if_lines(document)
        return
    yield ""
    yield "--what-if: what would help. --figures, --sources: where the numbers come from."


def _what_if_lines(document: Row) -> Iterator[str]:
    """Yield what each change of the chip would bring."""
    yield ""
    yield "What would help (a new search of stages for each change):"
    for row in document["what_if"]:
        remark = f" ({row['remark']})" if row["remark"] else ""
        change = "not known"
        if row["latency_s"] is not None:
            change = (
                f"least latency {row['latency_change']:+.1%}, "
                f"highest throughput {row['throughput_change']:+.1%}"
            )
        yield paragraph(f"{row['change']}: {change}{remark}", indent=4)


def _figure_lines(document: Row) -> Iterator[str]:
    """Yield how each figure follows, from the whole down to the values in files."""
    yield ""
    for name, figure in document["figures"].items():
        yield from _derivation_lines(name, figure)
    yield ""
    for stage in document["stages"]:
        kinds = Counter(step["kind"] for step in stage["steps"])
        steps = ", ".join(
            f"{kinds[kind]} {kind}{'s' * (kinds[kind] > 1)}"
            for kind in ("operator", "transfer", "wait")
            if kinds[kind]
        )
        names = ("/" if stage["in_turn"] else "+").join(stage["processors"])
        yield f"stage {stage['number']} ({names}) = {_value_text(stage['time'])}: {steps} in a row"
        if kinds.total() <= MOST_TERMS:
            yield f"  = {stage['time']['numbers']}"
    for processor in document["processors"]:
        yield ""
        yield (
            f"{processor['name']}, stage {processor['stage']}: {processor['operators']} operators, "
            f"{plain(processor['busy_s'] * 1e3)} ms, "
            f"{plain(processor['dynamic_energy_j'] * 1e3)} mJ"
        )
        yield from _launch_lines(processor["name"], document["operators"])
        for key in ("frequency_hz", "voltage_v", "alpha_w_per_v2_hz"):
            yield from _value_lines(processor[key])
        yield from _derivation_lines("static power", processor["static_power_w"])
    yield from _link_lines(document["transfers"])
    if evaluated := document["evaluated"]:
        whose = f", times of {evaluated['network']} as it ran" if evaluated["network"] else ""
        yield ""
        yield (
            f"by the final evaluation{whose}: latency {plain(evaluated['latency_s'] * 1e3)} ms, "
            f"period {plain(evaluated['period_s'] * 1e3)} ms, "
            f"energy {plain(evaluated['energy_j'] * 1e3)} mJ"
        )
        for value in document["evaluation"]:
            yield from _value_lines(value)
    yield ""
    parts = sum(len(row["parts"]) for row in document["operators"])
    fused = len(document["operators"])
    yield f"times of {parts} operators{f' ({fused} once fused)' if fused < parts else ''}"
    for row in document["sources"]:
        took = f"{row['operators']}, {plain(row['time_s'] * 1e3)} ms"
        yield f"    {row['provenance']}: {took}  {_relative_path(row['source'])}"
    if document["noisy"]["count"]:
        yield f"    {noisy_text(document['noisy'])}"


def _link_lines(transfers: Sequence[Row]) -> Iterator[str]:
    """Yield what goes over each link, and what the link's times are made of."""
    links: dict[str, list[Row]] = {}
    casts: dict[str, list[Row]] = {}
    for row in transfers:
        link = f"{row['from']} to {row['to']}"
        links.setdefault(link, []).append(row["time"])
        casts.setdefault(link, []).extend(filter(None, [row["cast"]]))
    for link, times in links.items():
        total_s = sum(time["value"] for time in times)
        yield ""
        yield f"{link}: {len(times)} transfers, {plain(total_s * 1e3)} ms"
        yield f"  each = {times[0]['rule']}"
        yield from _file_lines(times[0]["givens"])
        if cast_rows := casts[link]:
            first, took_ms = cast_rows[0], sum(cast["time"]["value"] for cast in cast_rows) * 1e3
            types = f"{first['operator']} from {first['from']} to {first['to']}"
            where = f"{types} on {first['processor']}"
            yield f"  of it {len(cast_rows)} casts, {plain(took_ms)} ms: {where}"
            yield f"  each = {first['time']['rule']}"
            yield from _file_lines(first["time"]["givens"])


def _file_lines(values: Sequence[Row]) -> Iterator[str]:
    """Yield the values that come from files."""
    for value in values:
        if value["file"]:
            yield from _value_lines(value)


def _derivation_lines(name: str, row: Row) -> Iterator[str]:
    """Yield a number, its rule, the rule with numbers, and the places of those from files."""
    yield f"{name} = {_value_text(row)}"
    if row["rule"] == row["numbers"]:
        yield f"  {row['rule']}: a view, free unless measured"
        return
    if len(row["givens"]) > 1:
        yield f"  = {row['rule']}"
    yield f"  = {row['numbers']}"
    for value in row["givens"]:
        if value["file"] or value["note"]:
            yield from _value_lines(value)


def _value_lines(value: Row) -> Iterator[str]:
    place = ""
    if value["file"]:
        key = f" {value['key']}" if value["key"] else ""
        place = f"  {_relative_path(value['file'])}{_at_line(value)}{key}"
    yield f"    {value['name']} {_value_text(value)}".rstrip() + place
    for remark in filter(None, (value["source"], value["note"])):
        yield f"      {remark}"


def _at_line(value: Row) -> str:
    return f":{value['line']}" if value["line"] else ""


def _relative_path(file: str) -> str:
    """Return a file's path from here, if it is below here."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _value_text(row: Row) -> str:
    return f"{row['value']:.7g} {row['unit']}"


def _operator_lines(row: Row) -> Iterator[str]:
    in_type = f" in {row['data_type']}" if row["data_type"] else ""
    yield (
        f"{row['id']} ({row['type']}) on {row['processor']}{in_type}, stage {row['stage']}: "
        f"{row['time_s'] * 1e3:.7g} ms, {row['energy_j'] * 1e3:.7g} mJ"
    )
    if "launch" in row:
        yield "it begins a captured graph"
        yield from _derivation_lines("graph launch", row["launch"])
    for part in row["parts"]:
        yield f"{part['operator']} ({part['type']}): {part['provenance']}, {part['source']}"
        yield from _derivation_lines("time", part["time"])
        yield from _derivation_lines("energy", part["energy"])


def _launch_lines(processor: str, operators: Sequence[Row]) -> Iterator[str]:
    """Yield what starting captured graphs takes of a processor's time, if it does."""
    launches = [
        row["launch"] for row in operators if row["processor"] == processor and "launch" in row
    ]
    if launches:
        total_s = sum(each["value"] for each in launches)
        graphs = "captured graph is" if len(launches) == 1 else "captured graphs are"
        yield f"  of which {len(launches)} {graphs} started in {plain(total_s * 1e3)} ms"
        yield from _derivation_lines("graph launch", launches[0])


def _cast_text(row: Row) -> str:
    """Say what changes a tensor's type on its way, and for how long."""
    if not (cast := row["cast"]):
        return ""
    took = f"{cast['time']['value'] * 1e3:.4f} ms on {cast['processor']}"
    return f"{cast['operator']} from {cast['from']} to {cast['to']}, {took}"


def _source_tables(document: Row) -> Shown:
    """Yield the tables of all operators and transfers."""
    longest = {
        (step["kind"], step["name"], step["processor"])
        for stage in document["stages"]
        for step in stage["steps"]
    }
    operators = [
        {**part, "of": ("operator", row["id"], row["processor"]), "stage": row["stage"]}
        for row in document["operators"]
        for part in row["parts"]
    ]
    yield "\noperators; * marks the critical path, whose times add up to the stage's"
    columns: Columns = {
        " stage": "stage",
        "processor": lambda part: part["of"][2],
        "operator": "operator",
        " ms": lambda part: f"{part['time']['value'] * 1e3:.4f}",
        " mJ": lambda part: f"{part['energy']['value'] * 1e3:.4f}",
        "": lambda part: "*" * (part["of"] in longest),
        "from": lambda part: f"{part['provenance']} {_first_source(part['time'])}",
    }
    yield text_table(columns, operators)
    if not document["transfers"]:
        return
    yield "\ntransfers"
    columns = {
        "tensor": "tensor",
        "from": "from",
        "to": "to",
        " bytes": "size_bytes",
        " ms": lambda row: f"{row['time']['value'] * 1e3:.4f}",
        "": lambda row: "*" * (("transfer", row["tensor"], row["to"]) in longest),
        "from ": lambda row: _first_source(row["time"]),
        **({"cast": _cast_text} if any(row["cast"] for row in document["transfers"]) else {}),
    }
    yield text_table(columns, document["transfers"])


def _first_source(row: Row) -> str:
    """Return file and line of the first value that stands in one; of a sum, they are close."""
    return next((Path(g["file"]).name + _at_line(g) for g in row["givens"] if g["file"]), "")
