"""The folder of a front, read back: front.json, its plans and how its problems were solved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parapipe.errors import FrontError
from parapipe.plan.files import load_plan
from parapipe.plan.schema import Plan
from parapipe.report.front_schema import SCHEMA, FrontDocument

FRONT = "front.json"
SOLVE_LOG = "solve_log.json"
PLANS = "plans"
SHOWN_MISTAKES = 5
_AGAIN = "write the folder again with `parapipe map`"


@dataclass(frozen=True, slots=True)
class FrontFolder:
    """What a folder written by `parapipe map` holds.

    Parameters
    ----------
    plans
        A plan for each configuration, by its id.
    solve_log
        An entry for each mapping problem.
    """

    document: FrontDocument
    plans: Mapping[str, Plan]
    solve_log: Sequence[Mapping[str, Any]]


def load_folder(folder: Path) -> FrontFolder:
    """Read front.json, the plan of each configuration and solve_log.json.

    Raises
    ------
    FrontError
        A file cannot be read, is of another schema, or plans belong to another front.
    PlanError
        A plan cannot be read.
    """
    document = load_front(folder / FRONT)
    rows = {row.id: row for row in document.configurations}
    plans = {name: load_plan(folder / PLANS / f"{name}.json") for name in rows}
    strangers = [
        f"{PLANS}/{name}.json"
        for name, plan in plans.items()
        if (plan.model.sha256, plan.platform, plan.predicted.latency_s, plan.predicted.energy_j)
        != (document.model_sha256, document.platform, rows[name].latency_s, rows[name].energy_j)
    ]
    if strangers:
        raise FrontError(
            f"{folder}: {', '.join(strangers)} belong to another front than {FRONT}; {_AGAIN}"
        )
    return FrontFolder(document, plans, _solve_log(folder / SOLVE_LOG))


def load_front(path: Path) -> FrontDocument:
    """Read front.json.

    Raises
    ------
    FrontError
        If the file cannot be read, is no JSON, is of another schema, or has fields that are wrong,
        missing or unknown.
    """
    document = _parsed(path)
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        is_what = f"is of schema {json.dumps(found)}" if found else "names no schema"
        raise FrontError(
            f'{path}: {is_what}, and this version of parapipe reads "{SCHEMA}"; {_AGAIN}, or use '
            "the version that wrote it"
        )
    try:
        return FrontDocument.model_validate(document)
    except ValidationError as error:
        mistakes = [
            f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg'].lower()}"
            for mistake in error.errors(include_url=False, include_input=False)
        ]
        more = (
            f" and {len(mistakes) - SHOWN_MISTAKES} more" if len(mistakes) > SHOWN_MISTAKES else ""
        )
        raise FrontError(
            f"{path}: {'; '.join(mistakes[:SHOWN_MISTAKES])}{more}; {_AGAIN}"
        ) from error


def _solve_log(path: Path) -> Sequence[Mapping[str, Any]]:
    entries = _parsed(path)
    wanted = {"operators", "proves", "proven", "gap", "wall_s", "solver", "cached", "asked_for"}
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and wanted <= entry.keys() for entry in entries
    ):
        raise FrontError(f"{path}: is no list of solved problems; {_AGAIN}")
    return entries


def _parsed(path: Path) -> Any:  # noqa: ANN401 - any JSON document
    try:
        return json.loads(path.read_bytes().decode())
    except OSError as error:
        raise FrontError(
            f"{path}: cannot be read ({error.strerror}); name a folder that `parapipe map` wrote"
        ) from error
    except (ValueError, RecursionError) as error:
        raise FrontError(f"{path}: is not JSON in UTF-8 ({error}); {_AGAIN}") from error
