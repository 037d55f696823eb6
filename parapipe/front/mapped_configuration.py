"""A configuration of a front, to plan and to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.cost.cost_table import CostTable
from parapipe.figures.axes import own_axes
from parapipe.figures.palette import Look, looks
from parapipe.figures.timeline import timeline
from parapipe.formats.front_schema import ConfigurationRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.pipeline.configuration import Configuration
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Operator, Plan
from parapipe.platform.platform import Platform

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, repr=False)
class MappedConfiguration:
    """A configuration of a front: its row of figures, and everything needed to plan it."""

    row: ConfigurationRow
    configuration: Configuration
    graph: OperatorGraph
    platform: Platform
    costs: CostTable

    def __repr__(self) -> str:
        """Return a line: id, stages and the three objectives."""
        row = self.row
        return (
            f"<{row.id} {row.drawing}: {row.latency_s * 1e3:.1f} ms, "
            f"{row.throughput_fps:.2f} fps, {row.energy_j * 1e3:.1f} mJ>"
        )

    def plan(self, operators: tuple[Operator, ...] | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier.

        Parameters
        ----------
        operators
            What `written_operators` says of the graph, if that is at hand.
        """
        return build_plan(
            self.graph,
            self.platform,
            self.costs,
            self.configuration.mapping,
            found=self.configuration.evaluated,
            operators=operators,
        )

    def plot_gantt(self, ax: Axes | None = None) -> Axes:
        """Draw its schedule on `ax`, or on a figure of its own: operators, transfers, waiting."""
        from parapipe.figures.gantt import plot_gantt

        ax = own_axes(9, 2.6) if ax is None else ax
        ax.set_title(self._title(), fontsize=10, pad=16, parse_math=False)
        plot_gantt(timeline(self.plan()), self._looks(), ax)
        return ax

    def plot_utilisation(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax`, or on a figure of its own, how much of a period processors work."""
        from parapipe.figures.busy_shares import plot_utilisation

        ax = own_axes(7, 2.2) if ax is None else ax
        ax.set_title(self._title(), fontsize=10, parse_math=False)
        plot_utilisation(self.row, self._looks(), ax)
        return ax

    def plot_network(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax`, or on a figure of its own, the network as it is cut and placed."""
        from parapipe.figures.network import plot_network

        ax = own_axes(9, 4) if ax is None else ax
        ax.set_title(self._title(), fontsize=10, parse_math=False)
        members = [
            [self.graph.operators[v].id for v in subgraph.operators]
            for subgraph in partition(self.graph).subgraphs
        ]
        plot_network(self.plan(), members, self._looks(), ax)
        return ax

    def _title(self) -> str:
        return f"{self.graph.source.name} on {self.platform.name}: {self.row.drawing}"

    def _looks(self) -> Mapping[str, Look]:
        return looks(processor.name for processor in self.platform.processors)

    def _repr_html_(self) -> str:
        from parapipe.front.notebook import configuration_html

        return configuration_html(self)
