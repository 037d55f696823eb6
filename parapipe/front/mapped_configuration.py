"""A configuration of a front: its figures, its plan, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from parapipe.cost.cost_table import CostTable
from parapipe.cost.operating_points import Setting
from parapipe.figures.axes import own_axes
from parapipe.figures.palette import Look, looks
from parapipe.formats.front import ConfigurationRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.options import MaxMemory
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.platform.platform import Platform

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MappedConfiguration(ConfigurationRow):
    """A configuration with the figures that front.json holds, and what it takes to plan it."""

    _configuration: Configuration = PrivateAttr()
    _graph: OperatorGraph = PrivateAttr()
    _at: Setting = PrivateAttr()
    _max_memory_bytes: MaxMemory | None = PrivateAttr()

    def __init__(
        self,
        row: ConfigurationRow,
        configuration: Configuration,
        graph: OperatorGraph,
        at: Setting,
        max_memory_bytes: MaxMemory | None,
    ) -> None:
        super().__init__(**dict(row))
        self._configuration = configuration
        self._graph = graph
        self._at = at
        self._max_memory_bytes = max_memory_bytes

    @property
    def configuration(self) -> Configuration:
        """The mapping itself, by indices of operators and processors."""
        return self._configuration

    @property
    def graph(self) -> OperatorGraph:
        """The model."""
        return self._graph

    @property
    def platform(self) -> Platform:
        """Where it was mapped, at its operating points."""
        return self._at.platform

    @property
    def costs(self) -> CostTable:
        """What operators and transfers cost, at its operating points."""
        return self._at.costs

    def plan(self, like: Plan | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier.

        Parameters
        ----------
        like
            The plan of another configuration of the same model, if one is at hand: takes less time.
        """
        made = self._configuration
        return build_plan(
            self._graph,
            self._at.platform,
            self._at.costs,
            made.mapping,
            found=made.evaluated,
            like=like,
            arena_bytes=self._arena_bytes(),
        )

    def _arena_bytes(self) -> dict[str, float]:
        """Return by memory how large its arena may be under the limit that the search kept.

        Of what a limit of all memories together leaves, each gets a share by its tensors.
        """
        limit, memories = self._max_memory_bytes, self.memories
        if limit is None:
            return {}
        if isinstance(limit, Mapping):
            return {m.name: limit[m.name] - m.weights_bytes for m in memories if m.name in limit}
        tensors = {each.name: each.peak_bytes - each.weights_bytes for each in memories}
        left = limit - sum(each.weights_bytes for each in memories)
        share = max(1.0, left / (sum(tensors.values()) or 1))
        return {name: share * size_bytes for name, size_bytes in tensors.items()}

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
        from parapipe.graph.partition import partition

        ax = self._titled(ax or own_axes(9, 4))
        members = [
            [self._graph.operators[v].id for v in subgraph.operators]
            for subgraph in partition(self._graph).subgraphs
        ]
        plot_network(self.plan(), members, self._looks(), ax)
        return ax

    def _titled(self, ax: Axes, pad: float | None = None) -> Axes:
        title = f"{self._graph.source.name} on {self._at.platform.name}: {self.drawing}"
        ax.set_title(title, fontsize=10, pad=pad, parse_math=False)
        return ax

    def _looks(self) -> Mapping[str, Look]:
        return looks(processor.name for processor in self._at.platform.processors)

    def _repr_html_(self) -> str:
        from parapipe.front.notebook import configuration_html

        return configuration_html(self)
