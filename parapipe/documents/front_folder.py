"""The folder of a front, read back, and its configurations as a flat table."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parapipe.documents.doubt import DRAWS, load_draws
from parapipe.documents.figure_table import SAMPLED_FIELDS, SHOWN_FIELDS
from parapipe.documents.front_schema import SCHEMA, ConfigurationRow, FrontDocument
from parapipe.documents.shapes_schema import SHAPES_FILE
from parapipe.documents.shown import medians_of, shown_values
from parapipe.errors import FrontError, PlanError
from parapipe.files.documents import INSTEAD, read_document, read_json
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.mappings.configuration import stated_figure
from parapipe.plan.placement_rules import once_violations
from parapipe.plan.schema import Plan
from parapipe.plan.verify import network_violations
from parapipe.uncertainty.samples import SampledFront

if TYPE_CHECKING:
    from pandas import DataFrame


FRONT = "front.json"
SOLVE_LOG = "solve_log.json"
PLANS = "plans"
STATES_FILE = "states.json"
_SEVERAL = {SHAPES_FILE: "shapes", STATES_FILE: "states"}
_MAP_AGAIN = "write the folder again with `parapipe map`"


@dataclass(frozen=True, slots=True)
class FrontFolder:
    """What a folder written by `parapipe map` holds.

    There is a plan for each configuration, by its id, an entry of the log for each mapping problem,
    and what the configurations take in draws of the costs, if there are any.
    """

    document: FrontDocument
    plans: Mapping[str, Plan]
    solve_log: Sequence[Mapping[str, Any]]
    drawn: SampledFront | None = None


def folder_of(path: Path) -> Path:
    """Return the folder of a front, named by itself or by its front.json."""
    if path.is_file() and path.name != FRONT:
        load_front(path.parent / FRONT if path.name in _SEVERAL else path)  # refuses what is none
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
    plans = _load_plans(folder, document, document.configurations)
    return FrontFolder(
        document, plans, _load_solve_log(folder / SOLVE_LOG), load_samples(folder, document)
    )


def load_samples(folder: Path, document: FrontDocument) -> SampledFront | None:
    """Read draws.json, if the front has draws; raise a FrontError as `load_draws`."""
    if not (document.options.draws and (folder / DRAWS).exists()):
        return None
    return load_draws(folder, [row.id for row in document.configurations])


def load_front(path: Path) -> FrontDocument:
    """Read front.json; raise a FrontError as `read_document` says."""
    folder = path.parent
    several = [what for file, what in _SEVERAL.items() if (folder / file).is_file()]
    if several and not path.exists():
        names = sorted(each.parent.name for each in folder.glob(f"*/{path.name}"))
        example = f", as in {folder / names[0]}" if names else ""
        raise FrontError(
            f"{folder}: holds several {several[0]}, with a front for each: name the folder of one "
            f"of them{example}"
        )
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
    return front, row, _load_plans(folder, front, [row])[row.id]


def _load_plans(
    folder: Path, front: FrontDocument, rows: Sequence[ConfigurationRow]
) -> dict[str, Plan]:
    """Read plans, and see that each is of this front."""
    plans = {row.id: Plan.load(folder / PLANS / f"{row.id}.json") for row in rows}
    strangers = [
        f"{PLANS}/{row.id}.json" for row in rows if not _is_of_front(plans[row.id], row, front)
    ]
    if strangers:
        belong = "belongs" if len(strangers) == 1 else "belong"
        raise FrontError(
            f"{folder}: {listed(strangers)} {belong} to another front than {FRONT}; {_MAP_AGAIN}"
        )
    _check_operators(folder, plans)
    return plans


def _check_operators(folder: Path, plans: Mapping[str, Plan]) -> None:
    """See that each plan describes a network, nearly all of a front the same, and runs all of it.

    Whether it also keeps the rules on times, `verify_plan` says.
    """
    first: Plan | None = None
    for name, plan in plans.items():
        if violations := [*network_violations(plan, first), *once_violations(plan)]:
            raise PlanError(
                f"{folder / PLANS / name}.json: has mistakes: {listed_sentences(violations)}; "
                f"{_MAP_AGAIN}"
            )
        first = first or plan


def _is_of_front(plan: Plan, row: ConfigurationRow, front: FrontDocument) -> bool:
    predicted = plan.predicted
    figures = (predicted.latency_s, predicted.energy_j), (row.latency_s, row.energy_j)
    same = [tuple(map(stated_figure, each)) for each in figures]  # older fronts have all digits
    same_inputs = (plan.model.sha256, plan.platform) == (front.model_sha256, front.platform)
    fits = same_inputs and same[0] == same[1]
    if row.split or plan.model.split:
        rules = plan.model.split.rules if plan.model.split else ()
        return fits and rules == row.split
    listed_ids = {operator.id for operator in front.operators}
    return fits and {operator.id for operator in plan.operators} == listed_ids


def _load_solve_log(path: Path) -> Sequence[Mapping[str, Any]]:
    entries = read_json(path, "front", FrontError)
    wanted = {"operators", "proves", "proven", "gap", "wall_s", "solver", "cached", "asked_for"}
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and wanted <= entry.keys() for entry in entries
    ):
        raise FrontError(f"{path}: is no list of solved problems; {_MAP_AGAIN}")
    return entries


def front_frame(configurations: Sequence[ConfigurationRow]) -> DataFrame:
    """Return the configurations as a DataFrame in the order given, units in the column names."""
    from pandas import DataFrame

    return DataFrame([_flat_row(row) for row in configurations])


def front_csv(configurations: Sequence[ConfigurationRow]) -> str:
    """Return the same table as CSV text."""
    text = StringIO()
    rows = [_flat_row(row) for row in configurations]
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _flat_row(row: ConfigurationRow) -> dict[str, Any]:
    figures = row.model_dump(
        exclude={
            "stages", "memories", "evaluated", "intervals", "medians", "chances", "several",
            "co_run",
        }
    )  # fmt: skip
    if row.most_segments is not None:  # all rows have the same columns
        figures.setdefault("load_s", None)
    figures["names"] = " ".join(row.names)
    if row.several:
        figures["rate_factor"] = row.several.rate_factor
        figures["power_w"] = row.several.power_w
        for name, each in row.several.models.items():
            figures[f"latency_s_{name}"] = each.latency_s
    figures["divided"] = ", ".join(row.divided)
    return {
        **{"stages" if name == "drawing" else name: value for name, value in figures.items()},
        **{
            f"evaluated_{figure}": getattr(row.evaluated, figure, None) for figure in SAMPLED_FIELDS
        },
        **{
            f"{end}_{figure}": getattr(row.intervals, figure)[i] if row.intervals else None
            for figure in SAMPLED_FIELDS
            for i, end in enumerate(("low", "high"))
        },
        **{f"median_{figure}": getattr(row.medians, figure, None) for figure in SAMPLED_FIELDS},
        "chance_pareto": row.chances.pareto if row.chances else None,
    }


def shown_rows(rows: Sequence[ConfigurationRow]) -> tuple[list[ConfigurationRow], frozenset[str]]:
    """Return configurations with what is shown of drawn figures, and which of these are medians."""
    fields = [row.model_dump(include={*SHOWN_FIELDS, "intervals", "medians"}) for row in rows]
    shown = {key: shown_values(fields, key) for key in SHOWN_FIELDS}
    displayed = [
        row.model_copy(update={key: values[i] for key, values in shown.items()})
        for i, row in enumerate(rows)
    ]
    return displayed, medians_of(fields)
