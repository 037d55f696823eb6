"""What sets the period of a plan besides its processors: memory, states and power, in words."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.documents.front_schema import FrontDocument
from parapipe.front.loop_bound import loop_texts, no_less_than_loop
from parapipe.front.memory_bound import bandwidth_texts
from parapipe.plan.schema import Plan
from parapipe.platform.fields import Expression, largest, named_value
from parapipe.platform.platform import Platform

SAME = 1e-9  # share within which what a limit asks for is the period


def no_less_than_limits(time: Expression, plan: Plan) -> Expression:
    """Return a period, or what the power budget or a state asks for if that is longer.

    It is longer by what co-runs cost.
    """
    power = plan.predicted.power
    if power is not None and power.period_s > time.value:
        allowed = named_value("period within the power budget", power.period_s, "s")
        time = largest(time, allowed)
    return no_less_than_loop(time, plan)


def limit_texts(plan: Plan, costs: CostTable) -> Iterator[str]:
    """Say what sets the period, if it is none of the processors."""
    yield from bandwidth_texts(plan)
    yield from loop_texts(plan)
    yield from _budget_texts(plan, costs)


def _budget_texts(plan: Plan, costs: CostTable) -> Iterator[str]:
    """Say that the power budget sets the period, and what it costs."""
    predicted, power = plan.predicted, plan.predicted.power
    if power is None or power.period_s < predicted.period_s * (1 - SAME):
        return
    static_w = sum(
        costs.static_power_w[costs.processors.index(each.name)] for each in plan.processors
    )
    dynamic_j = predicted.energy_j - static_w * predicted.period_s
    free_s = max(
        *(each.time_s / (1 + len(each.processors[0].replicas or ())) for each in plan.stages),
        predicted.memory_s or 0.0,
        0.0,
    )
    yield (
        f"The power budget sets the period: the processors may draw {plain(power.budget_w)} W for "
        f"ever, which is a frame every {plain(predicted.period_s * 1e3)} ms."
    )
    if free_s < predicted.period_s * (1 - SAME) and len(plan.stages) and not _repeats(plan):
        yield (
            f"Without it, a frame could come every {plain(free_s * 1e3)} ms, at "
            f"{plain(dynamic_j / free_s + static_w)} W: it costs "
            f"{plain((1 - free_s / predicted.period_s) * 100, 3)} % of the throughput."
        )


def _repeats(plan: Plan) -> bool:
    """Whether frames take turns, so that the stage lasts for the period whatever sets that."""
    return any(
        len({at.lag for p in stage.processors for at in p.operators}) > 1 for stage in plan.stages
    )


def heat_texts(plan: Plan, platform: Platform) -> Iterator[str]:
    """Say what heat costs: for how long a cold chip keeps this up, and which clocks it loses."""
    budget, power_w = platform.power_budget, plan.predicted.energy_j / plan.predicted.period_s
    if platform.state == "cold" and budget and power_w > budget.sustained_w:
        lasts_s = budget.lasts_s(power_w)
        how_long = (
            f"for {plain(lasts_s)} s from cold" if lasts_s is not None and lasts_s < inf
            else "for a while"
        )  # fmt: skip
        yield (
            f"It draws {plain(power_w)} W, more than the {plain(budget.sustained_w)} W that the "
            f"chip may draw for ever: it keeps this up {how_long}. `map --thermal-state sustained` "
            "plans for longer runs."
        )
    if platform.state == "sustained":
        used = {each.name for each in plan.processors}
        for each in platform.processors:
            hz, usual_hz = each.clock.sustained_frequency_hz, each.clock.default_frequency_hz
            if each.name in used and hz and hz < usual_hz:
                yield (
                    f"In long runs, heat keeps {each.name} at {plain(hz / 1e6)} MHz or less in "
                    f"place of {plain(usual_hz / 1e6)} MHz."
                )


def state_texts(front: FrontDocument) -> Iterator[str]:
    """Say what is not proven of models with states."""
    if front.states:
        yield (
            "While stages are combined, loops of states do not count; what is found is compared "
            "with them. So where a loop holds a part of the network only, or several sequences "
            "take turns, another division into stages may be better than those of the front."
        )
