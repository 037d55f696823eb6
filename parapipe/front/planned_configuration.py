"""A configuration of a front that has a plan, and its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from parapipe.figures.axes import in_lines, own_axes
from parapipe.figures.palette import Look, looks
from parapipe.files.titles import model_title
from parapipe.formats.front import ConfigurationRow, FrontDocument
from parapipe.plan.schema import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE_PT = 10.0


class PlannedConfiguration(ConfigurationRow):
    """A configuration with the figures that front.json holds, its plan and its pictures."""

    _front: FrontDocument = PrivateAttr()

    def __init__(self, row: ConfigurationRow, front: FrontDocument) -> None:
        super().__init__(**dict(row))
        self._front = front

    def plan(self) -> Plan:
        """Return the plan; it has passed its verifier."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw its schedule, as `plot_gantt` does."""
        return self.plot_gantt(ax)

    def plot_gantt(self, ax: Axes | None = None) -> Axes:
        """Draw its schedule on `ax`, or on a figure of its own: operators, transfers, waiting."""
        from parapipe.figures.gantt import plot_gantt

        ax = self._titled(ax or own_axes(9, 2.6), pad=16)
        plot_gantt(self.plan(), self._looks(), ax)
        return ax

    def plot_utilisation(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax`, or on a figure of its own, how much of a period processors work."""
        from parapipe.figures.busy_shares import plot_utilisation

        ax = self._titled(ax or own_axes(7, 2.2))
        plot_utilisation(self, self._looks(), ax)
        return ax

    def plot_network(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax`, or on a figure of its own, the network as it is cut and placed."""
        from parapipe.figures.network import plot_network

        ax = self._titled(ax or own_axes(9, 4))
        members = [[each.id for each in inside] for inside in self._front.members]
        plot_network(self.plan(), members, self._looks(), ax)
        return ax

    def _titled(self, ax: Axes, pad: float | None = None) -> Axes:
        title = f"{model_title(self._front.model)} on {self._front.platform}: {self.drawing}"
        lines = in_lines(title, ax, TITLE_PT)
        ax.set_title(lines, fontsize=TITLE_PT, pad=pad, parse_math=False)
        return ax

    def _looks(self) -> Mapping[str, Look]:
        return looks(processor.name for processor in self._front.processors)

    def _repr_html_(self) -> str:
        from parapipe.front.notebook import configuration_html

        return configuration_html(self, self._front.configurations)
