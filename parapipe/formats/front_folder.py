"""The folder of a front, read back: front.json, its plans and how its problems were solved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parapipe.errors import FrontError
from parapipe.files.listing import listed
from parapipe.files.mistake import did_you_mean
from parapipe.formats.front_schema import SCHEMA, ConfigurationRow, FrontDocument
from parapipe.plan.files import load_plan
from parapipe.plan.schema import Plan

FRONT = "front.json"
SOLVE_LOG = "solve_log.json"
PLANS = "plans"
DEFAULT = "balanced"
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


def folder_of(path: Path) -> Path:
    """Return the folder of a front, named by itself or by its front.json."""
    return path.parent if path.name == FRONT and not path.is_dir() else path


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
        if not _belongs(plan, rows[name], document)
    ]
    if strangers:
        belong = "belongs" if len(strangers) == 1 else "belong"
        raise FrontError(
            f"{folder}: {listed(strangers)} {belong} to another front than {FRONT}; {_AGAIN}"
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


def find_configuration(front: FrontDocument, key: str | None) -> ConfigurationRow:
    """Return the configuration with an id or a name; the balanced one if none is asked for.

    Raises
    ------
    FrontError
        If there is none; says why, if the front does.
    """
    wanted = key or DEFAULT
    for row in front.configurations:
        if wanted == row.id or wanted in row.names:
            return row
    kind = wanted.removesuffix("-L").removesuffix("-T")
    reason = front.absent.get(wanted) or front.absent.get(kind)
    names = sorted({name for row in front.configurations for name in row.names})
    ids = [row.id for row in front.configurations]
    told = f": {reason}" if reason else ""
    what_to_do = (not reason and _meant(wanted, ids, names)) or (
        f"; give an id ({ids[0]} to {ids[-1]}) or a name ({', '.join(names)})"
    )
    raise FrontError(f"no configuration '{wanted}' in this front{told}{what_to_do}")


def _meant(wanted: str, ids: Sequence[str], names: Sequence[str]) -> str:
    """Return a question: an id or a name in other case or without its zeros, else a near name."""
    number = wanted.lower().removeprefix("c")
    if number.isdecimal():
        same = [known for known in ids if known[1:].lstrip("0") == number.lstrip("0")]
        return f"; did you mean '{same[0]}'?" if same else ""
    return did_you_mean(wanted.lower(), names)


def load_configuration(
    folder: Path, key: str | None = None
) -> tuple[FrontDocument, ConfigurationRow, Plan]:
    """Read front.json, and the plan of one configuration.

    Raises
    ------
    FrontError
        As `load_front` and `find_configuration`, or if the plan belongs to another front.
    PlanError
        The plan cannot be read.
    """
    front = load_front(folder / FRONT)
    row = find_configuration(front, key)
    plan = load_plan(folder / PLANS / f"{row.id}.json")
    if not _belongs(plan, row, front):
        raise FrontError(
            f"{folder}: {PLANS}/{row.id}.json belongs to another front than {FRONT}; {_AGAIN}"
        )
    return front, row, plan


def _belongs(plan: Plan, row: ConfigurationRow, front: FrontDocument) -> bool:
    planned = (plan.model.sha256, plan.platform)
    figures = (plan.predicted.latency_s, plan.predicted.energy_j)
    return planned == (front.model_sha256, front.platform) and figures == (
        row.latency_s,
        row.energy_j,
    )


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
