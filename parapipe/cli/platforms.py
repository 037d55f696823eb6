"""`parapipe platforms`: the platforms that are shipped, and checks of one's own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import (
    Columns,
    Row,
    Shown,
    print_document,
    print_json,
    print_note,
    print_text,
    text_table,
)
from parapipe.cli.verb_options import VerbCommand, options
from parapipe.errors import PlatformError

LIST: Columns = {
    "name": "name",
    "processors": lambda row: ", ".join(row["processors"]),
    "description": lambda row: "; ".join(row["mistakes"]) or row["description"],
}
PROCESSORS: Columns = {
    "name": "name",
    "kind": "kind",
    "backend": "backend",
    "cores": lambda each: ",".join(map(str, each.cores)) or "-",
    " GHz": lambda each: f"{each.point.frequency_hz / 1e9:g}",
    " V": lambda each: f"{each.point.voltage_v:g}",
    " points": lambda each: f"{len(each.operating_points)}",
    " W": lambda each: f"{each.static_power_w:.2f} to {each.full_power_w:.2f}",
    "description": "description",
}
LINKS: Columns = {
    "from": "sender",
    "to": "receiver",
    " latency µs": lambda link: f"{link.latency_s * 1e6:.0f}",
    " µs per MiB": lambda link: f"{link.per_mebibyte_s * 1e6:.0f}",
    " sync µs": lambda link: f"{link.overhead_s * 1e6:.0f}",
    "occupies": "occupies",
    "source": "provenance",
}
SOURCES: Columns = {
    "id": "id",
    "kind": "provenance",
    "what": "title",
    "stands for": lambda source: ", ".join(source.sections),
}
CHIPS: Columns = {
    "chip": "name",
    "processors": lambda row: ", ".join(row["processors"]),
    "memory": "memory",
}
PARTS: Columns = {
    "part": "name",
    "kind": "kind",
    " GHz": lambda row: f"{row['frequency_hz'] / 1e9:g}",
    "MACs per cycle, each unit": lambda row: ", ".join(
        f"{rate:g} {dtype}" for dtype, rate in row["macs_per_cycle"].items()
    ),
    " reached": lambda row: f"{row['share']:.0%}",
    "backend": "backend",
}
MEMORIES: Columns = {
    "memory": "name",
    " GB/s": lambda row: f"{row['bandwidth_bytes_per_s'] / 1e9:g}",
    "data rate": "description",
}

FITTED: Columns = {
    "processor": "processor",
    "network": "network",
    " ms": lambda row: f"{row['measured_s'] * 1e3:.4g}",
    " nominal": lambda row: _error(row, "nominal_s"),
    " fitted": lambda row: _error(row, "fitted_s"),
    " left out": lambda row: _error(row, "left_out_s"),
}
FIGURES: Columns = {
    "processor": "processor",
    "figure": "figure",
    "unit": lambda row: {"s": "µs", "MAC/s": "GMAC/s", "B/s": "GB/s"}[row["unit"]],
    " nominal": lambda row: _figure(row, "nominal"),
    " prior": lambda row: _figure(row, "prior"),
    " fitted": lambda row: _figure(row, "fitted"),
}


def _error(row: Row, what: str) -> str:
    return f"{row[what] / row['measured_s'] - 1:+.1%}"


def _figure(row: Row, what: str) -> str:
    return f"{row[what] * (1e6 if row['unit'] == 's' else 1e-9):.3g}"


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, check and make platforms."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@command.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the platforms that come with parapipe."""
    import parapipe

    rows = [asdict(row) for row in parapipe.list_platforms()]
    print_document(
        {"platforms": rows},
        lambda document: [text_table(LIST, document["platforms"])],
        as_json=as_json,
    )


@command.command("catalogue")
@json_option
def catalogue_(*, as_json: bool) -> None:
    """List the chips, parts and memories that `new` knows."""
    import parapipe

    print_document(asdict(parapipe.list_catalogue()), _catalogue_tables, as_json=as_json)


def _catalogue_tables(document: Any) -> Shown:  # noqa: ANN401 - a JSON document
    yield text_table(CHIPS, document["chips"])
    yield ""
    yield text_table(PARTS, document["parts"])
    yield ""
    yield text_table(MEMORIES, document["memories"])


