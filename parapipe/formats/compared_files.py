"""Files of predictions and of runs, each known by what it holds, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from json import JSONDecodeError, loads
from pathlib import Path

from parapipe.cost.measured_runs import MeasuredRun, read_measured_runs
from parapipe.errors import ComparisonError
from parapipe.files.documents import read_document
from parapipe.files.regular import require_regular
from parapipe.formats.compared_runs import compare_runs
from parapipe.formats.comparison import Comparison, compare, errors_of, read_evaluations
from parapipe.formats.evaluation import EvaluationDocument
from parapipe.formats.run import SCHEMA as RUN_SCHEMA
from parapipe.formats.run import RunDocument
from parapipe.plan.files import load_plan
from parapipe.plan.schema import SCHEMA as PLAN_SCHEMA
from parapipe.plan.schema import Plan
from parapipe.plan.verify import verify_plan


def compare_files(paths: Sequence[Path]) -> Comparison:
    """Compare what some files predict with what others say of runs.

    Raises
    ------
    ComparisonError
        If a file cannot be read, no run is given, or a run does not belong to any prediction.
    PlanError
        If a plan is damaged.
    VerificationError
        If a plan breaks rules.
    CostError
        If a CSV file of runs is wrong.
    """
    runs: dict[str, RunDocument] = {}
    plans: dict[str, Plan | EvaluationDocument] = {}
    evaluations: list[EvaluationDocument] = []
    measured: list[MeasuredRun] = []
    for path in paths:
        schema = _schema(path)
        if schema is None:
            measured += read_measured_runs(path)
        elif _family(schema) == _family(RUN_SCHEMA):
            runs[str(path)] = read_run(path)
        elif _family(schema) == _family(PLAN_SCHEMA):
            plans[str(path)] = plan = load_plan(path)
            verify_plan(plan)
        else:
            found = read_evaluations(path)
            evaluations += found
            plans |= {f"{path}[{i}]": each for i, each in enumerate(found)}
    if not runs and not measured:
        raise ComparisonError(
            "no run is given: add what `parapipe run --json` printed, or a CSV file of runs"
        )
    if not measured:
        return compare_runs(runs, plans)
    on_board = compare(evaluations, measured)
    here = compare_runs(runs, plans)
    pairs = (*on_board.pairs, *here.pairs)
    return Comparison(pairs, tuple(errors_of(pairs)), on_board.missing, here.notes)


def read_run(path: Path) -> RunDocument:
    """Read what `parapipe run --json` printed; ComparisonError if it cannot be read or is wrong."""
    return read_document(path, RunDocument, schema=RUN_SCHEMA, what="run", error=ComparisonError)


def _family(schema: str) -> str:
    return schema.rpartition("/")[0]


def _schema(path: Path) -> str | None:
    """Return the schema that a JSON file names, "" if none; None for what is no JSON."""
    try:
        require_regular(path)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ComparisonError(f"'{path}' cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ComparisonError(f"'{path}' is no text: give JSON or CSV files") from error
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found = loads(text)
    except (JSONDecodeError, RecursionError, ValueError) as error:
        raise ComparisonError(f"'{path}' is no JSON text: {error}") from error
    schema = found.get("schema") if isinstance(found, dict) else ""
    return schema if isinstance(schema, str) else ""
