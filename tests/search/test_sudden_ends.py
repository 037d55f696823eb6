"""Runs that are killed or interrupted lose nothing they have solved, and leave nobody behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from parapipe.problems.cache import Cache
from parapipe.problems.method import Method
from tests.cases.solve_cases import branchy, schedules_of, timeless

COUNT = 30
RUN = """
import sys
from pathlib import Path
from parapipe.problems.cache import Cache
from parapipe.problems.method import Method
from tests.cases.solve_cases import branchy, hard, schedules_of

folder, problems = Path(sys.argv[1]), eval(sys.argv[2])
def tell(progress):
    print(progress.done, progress.cached, flush=True)
try:
    with Cache(folder, sys.exit) as cache:
        schedules_of(problems, Method("coarse", 600, 1, True), jobs=2, cache=cache, progress=tell)
except KeyboardInterrupt:
    print("interrupted")
"""


def begin(folder: Path, problems: str) -> subprocess.Popen[str]:
    """Start a run in a process of its own; what it starts can be told by its environment."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PARAPIPE_TEST_RUN": str(folder),
    }
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), problems],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def left_behind(folder: Path) -> list[str]:
    """Processes of a run, by their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"PARAPIPE_TEST_RUN={folder}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def wait_until(fact) -> None:
    """Look again and again; a fact that never comes fails the test."""
    for _ in range(3000):
        if fact():
            return
        time.sleep(0.01)
    pytest.fail("it never came about")


@pytest.mark.parametrize(
    "branches",
    [4, pytest.param(10, marks=pytest.mark.nightly)],
    ids=["in this process", "in worker processes"],
)
def test_a_run_that_is_killed_again_and_again_solves_no_problem_twice(tmp_path, branches) -> None:
    rng = random.Random(branches)
    solved = 0
    every = f"[branchy(seed, branches={branches}) for seed in range({COUNT})]"
    for _ in range(5):
        with begin(tmp_path, every) as run:
            assert int(run.stdout.readline().split()[1]) >= solved
            for _ in range(rng.randrange(8)):
                solved = int((run.stdout.readline() or f"{COUNT}").split()[0])
            time.sleep(rng.random() * 0.02)
            run.send_signal(signal.SIGKILL)
            wait_until(lambda: not left_behind(tmp_path))
    problems = [branchy(seed, branches=branches) for seed in range(COUNT)]
    method = Method("coarse", 600, 1, deterministic=True)
    with Cache(tmp_path, pytest.fail) as cache:
        again = schedules_of(problems, method, cache=cache)
    assert len(again.cached) >= solved
    anew = schedules_of(problems, method)
    assert [*map(timeless, again.schedules.values())] == [*map(timeless, anew.schedules.values())]


def test_ctrl_c_ends_the_workers_and_their_solvers_at_once_and_says_nothing(tmp_path) -> None:
    with begin(tmp_path, "[hard(), *(branchy(seed, branches=10) for seed in range(5))]") as run:
        wait_until(lambda: any("cbc" in command.split()[0] for command in left_behind(tmp_path)))
        while int(run.stdout.readline().split()[0]) < 5:
            pass
        run.send_signal(signal.SIGINT)
        out, err = run.communicate()
    assert (run.returncode, out, err) == (0, "interrupted\n", "")
    wait_until(lambda: not left_behind(tmp_path))


def test_ctrl_c_stops_what_threads_of_this_process_solve(tmp_path) -> None:
    script = """
import os, signal
from threading import Timer
from parapipe.solvers.cp_sat import run_cp_sat
from parapipe.processes.deadline import Deadline
from parapipe.processes.shared_work import distribute
from tests.cases.hard_programmes import balanced, hard

def answer(task):
    return run_cp_sat(hard() if task else balanced(6, 2)).optimal

answers, deadline = {}, Deadline(interruptible=True)
Timer(2, os.kill, [os.getpid(), signal.SIGINT]).start()
with deadline.ending():
    distribute(answer, range(4), answers.__setitem__, size=lambda task: task, jobs=2)
print(answers, deadline.interrupted)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "{0: True} True\n", "")
