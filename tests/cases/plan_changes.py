"""Change the plan drawn in `plan_cases`, and see what the verifier says of it."""

import copy
import json

from parapipe.errors import VerificationError
from parapipe.plan.schema import Plan
from parapipe.plan.verify import verify_plan
from tests.cases.plan_cases import drawn_plan

DRAWN = json.loads(drawn_plan().to_bytes())


def violations(document) -> list[str]:
    try:
        verify_plan(Plan.model_validate_json(json.dumps(document)))
    except VerificationError as error:
        return list(error.violations)
    return []


def found_after(change) -> list[str]:
    """Violations of the drawn plan (see `plan_cases.drawn`) after a change to its document."""
    document = copy.deepcopy(DRAWN)
    change(document)
    return violations(document)


def operators(document) -> dict:
    return {entry["id"]: entry for entry in document["operators"]}


def place(document, operator) -> dict:
    return next(at for stage in document["stages"] for p in stage["processors"]
                for at in p["operators"] if at["operator"] == operator)  # fmt: skip


def transfer(document, tensor, target) -> dict:
    return next(t for t in document["transfers"] if (t["tensor"], t["to"]) == (tensor, target))
