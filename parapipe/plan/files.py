"""Plans as files: the same plan gives the same bytes, and a wrong file says all that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from parapipe.errors import PlanError
from parapipe.files.atomic import write_atomically
from parapipe.files.documents import read_document
from parapipe.plan.schema import SCHEMA, Plan


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan as JSON, whole or not at all.

    Raises
    ------
    OutputError
        If the place cannot be written.
    """
    write_atomically(path, plan_bytes(plan))


def plan_bytes(plan: Plan) -> bytes:
    """Return a plan as JSON in UTF-8: a line for each operator, stage, transfer and so on.

    Fields stand in the order of the schema, names in tables in alphabetical order, and numbers
    with the fewest digits that give the same double again (Python's `repr`).
    """
    return record_bytes(plan)


def record_bytes(record: BaseModel) -> bytes:
    """Return a record as JSON in UTF-8: a line for each entry of its lists and tables."""
    document = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    fields = [f" {_json(key)}: {_in_lines(value)}" for key, value in document.items()]
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()


def _in_lines(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {_json(entry)}" for entry in value) + "\n ]"
    if isinstance(value, dict) and value:
        entries = (f"  {_json(key)}: {_json(entry)}" for key, entry in value.items())
        return "{\n" + ",\n".join(entries) + "\n }"
    return _json(value)


def _json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def load_plan(path: Path) -> Plan:
    """Read a plan. It has the form of one; whether it keeps the rules, `verify_plan` says.

    Raises
    ------
    PlanError
        As `read_document` says: whatever of the file is wrong, by its path.
    """
    return read_document(path, Plan, schema=SCHEMA, what="plan", error=PlanError)