@command.command(cls=VerbCommand)
@click.option("--out", type=FILE, help="File to write.  [default: standard output]")
@click.option("--force", is_flag=True, help="Replace a file that is there and differs.")
@options(
    "new_platform", "chip", "cpu", "gpu", "npu", "dsp", "memory", "name", "full",
    chip={"metavar": "CHIP"}, memory={"metavar": "MEMORY"},
    **{kind: {"type": str, "multiple": True, "metavar": "[Nx]PART[@GHz]", "show_default": False}
       for kind in ("cpu", "gpu", "npu", "dsp")},
)  # fmt: skip
def new(*, out: Path | None, force: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Describe a chip of the catalogue, or one made of its parts, in at most a few lines.

    All figures are nominal; `parapipe platforms catalogue` lists chips, parts and memories. A
    number before a part is that of cores, of a GPU's shader cores, or of identical NPUs or DSPs.
    """
    import parapipe

    platform = parapipe.new_platform(**given)
    if out is None:
        print_text(platform.text.rstrip())
        return
    platform.write(out, force=force)
    print_text(
        f"wrote {out}, with {len(platform.processors)} processors: {', '.join(platform.processors)}"
    )


@command.command(cls=VerbCommand)
@click.argument("table", type=FILE)
@click.option("--platform", required=True, metavar="NAME|FILE", help="Platform to fit.")
@click.option("--out", type=FILE, help="File to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there and differs.")
@options("fit_platform", "view")
@json_option
def fit(
    *,
    table: Path,
    platform: str,
    out: Path | None,
    force: bool,
    view: Literal["deployed", "as-measured"],
    as_json: bool,
) -> None:
    """Fit nominal figures of a platform to whole-network times of a board.

    TABLE is a CSV file with the columns network, processor and ms: milliseconds of a frame. A
    network is one of the zoo, by its name, or an ONNX file. Each is also left out in turn and
    predicted from the others.
    """
    import parapipe

    fitted = parapipe.fit_platform(table, platform, view=view)
    if out is not None:
        fitted.file.write(out, force=force)
    document = {
        "table": str(table),
        "platform": platform,
        "view": view,
        "networks": [asdict(each) for each in fitted.networks],
        "median_errors": fitted.median_errors,
        "figures": [asdict(each) for each in fitted.figures],
        "unfitted": fitted.unfitted,
    }
    print_document(document, _fit_tables, as_json=as_json)
    if out is not None and not as_json:
        print_text(f"\nwrote {out}")


def _fit_tables(document: Row) -> Shown:
    yield "errors of networks; left out: predicted from the processor's other networks"
    yield text_table(FITTED, document["networks"])
    errors = document["median_errors"]
    yield (
        f"median: nominal {errors['nominal']:.1%}, fitted {errors['fitted']:.1%}, left out "
        f"{errors['left_out']:.1%}"
    )
    yield "\nfigures"
    yield text_table(FIGURES, document["figures"])
    if document["unfitted"]:
        yield f"not in the table, left as they are: {', '.join(document['unfitted'])}"


@command.command()
@click.argument("platform")
@json_option
def show(*, platform: str, as_json: bool) -> None:
    """Show processors, links and sources of PLATFORM.

    With --json the whole file is shown, in its own words.
    """
    from parapipe.api.platforms import describe_platform, show_platform

    if as_json:
        print_json(show_platform(platform))
    else:
        print_document(describe_platform(platform), _platform_tables, as_json=False)


def _platform_tables(tables: Any) -> Shown:  # noqa: ANN401 - tables of a platform
    shown = tables.platform
    yield f"{shown.name}: {shown.description}"
    bandwidth_gb_s = shown.memory.bandwidth_bytes_per_s / 1e9
    yield f"board at rest {shown.idle_power_w:g} W, memory {bandwidth_gb_s:g} GB/s"
    if shown.precision != "model":
        yield f"models are planned in {shown.precision} unless --precision says otherwise"
    yield "\nprocessors"
    yield text_table(PROCESSORS, shown.processors)
    for each in shown.processors:
        if each.divisions:
            divisions = ", ".join("+".join(map(str, sizes)) for sizes in each.divisions.into)
            yield f"{each.name} may be divided: {divisions} cores"
        if each.streams:
            law = ", ".join(f"{k}: {x:g}" for k, x in enumerate(each.streams.slowdown, 1))
            yield f"{each.name} runs several operators at once, each so many times as long: {law}"
        if each.captures_graphs:
            launches_us = each.launch.graph_s * 1e6, each.launch.overhead_s * 1e6
            yield (
                f"{each.name} captures graphs of operators: {launches_us[0]:g} µs to start one, "
                f"{launches_us[1]:g} µs to start an operator"
            )
    yield from _co_run_texts(shown)
    yield "\nmoving a tensor"
    yield text_table(LINKS, tables.links)
    yield "\nsources"
    yield text_table(SOURCES, tables.sources)


def _co_run_texts(shown: Any) -> Shown:  # noqa: ANN401 - a platform
    """Say how processors slow each other down, and what they do in long runs."""
    law = shown.co_run
    if law and law.bandwidth:
        yield "the memory serves processors that run at once in proportion to what each draws:"
        for each in shown.processors:
            yield f"  {each.name} at most {each.memory.most_bytes_per_s / 1e9:g} GB/s"
    elif law:
        yield "processors slow each other down:"
        for row in law.slowdowns:
            beside = f"{', '.join(row.busy)}{_class_text(row.busy_class)}"
            yield (
                f"  {row.processor}{_class_text(row.operator_class)} beside {beside}: "
                f"{row.factor:g} times as long"
            )
    if shown.contention:
        yield (
            f"an operator takes {1 + shown.evaluation.contention:g} times as long while others "
            "move as many bytes as the memory can"
        )
    for each in shown.processors:
        if hz := each.clock.sustained_frequency_hz:
            yield f"{each.name} falls to {hz / 1e6:g} MHz in long runs"
    if budget := shown.power_budget:
        yield f"processors may draw {budget.sustained_w:g} W for ever"
    if shown.state != "cold":
        yield f"models are planned {shown.state} unless --thermal-state says otherwise"


def _class_text(name: str | None) -> str:
    return f" ({name}-bound)" if name else ""


@command.command()
@click.argument("file", type=FILE)
@json_option
def check(*, file: Path, as_json: bool) -> None:
    """List all mistakes of a platform FILE, each with its line and key."""
    import parapipe
    from parapipe.api.platforms import check_notes

    document = {"file": str(file), "valid": True, "error": None, "mistakes": ()}
    try:
        parapipe.check_platform(file)
    except PlatformError as error:
        if as_json:
            wrong = {"valid": False, "error": str(error), "mistakes": error.mistakes}
            print_json(document | wrong)
        raise
    for sentence in check_notes(file):
        print_note(sentence)
    print_document(document, lambda _: [f"{file}: no mistakes"], as_json=as_json)


def _read_cores(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[tuple[int, ...], ...]:
    """Read processors of the form 0,1;2,3."""
    groups = [group.split(",") for group in value.split(";")] if value else []
    if not all(each.strip().isdigit() for group in groups for each in group):
        raise click.BadParameter(f"'{value}' is no list of cores, as in '0,1;2,3'", ctx, param)
    return tuple(tuple(int(each) for each in group) for group in groups)


@command.command(cls=VerbCommand)
@click.option("--out", type=FILE, help="File to write.  [default: standard output]")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@options(
    "detect_platform", "name", "split", "processors", "watch_s",
    split={"metavar": "N"},
    processors={"type": str, "metavar": "CORES", "multiple": False, "callback": _read_cores},
)  # fmt: skip
def detect(*, out: Path | None, force: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Describe this machine as a platform, in about a minute of measuring.

    Clusters, caches and frequencies are the kernel's; speeds are measured with ONNX Runtime; power
    is not known and stands there as nominal.
    """
    if given["split"] and given["processors"]:
        raise click.UsageError("--split and --processors say the same; give one of them")
    import parapipe
    from parapipe.api.platforms import refuse_changed

    if out is not None and not force:
        refuse_changed(out)  # before a minute of work
    detected = parapipe.detect_platform(**given)
    for sentence in detected.notes:
        print_note(sentence)
    if out is None:
        print_text(detected.text.rstrip())
        return
    detected.write(out, force=force)
    print_text(f"wrote {out}; parapipe profile MODEL --platform {out} measures operators")
