"""Arguments that name plans: files, or the folder of a front and an ID."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from parapipe.cli.options import FILE


def _plan_list(ctx: click.Context, param: click.Parameter, words: Sequence[Path]) -> list[Path]:
    from parapipe.api.front import plan_files

    return list(plan_files(words))


class ShapesFolder(NamedTuple):
    """A folder of several shapes, and which of its configurations."""

    folder: Path
    configuration: str | None


def _plans_or_shapes(
    ctx: click.Context, param: click.Parameter, words: Sequence[Path]
) -> list[Path] | ShapesFolder:
    """Return a folder of several shapes and an ID, if the first word names one, else plans."""
    from parapipe.api.shapes import shapes_folder

    if not (folder := shapes_folder(words[0])):
        return _plan_list(ctx, param, words)
    if len(words) > 2:
        raise click.UsageError(f"Got unexpected extra argument ({words[2]})", ctx)
    return ShapesFolder(folder, str(words[1]) if words[1:] else None)


def _plan_with_destination(
    ctx: click.Context, param: click.Parameter, words: Sequence[Path]
) -> tuple[Path, Path | None]:
    from parapipe.api.front import first_plan_file

    plan, others = first_plan_file(words)
    if len(others) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({others[1]})", ctx)
    return plan, others[0] if others else None


def _destination_or_hint(
    ctx: click.Context, param: click.Parameter, words: Sequence[Path]
) -> tuple[Path | ShapesFolder, Path | None]:
    """Return the same; where the second of two words is no ID, say that an ID comes first.

    Of a folder of several shapes, the second word is an ID.
    """
    from parapipe.api.shapes import shapes_folder
    from parapipe.errors import NoConfigurationError

    if folder := shapes_folder(words[0]):
        if len(words) > 3:
            raise click.UsageError(f"Got unexpected extra argument ({words[3]})", ctx)
        if len(words) == 1:
            raise click.UsageError("name a configuration of the shapes, as in s01", ctx)
        return ShapesFolder(folder, str(words[1])), words[2] if words[2:] else None
    try:
        return _plan_with_destination(ctx, param, words)
    except NoConfigurationError as error:
        if len(words) != 2:
            raise
        raise click.UsageError(
            f"{error}; or, if '{words[1]}' is what to write, give the configuration's ID before "
            f"it: {words[0]} ID {words[1]}",
            ctx,
        ) from error


def _single_plan(ctx: click.Context, param: click.Parameter, words: Sequence[Path]) -> Path:
    plan, other = _plan_with_destination(ctx, param, words)
    if other is not None and not plan.exists():
        raise click.BadParameter(f"there is no file or folder '{plan}'", ctx, param)
    if other is not None:
        raise click.UsageError(f"Got unexpected extra argument ({other})", ctx)
    return plan


def _plan_or_shapes(ctx: click.Context, param: click.Parameter, words: Sequence[Path]) -> Path:
    """Return the folder of several shapes, if that alone is named, else a plan."""
    from parapipe.api.shapes import shapes_folder

    folder = shapes_folder(words[0])
    if len(words) == 1 and folder:
        return folder
    return _single_plan(ctx, param, words)


PLAN = "PLAN|DIR [ID]"


def _argument(name: str, metavar: str, convert: Callable[..., object]) -> Callable[[Any], Any]:
    return click.argument(
        name, metavar=metavar, type=FILE, nargs=-1, required=True, callback=convert
    )


plan_argument = _argument("plan", PLAN, _single_plan)
"""One plan, by its file or by the folder of a front and an ID."""
plan_or_shapes = _argument("plan", PLAN, _plan_or_shapes)
"""The same, or the folder of several shapes."""
plans_or_shapes = _argument("plans", f"{{{PLAN}}}...", _plans_or_shapes)
"""One or more plans, or the folder of several shapes and an ID."""
files_argument = _argument("files", "[PREDICTED]... MEASURED...", _plan_list)
"""Files, some of them plans."""
plan_and_destination = _argument("named", "PLAN|DIR ID [DESTINATION]", _destination_or_hint)
"""The file of a plan, and where it goes if that is said."""
