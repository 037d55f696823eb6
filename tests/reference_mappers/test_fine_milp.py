from __future__ import annotations

import random
from functools import partial
from math import inf

import pytest

from parapipe.reference_mappers import fine_milp
from parapipe.reference_mappers.fine_milp import map as map_literally
from parapipe.solvers.cbc import Answer
from parapipe.solvers.lists import heft
from parapipe.solvers.paths import simple_bound_s
from parapipe.solvers.problem import Flow, MappingProblem, rounded_down
from parapipe.solvers.verify import verify
from tests.cases.oracle import optimum_s
from tests.cases.topcuoglu import ten_tasks

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP announces PuLP 4

MICRO = 1e-6
FREE = ((0.0, 0.0), (0.0, 0.0))
FAR = ((0.0, 2.0), (3.0, 0.0))  # 2 s from processor 0 to 1, 3 s back
solve = partial(map_literally, time_limit_s=60, seed=0)


def small(seed: int, operators: int | None = None) -> MappingProblem:
    """4 to 6 operators, if not told, on 2 or 3 processors: unsupported pairs, operators without
    length, transfers that differ with pair and direction, tensors from outside; whole µs."""
    draw = random.Random(seed)
    processors = draw.choice((2, 3))
    operators = operators or draw.randint(4, 6)

    def time_s():
        some = (draw.randint(0, 9) * 100e-6, *(draw.randint(100, 5000) * MICRO for _ in range(2)))
        return draw.choice((inf, *some))

    def transfer():
        return tuple(
            tuple(0.0 if p == q else draw.randint(0, 3000) * MICRO for q in range(processors))
            for p in range(processors)
        )

    rows = []
    for _ in range(operators):
        row = [time_s() for _ in range(processors)]
        if min(row) == inf:
            row[draw.randrange(processors)] = draw.randint(100, 5000) * MICRO
        rows.append(tuple(row))
    flows = []
    for u in range(operators - 1):
        readers = tuple(v for v in range(u + 1, operators) if draw.random() < 0.35)
        if readers:
            flows.append(Flow(u, readers, transfer()))
    for _ in range(draw.randint(0, 2)):
        readers = tuple(sorted(draw.sample(range(operators), 2)))
        flows.append(Flow(None, readers, transfer(), draw.randrange(processors)))
    return MappingProblem(tuple(rows), tuple(flows), tuple(range(operators)))


def wide() -> MappingProblem:
    """Twenty operators side by side between two others: out of CBC's reach."""
    draw = random.Random(1)
    rows = tuple(tuple(draw.randint(300, 3000) * MICRO for _ in range(3)) for _ in range(22))
    far = tuple(tuple(200 * MICRO * (p != q) for q in range(3)) for p in range(3))
    flows = (Flow(0, tuple(range(1, 21)), far), *(Flow(v, (21,), far) for v in range(1, 21)))
    return MappingProblem(rows, flows, (0, tuple((v,) for v in range(1, 21)), 21))


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_equals_that_of_brute_force(seed) -> None:
    problem = small(seed)
    schedule = solve(problem)
    verify(problem, schedule)
    best_s = optimum_s(problem)
    assert schedule.makespan_s == pytest.approx(best_s, abs=1e-12)
    assert schedule.certificate.proves == "makespan"
    assert schedule.certificate.proven
    assert schedule.certificate.objective_s == schedule.makespan_s
    assert schedule.certificate.bound_s == pytest.approx(best_s, abs=1e-12)


@pytest.mark.parametrize("seed", [1063, 1137, 1216, 1228])
def test_the_optimum_is_right_where_cbc_with_its_cuts_is_wrong(seed) -> None:
    problem = small(seed, operators=8)
    assert solve(problem).makespan_s == pytest.approx(optimum_s(problem), abs=1e-12)


def test_the_ten_tasks_of_topcuoglu_take_73_where_heft_takes_80() -> None:
    schedule = solve(ten_tasks())
    assert schedule.makespan_s == pytest.approx(73 * MICRO)
    assert schedule.certificate.proven
    assert schedule.certificate.solver.startswith("CBC 2.")
    assert "HEFT" not in schedule.certificate.solver


def test_independent_operators_are_split_as_evenly_as_can_be() -> None:
    # 7 + 5 on one, 6 + 4 + 2 on the other
    rows = tuple((t, t) for t in (7.0, 6.0, 5.0, 4.0, 2.0))
    schedule = solve(MappingProblem(rows, (), (0, 1, 2, 3, 4)))
    assert schedule.makespan_s == 12.0
    assert schedule.processor[0] == schedule.processor[2] != schedule.processor[1]


def test_an_operator_that_is_ready_waits_for_one_that_matters_more() -> None:
    # 2 (10 s) could start on processor 0 at once; better 1 first, at 1, for 3 needs 10 s after it
    rows = ((inf, 1.0), (1.0, inf), (10.0, inf), (inf, 10.0))
    flows = (Flow(0, (1,), FREE), Flow(1, (3,), FREE))
    schedule = solve(MappingProblem(rows, flows, (0, 1, 2, 3)))
    assert schedule.start_s == (0.0, 1.0, 2.0, 2.0)
    assert schedule.makespan_s == 12.0


