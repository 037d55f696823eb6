"""`parapipe platforms`: the platforms that are shipped, and checks of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_note, print_table, print_text, text_table
from parapipe.errors import PlatformError

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show and check platforms."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@command.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the platforms that come with parapipe."""
    from parapipe import api

    rows = [asdict(row) for row in api.list_platforms()]
    if as_json:
        print_json({"platforms": rows})
        return
    table = text_table("name", "processors", "description")
    for row in rows:
        what = "; ".join(row["mistakes"]) or row["description"]
        table.add_row(row["name"], ", ".join(row["processors"]), what)
    print_table(table)


@command.command()
@click.argument("platform")
@json_option
def show(*, platform: str, as_json: bool) -> None:
    """Show processors, links and sources of PLATFORM.

    With --json the whole file is shown, in its own words.
    """
    from parapipe import api

    if as_json:
        print_json(api.show_platform(platform))
        return
    tables = api.describe_platform(platform)
    shown = tables.platform
    print_text(f"{shown.name}: {shown.description}")
    bandwidth_gb_s = shown.memory.bandwidth_bytes_per_s / 1e9
    print_text(f"board at rest {shown.idle_power_w:g} W, memory {bandwidth_gb_s:g} GB/s")
    for title, table in (
        ("processors", _processors(shown.processors)),
        ("moving a tensor", _links(tables.links)),
        ("sources", _sources(tables.sources)),
    ):
        print_text(f"\n{title}")
        print_table(table)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(*, file: Path, as_json: bool) -> None:
    """List all mistakes of a platform FILE, each with its line and key."""
    from parapipe import api

    try:
        api.check_platform(file)
    except PlatformError as error:
        if as_json:
            print_json(_checked(file, str(error), error.mistakes))
        raise
    if as_json:
        print_json(_checked(file, "", ()))
    else:
        print_text(f"{file}: no mistakes")


def _checked(file: Path, error: str, mistakes: Sequence[str]) -> Row:
    return {"file": str(file), "valid": not error, "error": error or None, "mistakes": mistakes}


def _cores_given(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[tuple[int, ...], ...]:
    """Read processors of the form 0,1;2,3."""
    groups = [group.split(",") for group in (value or "").split(";")] if value else []
    if not all(each.strip().isdigit() for group in groups for each in group):
        raise click.BadParameter(f"'{value}' is no list of cores, as in '0,1;2,3'", ctx, param)
    return tuple(tuple(int(each) for each in group) for group in groups)


@command.command()
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write.  [default: standard output]"
)
@click.option("--name", default="this-machine", show_default=True, help="Name of the platform.")
@click.option(
    "--split",
    type=click.IntRange(min=1),
    metavar="N",
    help="Divide the cores of each cluster among N processors.",
)
@click.option(
    "--processors",
    callback=_cores_given,
    metavar="CORES",
    help="The cores of each processor instead of the clusters: '0;1' for two of one core each.",
)
def detect(
    *, out: Path | None, name: str, split: int | None, processors: Sequence[Sequence[int]]
) -> None:
    """Describe this machine as a platform, in some seconds of measuring.

    Clusters, caches and frequencies are the kernel's; speeds are measured with ONNX Runtime; power
    is not known and stands there as nominal.
    """
    if split and processors:
        raise click.UsageError("--split and --processors say the same; give one of them")
    from parapipe import measuring

    found = measuring.detect_platform(name=name, split=split, processors=processors)
    for sentence in found.notes:
        print_note(sentence)
    if out is None:
        print_text(found.text.rstrip())
        return
    found.write(out)
    print_text(f"wrote {out}; parapipe profile MODEL --platform {out} measures operators")


def _processors(processors: Sequence[Any]) -> Table:
    table = text_table(
        "name", "kind", "backend", "cores", " GHz", " V", " points", " W", "description"
    )
    for p in processors:
        table.add_row(
            p.name,
            p.kind,
            p.backend,
            ",".join(map(str, p.cores)) or "-",
            f"{p.point.frequency_hz / 1e9:g}",
            f"{p.point.voltage_v:g}",
            f"{len(p.operating_points)}",
            f"{p.static_power_w:.2f} to {p.full_power_w:.2f}",
            p.description,
        )
    return table


def _links(rows: Sequence[Any]) -> Table:
    table = text_table("from", "to", " latency µs", " µs per MiB", " sync µs", "occupies", "source")
    for row in rows:
        table.add_row(
            row.sender,
            row.receiver,
            f"{row.latency_s * 1e6:.0f}",
            f"{row.per_mebibyte_s * 1e6:.0f}",
            f"{row.overhead_s * 1e6:.0f}",
            row.occupies,
            row.provenance,
        )
    return table


def _sources(rows: Sequence[Any]) -> Table:
    table = text_table("id", "kind", "what", "stands for")
    for row in rows:
        table.add_row(row.id, row.provenance, row.title, ", ".join(row.sections))
    return table
