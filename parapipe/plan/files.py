"""Plans read from files: a wrong file says all that is wrong."""

from __future__ import annotations

from pathlib import Path

from parapipe.errors import PlanError
from parapipe.files.documents import read_document
from parapipe.plan.schema import SCHEMA, Plan


def load_plan(path: Path) -> Plan:
    """Read a plan. It has the form of one; whether it keeps the rules, `verify_plan` says.

    Raises
    ------
    PlanError
        As `read_document` says: whatever of the file is wrong, by its path.
    """
    return read_document(path, Plan, schema=SCHEMA, what="plan", error=PlanError)
