"""The best configuration of a front that meets demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from parapipe.api.checked import checked
from parapipe.documents.figure_table import DemandKeywords, Demands, Minimise

if TYPE_CHECKING:
    from parapipe.front.configurations import Configurations, Row


@checked
def best(
    self: Configurations[Row],
    minimise: Minimise = "latency",
    **demands: Unpack[DemandKeywords],
) -> Row:
    """Return the same configuration as `pick`: the best in one figure, all demands met.

    Raises
    ------
    DemandError
        None meets them all; the message says which are missed and by how much. Or confidence is
        asked for, and there are no draws.
    """
    return best_of(self, minimise, Demands(**demands))


def best_of(front: Configurations[Row], minimise: Minimise, demands: Demands) -> Row:
    """Return the best configuration in one figure of those that meet all demands."""
    from parapipe.front import demands as stated
    from parapipe.front.demands import surest

    if demands.confidence is None:
        return stated.best(front.configurations, minimise, demands)
    return surest(front.configurations, front.drawn, minimise, demands)
