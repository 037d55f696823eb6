"""A configuration that `map` returns: its figures, and what its plan is made from."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import PrivateAttr

from parapipe.cost.cost_table import CostTable
from parapipe.cost.operating_points import Setting
from parapipe.formats.front import ConfigurationRow, FrontDocument
from parapipe.front.planned_configuration import PlannedConfiguration
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.options import MaxMemory
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.platform.platform import Platform


class MappedConfiguration(PlannedConfiguration):
    """A configuration that was just mapped: its plan is made when it is asked for."""

    _configuration: Configuration = PrivateAttr()
    _graph: OperatorGraph = PrivateAttr()
    _at: Setting = PrivateAttr()
    _max_memory_bytes: MaxMemory | None = PrivateAttr()
    _arena_effort_s: float = PrivateAttr()

    def __init__(
        self,
        row: ConfigurationRow,
        front: FrontDocument,
        configuration: Configuration,
        graph: OperatorGraph,
        at: Setting,
        *,
        max_memory_bytes: MaxMemory | None,
        arena_effort_s: float,
    ) -> None:
        super().__init__(row, front)
        self._configuration = configuration
        self._graph = graph
        self._at = at
        self._max_memory_bytes = max_memory_bytes
        self._arena_effort_s = arena_effort_s

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
            arena_effort_s=self._arena_effort_s,
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
