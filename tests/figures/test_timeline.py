"""An interleaved plan on paper: operators of several frames in a period, some beyond its end."""

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from parapipe.figures.gantt import plot_gantt
from parapipe.figures.palette import IDLE, looks
from parapipe.figures.timeline import timeline
from parapipe.plan.verify import verify_plan
from tests.cases.interleaved import DRAWN, between_stages, plan_of, sending, wrapped
from tests.cases.plan_cases import drawn_plan


def bars_of(ax, colour):
    """Return start and end of each bar of a colour, and how opaque it is."""
    return sorted(
        (path.vertices[:, 0].min() / 1e3, path.vertices[:, 0].max() / 1e3, bars.get_alpha() or 1.0)
        for bars in ax.collections
        if isinstance(bars, PolyCollection) and to_hex(bars.get_facecolor()[0]) == colour
        for path in bars.get_paths()
    )


def test_a_frame_goes_through_an_interleaved_plan_in_the_order_of_its_operators() -> None:
    time = timeline(plan_of(wrapped()))
    assert time.period_s == 2.0
    assert {bar.operator: (bar.start_s, bar.end_s) for bar in time.bars} == {
        "a": (0.0, 1.0), "b": (1.25, 2.25), "c": (3.0, 4.0), "d": (4.25, 5.25),
    }  # fmt: skip
    moved = {each.transfer.tensor: (each.start_s, each.end_s) for each in time.passages}
    assert moved == {"a": (1.0, 1.25), "b": (2.25, 2.5), "c": (4.0, 4.25)}
    assert [stage.processors for stage in time.stages] == [("big", "little"), ("big",), ("little",)]
    assert {stage.end_s for stage in time.stages} == {5.25}


@pytest.mark.parametrize("document", DRAWN)
def test_the_way_of_a_frame_is_as_long_as_its_latency(document) -> None:
    plan = plan_of(document())
    verify_plan(plan)
    time = timeline(plan)
    assert min(bar.start_s for bar in time.bars) == 0.0
    assert max(bar.end_s for bar in time.bars) == pytest.approx(plan.predicted.latency_s)
    ends = {bar.operator: bar.end_s for bar in time.bars}
    assert all(each.start_s >= ends[each.operator] - 1e-9 for each in time.passages)


def test_a_transfer_that_keeps_a_processor_busy_stands_where_the_plan_has_it() -> None:
    (moved, *_) = timeline(plan_of(sending())).passages
    assert (moved.transfer.occupies, moved.start_s, moved.end_s) == ("big", 1.0, 1.25)


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [
        (0.0, 2.0, [(0.0, 2.0, 0)]),
        (1.25, 2.75, [(1.25, 2.0, 0), (0.0, 0.75, 1)]),
        (3.0, 3.75, [(1.0, 1.75, 1)]),
        (4.0 - 1e-12, 5.0, [(0.0, 1.0, 2)]),
        (1.0, 1.0, [(1.0, 1.0, 0)]),
    ],
)
def test_a_time_beyond_the_end_of_the_period_goes_on_at_its_beginning(start_s, end_s, expected):
    assert list(timeline(plan_of(wrapped())).in_periods(start_s, end_s)) == expected


def test_the_gantt_chart_shows_one_period_with_all_its_frames() -> None:
    ax = Figure().add_subplot()
    known = looks(["big", "little"])
    plot_gantt(plan_of(wrapped()), known, ax)
    pale, paler = pytest.approx(0.65), pytest.approx(0.3)
    assert bars_of(ax, known["big"].colour) == [(0.0, 1.0, 1.0), (1.0, 2.0, pale)]
    # b goes on at the beginning of the next period, then d of the frame before that one runs
    assert bars_of(ax, known["little"].colour) == [
        (0.0, 0.25, pale), (0.25, 1.25, paler), (1.25, 2.0, 1.0),
    ]  # fmt: skip
    assert {end for _, end, _ in bars_of(ax, to_hex(IDLE))} == {2.0}
    assert ax.get_xlim() == (0.0, 2000.0)
    # the transfer of c is cut at the end of the period: 4.0 to 4.25 is its beginning
    assert len([line for line in ax.lines if line.get_color() == "0.25"]) == 3


def test_stages_of_one_frame_beside_one_of_several_are_drawn_by_their_lags() -> None:
    ax = Figure().add_subplot()
    plan = plan_of(between_stages())
    plot_gantt(plan, looks(processor.name for processor in plan.processors), ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["big", "little", "gpu", "npu"]
    assert len(timeline(plan).stages) == 4


def test_stages_that_follow_each_other_are_drawn_as_one_frame() -> None:
    time = timeline(drawn_plan())
    assert time.period_s is None
    assert [stage.start_s for stage in time.stages] == [0.0, 3.0]
    assert list(time.in_periods(2.5, 7.0)) == [(2.5, 7.0, 0)]
