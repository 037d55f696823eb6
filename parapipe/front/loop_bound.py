"""What the states of a model set of a configuration, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.digits import plain
from parapipe.front.memory_bound import slowed
from parapipe.mappings.mapping import Feedback
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.platform.fields import Expression, largest, named_value

SAME = 1e-9  # share within which a loop is the period


def loop_time(plan: Plan) -> Expression | None:
    """Return the least seconds between frames for the states of a plan; None if it has none."""
    if (loop := mapping_view(plan).mapping.longest_loop) is None:
        return None
    loop_s, each = loop
    time = named_value(f"loop of state {each.state}", loop_s, "s")
    return time / named_value("sequences in turn", each.frames, "") if each.frames > 1 else time


def no_less_than_loop(time: Expression, plan: Plan) -> Expression:
    """Return a period, or the loop of a state if that is longer; longer by what co-runs cost."""
    loop = loop_time(plan)
    alone = time if loop is None or loop.value <= time.value else largest(time, loop)
    return slowed(alone, plan, "period_s")


def loop_texts(plan: Plan) -> Iterator[str]:
    """Say that a state sets the period, where it does."""
    if (loop := mapping_view(plan).mapping.longest_loop) is None:
        return
    loop_s, each = loop
    period_s = plan.predicted.period_s
    if loop_s / each.frames < period_s * (1 - SAME):
        return
    among = f", which {each.frames} sequences share in turn" if each.frames > 1 else ""
    yield (
        f"A state sets the period: from the start of '{_reader(plan, each)}', which reads "
        f"'{each.state}', to the end of '{_writer(plan, each)}', which makes it for the next step, "
        f"it takes {plain(loop_s * 1e3)} ms{among}. More sequences in turn (--sequences) let "
        "processors work on others meanwhile."
    )


def _reader(plan: Plan, each: Feedback) -> str:
    return plan.operators[each.consumer].id


def _writer(plan: Plan, each: Feedback) -> str:
    return plan.operators[each.producer].id
