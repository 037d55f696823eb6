"""An interleaved plan on paper: operators of two frames in one period, and one beyond its end."""

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from parapipe.figures.gantt import plot_gantt
from parapipe.figures.palette import IDLE, looks
from parapipe.figures.timeline import timeline
from parapipe.plan.schema import Plan
from tests.cases.plan_cases import drawn_plan


def interleaved_plan() -> Plan:
    r"""One stage of two processors, a frame every 2 s; every transfer takes 0.25 s.

    x ─ a 1 ─ b 1.5 ─ c 0.75

    big:    a [0, 1] of frame n     c [1, 1.75] of frame n - 1
    little: b [1.25, 2.75] of frame n: until 0.75 in the next period
    """
    plan = drawn_plan().to_bytes()
    document = Plan.model_validate_json(plan).model_dump(mode="json", by_alias=True)
    a, b, c = document["operators"][:3]
    c = {**c, "inputs": ["b"]}

    def placed(name, start_s, end_s, lag):
        return {"operator": name, "start_s": start_s, "end_s": end_s, "lag": lag}

    def moved(name, source, target):
        return {
            "tensor": name, "from": source, "to": target, "kind": "within-stage",
            "size_bytes": 24, "time_s": 0.25, "queue_depth": 3,
        }  # fmt: skip

    big = [placed("a", 0.0, 1.0, 0), placed("c", 1.0, 1.75, 1)]
    little = [placed("b", 1.25, 2.75, 0)]
    document |= {
        "operators": [a, b, c],
        "outputs": ["c"],
        "processors": document["processors"][:2],
        "stages": [
            {
                "index": 0,
                "processors": [
                    {"name": "big", "operators": big},
                    {"name": "little", "operators": little},
                ],
                "time_s": 3.75,
            }
        ],
        "transfers": [moved("a", "big", "little"), moved("b", "little", "big")],
        "predicted": document["predicted"]
        | {"latency_s": 3.75, "period_s": 2.0, "sustained_period_s": 2.0, "throughput_fps": 0.5},
    }
    return Plan.model_validate(document, strict=False)


def bars_of(ax, colour):
    """Return start and end of each bar of a colour, and how opaque it is."""
    return sorted(
        (path.vertices[:, 0].min() / 1e3, path.vertices[:, 0].max() / 1e3, bars.get_alpha())
        for bars in ax.collections
        if isinstance(bars, PolyCollection) and to_hex(bars.get_facecolor()[0]) == colour
        for path in bars.get_paths()
    )


def test_a_frame_goes_through_an_interleaved_plan_in_the_order_of_its_operators() -> None:
    time = timeline(interleaved_plan())
    assert time.period_s == 2.0
    times = {bar.operator: (bar.start_s, bar.end_s) for bar in time.bars}
    assert times == {"a": (0.0, 1.0), "c": (3.0, 3.75), "b": (1.25, 2.75)}
    moved = {each.transfer.tensor: (each.start_s, each.end_s) for each in time.passages}
    assert moved == {"a": (1.0, 1.25), "b": (2.75, 3.0)}
    assert [stage.processors for stage in time.stages] == [("big", "little"), ("big",)]
    assert {stage.end_s for stage in time.stages} == {3.75}


def test_a_frame_begins_with_its_first_operator_wherever_that_is_in_the_period() -> None:
    plan = interleaved_plan()
    (stage,) = plan.stages
    later = [
        each.model_copy(
            update={
                "operators": tuple(
                    at.model_copy(update={"start_s": at.start_s + 0.5, "end_s": at.end_s + 0.5})
                    for at in each.operators
                )
            }
        )
        for each in stage.processors
    ]
    moved = plan.model_copy(
        update={"stages": (stage.model_copy(update={"processors": tuple(later)}),)}
    )
    assert timeline(moved).bars == timeline(plan).bars


@pytest.mark.parametrize(
    ("start_s", "end_s", "pieces"),
    [
        (0.0, 2.0, [(0.0, 2.0, 0)]),
        (1.25, 2.75, [(1.25, 2.0, 0), (0.0, 0.75, 1)]),
        (3.0, 3.75, [(1.0, 1.75, 1)]),
        (4.0 - 1e-12, 5.0, [(0.0, 1.0, 2)]),
        (1.0, 1.0, [(1.0, 1.0, 0)]),
    ],
)
def test_a_time_beyond_the_end_of_the_period_goes_on_at_its_beginning(start_s, end_s, pieces):
    assert list(timeline(interleaved_plan()).pieces(start_s, end_s)) == pieces


def test_the_gantt_chart_shows_one_period_with_both_frames() -> None:
    ax = Figure().add_subplot()
    known = looks(["big", "little"])
    plot_gantt(interleaved_plan(), known, ax)
    paler = pytest.approx(0.6)
    assert bars_of(ax, known["big"].colour) == [(0.0, 1.0, None), (1.0, 1.75, paler)]
    assert bars_of(ax, known["little"].colour) == [(0.0, 0.75, paler), (1.25, 2.0, None)]
    assert {end for _, end, _ in bars_of(ax, to_hex(IDLE))} == {2.0}
    assert ax.get_xlim() == (0.0, 2000.0)
    assert len([line for line in ax.lines if line.get_color() == "0.25"]) == 2


def test_stages_that_follow_each_other_are_drawn_as_one_frame() -> None:
    time = timeline(drawn_plan())
    assert time.period_s is None
    assert [stage.start_s for stage in time.stages] == [0.0, 3.0]
    assert list(time.pieces(2.5, 7.0)) == [(2.5, 7.0, 0)]
