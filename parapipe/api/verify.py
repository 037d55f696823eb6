"""Checks that a plan is consistent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parapipe.api.checked import PlanLike, checked
from parapipe.api.load import opened_plan

if TYPE_CHECKING:
    from parapipe.plan.summary import Summary


@checked
def verify_plan(plan: PlanLike) -> Summary:
    """Check that a plan is consistent, and return its figures.

    Raises
    ------
    PlanError
        It is not a plan.
    VerificationError
        It breaks rules; the error lists every violation.
    """
    from parapipe.plan.summary import summarize
    from parapipe.plan.verify import verify_plan as verify

    opened = opened_plan(plan)
    verify(opened)
    return summarize(opened)
