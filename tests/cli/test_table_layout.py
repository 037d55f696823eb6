"""Tables at widths of 60 to 200: no number is broken, names stay different, titles are whole."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from parapipe.cli import output
from parapipe.cli.output import Column, TextTable, fold, shorten_names

NAMES = st.text("ab/_.-é深", min_size=1, max_size=40)
NUMBERS = st.floats(0, 1e9).map(lambda value: f"{value:.2f}")
TEXTS = st.lists(st.sampled_from(["big", "[1-11…]", "│", "0.18", "to", "12345678"]), max_size=9)
COLUMNS = {
    "number": ("MB passed\non", NUMBERS),
    "name": ("first\noperator", NAMES),
    "text": ("stages [subgraphs]", TEXTS.map(" ".join)),
    "fixed": ("id", st.integers(1, 99).map("c{:02d}".format)),
}


@st.composite
def tables(draw) -> TextTable:
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=9))
    columns = [Column(COLUMNS[kind][0], kind) for kind in kinds]
    rows = draw(st.lists(st.tuples(*(COLUMNS[kind][1] for kind in kinds)), min_size=1, max_size=5))
    return TextTable(columns, rows, [None] * len(rows))


def printed(table: TextTable, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


@given(tables(), st.integers(60, 200))
def test_no_number_is_broken_and_no_line_is_too_long(table, width) -> None:
    lines = printed(table, width)
    assert max(map(cell_len, lines)) <= width
    words = [word for line in lines for word in line.split()]
    for i, column in enumerate(table.columns):
        if column.kind == "number":
            assert {row[i] for row in table.rows} <= set(words)
    assert not any("…" in word for word in words if set(word) <= set("0123456789.…"))


@given(tables(), st.integers(60, 200))
def test_titles_are_whole(table, width) -> None:
    text = " ".join(printed(table, width))
    for column in table.columns:
        assert set(column.title.split()) <= set(text.split())


@given(st.lists(NAMES, min_size=1, max_size=8), st.integers(3, 30))
def test_shortened_names_stay_different_and_keep_both_ends(names, width) -> None:
    short = shorten_names(names, width)
    if short is None:
        return
    assert len(set(short)) == len(set(names))
    for name, each in zip(names, short, strict=True):
        assert cell_len(each) <= width
        head, mark, tail = each.partition("…")
        assert each == name or (mark and name.startswith(head) and name.endswith(tail))


def test_a_name_is_shortened_where_names_differ() -> None:
    names = [f"inception_{n}/concat" for n in ("3a", "3b", "4a")]
    assert shorten_names(names, 16) == ["incept…3a/concat", "incept…3b/concat", "incept…4a/concat"]
    assert shorten_names(["abcdXefgh", "abcdYefgh"], 5) is None


@given(st.text("ab12 +,│[]", max_size=60), st.integers(6, 40))
@example("1111,1[", 6)
def test_a_folded_text_keeps_all_but_spaces_and_breaks_no_number_that_fits(text, width) -> None:
    lines = fold(text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for number in re.findall(r"[0-9]+(?:,[0-9]+)*", text):
        if len(number) <= width:
            assert any(number in line for line in lines)


def test_a_table_that_fits_nowhere_becomes_a_list_for_each_row() -> None:
    columns = [Column(f"a\nfigure {i}", "number") for i in range(12)]
    lines = printed(TextTable(columns, [["123456.78"] * 12] * 2, [None, None]), 60)
    assert lines[0] == "a figure 0   123456.78"
    assert (len(lines), lines[12]) == (25, "")


def terminal_of(monkeypatch, columns: int) -> None:
    """Let output go to a terminal of that width."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))


def test_a_terminal_is_filled_and_a_pipe_gets_100_columns(monkeypatch) -> None:
    assert output.output_width() == 100
    for columns in (60, 250):
        terminal_of(monkeypatch, columns)
        assert output.output_width() == columns


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
def test_every_number_of_an_inspection_stands_in_its_table(parapipe, monkeypatch, width) -> None:
    document = json.loads(parapipe("inspect", "zoo:googlenet", "--json").out)
    terminal_of(monkeypatch, width)
    text = parapipe("inspect", "zoo:googlenet").out
    words = re.sub(r"\x1b\[[0-9;]*m", "", text).split()
    assert max(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= width
    for row in document["subgraph_table"]:
        assert f"{row['macs'] / 1e6:.1f}" in words
        assert f"{row['boundary_bytes'] / 1e6:.2f}" in words


@pytest.mark.parametrize("width", range(8, 40))
def test_no_line_ends_between_a_number_and_its_unit(monkeypatch, width):
    terminal_of(monkeypatch, width)
    text = "npu0 0 %, npu1 12 % (0 %), 1.5 ms and 3 mJ or 20 frames/s of 141 operators"
    lines = output.paragraph(text).splitlines()
    assert " ".join(lines) == text
    assert not any(line.startswith(("%", "ms", "mJ", "frames/s")) for line in lines)
