"""How a front is drawn and which of its configurations are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from parapipe.cli.front_table import NARROW, coverage_lines, front_table, legend, spread
from parapipe.cli.output import WIDTH, print_table


def row(
    number: int, *, names: tuple[str, ...] = (), pareto: bool = True, drawing="big[1-11]"
) -> dict:
    return {
        "id": f"c{number:02d}",
        "names": names,
        "pareto": pareto,
        "pareto_latency_throughput": False,
        "drawing": drawing,
        "latency_s": 0.1 + number / 1000,
        "period_s": 0.1,
        "sustained_period_s": 0.1,
        "throughput_fps": 10.0,
        "energy_j": 0.2,
        "proven": True,
        "gap": 0.0,
    }


def test_a_spread_never_leaves_out_a_row_of_the_front_of_latency_and_throughput() -> None:
    rows = [{**row(n), "pareto_latency_throughput": n % 2 == 0} for n in range(60)]
    shown = {r["id"] for r in spread(rows, 5)}
    assert shown >= {f"c{n:02d}" for n in range(0, 60, 2)}
    assert len(shown) < 40


def test_sixty_columns_are_enough(capsys, monkeypatch) -> None:
    names = ("sequential", "most-efficient", "gpu-alone")
    rows = [
        row(1, drawing="big+little+gpu[1-11]"),
        row(2, names=names, drawing="gpu[1…] │ big[…1]"),
    ]
    for proven in (True, False):
        table = front_table([{**r, "proven": proven, "gap": 0.012} for r in rows], narrow=True)
        console = Console(width=60, color_system=None)
        console.print(table)
        out = capsys.readouterr().out
        assert all(len(line) <= 60 for line in out.splitlines())
        for word in ("big+little+gpu[1-11", "gpu[1…] │ big[…1]", *names, "200.0", "LTE", "c02"):
            assert word in out
        assert ("1.2" in out) != proven


def test_the_cut_that_is_explained_is_one_of_the_front() -> None:
    rows = [row(1), row(2, drawing="big[1…] │ gpu[…1…] │ npu[…1-3]")]
    assert "[1…] │ […1…]: cut inside subgraph 1" in legend(document(rows))


def document(configurations: list[dict], **changes) -> dict:
    return {
        "configurations": configurations,
        "options": {
            "objectives": ["latency", "throughput", "energy"],
            "proves": ["L"],
            "resolution": 0.01,
            "energy_resolution": 0.04,
            "energy_resolution_asked": 0.05,
            "energy_timed_out": False,
        },
        "absent": {},
        **changes,
    }


def test_a_cut_inside_a_subgraph_is_explained_only_where_there_is_one() -> None:
    cut = row(1, drawing="big[1-3…] │ gpu[…3-4]")
    assert any("cut inside" in line for line in legend(document([cut])))
    assert not any("cut inside" in line for line in legend(document([row(1)])))


WITHIN = "energy: as low as any schedules make it, to within"
UNKNOWN = "energy: it is not known how near to the lowest"
ASKED = "asked for: {} % (--energy-resolution); {}"
HELPS = "a longer --time-limit helps"
ROUNDED = "the rest is rounding to whole microseconds"


@pytest.mark.parametrize(
    ("asked", "reached", "timed_out", "told"),
    [
        (0.05, 0.05, False, [f"{WITHIN} 5 % in everything (--energy-resolution)"]),
        (0.05, 0.05000001, True, [f"{WITHIN} 5 % in everything (--energy-resolution)"]),
        (0.05, 0.02, True, [f"{WITHIN} 2 % in everything (--energy-resolution)"]),
        (0.05, 0.33, True, [f"{WITHIN} 33 % in everything", ASKED.format(5, HELPS)]),
        (0, 0.00068, False, [f"{WITHIN} 0.068 % in everything", ASKED.format(0, ROUNDED)]),
        (0.05, None, True, [UNKNOWN, ASKED.format(5, HELPS)]),
    ],
)
def test_the_legend_says_whether_the_energy_resolution_was_reached(
    asked, reached, timed_out, told
) -> None:
    options = {
        **document([])["options"],
        "energy_resolution_asked": asked,
        "energy_resolution": reached,
        "energy_timed_out": timed_out,
    }
    lines = legend(document([row(1)], options=options))
    assert lines[3:] == told
    options["energy_resolution_asked"] = None
    (line,) = legend(document([row(1)], options=options))[3:]
    assert line.startswith("energy: from the mapper's own schedules only")


def test_a_kind_that_does_not_exist_is_named_with_its_reason() -> None:
    lines = legend(document([row(1)], absent={"hybrid": "there is one processor"}))
    assert "no hybrid configuration: there is one processor" in lines


@given(st.integers(1, 60), st.integers(1, 20))
def test_a_spread_keeps_both_ends_and_no_more_than_its_size(count, size) -> None:
    rows = [row(number) for number in range(count)]
    shown = spread(rows, size)
    assert len(shown) == min(size, count)
    assert shown[0] == rows[0]
    assert size == 1 or shown[-1] == rows[-1]


@given(st.sets(st.integers(0, 59)))
def test_a_spread_never_leaves_out_a_named_configuration(named) -> None:
    rows = [row(n, names=("balanced",) if n in named else (), pareto=False) for n in range(60)]
    assert [r["id"] for r in spread(rows, 5)] == [f"c{n:02d}" for n in sorted(named)]


def test_the_table_fits_in_100_columns_and_is_plain_when_not_on_a_terminal(capsys) -> None:
    stages = "big+little[1-3…] │ a-processor-with-a-long-name[…3-9] │ gpu+npu[10-11]"
    names = ("hybrid-L", "hybrid-T", "balanced", "most-efficient")
    print_table(front_table([row(1, names=names, drawing=stages), row(2)]))
    out = capsys.readouterr().out
    assert all(len(line) <= WIDTH for line in out.splitlines())
    assert "\x1b" not in out
    for word in ("a-processor-with-a-long-name", *names, "c01", "c02", "latency"):
        assert word in out


def test_the_least_figure_of_a_column_has_three_digits(capsys) -> None:
    rows = [{**row(1), "latency_s": 0.000_055_3}, {**row(2), "latency_s": 0.1131}]
    print_table(front_table(rows))
    out = capsys.readouterr().out
    assert " 0.0553 " in out
    assert " 113.1000 " in out
    assert " 200.0 " in out


def test_an_unproven_gap_is_shown_and_a_proven_one_is_zero(capsys) -> None:
    print_table(front_table([{**row(1), "proven": False, "gap": 0.0123}]))
    assert "1.2" in capsys.readouterr().out


def test_a_share_that_is_not_zero_is_not_shown_as_zero_nor_one_as_all() -> None:
    share = {
        "measured": {"operators": 0.998, "time": 1.0},
        "noisy": None,
        "fitted": {"operators": 0.002, "time": 0.0},
        "nominal": {"operators": 0.0, "time": 0.0},
        "extrapolated": {"operators": 0.0, "time": 0.0},
        "processors": {
            "big": {"measured": 1.0, "fitted": 0.0, "nominal": 0.0},
            "gpu": {"measured": 0.996, "fitted": 0.004, "nominal": 0.0},
        },
        "unmodelled": ["com.example.Odd"],
        "ruled": ["Strange"],
    }
    assert coverage_lines(share) == [
        "operators (their time): measured >99 % (100 %), fitted <1 % (0 %), nominal 0 % (0 %)",
        "operators measured, by processor: big 100 %, gpu >99 %",
        "unmodelled operator types, priced by their bytes alone: com.example.Odd",
        "operator types priced by the work that rules give them: Strange",
    ]


def test_noisy_times_and_times_beyond_what_was_measured_are_told() -> None:
    share = {
        "measured": {"operators": 0.5, "time": 0.25},
        "noisy": {
            "count": 3,
            "operators": 0.25,
            "time": 0.125,
            "least_spread": 0.08,
            "most_spread": 0.31,
        },
        "fitted": {"operators": 0.5, "time": 0.75},
        "nominal": {"operators": 0.0, "time": 0.0},
        "extrapolated": {"operators": 0.125, "time": 0.0625},
        "processors": {
            "big": {"measured": 0.5, "fitted": 0.5, "nominal": 0.0, "noisy": 3},
            "gpu": {"measured": 0.5, "fitted": 0.5, "nominal": 0.0, "noisy": 0},
        },
        "unmodelled": [],
        "ruled": [],
    }
    assert coverage_lines(share)[-2:] == [
        "measured, noisy: 3 (big 3), 12 % of the time; rounds spread by 8 % to 31 %",
        "of those fitted, beyond the range of what was measured: 12 % (6 %)",
    ]


def test_what_can_be_sustained_stands_beside_the_throughput_where_it_differs(capsys) -> None:
    faster = {**row(2), "sustained_period_s": 0.08}
    for rows, shown in (([row(1)], False), ([row(1), faster], True)):
        print_table(front_table(rows))
        out = capsys.readouterr().out
        assert ("sust." in out) is ("12.5" in out) is shown
        assert any(line.startswith("sust.") for line in legend(document(rows))) is shown
    assert not any(
        line.startswith("sust.") for line in legend(document([row(1), faster]), [row(1)])
    )


def test_no_name_is_broken_in_a_table_that_is_not_narrow(capsys) -> None:
    names = ("most-efficient", "little-alone")
    faster = {**row(2, names=names, drawing="gpu[1-3…] │ big[…3-9] │ little[10-11]")}
    faster |= {"sustained_period_s": 0.08, "latency_s": 1.2345}
    Console(width=NARROW, color_system=None).print(front_table([row(1), faster]))
    out = capsys.readouterr().out
    assert all(name in out for name in names)
