"""A front read back from the folder that `map` wrote."""

from __future__ import annotations

from pathlib import Path

from pydantic import PrivateAttr

from parapipe.api.best import best
from parapipe.api.checked import Folder, checked
from parapipe.api.load import load_plan
from parapipe.api.plan import Plan
from parapipe.formats.front import ConfigurationRow, FrontDocument
from parapipe.formats.front_folder import (
    FRONT,
    PLANS,
    FrontFolder,
    folder_of,
    load_drawn,
    load_folder,
)
from parapipe.formats.front_folder import load_front as load
from parapipe.front.configurations import Configurations
from parapipe.front.planned_configuration import PlannedConfiguration
from parapipe.pipeline.chances import DrawnFront


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
    def drawn(self) -> DrawnFront | None:
        """What the configurations take in draws of the costs, if the folder has any.

        Raises
        ------
        FrontError
            They cannot be read.
        """
        return load_drawn(self.folder, self.document)

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
