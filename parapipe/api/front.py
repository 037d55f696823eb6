"""A front and its configurations, whose plans can be run, simulated and exported."""

from __future__ import annotations

from parapipe.api.plan import Plan
from parapipe.front.mapped_configuration import MappedConfiguration
from parapipe.front.pareto_front import ParetoFront as FrontOf
from parapipe.plan.schema import Operator


class Configuration(MappedConfiguration):
    """A configuration of a front, to plan and to look at."""

    __slots__ = ()

    def plan(self, operators: tuple[Operator, ...] | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier."""
        return Plan.of(super().plan(operators))


class ParetoFront(FrontOf[Configuration]):
    """The configurations that no other one beats, and those with a name of their own."""

    __slots__ = ()
