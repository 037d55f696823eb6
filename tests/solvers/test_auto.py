"""`auto`: the better of two schedules, the coarse one of equals, and the fine one's proof."""

from __future__ import annotations

import random
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, given, settings

from parapipe.solvers.auto import map as auto
from parapipe.solvers.coarse import map as coarse
from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.verify import verify
from tests.cases import random_dags
from tests.cases.oracle import optimum_s

MS = 1e-3


def apart(milliseconds: float):
    return ((0.0, milliseconds * MS), (milliseconds * MS, 0.0))


def branches(*lengths_ms: tuple[float, ...], move_ms: float) -> MappingProblem:
    """A fork, branches of operators that are as fast on both processors, and a join."""
    times, structure, flows = [1.0], [], []
    for branch in lengths_ms:
        inside = tuple(range(len(times), len(times) + len(branch)))
        times += branch
        structure.append(inside)
        flows += [Flow(u, (u + 1,), apart(move_ms)) for u in inside[:-1]]
    join = len(times)
    times.append(1.0)
    flows.append(Flow(0, tuple(branch[0] for branch in structure), apart(move_ms)))
    flows += [Flow(branch[-1], (join,), apart(move_ms)) for branch in structure]
    rows = tuple((t * MS, t * MS) for t in times)
    return MappingProblem(rows, tuple(flows), (0, tuple(structure), join))


def test_a_branch_is_torn_if_that_is_shorter_although_it_is_handed_over() -> None:
    # Three branches of 2 + 2 ms: whole, 8 ms on one processor and 4 on the other. Torn, 6 and 6,
    # and the second processor has its first tensor 0.1 ms later.
    problem = branches((2, 2), (2, 2), (2, 2), move_ms=0.1)
    torn = auto(problem, time_limit_s=60, seed=0)
    assert coarse(problem, time_limit_s=60, seed=0).makespan_s == pytest.approx(10 * MS)
    assert torn.makespan_s == pytest.approx(8.1 * MS)
    assert torn.certificate.proven


def test_dear_hand_overs_keep_all_on_one_processor() -> None:
    # Whoever uses both waits for 7 ms at least: 1 + 6 + 7 + 1 ms.
    schedule = auto(branches((2, 2), (2, 2), (2, 2), move_ms=7.0), time_limit_s=60, seed=0)
    assert schedule.makespan_s == pytest.approx(14 * MS)
    assert len(schedule.used) == 1


def test_of_equally_good_schedules_the_coarse_one_comes_with_the_proof_of_the_fine_one() -> None:
    problem = branches((3, 1), (2, 2), (1, 1), (2,), move_ms=0.5)
    schedule = auto(problem, time_limit_s=60, seed=0)
    whole = coarse(problem, time_limit_s=60, seed=0)
    proof = fine(problem, time_limit_s=60, seed=0).certificate
    assert (schedule.processor, schedule.start_s) == (whole.processor, whole.start_s)
    claim = schedule.certificate
    assert (claim.proves, claim.proven, claim.gap) == ("makespan", True, 0.0)
    assert claim.bound_s == proof.bound_s
    assert claim.solver == f"{whole.certificate.solver}; {proof.solver}"


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_dags.dags())
def test_it_is_never_worse_than_either_and_proves_what_brute_force_finds(problem) -> None:
    options = {"time_limit_s": 30, "seed": 0}
    schedule = auto(problem, **options)
    verify(problem, schedule)
    assert schedule.certificate.proves == "makespan"
    best_s = min(mapper(problem, **options).makespan_s for mapper in (coarse, fine))
    assert schedule.makespan_s == pytest.approx(best_s, rel=1e-12)
    if problem.operators <= 6:
        assert schedule.certificate.proven
        assert abs(schedule.makespan_s - optimum_s(problem)) <= 1e-6 * problem.operators


def test_what_needs_no_search_is_not_mapped_twice() -> None:
    moves = apart(0.5)
    chain = MappingProblem(((1.0, 2.0), (3.0, 1.0)), (Flow(0, (1,), moves),), (0, 1))
    one_processor = MappingProblem(
        ((1.0,), (2.0,), (3.0,), (1.0,)),
        (Flow(0, (1, 2), ((0.0,),)), Flow(1, (3,), ((0.0,),)), Flow(2, (3,), ((0.0,),))),
        (0, ((1,), (2,)), 3),
    )
    for problem, solver in (
        (
            chain,
            "shortest path",
        ),  # the coarse one's alone
        (one_processor, "nothing to decide; longest path"),
    ):
        schedule = auto(problem, time_limit_s=60, seed=0)
        assert schedule.certificate.proven
        assert schedule.certificate.proves == "makespan"
        assert schedule.certificate.bound_s == schedule.makespan_s
        assert schedule.certificate.solver == solver


@pytest.mark.parametrize("time_limit_s", [0.0, 1e-9, 1e-3])
def test_without_time_there_is_a_schedule_and_an_honest_bound(time_limit_s) -> None:
    problem = wide(7)
    schedule = auto(problem, time_limit_s=time_limit_s, seed=0)
    claim = schedule.certificate
    assert 0 < claim.bound_s <= claim.objective_s == schedule.makespan_s
    assert claim.proven == (claim.gap == 0)


def wide(seed: int) -> MappingProblem:
    """Twelve branches of three to five operators: too much for a fraction of a second."""
    rng = random.Random(seed)
    lengths = [tuple(rng.uniform(0.5, 3.0) for _ in range(rng.randint(3, 5))) for _ in range(12)]
    return branches(*lengths, move_ms=0.7)


@pytest.mark.parametrize("mapper", [auto, coarse, fine])
def test_counted_work_gives_the_same_schedule_however_busy_the_machine_is(mapper) -> None:
    def solved():
        found = mapper(wide(3), time_limit_s=0.3, seed=5, deterministic=True)
        return found.processor, found.start_s, found.certificate.bound_s, found.certificate.proven

    alone = solved()
    over = Event()

    def be_busy() -> None:
        while not over.is_set():
            sum(range(1000))

    others = [Thread(target=be_busy, daemon=True) for _ in range(3)]
    for thread in others:
        thread.start()
    try:
        assert solved() == alone
    finally:
        over.set()
