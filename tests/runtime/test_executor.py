"""Frames through folders of segments: what comes out, in which order, and how runs end."""

import os
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import RunError
from tests.cases.hand_made import hybrid

ONE = min(os.sched_getaffinity(0))
CORES = dict.fromkeys("abc", (ONE,))


def frames(count):
    return [{"x": np.full((2, 3), index, np.float32)} for index in range(count)]


@pytest.fixture
def folder(tmp_path):
    return hybrid(tmp_path / "folder", cores={name: [ONE] for name in "abc"})


def test_results_come_in_order_and_are_those_of_the_network(folder):
    results = list(Executor(folder).run(frames(200)))
    assert [result["y"][0, 0] for result in results] == [11 * (n + 1) for n in range(200)]


def test_a_processor_runs_one_segment_at_a_time_in_the_plans_order(folder):
    executor = Executor(folder)
    assert len(list(executor.run(frames(50)))) == 50
    for processor in folder.processors:
        spans = [span for span in executor.record.spans if span.resource == processor.name]
        order = [each.id for each in folder.segments if each.processor == processor.name]
        assert [span.name for span in spans] == order * 50
        assert all(one.end_s <= other.start_s for one, other in pairwise(spans))


def test_a_segment_starts_when_all_it_reads_is_made(folder):
    executor = Executor(folder)
    assert len(list(executor.run(frames(50)))) == 50
    spans = {(span.name, span.frame): span for span in executor.record.spans}
    for arrow in executor.record.arrows:
        for frame in range(50):
            made, read = spans[arrow.producer, frame], spans[arrow.consumer, frame]
            assert made.end_s <= read.start_s


@pytest.mark.parametrize("slots", [2, 3, 5])
def test_no_queue_holds_more_frames_than_it_has_slots(tmp_path, slots):
    folder = hybrid(tmp_path, cores=CORES, queue_depth=slots)
    executor = Executor(folder)
    assert len(list(executor.run(frames(100)))) == 100
    spans = {(span.name, span.frame): span for span in executor.record.spans}
    for arrow in executor.record.arrows:
        for frame in range(slots, 100):
            freed = spans[arrow.consumer, frame - slots].end_s
            assert freed <= spans[arrow.producer, frame].start_s


def test_frames_are_let_in_once_per_period(folder):
    executor = Executor(folder)
    assert len(list(executor.run(frames(5), period_s=0.01))) == 5
    admitted_s = [frame.admitted_s for frame in executor.record.frames]
    assert all(admitted_s[n] >= admitted_s[0] + 0.01 * n - 1e-3 for n in range(5))


def test_without_frames_there_are_no_results(folder):
    executor = Executor(folder)
    assert list(executor.run([])) == []
    assert executor.record.frames == ()


def test_all_frames_before_a_wrong_one_come_out(folder):
    given = [*frames(7), {"x": np.zeros((3, 3), np.float32)}, *frames(9)]
    results = []
    with pytest.raises(RunError) as caught:
        results.extend(Executor(folder).run(given))
    assert str(caught.value) == "frame 7: input 'x' is float32[3,3] and should be float32[2,3]"
    assert [result["y"][0, 0] for result in results] == [11 * (n + 1) for n in range(7)]


def test_a_caller_that_has_enough_ends_the_run(folder):
    run = Executor(folder).run(iter(lambda: frames(1)[0], None))
    assert [next(run)["y"][0, 0] for _ in range(3)] == [11, 11, 11]
    run.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("parapipe")]


def test_threads_keep_to_their_cores(tmp_path):
    folder = hybrid(tmp_path, cores=CORES)
    seen = {}

    def given():
        for frame in frames(20):
            yield frame
            for each in threading.enumerate():
                if each.name.startswith("parapipe ") and each.native_id is not None:
                    seen.setdefault(each.name, os.sched_getaffinity(each.native_id))

    assert len(list(Executor(folder).run(given()))) == 20
    assert {seen[f"parapipe {name}"] == {ONE} for name in "abc"} == {True}


def test_cores_that_are_not_there_are_named_with_those_that_are(tmp_path):
    with pytest.raises(RunError) as caught:
        Executor(hybrid(tmp_path, cores={"a": [ONE], "b": [4001], "c": [4002, ONE]}))
    lent = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    assert str(caught.value) == (
        "processor 'b' wants cores 4001; processor 'c' wants cores 4002: this process may use "
        f"cores {lent}; give others by `cores` b={ONE} `cores` c={ONE}"
    )


def test_a_plan_for_other_cores_runs_on_those_given(tmp_path):
    folder = hybrid(tmp_path, cores={"a": [4000], "b": [4001], "c": [4002]})
    results = list(Executor(folder.on_cores(CORES)).run(frames(3)))
    assert [result["y"][0, 0] for result in results] == [11, 22, 33]


def test_a_segment_that_is_not_there_is_named(folder):
    Path(folder.path, "s1-b-0.onnx").unlink()
    with pytest.raises(RunError, match=r"^segment 's1-b-0' cannot be opened: "):
        Executor(folder)


def test_the_threads_of_a_session_keep_to_the_processors_cores_too(tmp_path):
    folder = hybrid(tmp_path, cores=CORES)
    processors = tuple(replace(each, threads=3) for each in folder.processors)
    before = set(Path("/proc/self/task").iterdir())
    executor = Executor(replace(folder, processors=processors))
    made = set(Path("/proc/self/task").iterdir()) - before
    assert len(made) >= 2 * len(folder.segments)
    assert all(os.sched_getaffinity(int(each.name)) == {ONE} for each in made)
    assert len(list(executor.run(frames(5)))) == 5
