"""The benchmark of intervals and ranks computes what it says; nothing here measures time."""

from types import SimpleNamespace

import pytest

import parapipe
from benchmarks.doubt_here import Predicted, Runs, apart, without_hand_overs_s
from benchmarks.doubt_here_page import coverage, hand_overs, ranked, verdict
from benchmarks.hand_over_parts import more_than_operators_s, wake_up_s
from parapipe.runtime.record import Span

ROW = {
    "segments": 3, "more_than_operators_s": 30e-6, "wake_up_s": 20e-6, "waited": 0.0,
    "period_s": 1.0, "work_latency_s": 0.1, "work_period_s": 0.1,
}  # fmt: skip


def predicted(kind="sequential", latency_s=0.1, name="c1", network="net"):
    ends = (0.9 * latency_s, 1.1 * latency_s)
    return Predicted(
        network, name, kind, "cpu0[1]", "p", latency_s, ends, latency_s, ends, 0.8 * latency_s
    )


def ran(each, *latencies_s):
    return each, [{**ROW, "latency_s": latency_s} for latency_s in latencies_s]


def test_a_figure_is_inside_its_interval_or_not() -> None:
    some = [ran(predicted(), 0.1, 0.12), ran(predicted("pipe-only"), 0.1)]
    rows = {(row[0], row[1]): row[2:5] for row in coverage(some)}
    assert rows["latency", "sequential"] == ["2", "1 (50%)", "±10.0 %"]
    assert rows["latency", "all"] == ["3", "2 (67%)", "±10.0 %"]
    assert rows["period", "all"] == ["1", "0 (0%)", "±10.0 %"]  # of pipelines only
    assert {row[-1] for row in coverage(some)} == {"100%"}  # by processor time


@pytest.mark.parametrize(
    ("within", "told"), [(20, "too wide"), (18, "as 90 % intervals promise"), (15, "too narrow")]
)
def test_the_page_says_if_intervals_are_too_wide_or_too_narrow(within, told) -> None:
    some = [ran(predicted(), *[0.1] * within, *[0.2] * (20 - within))]
    assert told in verdict(some)
    assert f"{within} of 20 measured latencies" in verdict(some)


def test_errors_of_para_only_latencies_are_told_without_and_with_hand_overs() -> None:
    rows, text = hand_overs([ran(predicted("para-only"), 0.1), ran(predicted(), 0.3)])
    assert rows == [
        ["net", "3", "30", "20", "100.00", "80.00", "-20.0%", "100.00", "+0.0%"]
    ]  # fmt: skip
    assert "from 20.0% to 0.0%" in text


def test_ranks_are_those_within_each_network_and_the_reason_is_told_where_they_are_low() -> None:
    some = [
        *(ran(predicted(latency_s=i, name=f"c{i}", network="a"), 2 * i) for i in (1, 2, 3)),
        *(ran(predicted(latency_s=i, name=f"c{i}", network="b"), 4 - i) for i in (1, 2, 3)),
    ]
    rows, text = ranked(some)
    assert [row[3] for row in rows] == ["1.000", "-1.000"]
    assert text.startswith("In b it is -1.00")
    assert ranked(some[:3])[1] == "Spearman's correlation is 1.00 or more within each network."


def test_configurations_are_chosen_whose_latencies_differ() -> None:
    some = [SimpleNamespace(latency_s=latency_s) for latency_s in (3.0, 1.0, 1.004, 2.0)]
    assert [each.latency_s for each in apart(some)] == [1.0, 2.0, 3.0]
    many = [SimpleNamespace(latency_s=1.1**i) for i in range(40)]
    found = apart(many)
    assert len(found) == 10
    assert (found[0], found[-1]) == (many[0], many[-1])


def test_what_ran_is_read_again_and_a_line_that_was_cut_short_is_not(tmp_path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"part": "ranks", "network": "net", "name": "c1", "round": 0}\n{"part": "ra')
    assert [row["round"] for row in Runs(path).of("ranks", predicted())] == [0]


def test_without_hand_overs_a_plan_takes_what_its_longest_way_of_operators_takes() -> None:
    front = parapipe.map("zoo:squeezenet", "amlogic-a311d", interleave="none")
    alone, together = front["sequential"], front["para-only"]
    assert without_hand_overs_s(alone) == pytest.approx(alone.latency_s)
    assert 0.5 * together.latency_s < without_hand_overs_s(together) < together.latency_s


def test_an_idle_processor_wakes_up_and_a_busy_one_does_not() -> None:
    """On two processors: a, then b and c at once, then d, which waits for b behind c."""
    spans = (
        Span("p", "a", 0, 0.0, 1.0, 1.0),
        Span("q", "b", 0, 1.2, 4.0, 2.5),
        Span("p", "c", 0, 1.0, 3.0, 2.0),
        Span("p", "d", 0, 4.4, 5.0, 0.5),
    )
    channels = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    folder = SimpleNamespace(
        segments=[SimpleNamespace(id=s.name, processor=s.resource, time_s=0.5) for s in spans],
        channels=[SimpleNamespace(producer=u, consumers=(v,)) for u, v in channels],
    )
    executor = SimpleNamespace(record=SimpleNamespace(spans=spans), folder=folder)
    assert wake_up_s(executor) == pytest.approx(0.3)  # the median of 0.2 and 0.4 s
    assert more_than_operators_s(executor) == pytest.approx((0.5 + 2 + 1.5 + 0) / 4)
