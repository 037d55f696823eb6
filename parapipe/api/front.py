"""A front and its configurations, whose plans can be run, simulated and exported."""

from __future__ import annotations

from math import inf

from parapipe.api.checked import checked
from parapipe.api.pick import Confidence, Energy, Fps, Latency, Minimise, Power
from parapipe.api.plan import Plan
from parapipe.front.confidence import surest
from parapipe.front.demands import Demands, best
from parapipe.front.mapped_configuration import MappedConfiguration
from parapipe.front.pareto_front import ParetoFront as FrontOf
from parapipe.pipeline.options import MaxMemory
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

    @checked
    def best(
        self,
        minimise: Minimise = "latency",
        *,
        min_fps: Fps = 0.0,
        max_latency_s: Latency = inf,
        max_energy_j: Energy = inf,
        max_power_w: Power = inf,
        max_memory_bytes: MaxMemory | None = None,
        board: bool = False,
        sustained: bool = False,
        confidence: Confidence | None = None,
    ) -> Configuration:
        """Return the same configuration as `pick`: the least of one figure, all demands met.

        Raises
        ------
        DemandError
            None keeps them all; the message says which stand in the way and by how much.
        """
        demands = Demands(
            min_fps=min_fps,
            max_latency_s=max_latency_s,
            max_energy_j=max_energy_j,
            max_power_w=max_power_w,
            max_memory_bytes=max_memory_bytes,
            board=board,
            sustained=sustained,
        )
        if confidence is None:
            return best(self.configurations, minimise, demands)
        return surest(self.configurations, self.drawn, minimise, demands, confidence)
