"""Fronts, from `map` or from a folder that it wrote, and plans by folder and ID."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr

from parapipe.api.checked import Folder, checked
from parapipe.api.load import load_plan
from parapipe.api.pick import best
from parapipe.api.plan import Plan
from parapipe.documents.front_folder import (
    FRONT,
    PLANS,
    FrontFolder,
    folder_of,
    load_folder,
    load_samples,
)
from parapipe.documents.front_folder import load_front as load
from parapipe.documents.front_schema import DEFAULT, ConfigurationRow, FrontDocument
from parapipe.errors import FrontError
from parapipe.files.atomic import write_atomically
from parapipe.files.progress import Tell
from parapipe.front import pareto_front
from parapipe.front.configurations import Configurations, PlannedConfiguration
from parapipe.front.pareto_front import MappedConfiguration
from parapipe.plan import schema
from parapipe.uncertainty.samples import SampledFront


class Configuration(MappedConfiguration):
    """A configuration of a front, to plan and to look at."""

    __init__ = MappedConfiguration.__init__  # type checkers would make one of the fields

    def plan(self, like: schema.Plan | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier."""
        return Plan.of(super().plan(like))


class ParetoFront(pareto_front.ParetoFront[Configuration]):
    """The configurations that no other one beats, and those with a name of their own."""

    __slots__ = ()

    best = best


def write_fronts(
    fronts: Mapping[Any, ParetoFront],
    directory: str | Path,
    joint: tuple[str, bytes],
    progress: Tell | None,
) -> tuple[Path, ...]:
    """Write each front to a folder of its name, and beside them a file of all.

    Parameters
    ----------
    fronts
        By name, a text.
    joint
        The name of the file of all, and what it holds.

    Raises
    ------
    OutputError
        The folder or a file cannot be written.
    """
    folder = Path(directory)
    written = [
        path
        for name, front in fronts.items()
        for path in front.write(folder / name, progress=progress)
    ]
    name, content = joint
    write_atomically(folder / name, content)
    return (*written, folder / name)


class StoredConfiguration(PlannedConfiguration):
    """A configuration of a front that was written to a folder."""

    _plan_file: Path = PrivateAttr()

    def __init__(self, row: ConfigurationRow, front: FrontDocument, plan_file: Path) -> None:
        super().__init__(row, front)
        self._plan_file = plan_file

    @property
    def plan_file(self) -> Path:
        """Where its plan is."""
        return self._plan_file

    def plan(self) -> Plan:
        """Read its plan.

        Raises
        ------
        PlanError
            It cannot be read.
        """
        return load_plan(self._plan_file)


class StoredFront(Configurations[StoredConfiguration]):
    """A front that `map` wrote to a folder.

    Parameters
    ----------
    folder
        Where its files are.
    document
        What its front.json holds.
    """

    best = best

    def __init__(self, folder: Path, document: FrontDocument) -> None:
        self.folder = folder
        self.document = document
        self.configurations = tuple(
            StoredConfiguration(row, document, folder / PLANS / f"{row.id}.json")
            for row in document.configurations
        )

    def __repr__(self) -> str:
        """Return a line: the whole front would be long."""
        return f"<StoredFront of {self.document.model} on {self.document.platform}: {self.folder}>"

    @property
    def drawn(self) -> SampledFront | None:
        """What the configurations take in draws of the costs, if the folder has any.

        Raises
        ------
        FrontError
            They cannot be read.
        """
        return load_samples(self.folder, self.document)

    def content(self) -> FrontFolder:
        """Read all files of the folder, as `load_folder` does."""
        return load_folder(self.folder)


@checked
def load_front(directory: Folder) -> StoredFront:
    """Read the front that `map` wrote to a folder, which may be named by its front.json.

    Raises
    ------
    FrontError
        The folder's files cannot be read.
    """
    folder = folder_of(Path(directory))
    return StoredFront(folder, load(folder / FRONT))


def plan_files(words: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that some words name, see `first_plan_file`."""
    left = words
    while left:
        file, left = first_plan_file(left)
        yield file


def first_plan_file(words: Sequence[Path]) -> tuple[Path, Sequence[Path]]:
    """Return the file that the first words name, and the words after them.

    A folder that `map` wrote, or the front.json in it, stands for the plan of the configuration
    that the next word names by id or name; of the balanced one if that is another file's name, or
    there is none. Any other word is a file itself.

    Raises
    ------
    FrontError
        A folder holds no front, or no such configuration.
    """
    path, *others = words
    if not (path.is_dir() or path.name == FRONT):
        return path, others
    front = load_front(path)
    if others and (str(others[0]) in front or not others[0].exists()):
        return front[str(others[0])].plan_file, others[1:]
    return front[DEFAULT].plan_file, others


def configuration_beside(plan: Path) -> ConfigurationRow | None:
    """Return the configuration of a plan in the folder that `map` wrote; None if it is in none."""
    if not (plan.parent.parent / FRONT).is_file():
        return None
    try:
        front = load_front(plan.parent.parent)
    except FrontError:  # a plan needs no front
        return None
    return next((row for row in front if row.plan_file.resolve() == plan.resolve()), None)
