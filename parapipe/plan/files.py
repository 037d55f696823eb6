"""Plans as files: the same plan gives the same bytes, and a wrong file says all that is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from parapipe.errors import PlanError
from parapipe.files.atomic import write_atomically
from parapipe.plan.schema import SCHEMA, Plan

_AGAIN = "write the plan again with `parapipe map`"


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
        If the file cannot be read, is no JSON (names the line), is of another schema, or has
        fields that are wrong, missing or unknown (names all of them by their path).
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise PlanError(
            f"{path}: cannot be read ({error.strerror}); name a plan that `parapipe map` wrote"
        ) from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: is not text in UTF-8, so no plan; {_AGAIN}") from error
    document = _parsed(text, path)
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        is_what = f"is of schema {_json(found)}" if isinstance(found, str) else "names no schema"
        raise PlanError(
            f"{path}: {is_what}, and this version of parapipe reads plans of schema "
            f'"{SCHEMA}"; {_AGAIN}, or use the version that wrote it'
        )
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        mistakes = _mistakes(error, document)
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise PlanError(f"{path}: {count}: {'; '.join(mistakes)}; {_AGAIN}") from error


def _parsed(text: str, path: Path) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text, object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        raise PlanError(
            f"{path}:{error.lineno}: is not JSON ({error.msg}, column {error.colno}); {_AGAIN}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path}: is no plan ({error}); {_AGAIN}") from error


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = sorted(key for key, count in counts.items() if count > 1)
        raise ValueError(f"{', '.join(map(repr, repeated))} stands twice in one table")
    return table


def _mistakes(error: ValidationError, document: Any) -> list[str]:  # noqa: ANN401
    plain = {"missing": "is missing", "extra_forbidden": "is unknown"}
    return [
        f"{_json_path(mistake['loc'], document)}: "
        + plain.get(mistake["type"], mistake["msg"][:1].lower() + mistake["msg"][1:])
        for mistake in error.errors(include_url=False, include_input=False)
    ]


def _json_path(location: Sequence[int | str], document: Any) -> str:  # noqa: ANN401
    """Write a place as in `stages[0].time_s`.

    Where a value may be of several kinds, pydantic names the kind in between: what the document
    does not have and is not the last step is such a kind.
    """
    path = ""
    for i, step in enumerate(location):
        if isinstance(step, int):
            path += f"[{step}]"
            document = document[step] if isinstance(document, list) else None
        elif isinstance(document, dict) and (step in document or i == len(location) - 1):
            path += f".{step}" if path else step
            document = document.get(step)
    return path or "the whole"
