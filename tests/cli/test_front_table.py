"""How a front is drawn and which of its configurations are shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from parapipe.api.checked import medians_of
from parapipe.cli.advice import MOST_ROWS, advice_text, headline_rows
from parapipe.cli.front_table import (
    NARROW,
    coverage_lines,
    export_line,
    front_table,
    legend_lines,
    search_notes,
)
from parapipe.cli.output import WIDTH, print_table

OBJECTIVES = ["latency", "throughput", "energy"]


def row(
    number: int, *, names: tuple[str, ...] = (), pareto: bool = True, drawing="big[1-11]"
) -> dict:
    return {
        "id": f"c{number:02d}",
        "kind": "sequential",
        "names": names,
        "pareto": pareto,
        "pareto_latency_throughput": False,
        "drawing": drawing,
        "latency_s": 0.1 + number / 1000,
        "period_s": 0.1,
        "sustained_period_s": 0.1,
        "throughput_fps": 10.0,
        "energy_j": 0.2,
        "peak_memory_bytes": None,
        "proven": True,
        "gap": 0.0,
    }


def test_sixty_columns_are_enough(capsys, monkeypatch) -> None:
    names = ("sequential", "most-efficient", "gpu-alone")
    rows = [
        row(1, drawing="big+little+gpu[1-11]"),
        row(2, names=names, drawing="gpu[1…] │ big[…1]"),
    ]
    for proven in (True, False):
        table = front_table(
            [{**r, "proven": proven, "gap": 0.012} for r in rows], OBJECTIVES, narrow=True
        )
        console = Console(width=60, color_system=None)
        console.print(table)
        out = capsys.readouterr().out
        assert all(len(line) <= 60 for line in out.splitlines())
        for word in ("big+little+gpu[1-11", "gpu[1…] │ big[…1]", *names, "200.0", "LTE", "c02"):
            assert word in out
        assert ("1.2" in out) != proven


def document(configurations: list[dict], **changes) -> dict:
    return {
        "configurations": configurations,
        "options": {
            "objectives": OBJECTIVES,
            "proves": ["L"],
            "resolution": 0.01,
            "energy_resolution": 0.04,
            "energy_resolution_asked": 0.05,
            "energy_timed_out": False,
        },
        "absent": {},
        **changes,
    }


@pytest.mark.parametrize(
    ("drawing", "cut"),
    [
        ("big[1…] │ gpu[…1…] │ npu[…1-3]", True),
        ("big[1…,2] │ gpu[…1,3]", True),
        ("big[1-12…] │ gpu[2] │ npu[…12]", True),
        ("big[1,3] │ gpu[2]", False),
    ],
)
def test_a_cut_inside_a_subgraph_is_explained_where_a_row_shows_one(drawing, cut) -> None:
    rows = [row(1), row(2, drawing=drawing)]
    told = "; ".join(legend_lines(document(rows), rows))
    assert ("…: cut inside a subgraph" in told) == cut
    assert "cut inside" not in "; ".join(legend_lines(document(rows), rows[:1]))


@pytest.mark.parametrize("robust", [None, {"quantile": 0.9}])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("objectives", [OBJECTIVES, [*OBJECTIVES, "memory"]])
def test_three_lines_explain_a_table_with_all_columns_and_marks(robust, even, objectives) -> None:
    low, high = (0.8, 1.2) if even else (1.1, 4.0)
    rows = [row(1, drawing="big[1…] │ gpu[…1]"), {**row(2), "kind": "interleaved"}]
    for each in rows:
        figures = {key: each[key] for key in ("latency_s", "period_s", "energy_j")}
        each["intervals"] = {key: (low * at, high * at) for key, at in figures.items()}
        each["medians"] = {key: at * (1 + (not even)) for key, at in figures.items()}
        each["sustained_period_s"] = each["period_s"] * 0.9
        each["peak_memory_bytes"] = 1e6
        each["quantiles"] = robust and {**figures, "share": 0.9}
    options = {
        **document([])["options"],
        "objectives": objectives,
        "proves": ["energy", "makespan"],
    }
    memory = {"memories": [{"name": "shared memory assumed"}]}
    medians = medians_of(rows)
    assert bool(medians) != even
    whole = document(rows, options=options, memory=memory, robust=robust)
    told = legend_lines(whole, rows, medians)
    assert len(told) <= 3
    assert all(len(line) <= WIDTH for line in told)
    assert told[0].startswith("front by stated costs: none better in all of L") != even
    keys = [
        "front" if even else "front by stated costs",
        "gap",
        "peak",
        "…",
        *(["R", "90%"] if robust else []),
    ]
    keys += ["low–high"] * (not even) + ["±", "sust."] * (even and not robust)
    assert sorted(mark.partition(":")[0] for line in told for mark in line.split("; ")) == sorted(
        keys
    )
    narrow = "; ".join(legend_lines(whole, rows, medians, narrow=True))
    assert not {"peak", "sust.", "±", "90%", "gap"}.intersection(
        mark.partition(":")[0] for mark in narrow.split("; ")
    )


def test_a_gap_is_explained_where_no_schedule_was_searched_for():
    whole = document([row(1)])
    whole["options"]["proves"] = []
    assert "gap: 0, as each stage has one processor" in "; ".join(legend_lines(whole, [row(1)]))


def test_a_row_keeps_its_figure_whichever_rows_are_shown_and_least_latency_is_first(capsys) -> None:
    rows = [row(1), row(2)]
    for each, median, ends in zip(rows, (0.3, 0.2), ((0.25, 0.4), (0.09, 0.4)), strict=True):
        each["intervals"] = dict.fromkeys(("latency_s", "period_s", "energy_j"), ends)
        each["medians"] = dict.fromkeys(("latency_s", "period_s", "energy_j"), median)
    medians = medians_of(rows)
    for shown in (rows, rows[1:]):
        print_table(front_table(shown, OBJECTIVES, medians))
        out = capsys.readouterr().out
        assert [*re.findall("^c[0-9]+", out, re.MULTILINE)] == ["c02", "c01"][: len(shown)]
        assert "~200.0" in out
        assert "102.0" not in out


@pytest.mark.parametrize(
    ("objectives", "mark"),
    [
        ("latency throughput energy", "LTE"),
        ("latency throughput energy memory", "LTEM"),
        ("latency throughput memory", "LTM"),
    ],
)
def test_a_row_of_the_front_is_marked_with_the_letters_of_the_objectives(
    capsys, objectives, mark
) -> None:
    asked = objectives.split()
    print_table(front_table([row(1), {**row(2), "pareto_latency_throughput": True}], asked))
    *_, first, second = capsys.readouterr().out.splitlines()
    assert (first.split()[-1], second.split()[-1]) == (mark, "LT")
    options = {**document([])["options"], "objectives": asked}
    told = legend_lines(document([row(1)], options=options), [row(1)])[0]
    letters = ", ".join(f"{each[0].upper()} {each}" for each in asked)
    assert told.startswith(f"front: no row is better in all of {letters}")


WITHIN = "energy: for each possible schedule a row is at most {} worse in every figure"
UNKNOWN = "energy: how far the rows are from the least is not known"
ASKED = "asked for: {} % (--energy-resolution); {}"
HELPS = "a longer --time-limit helps"
ROUNDED = "the rest is due to rounding to whole microseconds"


@pytest.mark.parametrize(
    ("asked", "reached", "timed_out", "told"),
    [
        (0.05, 0.05, False, [WITHIN.format("5 %") + " (--energy-resolution)"]),
        (0.05, 0.05000001, True, [WITHIN.format("5 %") + " (--energy-resolution)"]),
        (0.05, 0.02, True, [WITHIN.format("2 %") + " (--energy-resolution)"]),
        (0.05, 0.33, True, [WITHIN.format("33 %"), ASKED.format(5, HELPS)]),
        (0, 0.00068, False, [WITHIN.format("0.068 %"), ASKED.format(0, ROUNDED)]),
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
    lines = search_notes(document([row(1)], options=options))
    assert lines[1:] == told
    options["energy_resolution_asked"] = None
    (line,) = search_notes(document([row(1)], options=options))[1:]
    assert line.startswith("energy: compared among the shortest schedules that the mapper finds")


def test_a_front_that_was_ended_early_says_how_far_its_best_are_from_what_is_proven() -> None:
    undone = {"reasons": ("time ran out",), "latency_s": 0.096, "period_s": 0.1, "energy_j": 0.15}
    rows = [row(number) for number in (20, 50)]  # 120 and 150 ms
    reason, proven, *_ = search_notes(document(rows, unfinished=undone))
    assert reason == "unfinished: time ran out"
    assert proven == (
        "proven: no configuration takes less than 96 ms (gap 20.0 %) or 150 mJ per frame "
        "(gap 25.0 %), and none reaches more than 10 frames/s (gap 0.0 %)"
    )
    options = {**document([])["options"], "objectives": OBJECTIVES[:2]}
    line = search_notes(document(rows, unfinished=undone, options=options))[1]
    assert "mJ" not in line


def test_a_kind_that_does_not_exist_is_named_with_its_reason() -> None:
    lines = search_notes(document([row(1)], absent={"hybrid": "there is one processor"}))
    assert "no hybrid configuration: there is one processor" in lines


def test_what_keeps_several_processors_from_running_alone_is_said_once() -> None:
    absent = {f"{name}-alone": f"{name} cannot run Conv" for name in ("npu0", "npu1", "dsp")}
    absent["dsp-alone"] = "dsp cannot run LRN"
    *_, npus, dsp = search_notes(document([row(1)], absent=absent))
    assert npus == "no npu0-alone or npu1-alone configuration: npu0 and npu1 cannot run Conv"
    assert dsp == "no dsp-alone configuration: dsp cannot run LRN"


@given(
    st.lists(
        st.tuples(
            st.sampled_from([(), (), ("hybrid-L",), ("balanced", "hybrid-T"), ("gpu-alone",)]),
            *[st.integers(1, 9)] * 3,
        ),
        min_size=1,
        max_size=40,
    )
)
def test_the_first_rows_are_the_best_of_each_objective_and_then_those_with_names(some) -> None:
    rows = [
        {
            **row(n, names=names),
            "latency_s": latency_s,
            "energy_j": energy_j,
            "period_s": period_s,
            "sustained_period_s": period_s,
        }
        for n, (names, latency_s, period_s, energy_j) in enumerate(some)
    ]
    shown = headline_rows(rows, OBJECTIVES)
    ids = [r["id"] for r in shown]
    assert len(set(ids)) == len(ids) <= MOST_ROWS
    for key in ("latency_s", "period_s", "energy_j"):
        assert min(r[key] for r in shown) == min(r[key] for r in rows)
    left_out = [r for r in rows if r["names"] and r["id"] not in ids]
    best = {min(r[key] for r in rows) for key in ("latency_s", "period_s", "energy_j")}
    assert all(r["names"] or best & {r["latency_s"], r["period_s"], r["energy_j"]} for r in shown)
    assert not left_out or len(ids) == MOST_ROWS
    if any(r["names"] != ("gpu-alone",) for r in left_out):
        assert sum(r["names"] == ("gpu-alone",) for r in shown) <= len(OBJECTIVES)


def figures(number, kind, latency_s, period_s, energy_j, *, sustained_period_s=None):
    stages = [{"processors": [{"name": kind.partition(" ")[2] or "big"}]}]
    return {
        **row(number), "kind": kind.partition(" ")[0], "stages": stages,
        "latency_s": latency_s, "period_s": period_s, "throughput_fps": 1 / period_s,
        "sustained_period_s": sustained_period_s or period_s, "energy_j": energy_j,
    }  # fmt: skip


def test_identical_processors_alone_are_one_row_with_all_their_names() -> None:
    rows = [
        figures(1, "replicated", 0.1, 0.05, 0.4) | {"names": ("replicated-T",)},
        figures(2, "sequential npu0", 0.1, 0.1, 0.4) | {"names": ("sequential", "npu0-alone")},
        figures(3, "sequential npu1", 0.1, 0.1, 0.4) | {"names": ("npu1-alone",)},
        figures(4, "sequential npu2", 0.1, 0.1, 0.4) | {"names": ("npu2-alone",)},
        figures(5, "sequential gpu", 0.1, 0.1, 0.5) | {"names": ("gpu-alone",)},
    ]
    assert [(row["id"], tuple(row["names"])) for row in headline_rows(rows, OBJECTIVES)] == [
        ("c01", ("replicated-T",)),
        ("c02", ("sequential", "npu0-alone", "npu1-alone (c03)", "npu2-alone (c04)")),
        ("c05", ("gpu-alone",)),
    ]


def test_the_answer_says_what_to_take_and_what_it_gains() -> None:
    rows = [
        figures(1, "para-only", 0.05, 0.05, 0.9),
        figures(2, "pipe-only", 0.2, 0.04, 0.5),
        figures(3, "sequential cpu", 0.1, 0.1, 0.4),
        figures(4, "sequential gpu", 0.12, 0.08, 0.6),
    ]
    assert advice_text(document(rows)) == (
        "Take for latency c01 (50 ms, 2.00 times as fast as cpu alone), for throughput c02 "
        "(25 frames/s, 2.00 times that of gpu alone), for energy c03 (400 mJ per frame, cpu alone)."
    )
    rows[0]["latency_s"] = 0.0999  # a gain that is not worth saying
    assert advice_text(document(rows)).startswith("Take for latency c01 (99.9 ms), for throughput")
    rows[0]["latency_s"] = 0.05
    rows[1]["energy_j"] = 0.3
    assert "for energy c02 (300 mJ per frame, 25 % less than cpu alone)" in advice_text(
        document(rows)
    )
    rows[1]["energy_j"] = 0.3984
    assert "(398.4 mJ per frame, 0.4 % less than cpu alone)" in advice_text(document(rows))
    rows[1]["energy_j"] = rows[2]["energy_j"]
    assert "for energy c03 (400 mJ per frame, cpu alone)" in advice_text(document(rows))
    rows[1]["latency_s"] = 0.09  # of equal energies that of less latency
    assert "(400 mJ per frame, as much as cpu alone)" in advice_text(document(rows))
    assert advice_text(document(rows[:1])).startswith(
        "Take for latency c01 (50 ms), for throughput c01"
    )


def test_the_answer_recommends_no_period_that_hand_overs_do_not_let_be_sustained() -> None:
    rows = [
        figures(1, "pipe-only", 0.2, 0.04, 0.5, sustained_period_s=0.07),
        figures(2, "pipe-only", 0.3, 0.05, 0.5),
        figures(3, "sequential gpu", 0.1, 0.1, 0.4),
    ]
    assert "for throughput c02 (20 frames/s, 2.00 times that of gpu alone)" in advice_text(
        document(rows)
    )
    rows[1] = figures(2, "pipe-only", 0.3, 0.05, 0.5, sustained_period_s=0.08)
    assert (
        "for throughput c01 (14.29 frames/s sustained, 1.43 times that of gpu alone)"
        in advice_text(document(rows))
    )
    drawn = {"period_s": (0.03, 0.06), "throughput_fps": (1 / 0.06, 1 / 0.03)}
    for each in rows:
        each |= {"intervals": drawn, "medians": {"period_s": 0.05, "throughput_fps": 20.0}}
    assert "for throughput c01 (14.29 frames/s sustained, " in advice_text(document(rows))


def test_the_table_fits_in_100_columns_and_is_plain_when_not_on_a_terminal(capsys) -> None:
    stages = "big+little[1-3…] │ a-processor-with-a-long-name[…3-9] │ gpu+npu[10-11]"
    names = ("hybrid-L", "hybrid-T", "balanced", "most-efficient")
    print_table(front_table([row(1, names=names, drawing=stages), row(2)], OBJECTIVES))
    out = capsys.readouterr().out
    assert all(len(line) <= WIDTH for line in out.splitlines())
    assert "\x1b" not in out
    for word in ("a-processor-with-a-long-name", *names, "c01", "c02", "latency"):
        assert word in out


def test_the_least_figure_of_a_column_has_three_digits(capsys) -> None:
    rows = [{**row(1), "latency_s": 0.000_055_3}, {**row(2), "latency_s": 0.1131}]
    print_table(front_table(rows, OBJECTIVES))
    out = capsys.readouterr().out
    assert " 0.0553 " in out
    assert " 113.1000 " in out
    assert " 200.0 " in out


def test_an_unproven_gap_is_shown_and_a_proven_one_is_zero(capsys) -> None:
    print_table(front_table([{**row(1), "proven": False, "gap": 0.0123}], OBJECTIVES))
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
        "operators (and their time): measured >99 % (100 %), fitted <1 % (0 %), nominal 0 % (0 %)",
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
        "fitted beyond the range of what was measured: 12 % (6 %)",
    ]


def test_what_can_be_sustained_stands_beside_the_throughput_where_it_differs(capsys) -> None:
    faster = {**row(2), "sustained_period_s": 0.08}
    for rows, shown in (([row(1)], False), ([row(1), faster], True)):
        print_table(front_table(rows, OBJECTIVES))
        out = capsys.readouterr().out
        assert ("sust." in out) is ("12.5" in out) is shown
        assert any("sust.:" in line for line in legend_lines(document(rows), rows)) is shown
    assert not any("sust.:" in line for line in legend_lines(document([row(1), faster]), [row(1)]))


def test_no_name_is_broken_in_a_table_that_is_not_narrow(capsys) -> None:
    names = ("most-efficient", "little-alone")
    faster = {**row(2, names=names, drawing="gpu[1-3…] │ big[…3-9] │ little[10-11]")}
    faster |= {"sustained_period_s": 0.08, "latency_s": 1.2345}
    Console(width=NARROW, color_system=None).print(front_table([row(1), faster], OBJECTIVES))
    out = capsys.readouterr().out
    assert all(name in out for name in names)


def test_rows_are_told_by_what_they_can_be_exported_to() -> None:
    rows = [
        {"id": "c01", "exports": ["onnxruntime", "rknn"]},
        {"id": "c02", "exports": []},
        {"id": "c03", "exports": ["onnxruntime", "rknn"]},
    ]
    assert [*export_line(rows)] == [
        "export as planned: c01, c03 to onnxruntime or rknn; c02 to none"
    ]
    assert not [*export_line([{"id": "c01"}])]
