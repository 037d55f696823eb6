"""Runs that end before their time: none hangs, no frame is lost, the cause stands in a line."""

import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest

from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import RunError
from tests.cases.faulty import ENDLESS, faulty, frame, result
from tests.cases.hand_made import hybrid

ONE = min(os.sched_getaffinity(0))
CORES = dict.fromkeys("abc", (ONE,))
RUNS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return faulty(tmp_path_factory.mktemp("faulty"), cores=CORES)


@pytest.fixture(scope="module")
def executor(folder):
    return Executor(folder)


def out_of_range(name, segment):
    def fault(number):
        return frame(number, **{name: (0, 7)})

    return fault, f"segment '{segment}' on processor '{segment[-1]}', frame {{n}}: "


def wrong_shape(number):
    return {**frame(number), "x": np.zeros((3, 2), np.float32)}


def of_wrong_type(number):
    return {**frame(number), "x": np.zeros((2, 3))}


def lacking(number):
    return {"x": frame(number)["x"]}


def broken(number):
    raise OSError("the camera is gone")


FAULTS = {
    "first stage": out_of_range("rows_a", "00-a"),
    "second stage": out_of_range("rows_c", "02-c"),
    "shape": (wrong_shape, "frame {n}: input 'x' is float32[3,2] and should be float32[2,3]"),
    "type": (of_wrong_type, "frame {n}: input 'x' is float64[2,3] and should be float32[2,3]"),
    "inputs": (lacking, "frame {n}: has no input 'rows_a'; has no input 'rows_c'; has no input"),
    "camera": (broken, "frame {n} cannot be read: the camera is gone"),
}


def given(fault, at, count):
    for number in range(count):
        yield fault(number) if number == at else frame(number)


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def own_threads():
    return [each.name for each in threading.enumerate() if each.name.startswith("parapipe")]


def test_of_200_runs_with_random_faults_none_hangs_or_loses_a_frame(executor):
    draw = random.Random(0)
    for run in range(RUNS):
        kind = draw.choice(sorted(FAULTS))
        fault, cause = FAULTS[kind]
        at, count = draw.randrange(12), 12 + draw.randrange(5)
        period_s = draw.choice([None, 1e-4, 1e-3])
        results = []
        with pytest.raises(RunError) as caught:
            results.extend(executor.run(given(fault, at, count), period_s=period_s))
        assert [each["y"][0, 0] for each in results] == [result(n) for n in range(at)], (run, kind)
        message = str(caught.value)
        assert message.startswith(cause.format(n=at)), (run, kind)
        assert "\n" not in message
        assert own_threads() == []
        assert [passed.index for passed in executor.record.frames] == list(range(at))


@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_session_that_does_not_end_is_given_up_and_named(folder, at):
    executor = Executor(folder, patience_s=0.5)
    results = []
    with pytest.raises(RunError) as caught:
        results.extend(executor.run(given(lambda n: frame(n, trips=ENDLESS), at, 20)))
    assert str(caught.value).startswith(
        f"segment '01-b' on processor 'b', frame {at}: does not end (running for "
    )
    assert [each["y"][0, 0] for each in results] == [result(n) for n in range(at)]
    assert own_threads() == []
    assert executor.stuck == ()


def test_after_a_fault_the_same_sessions_run_again(executor):
    with pytest.raises(RunError):
        list(executor.run(given(wrong_shape, 3, 9)))
    results = list(executor.run(frame(n) for n in range(9)))
    assert [each["y"][0, 0] for each in results] == [result(n) for n in range(9)]


def test_a_caller_that_raises_ends_the_threads(executor):
    results = executor.run(frame(n) for n in range(1000))
    with pytest.raises(ZeroDivisionError):
        sum(1 // int(each["y"][0, 0] * 0) for each in results)
    results.close()
    assert own_threads() == []


def test_a_frame_that_does_not_come_is_waited_for_however_long(folder):
    executor = Executor(folder, patience_s=0.05)
    late = threading.Event()

    def slow():
        yield frame(0)
        late.wait(0.4)
        yield frame(1)

    assert len(list(executor.run(slow()))) == 2


def test_a_session_that_does_not_end_is_given_up_though_a_frame_is_yet_to_come(folder):
    late = threading.Event()

    def slow():
        yield frame(0, trips=ENDLESS)
        late.wait(30)

    run = Executor(folder, patience_s=0.3).run(slow())
    with pytest.raises(RunError, match=r"'01-b' on processor 'b', frame 0: does not end"):
        list(run)
    late.set()


def test_patience_is_ten_times_the_latency_where_that_is_long(tmp_path):
    slow = hybrid(tmp_path, cores=CORES, predicted_s=3.0)
    assert Executor(slow).patience_s == pytest.approx(10 * 5 * 3.0)


def test_memory_does_not_grow_over_1000_frames(tmp_path):
    executor = Executor(hybrid(tmp_path, cores=CORES, shape=(64, 1024)))
    frames = ({"x": np.full((64, 1024), number, np.float32)} for number in range(1000))
    resident = []
    for number, _ in enumerate(executor.run(frames)):
        if number in (200, 999):
            resident.append(resident_bytes())
    # One tensor of each of these 799 frames would be 209 MB.
    assert resident[1] - resident[0] < 20e6
