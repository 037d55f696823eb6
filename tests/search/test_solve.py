"""Every way of solving gives the same schedules, and none solves anything twice."""

from __future__ import annotations

import os
import pickle
import time
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from dataclasses import replace
from math import inf
from multiprocessing import get_context

import pytest

from parapipe.errors import MappingError, VerificationError
from parapipe.problems.cache import Cache, answer_text
from parapipe.problems.method import Method, Question
from parapipe.problems.solve import Solver, solve
from parapipe.processes.deadline import Deadline
from parapipe.processes.shared_work import distribute
from parapipe.processes.workers import shared_processes
from parapipe.solvers.coarse import map as coarse
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Answer
from parapipe.solvers.verify import verify
from tests.cases.oracle import optimum_s
from tests.cases.solve_cases import (
    alone,
    alone_schedule,
    branchy,
    chain,
    own_key,
    pinned,
    schedules_of,
    timeless,
)

PROBLEMS = [*map(branchy, range(8)), *map(chain, range(4)), alone(1.0)]
LARGE = [branchy(seed, branches=10) for seed in range(4)]  # two more than are tried in here


class Here(Executor):
    """Makes calls at once, in this process, and notes them."""

    def __init__(self) -> None:
        self.calls = []
        self.open = True

    def submit(self, fn, /, *args, **kwargs):
        self.calls.append((fn, args, kwargs))
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except MappingError as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.open = False


def solved(problems=PROBLEMS, *, time_limit_s=60.0, seed=1, jobs=2, deterministic=False, **options):
    method = Method("coarse", time_limit_s, seed, deterministic)
    return schedules_of(problems, method, jobs=jobs, **options)


def kept(schedule):
    """The text of a schedule in the cache."""
    return answer_text(Answer((schedule,), inf, timed_out=False))


def schedules(found):
    return [(problem, timeless(schedule)) for problem, schedule in found.schedules.items()]


@pytest.fixture(scope="module")
def expected():
    return schedules(solved(jobs=1))


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path, pytest.fail) as opened:
        yield opened


@pytest.fixture
def no_process():
    with shared_processes() as kept:
        yield
        assert kept.count == 0


def test_schedules_come_in_the_order_of_the_problems_and_pass_the_verifier(expected) -> None:
    assert [problem for problem, _ in expected] == PROBLEMS
    for problem, schedule in expected:
        verify(problem, schedule)


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_number_of_jobs_does_not_show(expected, jobs) -> None:
    assert schedules(solved(jobs=jobs)) == expected


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_do_not_show(jobs) -> None:
    with shared_processes() as kept:
        found = schedules(solved(LARGE, jobs=jobs))
        assert kept.count == jobs
    assert found == schedules(solved(LARGE, executor=Here()))


@pytest.mark.parametrize(
    "executor",
    [
        Here,
        lambda: ThreadPoolExecutor(2),
        lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    ],
    ids=["here", "threads", "spawn"],
)
def test_an_executor_of_ones_own_does_not_show(expected, executor, no_process) -> None:
    with executor() as own:
        assert schedules(solved(executor=own)) == expected


def test_the_cache_does_not_show(expected, cache) -> None:
    for _ in range(2):
        assert schedules(solved(cache=cache)) == expected


def test_small_problems_are_solved_in_this_process(expected, no_process) -> None:
    assert schedules(solved()) == expected


def test_what_is_slow_in_this_process_is_handed_over() -> None:
    pids, tasks = {}, range(40)
    with shared_processes() as kept:
        distribute(
            process_of, tasks, pids.__setitem__, given=(0.0,), jobs=2, size=lambda _task: 1,
            here=lambda task, _least_s: process_of(task, 0.3),
        )  # fmt: skip
        assert kept.count == 2
    assert {*pids} == {*tasks}
    assert {os.getpid()} < {*pids.values()}


def process_of(_task: int, least_s: float) -> int:
    time.sleep(least_s)
    return os.getpid()


LIMITS: list[float] = []


def noted(problem, *, time_limit_s, **given):
    """A mapper that notes its time limit."""
    LIMITS.append(time_limit_s)
    return coarse(problem, time_limit_s=time_limit_s, **given)


