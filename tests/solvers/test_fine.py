"""The exact mapper on instances whose optimum is known, and against brute force."""

import random
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.lists import heft_cpop, peft
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases import random_dags
from tests.cases.oracle import optimum_s
from tests.cases.topcuoglu import ten_tasks

MICRO = 1e-6

# Fisher and Thompson (1963) and Lawrence (1984): machine and time of each job's operations.
FT06 = """2 1 0 3 1 6 3 7 5 3 4 6
1 8 2 5 4 10 5 10 0 10 3 4
2 5 3 4 5 8 0 9 1 1 4 7
1 5 0 5 2 5 3 3 4 8 5 9
2 9 1 3 4 5 5 4 0 3 3 1
1 3 3 3 5 9 0 10 4 4 2 1"""
LA01 = """1 21 0 53 4 95 3 55 2 34
0 21 3 52 4 16 2 26 1 71
3 39 4 98 1 42 2 31 0 12
1 77 0 55 4 79 2 66 3 77
0 83 3 34 2 64 1 19 4 37
1 54 2 43 4 79 0 92 3 62
3 69 4 77 1 87 2 87 0 93
2 38 0 60 1 41 3 24 4 83
3 17 1 49 4 25 0 44 2 98
4 77 3 79 2 43 1 75 0 96"""


def job_shop(text):
    """Return the job shop as a mapping problem: one processor per operation, free transfers."""
    jobs = [[int(word) for word in line.split()] for line in text.splitlines()]
    machines = 1 + max(machine for job in jobs for machine in job[::2])
    free = ((0.0,) * machines,) * machines
    rows, flows = [], []
    for job in jobs:
        for step, (machine, time) in enumerate(zip(job[::2], job[1::2], strict=True)):
            if step:
                flows.append(Flow(len(rows) - 1, (len(rows),), free))
            rows.append(tuple(time * MICRO if p == machine else inf for p in range(machines)))
    return MappingProblem(tuple(rows), tuple(flows), tuple(range(len(rows))))


@pytest.mark.parametrize(("text", "optimum"), [(FT06, 55), (LA01, 666)])
def test_job_shops_are_closed_at_their_known_optimum(text, optimum):
    schedule = fine(job_shop(text), time_limit_s=120, seed=0)
    assert schedule.certificate.proven
    assert schedule.makespan_s == pytest.approx(optimum * MICRO)


def test_the_ten_tasks_of_topcuoglu_take_73():
    schedule = fine(ten_tasks(), time_limit_s=60, seed=0)
    assert schedule.certificate.proven
    assert schedule.makespan_s == pytest.approx(73 * MICRO)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_dags.dags())
def test_the_makespan_equals_brute_force_to_a_microsecond_per_operator(problem):
    if problem.operators > 6:
        return
    schedule = fine(problem, time_limit_s=30, seed=0)
    assert schedule.certificate.proven
    assert schedule.certificate.proves == "makespan"
    assert abs(schedule.makespan_s - optimum_s(problem)) <= MICRO * problem.operators


def layered(seed, operators=30, width=5):
    """Return random operators in layers on three processors, a tenth of the pairs unsupported."""
    rng = random.Random(seed)
    rows = []
    for _ in range(operators):
        row = [rng.randint(50, 500) * MICRO for _ in range(3)]
        if rng.random() < 0.3:
            row[rng.randrange(3)] = inf
        rows.append(tuple(row))
    flows = []
    for v in range(operators - width):
        readers = sorted(rng.sample(range(v + 1, min(operators, v + 1 + width)), k=2))
        moves = tuple(
            tuple(0.0 if p == q else rng.randint(0, 80) * MICRO for q in range(3)) for p in range(3)
        )
        flows.append(Flow(v, tuple(readers), moves))
    return MappingProblem(tuple(rows), tuple(flows), tuple(range(operators)))


@pytest.mark.parametrize("seed", range(4))
def test_it_is_never_worse_than_a_heuristic(seed):
    problem = layered(seed)
    schedule = fine(problem, time_limit_s=5, seed=0)
    for heuristic in (heft_cpop, peft):
        assert schedule.makespan_s <= heuristic(problem, time_limit_s=5, seed=0).makespan_s
    assert schedule.certificate.bound_s <= schedule.makespan_s


def test_without_time_there_is_a_schedule_and_an_honest_bound():
    problem = layered(9, operators=60, width=8)
    schedule = fine(problem, time_limit_s=1e-3, seed=0)
    assert 0 < schedule.certificate.bound_s <= schedule.makespan_s
    assert schedule.certificate.proven == (schedule.certificate.gap == 0)


def test_the_same_seed_gives_the_same_schedule():
    one, other = (fine(layered(3), time_limit_s=60, seed=7) for _ in range(2))
    assert one.processor == other.processor
    assert one.start_s == other.start_s


def test_ctrl_c_is_still_pythons_after_a_search():
    # OR-tools puts a handler of its own in place unless told not to.
    code = (
        "import os, signal, time\n"
        "from tests.solvers.test_fine import FT06, job_shop\n"
        "from parapipe.solvers.fine.mapper import map as fine\n"
        "assert 'CP-SAT' in fine(job_shop(FT06), time_limit_s=60, seed=0).certificate.solver\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(5)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    repository = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr
