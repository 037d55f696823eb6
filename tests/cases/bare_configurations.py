"""Configurations with chosen figures that run nothing but one operator a stage."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import Evaluated
from parapipe.mappings.mapping import Mapping, Placement


def bare(
    latency_s: float, period_s: float, energy_j: float, stages: Sequence[int] = (0,)
) -> Configuration:
    """Return a configuration; `stages`: of each, the processor."""
    placed = (Placement(lag, p, 0.0, latency_s, lag) for lag, p in enumerate(stages))
    evaluated = Evaluated(
        stages=(),
        input_s=0.0,
        output_s=0.0,
        latency_s=latency_s,
        longest_stage_s=period_s,
        period_s=period_s,
        sustained_period_s=period_s,
        energy_j=energy_j,
        board_energy_j=energy_j,
        sequential_energy_j=energy_j,
        sequential_board_energy_j=energy_j,
    )
    return Configuration(Mapping(tuple(placed)), evaluated, proven=True, gap=0.0, table=0)
