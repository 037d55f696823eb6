"""A front and its configurations, whose plans can be run, simulated and exported."""

from __future__ import annotations

from parapipe.api.plan import Plan
from parapipe.cost.cost_table import CostTable
from parapipe.formats.front import ConfigurationRow
from parapipe.front.mapped_configuration import MappedConfiguration
from parapipe.front.pareto_front import ParetoFront as FrontOf
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline import configuration as pipeline
from parapipe.plan.schema import Operator
from parapipe.platform.platform import Platform


class Configuration(MappedConfiguration):
    """A configuration of a front, to plan and to look at."""

    def __init__(
        self,
        row: ConfigurationRow,
        configuration: pipeline.Configuration,
        graph: OperatorGraph,
        platform: Platform,
        costs: CostTable,
    ) -> None:
        super().__init__(row, configuration, graph, platform, costs)

    def plan(self, operators: tuple[Operator, ...] | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier."""
        return Plan.of(super().plan(operators))


class ParetoFront(FrontOf[Configuration]):
    """The configurations that no other one beats, and those with a name of their own."""

    __slots__ = ()
