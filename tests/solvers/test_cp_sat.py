"""CP-SAT's one entrance: limits and counted work, any thread, and signals that end a hard solve."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import inf

import pytest

from parapipe.solvers.cp_sat import (
    LEAST_S,
    SEED_LIMIT,
    WORK,
    Budget,
    Outcome,
    Stop,
    StoppedError,
    run_cp_sat,
)
from tests.cases.hard_programmes import balanced, hard


def values(outcome: Outcome) -> tuple[int, ...]:
    return tuple(outcome.solver.response_proto.solution)


def ended(script: str) -> tuple[int, str, str]:
    """Run a script that would take longer than any test; return exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


SOON = """
import os, signal
from threading import Timer
from parapipe.solvers.cp_sat import run_cp_sat
from tests.cases.hard_programmes import balanced, hard

def soon(number):
    Timer(2, os.kill, [os.getpid(), number]).start()
"""


def test_ctrl_c_ends_a_hard_solve_and_the_next_one_is_solved() -> None:
    script = f"""{SOON}
soon(signal.SIGINT)
try:
    run_cp_sat(hard())
except KeyboardInterrupt:
    print("interrupted", run_cp_sat(balanced(6, 2)).optimal)
"""
    assert ended(script) == (0, "interrupted True\n", "")


def test_what_a_handler_raises_ends_a_hard_solve() -> None:
    script = f"""{SOON}
from parapipe.cli.signals import Stopped, leave, mind_signals

mind_signals()
soon(signal.SIGTERM)
try:
    run_cp_sat(hard())
except Stopped as stopped:
    leave(stopped.number)
"""
    assert ended(script) == (128 + signal.SIGTERM, "", "parapipe: terminated\n")


def test_a_handler_that_raises_nothing_lets_a_solve_go_on() -> None:
    script = f"""{SOON}
signal.signal(signal.SIGALRM, lambda *_: print("heard"))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
run_cp_sat(hard(), most_s=0.2)
signal.setitimer(signal.ITIMER_REAL, 0)
print("solved")
"""
    code, out, err = ended(script)
    assert (code, err) == (0, "")
    assert {*out.splitlines()[:-1]} == {"heard"}
    assert out.endswith("solved\n")


def test_threads_that_work_for_others_are_stopped_with_them() -> None:
    stop = Stop()
    solve = stop.stoppable(lambda make: run_cp_sat(make()))
    with ThreadPoolExecutor(2) as threads:
        quick = threads.submit(solve, lambda: balanced(6, 2))
        assert quick.result().optimal
        calls = [threads.submit(solve, hard) for _ in range(3)]
        stop.end([quick, *calls])
        for call in calls:  # one had not begun
            with pytest.raises(StoppedError):
                call.result()
        assert threads.submit(run_cp_sat, balanced(6, 2)).result().optimal  # heeds nothing


def test_any_thread_finds_the_same() -> None:
    def solved() -> Outcome:
        return run_cp_sat(hard(), most_s=0.1, seed=3)

    here = solved()
    with ThreadPoolExecutor(1) as threads:
        there = threads.submit(solved).result()
    assert here.found
    assert not here.optimal
    assert (values(here), here.bound, here.work_s) == (values(there), there.bound, there.work_s)


def test_a_seed_beyond_those_of_cp_sat_is_one_of_them() -> None:
    one, other = (run_cp_sat(hard(), most_s=0.02, seed=seed) for seed in (5, 5 + SEED_LIMIT))
    assert values(one) == values(other)


def test_work_is_counted_and_ends_a_solve() -> None:
    budget = Budget(1.0, deterministic=True)
    outcome = run_cp_sat(hard(), budget=budget)
    assert not outcome.optimal
    assert outcome.work_s >= 1.0 / WORK
    assert budget.left_s == 0.0


def test_a_solve_counts_as_some_work_at_least() -> None:
    budget = Budget(1.0, deterministic=True)
    outcome = run_cp_sat(balanced(2, 2), budget=budget)
    assert outcome.work_s < LEAST_S
    assert budget.left_s == pytest.approx(1.0 - WORK * LEAST_S, abs=1e-12)


def test_the_outcome_says_whether_there_is_a_solution_and_the_best_one() -> None:
    best = run_cp_sat(balanced(6, 2), most_s=inf)
    assert (best.found, best.optimal, best.infeasible) == (True, True, False)
    assert best.bound == best.solver.objective_value
    none = balanced(6, 2)
    none.add(none.get_int_var_from_proto_index(0) <= 10)
    refused = run_cp_sat(none)
    assert (refused.found, refused.optimal, refused.infeasible) == (False, False, True)
