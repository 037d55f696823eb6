"""Rules on a plan that a power budget limits."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.plan.schema import Plan

RELATIVE = 1e-6


def power_limit_s(plan: Plan) -> float:
    """Return the time between frames that a power budget asks for; 0 if there is none."""
    power = plan.predicted.power
    return power.period_s if power else 0.0


def power_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with a plan's power.

    The rules: on average, processors draw no more than the budget; and at the period that the
    budget asks for, they draw all of it, so that nothing is slowed down without need. With static
    power S, a frame takes B T + S (P − T) joules, where P is the period and T the one asked for.
    """
    predicted, power = plan.predicted, plan.predicted.power
    if power is None:
        return
    most_j = power.budget_w * predicted.period_s
    if predicted.energy_j > most_j * (1 + RELATIVE):
        yield (
            f"the processors draw {predicted.energy_j / predicted.period_s:.9g} W, more than the "
            f"budget of {power.budget_w:.9g} W"
        )
    if power.budget_w * power.period_s > predicted.energy_j * (1 + RELATIVE):
        yield (
            f"the budget of {power.budget_w:.9g} W is said to ask for {power.period_s:.9g} s "
            f"between frames, and a frame takes only {predicted.energy_j:.9g} J"
        )
