"""`parapipe platforms`: the platforms that are shipped, and checks of one's own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_table, print_text


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
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("name", "processors", "description"):
        table.add_column(title)
    for row in rows:
        table.add_row(row["name"], ", ".join(row["processors"]), row["description"])
    print_table(table)


@command.command()
@click.argument("platform")
@json_option
def show(*, platform: str, as_json: bool) -> None:
    """Show PLATFORM: its processors, links and sources."""
    from parapipe import api

    document = api.show_platform(platform)
    if as_json:
        print_json(document)
        return
    import yaml

    print_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip())


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(*, file: Path) -> None:
    """Check the platform FILE; every mistake is listed with its line and key."""
    from parapipe import api

    api.check_platform(file)
    print_text(f"{file}: no mistakes")
