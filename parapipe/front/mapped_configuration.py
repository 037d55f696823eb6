"""A configuration that `map` returns: its figures, and its plan as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import PrivateAttr

from parapipe.cost.cost_table import CostTable
from parapipe.cost.operating_points import Setting
from parapipe.documents.front import ConfigurationRow, FrontDocument
from parapipe.front.configurations import PlannedConfiguration
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.platform.platform import Platform
from parapipe.processes.shared_work import shared_work
from parapipe.search.options import MaxMemory


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


@dataclass(slots=True)
class Plans:
    """Makes plans of configurations of one model; what all have in common is made once."""

    _like: Plan | None = None
    _shared: dict[str, str] = field(default_factory=dict)

    def plan(self, made: MappedConfiguration) -> Plan:
        """Return a configuration's plan."""
        if made.split:  # its model is another one
            return made.plan()
        self._like = made.plan(self._like)
        return self._like

    def text(self, made: MappedConfiguration) -> bytes:
        """Return a configuration's plan as its file holds it."""
        plan = self.plan(made)
        if made.split:
            return plan.to_bytes()
        self._shared = self._shared or plan.texts("tensors", "operators")
        return plan.to_bytes(self._shared)


def plan_texts(configurations: Iterable[MappedConfiguration]) -> Iterator[bytes]:
    """Yield the plans of configurations as their files hold them."""
    plans = Plans()
    return (plans.text(each) for each in configurations)


def written_plans(
    configurations: Sequence[MappedConfiguration], jobs: int
) -> Iterator[tuple[str, bytes]]:
    """Yield ids and plans in any order, each when it is there.

    Parameters
    ----------
    jobs
        Processes at most, this one included.
    """
    for number, text in shared_work(plan_texts, configurations, jobs):
        yield configurations[number].id, text
