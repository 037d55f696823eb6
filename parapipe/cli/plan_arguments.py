"""The argument of all commands that take a plan: PLAN, or DIR and ID."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from parapipe.cli.options import FILE

Command = TypeVar("Command", bound=Callable[..., Any])
PLAN = "PLAN|DIR [ID]"


def plan_argument(command: Command) -> Command:
    """Add the argument `plan`: one plan, by its file or by the folder of a front and an ID."""
    return _argument("plan", PLAN, _one)(command)


def plans_argument(command: Command) -> Command:
    """Add the argument `plans`: one or more."""
    return _argument("plans", f"{{{PLAN}}}...", _several)(command)


def files_argument(command: Command) -> Command:
    """Add the argument `files`: some of them plans."""
    return _argument("files", "[PREDICTED]... MEASURED...", _several)(command)


def plan_and_destination(command: Command) -> Command:
    """Add the argument `named`: the file of a plan, and where it goes if that is said."""
    return _argument("named", "PLAN|DIR ID [DESTINATION]", _destined_or_no_id)(command)


Convert = Callable[[click.Context, click.Parameter, Sequence[Path]], object]


def _argument(name: str, metavar: str, convert: Convert) -> Callable[[Command], Command]:
    return click.argument(
        name, metavar=metavar, type=FILE, nargs=-1, required=True, callback=convert
    )


def _several(ctx: click.Context, param: click.Parameter, words: Sequence[Path]) -> list[Path]:
    from parapipe.api.plan_paths import plan_files

    return list(plan_files(words))


def _destined(
    ctx: click.Context, param: click.Parameter, words: Sequence[Path]
) -> tuple[Path, Path | None]:
    from parapipe.api.plan_paths import first_plan_file

    plan, others = first_plan_file(words)
    if len(others) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({others[1]})", ctx)
    return plan, others[0] if others else None


def _destined_or_no_id(
    ctx: click.Context, param: click.Parameter, words: Sequence[Path]
) -> tuple[Path, Path | None]:
    """Return the same; where the second of two words is no ID, say that an ID comes first."""
    from parapipe.errors import NoConfigurationError

    try:
        return _destined(ctx, param, words)
    except NoConfigurationError as error:
        if len(words) != 2:
            raise
        raise click.UsageError(
            f"{error}; or, if '{words[1]}' is what to write, give the configuration's ID before "
            f"it: {words[0]} ID {words[1]}",
            ctx,
        ) from error


def _one(ctx: click.Context, param: click.Parameter, words: Sequence[Path]) -> Path:
    plan, other = _destined(ctx, param, words)
    if other is not None and not plan.exists():
        raise click.BadParameter(f"there is no file or folder '{plan}'", ctx, param)
    if other is not None:
        raise click.UsageError(f"Got unexpected extra argument ({other})", ctx)
    return plan
