"""The folder of a front, read back: front.json, its plans and how its problems were solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parapipe.errors import FrontError, PlanError
from parapipe.files.documents import INSTEAD, read_document, read_json
from parapipe.files.listing import listed, listed_sentences
from parapipe.formats.doubt import DRAWS, load_draws
from parapipe.formats.front import SCHEMA, ConfigurationRow, FrontDocument
from parapipe.pipeline.chances import DrawnFront
from parapipe.pipeline.configuration import stated
from parapipe.plan.files import load_plan
from parapipe.plan.placement import once_violations
from parapipe.plan.schema import Plan
from parapipe.plan.verify import network_violations

FRONT = "front.json"
SOLVE_LOG = "solve_log.json"
PLANS = "plans"
_AGAIN = "write the folder again with `parapipe map`"


@dataclass(frozen=True, slots=True)
class FrontFolder:
    """What a folder written by `parapipe map` holds.

    There is a plan for each configuration, by its id, an entry of the log for each mapping problem,
    and what the configurations take in draws of the costs, if there are any.
    """

    document: FrontDocument
    plans: Mapping[str, Plan]
    solve_log: Sequence[Mapping[str, Any]]
    drawn: DrawnFront | None = None


def folder_of(path: Path) -> Path:
    """Return the folder of a front, named by itself or by its front.json."""
    if path.is_file() and path.name != FRONT:
        load_front(path)  # refuses what is none
        raise FrontError(f"{path}: is no {FRONT}; {INSTEAD['front']}")
    return path.parent if path.name == FRONT and not path.is_dir() else path


def configuration_at(path: Path, key: str | None) -> tuple[Path, str | None]:
    """Return the folder of a front and a configuration's key: of a plan in it, that of the plan."""
    if key is None and path.parent.name == PLANS and path.name != FRONT and path.is_file():
        return path.parent.parent, path.stem
    return folder_of(path), key


def load_folder(folder: Path) -> FrontFolder:
    """Read front.json, the plan of each configuration and solve_log.json.

    Raises
    ------
    FrontError
        A file cannot be read, is of another schema, or plans belong to another front.
    PlanError
        A plan cannot be read, or does not run a network.
    """
    document = load_front(folder / FRONT)
    plans = _plans(folder, document, document.configurations)
    return FrontFolder(
        document, plans, _solve_log(folder / SOLVE_LOG), load_drawn(folder, document)
    )


def load_drawn(folder: Path, document: FrontDocument) -> DrawnFront | None:
    """Read draws.json, if the front has draws; raise a FrontError as `load_draws`."""
    if not (document.options.draws and (folder / DRAWS).exists()):
        return None
    return load_draws(folder, [row.id for row in document.configurations])


def load_front(path: Path) -> FrontDocument:
    """Read front.json; raise a FrontError as `read_document` says."""
    return read_document(path, FrontDocument, schema=SCHEMA, what="front", error=FrontError)


def load_configuration(
    folder: Path, key: str | None = None
) -> tuple[FrontDocument, ConfigurationRow, Plan]:
    """Read front.json, and the plan of one configuration.

    Raises
    ------
    FrontError
        As `load_front` and `FrontDocument.configuration`, or if the plan belongs to another front.
    PlanError
        The plan cannot be read, or does not run a network.
    """
    front = load_front(folder / FRONT)
    row = front.configuration(key)
    return front, row, _plans(folder, front, [row])[row.id]


def _plans(folder: Path, front: FrontDocument, rows: Sequence[ConfigurationRow]) -> dict[str, Plan]:
    """Read plans, and see that each is of this front."""
    plans = {row.id: load_plan(folder / PLANS / f"{row.id}.json") for row in rows}
    strangers = [
        f"{PLANS}/{row.id}.json" for row in rows if not _belongs(plans[row.id], row, front)
    ]
    if strangers:
        belong = "belongs" if len(strangers) == 1 else "belong"
        raise FrontError(
            f"{folder}: {listed(strangers)} {belong} to another front than {FRONT}; {_AGAIN}"
        )
    _check(folder, plans)
    return plans


def _check(folder: Path, plans: Mapping[str, Plan]) -> None:
    """See that each plan describes a network, nearly all of a front the same, and runs all of it.

    Whether it also keeps the rules on times, `verify_plan` says.
    """
    like: Plan | None = None
    for name, plan in plans.items():
        if violations := [*network_violations(plan, like), *once_violations(plan)]:
            raise PlanError(
                f"{folder / PLANS / name}.json: has mistakes: {listed_sentences(violations)}; "
                f"{_AGAIN}"
            )
        like = like or plan


def _belongs(plan: Plan, row: ConfigurationRow, front: FrontDocument) -> bool:
    predicted = plan.predicted
    figures = (predicted.latency_s, predicted.energy_j), (row.latency_s, row.energy_j)
    same = [tuple(map(stated, each)) for each in figures]  # older fronts have all digits
    known = (plan.model.sha256, plan.platform) == (front.model_sha256, front.platform)
    fits = known and same[0] == same[1]
    if row.split or plan.model.split:
        rules = plan.model.split.rules if plan.model.split else ()
        return fits and rules == row.split
    listed_ones = {operator.id for operator in front.operators}
    return fits and {operator.id for operator in plan.operators} == listed_ones


def _solve_log(path: Path) -> Sequence[Mapping[str, Any]]:
    entries = read_json(path, "front", FrontError)
    wanted = {"operators", "proves", "proven", "gap", "wall_s", "solver", "cached", "asked_for"}
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and wanted <= entry.keys() for entry in entries
    ):
        raise FrontError(f"{path}: is no list of solved problems; {_AGAIN}")
    return entries
