"""The final evaluation of a front's configurations, beside the costs that the search goes by."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.cost.measured_network import (
    MeasuredNetwork,
    Recognised,
    as_run_elsewhere,
    measured_networks,
    priced_as_run,
    recognise,
)
from parapipe.cost.operating_points import Settings
from parapipe.cost.profile import Profile, shipped_profiles
from parapipe.formats.front_schema import EvaluatedRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.assigned import assignment_of, mapping_of
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.evaluate import evaluate


def networks_behind(
    profiles: Sequence[Profile] | None, profile_name: str
) -> tuple[MeasuredNetwork, ...]:
    """Return the networks that were measured as a whole, if costs come from the shipped profiles.

    Parameters
    ----------
    profiles
        What the costs come from; None for those shipped under the name.
    """
    if profiles is None or tuple(profiles) == shipped_profiles(profile_name):
        return measured_networks(profile_name)
    return ()


class FrontEvaluator:
    """Evaluates configurations of one graph on one platform.

    A network that was measured as a whole takes the times of its own rows, if nothing that ran on
    the board is folded away in the graph: then blocks add up to what was measured, and hand-overs
    between them count as the platform says.
    """

    def __init__(
        self, graph: OperatorGraph, settings: Settings, networks: Sequence[MeasuredNetwork]
    ) -> None:
        self.graph = graph
        self.settings = settings
        default = settings.combinations[0]
        self.found = _unfolded(graph, networks)
        self.blocks = self.found.blocks_of(graph) if self.found else None
        self.as_run = (
            priced_as_run(default.costs, graph, default.platform, self.found)
            if self.found
            else None
        )

    def row(self, found: Configuration) -> EvaluatedRow:
        """Return what a configuration takes."""
        default, at = self.settings.combinations[0], self.settings.combinations[found.table]
        costs = as_run_elsewhere(at.costs, default.costs, self.as_run) if self.as_run else at.costs
        again = mapping_of(
            self.graph, at.platform, costs, assignment_of(found.mapping), blocks=self.blocks
        )
        evaluated = evaluate(again, self.graph, costs, contention=at.platform.contention)
        return EvaluatedRow(
            network=self.found.network.name if self.found else None,
            latency_s=evaluated.latency_s,
            longest_stage_s=evaluated.longest_stage_s,
            period_s=evaluated.period_s,
            throughput_fps=1 / evaluated.period_s,
            sustained_period_s=evaluated.sustained_period_s,
            energy_j=evaluated.energy_j,
            board_energy_j=evaluated.board_energy_j,
        )


def _unfolded(graph: OperatorGraph, networks: Sequence[MeasuredNetwork]) -> Recognised | None:
    if any(single.folded for operator in graph.operators for single in operator.singles):
        return None
    return recognise(graph, networks)