def test_problems_solved_in_this_process_get_the_time_that_is_left(expected, no_process) -> None:
    questions = [Question(problem) for problem in PROBLEMS]
    deadline = Deadline(10.0, clock=lambda: 0.0)
    LIMITS.clear()
    found = solve(questions, Solver(Method(f"{__name__}:noted", 60.0, 1)), deadline=deadline)
    assert {*LIMITS} == {10.0}
    answers = [(q.problem, timeless(answer.schedules[0])) for q, answer in found.answers.items()]
    assert answers == expected


def test_an_executor_of_ones_own_gets_plain_values_and_stays_open() -> None:
    executor = Here()
    solved(executor=executor)
    assert executor.open
    assert len(executor.calls) == len(PROBLEMS)
    for call in executor.calls:
        assert pickle.loads(pickle.dumps(call)) == call


def test_equal_problems_are_solved_once() -> None:
    executor = Here()
    found = solved([branchy(0), branchy(1), branchy(0)], executor=executor)
    assert len(executor.calls) == 2
    assert list(found.schedules) == [branchy(0), branchy(1)]


def with_identical(allowed: tuple[int, ...], location: int) -> MappingProblem:
    """Four operators on some of a processor and two identical ones; it begins at a location."""
    apart = ((0.0, 0.5, 0.5), (0.7, 0.0, 0.3), (0.7, 0.3, 0.0))
    rows = tuple(
        tuple(row[p > 0] if p in allowed else inf for p in range(3))
        for row in ((3.0, 2.0), (1.0, 2.5), (2.0, 1.5), (1.0, 1.0))
    )
    flows = (
        Flow(None, (0,), apart, location),
        Flow(0, (1, 2), apart),
        Flow(1, (3,), apart),
        Flow(2, (3,), apart),
    )
    return MappingProblem(rows, flows, (0, ((1,), (2,)), 3))


def test_what_differs_in_identical_processors_only_is_solved_once_and_is_the_optimum() -> None:
    every = [
        with_identical(allowed, location)
        for allowed in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
        for location in range(3)
    ]
    executor = Here()
    solver = Solver(Method("auto", 60.0, 0), executor=executor, identical=((1, 2),))
    found = solve([Question(problem) for problem in every], solver).answers
    # by sets: 0 from 0 or another; 1 from 0, itself or the other; 0 and 1 likewise; both from 0 or
    # one of them; all likewise
    assert len(executor.calls) == 2 + 3 + 3 + 2 + 2
    assert [question.problem for question in found] == every
    for question, answer in found.items():
        question.verify(answer)
        assert answer.schedules[0].makespan_s == pytest.approx(optimum_s(question.problem))
    solver = replace(solver, identical=())
    alone = solve([Question(problem) for problem in every], solver).answers
    assert len(executor.calls) == 12 + len(every)
    assert {q: a.schedules[0].makespan_s for q, a in alone.items()} == {
        q: a.schedules[0].makespan_s for q, a in found.items()
    }


def test_a_chain_on_one_processor_is_neither_solved_nor_kept(cache) -> None:
    executor = Here()
    for _ in range(2):
        found = solved([pinned(1.0), pinned(1.0, 2.0, 3.0)], cache=cache, executor=executor)
        assert [each.end_s for each in found.schedules.values()] == [(1.0,), (1.0, 3.0, 6.0)]
        assert found.cached == frozenset()
    assert executor.calls == []


def test_what_an_earlier_run_has_solved_is_not_solved_again(cache) -> None:
    first, second = Here(), Here()
    assert solved(PROBLEMS[:9], cache=cache, executor=first).cached == frozenset()
    found = solved(cache=cache, executor=second)
    assert found.cached == frozenset(PROBLEMS[:9])
    assert [args[0].problem for _, args, _ in second.calls] == PROBLEMS[9:]
    assert solved(cache=cache).cached == frozenset(PROBLEMS)


