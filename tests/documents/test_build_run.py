"""A run beside what was predicted: figures, and what processors and links waited for."""

from __future__ import annotations

import json

import pytest

from parapipe.documents.build_run import run_document, warm_up_frames
from parapipe.documents.run_schema import MachineRow
from parapipe.front.run import Run
from parapipe.plan.program import program
from parapipe.runtime.record import Frame, Record, Span
from parapipe.simulate.simulation import simulate
from tests.cases.plan_cases import drawn_plan

PLAN = drawn_plan()


def simulated(frames=20, **options):
    found = simulate(PLAN, frames=frames, **options)
    return run_document(
        PLAN, found.program, found.record, how="simulation",
        saturated=options.get("saturate", False),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "lags", "expected"),
    [(1, 1, 0), (2, 1, 0), (3, 1, 1), (100, 3, 20), (10, 4, 4), (5, 4, 3)],
)
def test_a_fifth_of_the_frames_warms_up_or_as_many_as_fill_the_pipeline(frames, lags, expected):
    assert warm_up_frames(frames, lags) == expected


def test_without_chance_everything_takes_what_was_predicted():
    document = simulated()
    for row in document.tasks:
        assert row.observed_s == pytest.approx(row.predicted_s)
    assert document.period.predicted_s == document.period.sustained_s == 3.0
    assert document.period.limit_s == 3.0
    assert document.period.limited_by == ("big",)
    assert document.period.observed_s == pytest.approx(3.0)
    assert document.latency.most_s == pytest.approx(5.25)
    assert document.latency.predicted_s == 5.25
    assert document.warm_up == 4
    busy = {resource.name: resource.observed_utilisation for resource in document.resources}
    assert busy == pytest.approx({"big": 1, "little": 1 / 3, "gpu": 2 / 3})


def test_idle_time_is_told_apart():
    resources = {resource.name: resource for resource in simulated().resources}
    # little has c from 1.25 to 2.25 of each 3 s: until a is made it waits 1.75 s for input.
    little = resources["little"]
    waited = (little.for_input_s, little.for_room_s, little.handover_s)
    assert waited == pytest.approx((1.75, 0.0, 0.25))
    for resource in resources.values():
        idle_s = resource.for_input_s + resource.for_room_s + resource.handover_s
        assert resource.observed_s + idle_s == pytest.approx(3.0)


def test_a_full_queue_is_what_a_fast_producer_waits_for():
    found = simulate(PLAN, frames=20, saturate=True, queue=1)
    document = run_document(PLAN, found.program, found.record, how="simulation", saturated=True)
    # a keeps its slot to the gpu until e has ended for the frame: frames go one by one.
    big = document.resources[0]
    assert document.period.limit_s == 5.25
    assert set(document.period.limited_by) == {"big", "gpu"}
    assert big.for_room_s == pytest.approx(5.25 - 3)


def test_what_comes_while_the_pipeline_empties_does_not_count_for_the_period():
    tasks = program(PLAN)
    done_s = [5.25 + 3.0 * n for n in range(18)] + [57.5, 57.75]  # the last two at once
    spans = tuple(
        Span(task.resource, task.name, n, at - 1.0, at)
        for n, at in enumerate(done_s)
        for task in tasks.tasks
    )
    frames = tuple(Frame(n, 3.0 * n, at) for n, at in enumerate(done_s))
    record = Record(tasks.resources, spans, (), frames)
    period = run_document(PLAN, tasks, record, how="run", saturated=True).period
    assert (period.observed_s, period.median_s, period.p99_s) == (3.0, 3.0, 3.0)


def test_spans_of_other_names_are_found_by_their_operators():
    tasks = program(PLAN, unit="segment")
    spans = tuple(
        Span(task.resource, f"session {i}", 0, float(i), i + 0.5, 0.375)
        for i, task in enumerate(tasks.tasks)
    )
    record = Record(tasks.resources, spans, (), (Frame(0, 0.0, 5.5),))
    members = {f"session {i}": task.operators for i, task in enumerate(tasks.tasks)}
    machine = MachineRow(cores={"big": (0,), "little": (1,), "gpu": ()}, other_programs=0.25)
    document = run_document(
        PLAN, tasks, record, how="run", saturated=False, members=members, machine=machine
    )
    # Where a thread had its one core for less, and told it, that time counts.
    assert {row.own.time_s for row in document.tasks if row.resource != "gpu"} == {0.375}
    assert {row.own.time_s for row in document.tasks if row.resource == "gpu"} == {0.5}
    for row in document.tasks:
        assert sum(row.predicted_operators_s) == pytest.approx(row.predicted_s)
    assert [row.operators for row in document.tasks] == [t.operators for t in tasks.tasks]
    assert {row.observed_s for row in document.tasks} == {0.5}
    # a, c, d and e take 0.5 s each and two transfers 0.25 s; then a slot of two is free for a.
    assert document.period.limit_s == 3.0
    assert document.period.observed_limit_s == 2.5 / 2
    assert document.period.observed_limited_by == ("big", "little", "gpu")
    assert document.period.observed_s is None
    assert document.simulation is None


def test_a_run_saves_its_trace(tmp_path):
    found = simulate(PLAN, frames=2)
    document = run_document(PLAN, found.program, found.record, how="simulation", saturated=False)
    path = tmp_path / "trace.json"
    Run(document, found.record).save_trace(path)
    trace = json.loads(path.read_text())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 2 * len(PLAN.operators)
    titles = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert titles == ["small on board, simulated"]


def test_frames_that_spread_too_far_in_the_middle_make_a_task_noisy():
    tasks = program(PLAN, unit="segment")
    machine = MachineRow(cores={}, other_programs=None)

    def own(durations):
        spans = tuple(
            Span(task.resource, task.name, frame, 10.0 * frame + i, 10.0 * frame + i + duration)
            for i, task in enumerate(tasks.tasks)
            for frame, duration in enumerate(durations)
        )
        frames = tuple(Frame(f, 10.0 * f, 10.0 * f + 9) for f in range(len(durations)))
        record = Record(tasks.resources, spans, (), frames)
        document = run_document(PLAN, tasks, record, how="run", saturated=False, machine=machine)
        return document.tasks[0].own

    warm_up = [0.5] * 3
    assert own([*warm_up, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9]).noisy is False
    calm = own([*warm_up, 0.5, 0.5, 0.5, 0.52, 0.5, 0.9])
    assert (calm.time_s, calm.spread, calm.noisy) == (0.5, pytest.approx(0.8), False)
    assert own([*warm_up, 0.5, 0.5, 0.5, 0.53, 0.6, 0.9]).noisy is True
