"""A plan with other numbers of slots in its channels."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import mapped
from parapipe.plan.network import network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.program import program
from parapipe.plan.schema import Plan
from parapipe.plan.structure_rules import least_slots
from parapipe.plan.verify import verify_plan


def fewest_slots(plan: Plan) -> tuple[int, ...]:
    """Return the slots that each transfer of a plan needs at least."""
    view = mapped(plan)
    return tuple(least_slots(view, transfer) for transfer in plan.transfers)


def with_slots(plan: Plan, slots: Sequence[int]) -> Plan:
    """Return a plan whose channels have so many slots, all else as it is said."""
    transfers = tuple(
        each.model_copy(update={"queue_depth": depth})
        for each, depth in zip(plan.transfers, slots, strict=True)
    )
    return plan.model_copy(update={"transfers": transfers})


def written_with_slots(plan: Plan, slots: Sequence[int]) -> Plan:
    """Return the same with what follows from the slots: sustained period and offsets of buffers.

    Raises
    ------
    VerificationError
        A channel has fewer slots than it needs.
    """
    made = with_slots(plan, slots)
    sustained_s = float(program(made).graph.period_ps() / PICOSECONDS)
    predicted = plan.predicted.model_copy(update={"sustained_period_s": sustained_s})
    made = made.model_copy(update={"predicted": predicted})
    if plan.memory is not None:
        network = network_of(made, with_work=False)
        made = laid_out(made, PlanLives(made, network, plan.memory.system))
    verify_plan(made)
    return made
