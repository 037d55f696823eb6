"""A front and its configurations, whose plans can be run, simulated and exported."""

from __future__ import annotations

from parapipe.api.best import best
from parapipe.api.plan import Plan
from parapipe.front.pareto_front import MappedConfiguration
from parapipe.front.pareto_front import ParetoFront as FrontOf
from parapipe.plan import schema


class Configuration(MappedConfiguration):
    """A configuration of a front, to plan and to look at."""

    __init__ = MappedConfiguration.__init__  # type checkers would make one of the fields

    def plan(self, like: schema.Plan | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier."""
        return Plan.of(super().plan(like))


class ParetoFront(FrontOf[Configuration]):
    """The configurations that no other one beats, and those with a name of their own."""

    __slots__ = ()

    best = best
