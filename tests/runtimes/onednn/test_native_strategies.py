"""Strategies of the native runner decide what those of the simulator decide."""

import json
import subprocess
from math import inf

import numpy as np
import pytest

from parapipe.simulate.strategies import Arrivals, strategy_replay
from parapipe.strategies.registry import strategy
from parapipe.strategies.work import Job, Order, Tensor, Work
from tests.cases.decided import halves

NAMES = ("plan", "ready-pool", "steal", "streams")
SEEDS = range(30)


def random_work(rng, *, longest_s, moves):
    """Tasks of a random network, in a plan's order: on two to four processors, two taking turns."""
    processors, tasks = int(rng.integers(2, 5)), int(rng.integers(4, 13))
    replicas = (0, processors - 1) if processors > 2 and rng.random() < 0.5 else (0,)
    time_s = rng.uniform(0.1, 1.0, (tasks, processors)) * longest_s
    planned = rng.integers(0, processors - len(replicas) + 1, tasks)
    time_s[rng.random((tasks, processors)) < 0.15] = inf
    for task, p in enumerate(planned):
        time_s[task, list(replicas if p == 0 else (p,))] = rng.uniform(0.1, 1.0) * longest_s
    tensors, reads = [], [()]
    for task in range(1, tasks):
        count = min(task, int(rng.integers(0, 3)))
        reads.append(tuple(sorted(rng.choice(task, count, replace=False))))
    for _ in range(tasks):
        moved_s = rng.uniform(0, 0.3, (processors, processors)) * longest_s * moves
        np.fill_diagonal(moved_s, 0)
        tensors.append(moved_s)
    read = sorted({int(each) for some in reads for each in some})
    number = {task: i for i, task in enumerate(read)}
    return Work(
        processors=tuple(f"p{p}" for p in range(processors)),
        tasks=tuple(f"t{task}" for task in range(tasks)),
        time_s=tuple(tuple(map(float, row)) for row in time_s),
        tensors=tuple(
            Tensor(task, tuple(tuple(map(float, row)) for row in tensors[task])) for task in read
        ),
        reads=tuple(tuple(number[int(each)] for each in some) for some in reads),
        room=tuple(
            (int(maker), task, int(rng.integers(2, 4)))
            for task, some in enumerate(reads)
            for maker in some
        ),
        orders=tuple(
            Order(tuple(map(int, np.flatnonzero(planned == p))), replicas if p == 0 else (p,))
            for p in range(processors)
            if (planned == p).any()
        ),
        lag=(0,) * tasks,
        first=frozenset(task for task, some in enumerate(reads) if not some),
    )


def document_of(work):
    """A work as the replay of the native runner reads it."""
    return {
        "processors": len(work.processors),
        "time_s": [[None if each == inf else each for each in row] for row in work.time_s],
        "tensors": [{"producer": t.producer, "moved_s": t.moved_s} for t in work.tensors],
        "reads": work.reads,
        "room": work.room,
        "orders": [{"tasks": o.tasks, "processors": o.processors} for o in work.orders],
        "lag": work.lag,
        "first": sorted(work.first),
    }


def decided(decisions, folder, work, name, *, frames, arrivals, took):
    """What the native runner's strategy decides: processor, task, frame, begin and end."""
    document = {
        "work": document_of(work), "strategy": name, "frames": frames,
        "interval_s": arrivals.interval_s, "waiting": arrivals.waiting, "took": took.tolist(),
    }  # fmt: skip
    path = folder / "work.json"
    path.write_text(json.dumps(document))
    done = subprocess.run(
        [decisions, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return {
        (work.processors[p], work.tasks[task], frame, start_s, end_s)
        for p, task, frame, start_s, end_s in json.loads(done.stdout)
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("longest_s", [1e-3, 2e-2])
@pytest.mark.parametrize("moves", [0, 1])
def test_strategies_decide_as_in_the_simulator(decisions, tmp_path, name, longest_s, moves):
    stolen = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        work = random_work(rng, longest_s=longest_s, moves=moves)
        frames = 6
        took = rng.choice(
            [1.0, 1.0, 0.8, 1.1, 4.0], (len(work.tasks), frames, len(work.processors))
        )
        arrivals = Arrivals(None if seed % 2 else longest_s * 3, 2)
        spans, _ = strategy_replay(
            work, strategy(name)[1], name, frames, arrivals,
            took=lambda job, p, took=took: float(took[job.task, job.frame, p]),
        )  # fmt: skip
        how = {"frames": frames, "arrivals": arrivals, "took": took}
        made = decided(decisions, tmp_path, work, name, **how)
        assert made == {(s.resource, s.name, s.frame, s.start_s, s.end_s) for s in spans}
        assert len(made) == frames * len(work.tasks)
        stolen += sum(
            work.processors[work.planned(Job(work.tasks.index(task), frame))] != processor
            for processor, task, frame, *_ in made
        )
    assert (stolen > 0) == (name != "plan")


@pytest.mark.parametrize("seed", range(10))
def test_who_waits_for_overdue_jobs_does_what_comes_later(decisions, tmp_path, seed):
    work, frames = halves(8, 3e-4), 20
    late = np.random.default_rng(seed).random((len(work.tasks), frames, 2)) < 0.05
    late[:, :, 0] = False
    took, arrivals = np.where(late, 15.0, 1.0), Arrivals(None, 2)
    spans, _ = strategy_replay(
        work, strategy("steal")[1], "steal", frames, arrivals,
        took=lambda job, p: float(took[job.task, job.frame, p]),
    )  # fmt: skip
    how = {"frames": frames, "arrivals": arrivals, "took": took}
    made = decided(decisions, tmp_path, work, "steal", **how)
    assert made == {(s.resource, s.name, s.frame, s.start_s, s.end_s) for s in spans}
    plan = decided(decisions, tmp_path, work, "plan", **how)
    assert max(each[-1] for each in made) < max(each[-1] for each in plan)
