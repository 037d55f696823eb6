"""Processors that take turns on frames: order, results, turns, and runs that end early."""

import os
import random
from dataclasses import replace

import numpy as np
import pytest

from parapipe.runtime.executor import Executor
from parapipe.runtime.flow import Flow
from parapipe.runtime.folder import RunError
from parapipe.runtime.sessions import open_sessions
from tests.cases.faulty import faulty, frame, result
from tests.cases.hand_made import Piece, folder_of, hybrid, node
from tests.runtime.test_faults import FAULTS, given, own_threads

ONE = min(os.sched_getaffinity(0))
CORES = dict.fromkeys("abc", (ONE,))


def replicated(folder, **counts):
    """Let so many processors take turns on what each of some runs: a, a1, a2 for a=3."""
    processors = []
    for each in folder.processors:
        more = [f"{each.name}{i}" for i in range(1, counts.get(each.name, 1))]
        turns = (each.name, *more) if more else ()
        processors += [replace(each, name=name, turns=turns) for name in (each.name, *more)]
    return replace(folder, processors=tuple(processors))


@pytest.mark.parametrize("counts", [{"a": 2}, {"c": 3}, {"a": 2, "b": 3, "c": 4}])
@pytest.mark.parametrize(("queue", "in_step"), [(None, False), (2, False), (None, True)])
def test_results_come_in_order_and_each_processor_has_its_turn(tmp_path, counts, queue, in_step):
    folder = replicated(hybrid(tmp_path / "folder", cores=CORES), **counts)
    executor = Executor(folder, queue=queue, in_step=in_step, patience_s=20)
    results = list(executor.run({"x": np.full((2, 3), n, np.float32)} for n in range(100)))
    assert [each["y"][0, 0] for each in results] == [11 * (n + 1) for n in range(100)]
    assert len(executor.record.spans) == 100 * len(folder.segments)
    turns = {each.name: each.turns or (each.name,) for each in folder.processors}
    first = {segment.id: segment.processor for segment in folder.segments}
    for span in executor.record.spans:
        names = turns[first[span.name]]
        assert span.resource == names[span.frame % len(names)]
    assert own_threads() == []


def test_who_waits_for_results_is_not_woken_by_a_later_frame(tmp_path):
    one = Piece("0", "a", [node("Relu", "x", "y")], ["x"], ["y"])
    folder = folder_of(
        tmp_path / "one", [one], inputs=["x"], outputs=["y"], shapes={"x": [2], "y": [2]}
    )
    flow, segment = Flow(replicated(folder, a=2), 2, 10), folder.segments[0]
    for number, processor in enumerate(("a", "a1")):
        flow.admit({"x": np.zeros(2, np.float32)}, 0.0)
        assert flow.begin(segment, number, processor) is not None
    flow.end(segment, 1, [np.ones(2)])
    assert flow._finished.empty()
    flow.end(segment, 0, [np.zeros(2)])
    assert not flow._finished.empty()
    assert [flow.result(number, 1.0)["y"][0] for number in (0, 1)] == [0, 1]


def test_cores_that_run_the_same_segments_have_sessions_and_weights_in_common(tmp_path):
    folder = replicated(hybrid(tmp_path / "folder", cores=CORES), a=2, c=3)
    sessions, used = open_sessions(folder)
    of = {segment.id: segment.processor for segment in folder.segments}
    assert set(sessions) == {
        (each.name, name) for each in folder.processors for name in of if of[name] == each.first
    }
    assert len({*map(id, sessions.values())}) == len(folder.segments)
    assert [each.processor for each in used] == [each.name for each in folder.processors]
    everywhere, _ = open_sessions(folder, everywhere=True)
    assert len(everywhere) == len(folder.processors) * len(folder.segments)
    assert len({*map(id, everywhere.values())}) == len(folder.segments)


def test_sessions_with_threads_of_their_own_stay_with_their_cores(tmp_path):
    folder = replicated(hybrid(tmp_path / "folder", cores=CORES), a=2)
    threads = tuple(replace(each, threads=2) for each in folder.processors)
    sessions, _ = open_sessions(replace(folder, processors=threads))
    assert len({*map(id, sessions.values())}) == len(sessions) > len(folder.segments)


def test_faults_lose_no_frame_before_them(tmp_path):
    executor = Executor(replicated(faulty(tmp_path, cores=CORES), a=2, c=3))
    draw = random.Random(0)
    for _ in range(60):
        fault, _ = FAULTS[draw.choice(sorted(FAULTS))]
        at, count = draw.randrange(12), 12 + draw.randrange(5)
        results = []
        with pytest.raises(RunError, match=rf"frame {at}\b"):
            results.extend(executor.run(given(fault, at, count)))
        assert [each["y"][0, 0] for each in results] == [result(n) for n in range(at)]
        assert own_threads() == []
    assert [each["y"][0, 0] for each in executor.run(map(frame, range(9)))] == [
        result(n) for n in range(9)
    ]
