"""What front.json says of several models, written."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from parapipe.formats.several import DemandRow, GrowthRow, ServedRow, SeveralRow, SharingRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.random_arrivals import at_random

if TYPE_CHECKING:
    from parapipe.mapping.interleaved.rivals import Rival
    from parapipe.pipeline.several import Demand, Reached


def several_row(
    graph: OperatorGraph,
    demands: Sequence[Demand],
    reached: Reached,
    period_s: float,
    processors: Sequence[str],
) -> SeveralRow:
    """Write down what is asked, and what ways without sharing reach."""

    def sharing(rival: Rival | None) -> SharingRow | None:
        if rival is None:
            return None
        return SharingRow(
            rate_factor=period_s / rival.period_s,
            processors={
                demand.name: tuple(processors[p] for p in each)
                for demand, each in zip(demands, rival.sets, strict=True)
            },
        )

    in_turn = sharing(reached.in_turn)
    assert in_turn is not None
    return SeveralRow(
        period_s=period_s,
        models=tuple(
            DemandRow(
                name=demand.name,
                model=member.source.name,
                model_sha256=member.source.sha256,
                frames=member.frames,
                rate_fps=demand.rate_fps,
                pattern_fps=member.frames / period_s,
                deadline_s=demand.deadline_s if demand.deadline_s < inf else None,
                priority=demand.priority,
            )
            for demand, member in zip(demands, graph.source.members, strict=True)
        ),
        shared=period_s / reached.shared.period_s,
        bound=period_s / reached.bound_s,
        own_processors=sharing(reached.own_processors),
        in_turn=in_turn,
        one_each=sharing(reached.one_each),
    )


def growth_row(found: Configuration, demands: Sequence[Demand]) -> GrowthRow:
    """Write down what the models get of a configuration."""
    assert found.several is not None
    got, period_s = found.several, found.evaluated.period_s
    models = {}
    for demand, come_s, latency_s in zip(demands, got.come_s, got.latency_s, strict=True):
        turn_s = period_s / len(come_s) / got.kept_factor
        random = at_random(demand.rate_fps, turn_s, latency_s)
        models[demand.name] = ServedRow(
            latency_s=latency_s,
            come_s=come_s,
            utilisation=random.utilisation,
            random_p99_s=random.p99_s,
        )
    return GrowthRow(
        rate_factor=got.rate_factor,
        contended_rate_factor=got.contended_rate_factor,
        power_w=found.evaluated.energy_j / period_s,
        models=models,
    )
