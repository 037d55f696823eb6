"""The best configuration of a front that meets demands."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, Literal

from parapipe.api.checked import checked
from parapipe.files.checked_arguments import Must
from parapipe.pipeline.options import MaxMemory

if TYPE_CHECKING:
    from parapipe.front.configurations import Configurations, Row
    from parapipe.front.demands import Demands, Objective


def _positive(unit: str) -> Must:
    return Must(f"a positive number of {unit}", gt=0, infinite=True)


Minimise = Literal["latency", "period", "throughput", "energy", "power", "memory"]
Fps = Annotated[float, Must("a number of at least 0", ge=0)]
Latency = Annotated[float, _positive("seconds")]
Energy = Annotated[float, _positive("joules")]
Power = Annotated[float, _positive("watts")]
Confidence = Annotated[float, Must("a number above 0 and at most 1", gt=0, le=1)]


@checked
def best(
    self: Configurations[Row],
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
) -> Row:
    """Return the same configuration as `pick`: the best in one figure, all demands met.

    Raises
    ------
    DemandError
        None meets them all; the message says which are missed and by how much. Or confidence is
        asked for, and there are no draws.
    """
    from parapipe.front.demands import Demands

    demands = Demands(
        min_fps=min_fps,
        max_latency_s=max_latency_s,
        max_energy_j=max_energy_j,
        max_power_w=max_power_w,
        max_memory_bytes=max_memory_bytes,
        board=board,
        sustained=sustained,
    )
    return best_of(self, minimise, demands, confidence)


def best_of(
    front: Configurations[Row], minimise: Minimise, demands: Demands, confidence: float | None
) -> Row:
    """Return the best configuration in one figure of those that meet all demands."""
    from parapipe.front import demands as stated
    from parapipe.front.confidence import surest

    objective = objective_of(minimise)
    if confidence is None:
        return stated.best(front.configurations, objective, demands)
    return surest(front.configurations, front.drawn, objective, demands, confidence)


def objective_of(minimise: Minimise) -> Objective:
    """Return the figure of which least is best: the highest throughput is the least period."""
    return "period" if minimise == "throughput" else minimise