def test_a_detour_pays_only_if_it_covers_both_transfers() -> None:
    # operator 1: 8 s here, or there and back 2 + t + 3
    flows = (Flow(0, (1,), FAR), Flow(1, (2,), FAR))
    for there_s, processor, makespan_s in ((2.5, (0, 1, 0), 9.5), (3.5, (0, 0, 0), 10.0)):
        rows = ((1.0, inf), (8.0, there_s), (1.0, inf))
        schedule = solve(MappingProblem(rows, flows, (0, 1, 2)))
        assert (schedule.processor, schedule.makespan_s) == (processor, makespan_s)


def test_of_two_tensors_between_two_operators_the_slower_one_counts() -> None:
    slow = ((0.0, 7.0), (7.0, 0.0))
    flows = (Flow(0, (1,), FAR), Flow(0, (1,), slow))
    schedule = solve(MappingProblem(((1.0, inf), (inf, 1.0)), flows, (0, 1)))
    assert schedule.start_s == (0.0, 8.0)


def test_a_tensor_from_outside_draws_its_reader_to_its_home() -> None:
    # on 0 it arrives at 3 and the operator ends at 7; on 1, its home, it ends at 6.5
    schedule = solve(MappingProblem(((4.0, 6.5),), (Flow(None, (0,), FAR, 1),), (0,)))
    assert (schedule.processor, schedule.makespan_s) == ((1,), 6.5)


def test_operators_that_take_no_time_are_ordered_so_that_nobody_waits() -> None:
    # 1 takes no time and feeds 2 on the other processor; 0 may not get in its way
    rows = ((5.0, inf), (0.0, inf), (inf, 5.0))
    schedule = solve(MappingProblem(rows, (Flow(1, (2,), FREE),), (0, 1, 2)))
    assert schedule.makespan_s == 5.0


def test_times_count_exactly_and_the_bound_in_whole_microseconds_rounded_down() -> None:
    rows = ((10.7e-6, inf), (inf, 20.6e-6))
    far = ((0.0, 1.5e-6), (1.5e-6, 0.0))
    schedule = solve(MappingProblem(rows, (Flow(0, (1,), far),), (0, 1)))
    certificate = schedule.certificate
    assert schedule.makespan_s == pytest.approx(32.8e-6, abs=1e-15)
    assert certificate.objective_s == schedule.makespan_s
    assert certificate.bound_s == pytest.approx(31e-6, abs=1e-15)
    assert certificate.proven
    assert certificate.gap == 0.0


def test_a_microsecond_that_is_whole_as_a_decimal_is_not_rounded_down() -> None:
    # as doubles 0.009 and 0.000249 are a little less
    problem = rounded_down(MappingProblem(((0.009, 0.000249, 1.9e-6),), (), (0,)))
    assert problem.time_s == ((0.009, 0.000249, 1e-6),)


def test_without_time_the_schedule_is_that_of_heft_with_an_honest_gap() -> None:
    problem = ten_tasks()
    schedule = solve(problem, time_limit_s=0)
    certificate = schedule.certificate
    verify(problem, schedule)
    assert schedule.makespan_s == heft(problem, time_limit_s=0, seed=0).makespan_s
    assert certificate.solver == "HEFT"
    assert not certificate.proven
    assert certificate.bound_s == pytest.approx(simple_bound_s(problem), abs=1e-12)
    assert certificate.gap > 0


def test_too_little_time_still_gives_a_schedule_and_a_gap() -> None:
    problem = wide()
    schedule = solve(problem, time_limit_s=1.0)
    certificate = schedule.certificate
    verify(problem, schedule)
    assert not certificate.proven
    assert schedule.makespan_s <= heft(problem, time_limit_s=0, seed=0).makespan_s
    assert simple_bound_s(problem) <= certificate.bound_s + 1e-12
    assert 0 < certificate.gap < 1
    assert "CBC" in certificate.solver


def test_an_optimum_that_a_schedule_contradicts_is_not_believed(monkeypatch) -> None:
    problem = ten_tasks()
    wrong = Answer(found=False, optimal=True, bound=81.0, solver="CBC")
    monkeypatch.setattr(fine_milp, "run_cbc", lambda *_, **__: wrong)
    certificate = solve(problem).certificate
    assert certificate.objective_s == pytest.approx(80 * MICRO)
    assert certificate.bound_s == pytest.approx(simple_bound_s(problem), abs=1e-12)
    assert not certificate.proven


def test_the_same_seed_gives_the_same_schedule() -> None:
    first, second = (solve(small(3), seed=7) for _ in range(2))
    assert (first.processor, first.start_s) == (second.processor, second.start_s)
    assert first.certificate.seed == 7
