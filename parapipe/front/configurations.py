"""The configurations of a front: by id, name or place, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from parapipe.errors import NoConfigurationError
from parapipe.files.atomic import write_atomically
from parapipe.files.titles import model_title
from parapipe.formats.front import FrontDocument
from parapipe.formats.front_folder import FrontFolder
from parapipe.front.planned_configuration import PlannedConfiguration
from parapipe.pipeline.chances import DrawnFront

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

Row = TypeVar("Row", bound=PlannedConfiguration)


class Configurations(Generic[Row]):
    """What a front in memory and one read from a folder have in common."""

    __slots__ = ()

    document: FrontDocument
    """What front.json holds."""
    configurations: tuple[Row, ...]
    """By ascending latency, as in the document."""

    @property
    def drawn(self) -> DrawnFront | None:
        """What the configurations take in draws of the costs, if there are any."""
        raise NotImplementedError

    def content(self) -> FrontFolder:
        """Return the document with the plan of each configuration, the solve log and the draws."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.configurations)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.configurations)

    @overload
    def __getitem__(self, key: str | int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, key: str | int | slice) -> Row | tuple[Row, ...]:
        """Return the configuration with an id ("c07"), a name ("hybrid-T") or a place; or a slice.

        Raises
        ------
        NoConfigurationError
            There is none.
        """
        if isinstance(key, slice):
            return self.configurations[key]
        return self.configurations[self.document.place(key)]

    def __contains__(self, key: object) -> bool:
        """Tell whether there is a configuration with this id or name, or whether it is one."""
        if not isinstance(key, str):
            return any(each == key for each in self.configurations)
        try:
            self.document.place(key)
        except NoConfigurationError:
            return False
        return True

    def to_json(self) -> dict[str, Any]:
        """Return the document of front.json as plain data."""
        return self.document.to_json()

    def to_pandas(self) -> DataFrame:
        """Return one row per configuration, units in the column names."""
        from parapipe.formats.flat_front import front_frame

        return front_frame(self.document.configurations)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the front on `ax`, or on a figure of its own."""
        from parapipe.figures.front import front_axes, plot_front

        rows = self.document.configurations
        ax = self._titled(ax or front_axes(rows))
        plot_front(rows, ax)
        return ax

    def plot_energy(self, ax: Axes | None = None, *, reference: str = "sequential") -> Axes:
        """Draw on `ax`, or on a figure of its own, the energy of configurations that have a name.

        Parameters
        ----------
        reference
            Id or name of the configuration whose energy is 1.
        """
        from parapipe.figures.axes import own_axes
        from parapipe.figures.energy import plot_energy
        from parapipe.figures.palette import looks

        ax = self._titled(ax or own_axes(8, 4.5))
        known = looks(processor.name for processor in self.document.processors)
        plot_energy(self.document, known, ax, reference=reference)
        return ax

    def write_figure(self, path: str | Path) -> None:
        """Draw the front into a file: PNG, PDF or SVG, as its name ends.

        Raises
        ------
        OutputError
            The name ends in none of them, or the file cannot be written.
        """
        from parapipe.figures.axes import write_picture

        write_picture(self.plot(), Path(path))

    def write_report(self, path: str | Path) -> None:
        """Write the front as one HTML page that needs no network.

        Raises
        ------
        OutputError
            The file cannot be written.
        """
        from parapipe.figures.page import page

        write_atomically(Path(path), page(self.content()))

    def _titled(self, ax: Axes) -> Axes:
        title = f"{model_title(self.document.model)} on {self.document.platform}"
        ax.set_title(title, parse_math=False)
        return ax

    def _repr_html_(self) -> str:
        from parapipe.front.notebook import front_html

        return front_html(self)
