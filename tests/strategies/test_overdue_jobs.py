"""What `steal` does while jobs take much longer than predicted, and strategies that ask again."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf

import pytest

from parapipe.errors import StrategyError
from parapipe.simulate.strategies import Arrivals, WaitsForeverError, strategy_replay
from parapipe.strategies.registry import strategy
from parapipe.strategies.steal import LOST
from parapipe.strategies.strategy_executor import StrategyExecutor
from tests.cases.decided import halves, work
from tests.strategies.test_strategy_runs import CORES, frames, hybrid

MS = 1e-3
SATURATED = Arrivals(None, 2)


def timetable(todo, name, count, took):
    """What each processor does, in milliseconds: task, frame, begin, end."""
    spans, _ = strategy_replay(todo, strategy(name)[1], name, count, SATURATED, took=took)
    return {
        p: [
            (s.name, s.frame, round(s.start_s / MS, 6), round(s.end_s / MS, 6))
            for s in spans
            if s.resource == p
        ]
        for p in todo.processors
    }


def interrupted(job, processor):
    """The first job of the second processor takes ten times as long."""
    return 10.0 if processor == 1 and job[:2] == (1, 0) else 1.0


def test_who_waits_for_an_overdue_job_does_what_comes_later():
    # a and b are halves of one operator, c and d of the next one, which reads both.
    found = timetable(halves(2, MS), "steal", 2, interrupted)
    assert found["p"] == [
        ("a", 0, 0, 1),
        # b should have ended at 1, and is overdue at 1.25: it should go on until 2.5.
        ("a", 1, 1.25, 2.25),  # its own of the next frame
        ("b", 1, 2.25, 3.25),  # and what the other one would do later
        ("c", 1, 3.25, 4.25),
        ("d", 1, 4.25, 5.25),
        ("c", 0, 10, 11),
    ]
    assert found["q"] == [("b", 0, 0, 10), ("d", 0, 10, 11)]
    planned = timetable(halves(2, MS), "plan", 2, interrupted)
    assert max(planned["p"])[-1] == 13


def test_a_job_that_is_a_fifth_late_is_not_overdue():
    def late(_job, processor):
        return 1.2 if processor == 1 else 1.0

    assert timetable(halves(2, MS), "steal", 4, late) == timetable(halves(2, MS), "plan", 4, late)


def test_a_longer_job_is_taken_once_what_is_waited_for_is_as_long_overdue():
    todo = work(((2 * MS, inf), (inf, MS), (MS, inf)), [(0, 2), (1, 2)], [[0, 2], [1]])

    def took(job, _processor):
        return 3.5 if job[:2] == (1, 0) else 0.5 if job.task == 0 else 1.0

    # At 1.25, b should go on until 2.5, and a of the next frame would end at 3.25. Then b should go
    # on until 5.
    found = timetable(todo, "steal", 2, took)
    assert found["p"][:3] == [("a", 0, 0, 1), ("a", 1, 2.5, 3.5), ("c", 0, 3.5, 4.5)]


@pytest.mark.parametrize("seed", range(20))
def test_halves_beside_another_program_end_sooner_than_with_the_plan(seed):
    draw = random.Random(seed)
    late = {(task, n): draw.random() < 0.05 for task in range(16) for n in range(40)}

    def took(job, processor):
        return 20.0 if processor == 1 and late[job.task, job.frame] else 1.0

    ends_ms = [
        max(
            row[-1]
            for rows in timetable(halves(8, 0.2 * MS), name, 40, took).values()
            for row in rows
        )
        for name in ("plan", "steal")
    ]
    assert ends_ms[1] <= (1 + LOST) * ends_ms[0]
    assert ends_ms[1] < 0.85 * ends_ms[0]


class Second:
    """Begins a job when it is asked for the second time, a tenth of a millisecond later."""

    follows_plan = False

    def __init__(self, work):
        self.met = {}

    def schedule(self, state):
        free = list(state.free)
        for job in state.ready():
            if self.met.setdefault(job, state.now_s) < state.now_s:
                if free:
                    state.execute(job, on=free.pop())
            else:
                state.ask_again(state.now_s + 0.1 * MS)


class FirstAlone(Second):
    """The same, but begins the first job at once."""

    def schedule(self, state):
        if not self.met:
            self.met[state.ready()[0]] = -1
        super().schedule(state)


def test_a_strategy_is_asked_again_when_it_wants_while_a_job_runs():
    todo = work(((MS, MS), (MS, MS)), [], [[0], [1]])
    spans, _ = strategy_replay(todo, FirstAlone, "alone", 1, SATURATED)
    assert [(s.name, s.start_s, s.end_s) for s in spans] == [
        ("a", 0, MS), ("b", 0.1 * MS, pytest.approx(1.1 * MS)),
    ]  # fmt: skip


def test_where_no_job_runs_it_is_not():
    with pytest.raises(WaitsForeverError):
        strategy_replay(work(((MS, MS),), [], [[0], []]), Second, "second", 1, SATURATED)


def test_a_time_that_has_passed_is_refused():
    class Now(Second):
        def schedule(self, state):
            state.ask_again(state.now_s)

    with pytest.raises(StrategyError, match=r"ask_again\(0.0\) is not after state.now_s"):
        strategy_replay(work(((MS, MS),), [], [[0], []]), Now, "now", 1, SATURATED)


def test_on_this_machine_it_is_asked_again_whoever_waits(tmp_path):
    executor = StrategyExecutor(hybrid(tmp_path, cores=CORES), Second, "second", queue=3)
    results = list(executor.run(frames(60)))
    assert [each["y"][0, 0] for each in results] == [11 * (n + 1) for n in range(60)]
    for name in {span.resource for span in executor.record.spans}:
        mine = [span for span in executor.record.spans if span.resource == name]
        assert all(one.end_s <= other.start_s for one, other in pairwise(mine))
