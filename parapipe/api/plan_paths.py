"""Plans named on the command line: by their file, or by the folder of a front and an ID in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parapipe.formats.front import ConfigurationRow


def plan_files(named: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that some words name, see `first_plan_file`."""
    left = named
    while left:
        file, left = first_plan_file(left)
        yield file


def first_plan_file(named: Sequence[Path]) -> tuple[Path, Sequence[Path]]:
    """Return the file that the first words name, and the words after them.

    A folder that `map` wrote, or the front.json in it, stands for the plan of the configuration
    that the next word names by id or name; of the balanced one if that is another file's name, or
    there is none. Any other word is a file itself.

    Raises
    ------
    FrontError
        A folder holds no front, or no such configuration.
    """
    from parapipe.api.stored_front import load_front
    from parapipe.formats.front import DEFAULT
    from parapipe.formats.front_folder import FRONT

    path, *others = named
    if not (path.is_dir() or path.name == FRONT):
        return path, others
    front = load_front(path)
    if others and (str(others[0]) in front or not others[0].exists()):
        return front[str(others[0])].plan_file, others[1:]
    return front[DEFAULT].plan_file, others


def configuration_beside(plan: Path) -> ConfigurationRow | None:
    """Return the configuration of a plan in the folder that `map` wrote; None if it is in none."""
    from parapipe.api.stored_front import load_front
    from parapipe.errors import FrontError
    from parapipe.formats.front_folder import FRONT

    if not (plan.parent.parent / FRONT).is_file():
        return None
    try:
        front = load_front(plan.parent.parent)
    except FrontError:  # a plan needs no front
        return None
    return next((row for row in front if row.plan_file.resolve() == plan.resolve()), None)
