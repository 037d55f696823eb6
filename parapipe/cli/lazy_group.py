"""A group of commands, each imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = (
    "compare",
    "diff",
    "evaluate",
    "export",
    "explain",
    "fit",
    "inspect",
    "map",
    "pick",
    "platforms",
    "profile",
    "report",
    "run",
    "simulate",
    "split",
    "sweep",
    "verify",
    "zoo",
)


class LazyGroup(click.Group):
    """The commands of `COMMANDS`: `parapipe.cli.NAME` holds the click command `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"parapipe.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command
