"""Every figure of the table is shown by all that show figures, and none has a list of its own."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import get_args

import pytest

import parapipe
from parapipe.cli.command_line import run
from parapipe.cli.figure_cells import plain_cells
from parapipe.cli.front_table import front_table
from parapipe.documents.compared_figures import compared_figures
from parapipe.documents.doubt import DrawnRow, IntervalsRow, MediansRow, QuantilesRow
from parapipe.documents.explanation_schema import Figures
from parapipe.documents.figure_table import (
    BY_DEMAND,
    BY_NAME,
    COMPARED,
    FIGURES,
    SAMPLED_FIELDS,
    UNITS,
    Demands,
    FigureEntry,
    Minimise,
    choice_figures,
)
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.figures.page import page, page_data
from parapipe.front.demands import figure, limits
from parapipe.sweeps.document import SweepDocument, sweep_page
from parapipe.uncertainty.samples import SampledFront

_LITERALS = ast.Dict | ast.Tuple | ast.List | ast.Set
OF_TOKENS = [BY_NAME[name] for name in ("tokens", "energy per token", "first token")]
"""What models without tokens do not state; tests/documents/test_token_rows.py has others."""
PACKAGE = Path(parapipe.__file__).parent
TABLE = PACKAGE / "documents" / "figure_table.py"


@pytest.mark.parametrize("entry", FIGURES, ids=lambda entry: entry.name)
def test_a_figure_is_a_field_of_a_configuration_or_follows_from_some(entry: FigureEntry) -> None:
    known = ConfigurationRow.model_fields
    assert entry.field in known or entry.rule is not None
    assert entry.unit in UNITS
    assert not entry.reciprocal or entry.direction == "greatest"
    assert {BY_NAME[name].field for name in get_args(Minimise)} >= {
        e.field for e in choice_figures()
    }


def test_what_rules_make_is_what_the_front_states(branchy_front) -> None:
    for row in branchy_front:
        plain = row.model_dump()
        for entry in FIGURES:
            if entry in OF_TOKENS:
                continue
            if entry.rule:
                assert entry.rule(plain) == getattr(row, entry.field, entry.rule(plain))
            if entry.reciprocal:
                assert entry.value(plain) == pytest.approx(1 / plain[entry.reciprocal], rel=1e-15)


def test_drawn_figures_have_intervals_medians_and_quantiles() -> None:
    for record in (IntervalsRow, MediansRow, QuantilesRow, DrawnRow):
        own = tuple(name for name in record.model_fields if name not in ("id", "share"))
        assert own == SAMPLED_FIELDS
    assert tuple(each.name for each in fields(SampledFront)) == SAMPLED_FIELDS


def test_every_demand_bounds_a_figure_and_is_an_option_of_the_commands(
    segment_front, capsys
) -> None:
    own = {each.name for each in fields(Demands)} - {"board", "sustained", "confidence"}
    assert own == set(BY_DEMAND)
    for verb in (parapipe.pick, parapipe.ParetoFront.best):
        assert {each.name for each in fields(Demands)} < set(signature(verb).parameters)
    texts = []
    for command in ("map", "pick"):
        run([command, "--help"])
        texts.append(capsys.readouterr().out)
    for name, entry in BY_DEMAND.items():
        row = segment_front[0]
        option = re.sub("_([sjw]|bytes)$", "", name).replace("_", "-")
        assert all(f"--{option}" in text for text in texts)
        if entry in OF_TOKENS:
            continue
        stated = entry.value(row.model_dump())
        great = entry.direction == "greatest"
        asked = Demands(**{name: stated})
        assert limits(asked) == {entry.name: 1 / stated if great else stated}
        least = entry.name if entry.name in get_args(Minimise) else "latency"
        assert parapipe.ParetoFront.best(segment_front, least, **{name: stated})


@pytest.mark.parametrize("name", get_args(Minimise))
def test_every_figure_of_minimise_is_found_and_offered(name, branchy_front, capsys) -> None:
    least = min(figure(row, name) for row in branchy_front)
    assert figure(branchy_front.best(name), name) == pytest.approx(least, rel=1e-3)
    run(["pick", "--help"])
    assert name in capsys.readouterr().out


def test_every_figure_with_a_column_is_in_the_table_of_map(segment_front) -> None:
    rows = [row.model_dump() for row in segment_front]
    for row in rows:  # even intervals, and a sustained rate of its own: then all columns are there
        row |= {"intervals": None, "medians": None, "tokens_per_second": 1 / row["period_s"]}
        row["sustained_period_s"] = row["period_s"] * 0.9
        row["energy_per_token_j"] = row["energy_j"]
    titles = [column.title for column in front_table(rows, ("latency", "throughput")).columns]
    shown = [each.column for each in FIGURES if each.column]
    assert [title for title in titles if title in shown] == shown


def test_diff_compares_every_figure_of_its_kind(branchy_front) -> None:
    front = branchy_front.document
    traded = front.model_copy(
        update={"options": front.options.model_copy(update={"objectives": tuple(COMPARED)})}
    )
    found, reasons = compared_figures(traded, traded)
    assert ([each.figure for each in found], reasons) == ([*COMPARED], {})


def test_a_figure_that_an_older_front_does_not_state_is_not_compared(branchy_front) -> None:
    front = branchy_front.document
    options = front.options.model_copy(update={"objectives": ("latency", "memory")})
    older = [row.model_copy(update={"peak_memory_bytes": None}) for row in front.configurations]
    new = front.model_copy(update={"options": options})
    old = new.model_copy(update={"configurations": tuple(older)})
    found, reasons = compared_figures(old, new)
    assert ([each.figure for each in found], [*reasons]) == (["latency"], ["memory"])


def test_counts_stand_without_decimals_in_a_column() -> None:
    assert plain_cells([1, 12]) == ["1", "12"]
    assert plain_cells([1.0, 12.0]) == ["1.00", "12.00"]


def test_what_explain_derives_is_what_the_front_states(branchy_front, branchy_folder) -> None:
    row, figures = branchy_front[0].model_dump(), parapipe.explain(branchy_folder, "c01").figures
    known = {entry.field: entry.value(row) for entry in FIGURES}
    for field in set(Figures.model_fields) & known.keys():
        assert getattr(figures, field).value == known[field]
    assert "1 / period" in figures.throughput_fps.rule


def test_the_page_has_the_table_and_a_value_of_every_figure(segment_front) -> None:
    data = page_data(segment_front.content())
    own = [each for each in FIGURES if each not in OF_TOKENS]
    assert [each["name"] for each in data["figures"]] == [each.name for each in own]
    for row in data["front"]["configurations"]:
        assert {each.field for each in own} <= set(row)
    text = page(segment_front.content()).decode()
    assert all(each.means in text for each in own)


def test_figures_that_a_front_does_not_state_are_nowhere(branchy_front) -> None:
    figures = {"most_segments", "load_s"}
    assert not figures & {each["field"] for each in page_data(branchy_front.content())["figures"]}
    assert not figures & set(branchy_front.to_pandas().columns)
    text = branchy_front.document.to_bytes().decode()
    assert not re.search("most_segments|load_s|max_segments|segments_bytes|segment_bytes", text)


def test_the_page_of_a_sweep_offers_every_figure_of_minimise(branchy_front) -> None:
    document = SweepDocument(schema="parapipe/sweep-results/1", parapipe="", options={}, results=())
    text = sweep_page(document, ()).decode()
    assert all(f'"{each.name}"' in text and f'"{each.field}"' in text for each in choice_figures())


def test_tables_for_machines_have_every_figure_of_a_configuration(segment_front) -> None:
    columns = set(segment_front.to_pandas().columns)
    known = {e.field for e in FIGURES if e not in OF_TOKENS}
    assert known & set(ConfigurationRow.model_fields) <= columns
    for ends in ("low", "high", "median", "evaluated"):
        assert {f"{ends}_{field}" for field in SAMPLED_FIELDS} <= columns


def test_no_other_module_lists_figures() -> None:
    lists = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path != TABLE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _lists_figures(node)
    ]
    scripts = [
        path.name
        for path in (PACKAGE / "figures" / "web").glob("*.js")
        if re.search(r"\[\s*\"latency_s\",\s*\"throughput_fps\"", path.read_text(encoding="utf-8"))
    ]
    assert not lists + scripts


def _lists_figures(node: ast.AST) -> bool:
    """Tell whether a literal of constants has the fields of latency and energy."""
    if not isinstance(node, _LITERALS):
        return False
    try:
        ast.literal_eval(node)
    except ValueError:  # it computes figures
        return False
    words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return {"latency_s", "energy_j"} <= words
