"""What a table and the sentence below it say of figures with intervals."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from parapipe.cli.advice import answer, best
from parapipe.cli.figure_cells import DRAWN, are_even, doubt_cells, doubt_marks, drawn_cells

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
def test_every_headline_lies_within_its_interval(some):
    for title, (key, scale) in DRAWN.items():
        for row, cell in zip(some, drawn_cells(some, title), strict=True):
            head, *below = cell.split("\n")
            if are_even(some):
                assert not below
                assert float(head) == float(f"{row[key] * scale:.{_decimals(head)}f}")
                continue
            low, high = map(float, below[0].split("–"))
            unit = 10.0 ** -_decimals(head.lstrip("~"))  # of rounding
            near = float(head.lstrip("~"))
            assert low * 0.99 - unit <= near <= high * 1.01 + unit
            stated = row[key] * scale
            assert head.startswith("~") == (not low * 0.99 <= stated <= high * 1.01) or (
                min(abs(stated / end - 1) for end in (low, high)) < 0.01
            )


def _decimals(text):
    return len(text.partition(".")[2])


@given(rows())
def test_a_share_is_said_only_of_even_intervals(some):
    told = [*doubt_marks(some, widths=True)]
    assert any(line.startswith("±") for line in told) == are_even(some)
    assert any(line.startswith("low–high") for line in told) == (not are_even(some))
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
    assert best([few, many, alone], "throughput") is few
    said = answer(document)
    assert "c1 (167–1000 frames/s, median 476.2, 3.00 times that of npu alone)" in said
    assert "medians are compared" in said
    many["intervals"]["period_s"], many["medians"]["period_s"] = (0.0009, 0.0011), 0.001
    assert "for throughput c2 (1000 frames/s, 6.00 times that of npu alone)" in answer(document)
    assert "medians" not in answer(document)


def test_no_cell_has_an_exponent():
    wide = {"intervals": {}, "medians": {}}
    for key, value in zip(KEYS, (1e-7, 1e-5, 90.0), strict=True):
        wide[key], wide["medians"][key] = value, value
        wide["intervals"][key] = (value / 9, value * 9)
    wide["throughput_fps"] = 1 / wide["period_s"]
    cells = [drawn_cells([wide], title)[0] for title in DRAWN]
    assert all(re.fullmatch(r"~?[0-9.]+\n[0-9.]+–[0-9.]+", cell) for cell in cells)
    assert cells[1].endswith("11100–900000")
