"""Plans read from files: a wrong file says all that is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parapipe.errors import PlanError
from parapipe.plan.record import as_json
from parapipe.plan.schema import SCHEMA, Plan

_AGAIN = "write the plan again with `parapipe map`"


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
        is_what = f"is of schema {as_json(found)}" if isinstance(found, str) else "names no schema"
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
