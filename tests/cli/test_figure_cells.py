"""What a table and the sentence below it say of figures with intervals."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from parapipe.api.checked import BY_NAME, DRAWN, medians_of
from parapipe.cli.advice import advice_text, best
from parapipe.cli.figure_cells import are_even, doubt_cells, doubt_mark, interval_cells

KEYS = ("latency_s", "period_s", "energy_j")
factor = st.floats(0.3, 30.0)


@st.composite
def rows(draw):
    """Rows whose stated figures may lie anywhere beside their intervals."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        row = {"id": f"c{number}", "intervals": {}, "medians": {}}
        for key in KEYS:
            row[key] = draw(st.floats(1e-4, 1.0))
            low, median, high = sorted(row[key] * draw(factor) for _ in range(3))
            if draw(st.booleans()):  # as log-normal figures lie
                low, median, high = row[key] / 1.2, row[key], row[key] * 1.2
            row["intervals"][key], row["medians"][key] = (low, high), median
        row["throughput_fps"] = 1 / row["period_s"]
        made.append(row)
    return made


@given(rows())
def test_every_headline_lies_within_its_interval_and_a_column_is_all_medians_or_none(some):
    medians = medians_of(some)
    for entry in DRAWN:
        key, scale = entry.field, entry.scale
        cells = interval_cells(some, entry, medians)
        assert {cell.startswith("~") for cell in cells} == {key in medians}
        for row, cell in zip(some, cells, strict=True):
            head, *below = cell.split("\n")
            if are_even(some):
                assert not below
                assert float(head) == float(f"{row[key] * scale:.{_decimals(head)}f}")
                continue
            low, high = map(float, below[0].split("–"))
            unit = 10.0 ** -_decimals(head.lstrip("~"))  # of rounding
            near = float(head.lstrip("~"))
            assert low * 0.99 - unit <= near <= high * 1.01 + unit
            if key in medians:
                median = row["medians"].get(key) or 1 / row["medians"]["period_s"]
                assert abs(near - median * scale) <= unit


def _decimals(text):
    return len(text.partition(".")[2])


@given(rows())
def test_a_share_is_said_only_of_even_intervals(some):
    medians = medians_of(some)
    told = "".join(doubt_mark(some, medians))
    assert ("low–high" in told) == (not are_even(some))
    assert ("~" in told) == bool(medians)
    if are_even(some):
        for row, cell in zip(some, doubt_cells(some), strict=True):
            assert float(cell) <= 100
            for key in KEYS:
                low, high = row["intervals"][key]
                assert low <= row[key] <= high


def test_the_sentence_goes_by_what_draws_say_where_costs_are_rough():
    def row(name, kind, period_s, median_s, ends_s):
        stages = [{"processors": [{"name": "npu"}]}]
        drawn = {"latency_s": 0.1, "period_s": median_s, "energy_j": 1.0}
        return {
            "id": name, "kind": kind, "names": (), "stages": stages, "latency_s": 0.1,
            "period_s": period_s, "throughput_fps": 1 / period_s, "energy_j": 1.0,
            "sustained_period_s": period_s,
            "intervals": {"latency_s": (0.09, 0.11), "period_s": ends_s, "energy_j": (0.9, 1.1)},
            "medians": drawn,
        }  # fmt: skip

    many = row("c2", "interleaved", 0.001, 0.004, (0.002, 0.008))  # outside its interval
    few = row("c1", "replicated", 0.002, 0.0021, (0.001, 0.006))
    alone = row("c3", "sequential", 0.006, 0.0063, (0.003, 0.018))
    document = {
        "configurations": [few, many, alone],
        "options": {"objectives": ["latency", "throughput"]},
    }
    assert best([few, many, alone], "throughput", medians_of([few, many, alone])) is few
    said = advice_text(document)
    assert "c1 (167–1000 frames/s, median 476.2, 3.00 times that of npu alone)" in said
    assert "medians are compared" in said
    many["intervals"]["period_s"], many["medians"]["period_s"] = (0.0009, 0.0011), 0.001
    assert "for throughput c2 (1000 frames/s, 6.00 times that of npu alone)" in advice_text(
        document
    )
    assert "medians" not in advice_text(document)


def test_several_processors_are_not_recommended_where_one_has_a_better_median():
    def row(name, kind, latency_s, median_s):
        stages = [{"processors": [{"name": "npu"}]}]
        ends_s = (0.6 * median_s, 3 * median_s)
        figures = {"latency_s": latency_s, "period_s": latency_s, "sustained_period_s": latency_s}
        return {
            "id": name, "kind": kind, "names": (), "stages": stages, "energy_j": 1.0, **figures,
            "throughput_fps": 1 / latency_s,
            "intervals": {"latency_s": ends_s, "period_s": ends_s, "energy_j": (0.9, 1.1)},
            "medians": {"latency_s": median_s, "period_s": median_s, "energy_j": 1.0},
        }  # fmt: skip

    several, alone = row("c1", "para-only", 0.061, 0.0923), row("c2", "sequential", 0.071, 0.091)
    document = {"configurations": [several, alone], "options": {"objectives": ["latency"]}}
    assert "for latency c2 (" in advice_text(document)
    assert "as fast as" not in advice_text(document)
    several["medians"]["latency_s"] = 0.0905  # better by draws, too
    assert "for latency c1 (" in advice_text(document)
    assert "1.01 times as fast as npu alone" in advice_text(document)


def test_what_is_best_goes_by_medians_where_the_table_shows_them():
    def row(name, period_s, median_s, ends_s):
        stages = [{"processors": [{"name": "npu"}]}]
        return {
            "id": name, "kind": "sequential", "names": (), "stages": stages, "latency_s": 0.1,
            "period_s": period_s, "throughput_fps": 1 / period_s, "energy_j": 1.0,
            "sustained_period_s": period_s, "intervals": {"period_s": ends_s, "latency_s": (1, 1),
            "energy_j": (1, 1)}, "medians": {"period_s": median_s, "latency_s": 1, "energy_j": 1},
        }  # fmt: skip

    even = row("c1", 0.010, 0.0101, (0.009, 0.011))
    better = row("c2", 0.011, 0.005, (0.004, 0.006))
    rows = [even, better]
    assert medians_of(rows) == {"throughput_fps", "latency_s"}
    assert interval_cells(rows, BY_NAME["throughput"], medians_of(rows)) == [
        "~99.0\n90.9–111",
        "~200.0\n167–250",
    ]
    assert best(rows, "throughput", medians_of(rows)) is better
    assert best(rows, "throughput", frozenset()) is even


def test_no_cell_has_an_exponent():
    wide = {"intervals": {}, "medians": {}}
    for key, value in zip(KEYS, (1e-7, 1e-5, 90.0), strict=True):
        wide[key], wide["medians"][key] = value, value
        wide["intervals"][key] = (value / 9, value * 9)
    wide["throughput_fps"] = 1 / wide["period_s"]
    cells = [interval_cells([wide], entry)[0] for entry in DRAWN]
    assert all(re.fullmatch(r"~?[0-9.]+\n[0-9.]+–[0-9.]+", cell) for cell in cells)
    assert cells[1].endswith("11100–900000")
