"""Times of a run in a simulation: worked out by hand, and a steady run given back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.documents.build_run import run_document
from parapipe.errors import SimulationError
from parapipe.plan.build import build_plan
from parapipe.plan.program import program
from parapipe.simulate.simulation import simulate
from parapipe.simulate.variation import MeasuredTimes, RandomFactors, TaskTimes
from tests.cases.plan_cases import drawn_plan, random_case

PLAN = drawn_plan()  # big: a, b; little: c; gpu: d, e; see `drawn`
PLACES = (("big", "a"), ("big", "b"), ("little", "c"), ("gpu", "d"), ("gpu", "e"))


def run_of(times_s, handovers_s=None):
    """Return the times of a run of the drawn plan by operator, a column for each frame."""
    idle = [[0.0] * len(times_s[0])] * 5
    rows = zip(PLACES, times_s, handovers_s or idle, strict=True)
    return [TaskTimes(place, (name,), took, handed) for (place, name), took, handed in rows]


def ends(made):
    return [frame.done_s for frame in made.record.frames]


def test_a_frame_takes_what_its_frame_of_the_run_took():
    # a 1, b 2, c 1, d 3, e 1; c is handed over in 0.5, d in 0.25: ends 1, 3, 2.5, 6.25, 7.25
    tasks = run_of([[1.0], [2.0], [1.0], [3.0], [1.0]], [[0.0], [0.0], [0.5], [0.25], [0.0]])
    made = simulate(PLAN, frames=1, measured=MeasuredTimes("run", tasks))
    assert ends(made) == [7.25]
    at = {span.name: (span.start_s, span.end_s) for span in made.record.spans}
    assert at == {"a": (0, 1), "b": (1, 3), "c": (1.5, 2.5), "d": (3.25, 6.25), "e": (6.25, 7.25)}


def test_frames_of_the_run_come_in_order_or_are_drawn():
    tasks = run_of([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    in_order = MeasuredTimes("run", tasks, seed=None)
    assert ends(simulate(PLAN, frames=4, saturate=True, measured=in_order)) == [1.0, 3.0, 4.0, 6.0]
    drawn = [MeasuredTimes("run", tasks, seed=seed) for seed in (1, 1, 2)]
    found = [ends(simulate(PLAN, frames=50, saturate=True, measured=each)) for each in drawn]
    assert found[0] == found[1] != found[2]
    assert 60 <= found[0][-1] <= 90  # 50 times 1 or 2


def test_what_is_slow_together_stays_together():
    # one frame of four takes ten times as long in all tasks
    column = [1.0, 1.0, 1.0, 10.0]
    measured = MeasuredTimes("run", run_of([column] * 5))
    made = simulate(PLAN, frames=200, measured=measured)
    for frame in range(200):
        took = {s.end_s - s.start_s for s in made.record.spans if s.frame == frame}
        assert len({round(each, 6) for each in took}) == 1


def test_a_disturbed_processor_takes_twice_what_was_measured():
    measured = MeasuredTimes("run", run_of([[1.0], [2.0], [1.0], [3.0], [1.0]]))
    made = simulate(
        PLAN, frames=1, measured=measured, luck=RandomFactors(disturbed={"gpu": 1 - 1e-9})
    )
    assert ends(made) == [3.0 + 2 * 4.0]


@settings(max_examples=30)
@given(seed=st.integers(0, 10**9))
def test_a_steady_run_is_given_back_and_never_takes_longer(seed):
    """It may be shorter: what a task waited for a hand-over depends on what was before it."""
    plan = build_plan(*random_case(seed))
    if any(each.occupies for each in plan.transfers):
        return  # in a run, these are no tasks
    made = simulate(plan, frames=60)
    tasks = program(plan, moves=False)
    rows = run_document(plan, tasks, made.record, how="run", saturated=False).tasks
    times = [TaskTimes(t.resource, t.operators, t.times_s, t.handovers_s) for t in rows]
    again = simulate(plan, frames=60, measured=MeasuredTimes("run", times, seed=None))
    found, expected = (
        [frame.done_s - frame.admitted_s for frame in each.record.frames[30:]]
        for each in (again, made)
    )
    longest_s = max((each.time_s for each in plan.transfers), default=0.0)
    for found_s, expected_s in zip(found, expected, strict=True):
        assert expected_s - longest_s - 1e-6 <= found_s <= expected_s + 1e-6


@pytest.mark.parametrize(
    "tasks",
    [run_of([[1.0]] * 5)[:4], [TaskTimes("gpu", ("a",), [1.0], [0.0])]],
)
def test_a_run_of_another_plan_is_refused(tasks):
    with pytest.raises(SimulationError, match="is of another plan"):
        simulate(PLAN, frames=1, measured=MeasuredTimes("run", tasks))


def test_a_run_without_times_of_frames_is_refused():
    with pytest.raises(SimulationError, match="does not hold the times of each frame"):
        MeasuredTimes("run.json", run_of([[]] * 5))