def test_each_schedule_is_kept_as_soon_as_it_is_there(cache) -> None:
    class FailsAtLast(Here):
        def submit(self, fn, /, *args, **kwargs):
            if len(self.calls) == 5:
                future: Future = Future()
                future.set_exception(MappingError("no schedule"))
                return future
            return super().submit(fn, *args, **kwargs)

    told = []
    with pytest.raises(MappingError, match="no schedule"):
        solved(PROBLEMS[:6], cache=cache, executor=FailsAtLast(), progress=told.append)
    assert len(solved(PROBLEMS[:6], cache=cache).cached) == told[-1].done


def test_a_schedule_of_the_cache_that_fails_the_verifier_is_solved_anew(expected, cache) -> None:
    method = Method("coarse", 60.0, 1)
    wrong = replace(
        alone_schedule(1.0), processor=(0,) * 10, start_s=(0.0,) * 10, end_s=(1.0,) * 10
    )
    cache.put(own_key(PROBLEMS[0], method), kept(wrong))
    cache.put(
        Question(PROBLEMS[1]).keys(method)[0],
        kept(alone_schedule(1.0)),
    )
    found = solved(cache=cache)
    assert found.cached == frozenset()
    assert schedules(found) == expected
    assert solved(cache=cache).cached == frozenset(PROBLEMS)


def test_a_wrong_schedule_of_an_executor_is_turned_down_and_not_kept(cache) -> None:
    class Wrong(Here):
        def submit(self, fn, /, *args, **kwargs):
            return super().submit(lambda: Answer((alone_schedule(0.5),), inf, timed_out=False))

    with pytest.raises(VerificationError):
        solved([alone(1.0)], cache=cache, executor=Wrong())
    assert solved([alone(1.0)], cache=cache).cached == frozenset()


def test_a_proven_makespan_counts_under_any_time_limit_and_other_answers_under_their_own(
    cache,
) -> None:
    solved([chain(0), branchy(0)], cache=cache)
    assert solved([chain(0), branchy(0)], time_limit_s=30.0, cache=cache).cached == {chain(0)}
    assert solved([chain(0), branchy(0)], cache=cache).cached == {chain(0), branchy(0)}
    assert solved([chain(0), branchy(0)], seed=2, cache=cache).cached == frozenset()


def test_a_deterministic_run_takes_only_what_the_same_run_has_found(cache) -> None:
    solved([chain(0)], cache=cache)
    assert solved([chain(0)], deterministic=True, cache=cache).cached == frozenset()
    assert solved([chain(0)], deterministic=True, cache=cache).cached == {chain(0)}
    assert solved(
        [chain(0)], time_limit_s=30.0, deterministic=True, cache=cache
    ).cached == frozenset()  # fmt: skip


def test_progress_tells_what_is_done_what_came_from_the_cache_and_the_largest_gap(
    cache,
) -> None:
    unproven = alone_schedule(1.0, proven=False)  # its bound is 0
    cache.put(
        own_key(alone(1.0), Method("coarse", 60.0, 1)),
        kept(unproven),
    )
    told = []
    solved(cache=cache, progress=told.append)
    assert [(p.done, p.total, p.cached) for p in told] == [
        (done, len(PROBLEMS), 1) for done in range(1, len(PROBLEMS) + 1)
    ]
    assert {p.largest_gap for p in told} == {1.0}
    elapsed = [p.elapsed_s for p in told]
    assert elapsed == sorted(elapsed)


def test_a_mapper_without_a_schedule_ends_the_run_with_its_own_words() -> None:
    for problems in (PROBLEMS, LARGE):
        with pytest.raises(MappingError, match="no mapper 'corase'"):
            schedules_of(problems, Method("corase", 1, 0), jobs=2)


def test_workers_that_break_are_told_in_one_sentence() -> None:
    class Broken(Here):
        def submit(self, fn, /, *args, **kwargs):
            future: Future = Future()
            future.set_exception(BrokenExecutor("a worker process ended by signal 9"))
            return future

    with pytest.raises(MappingError, match=r"ended by signal 9; .* fewer `jobs`"):
        solved(executor=Broken())


def test_no_job_at_all_solves_nothing() -> None:
    with pytest.raises(ValueError, match="0 problems"):
        solved(jobs=0)


def test_nothing_to_solve_starts_nothing(no_process) -> None:
    assert solved([]).schedules == {}
