from __future__ import annotations

import random
from itertools import product

import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.branch_ilp import EVERY, FEW, NO_SOLVER, assign, greedy, heaviest_us
from tests.cases.scripts import left_behind_by, printed_by, run_script

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP announces PuLP 4


def random_loads(branches: int, processors: int, seed: int):
    """So many branches with every choice, their loads at random."""
    rng = random.Random(seed)
    return tuple(
        tuple(rng.randint(100, 90_000) for _ in range(processors)) for _ in range(branches)
    )


def least_us(loads_us, base_us) -> int:
    """L of the best of all assignments, one by one."""
    choices = [[p for p, load in enumerate(row) if load is not None] for row in loads_us]
    return min(heaviest_us(loads_us, base_us, chosen) for chosen in product(*choices))


@st.composite
def instances(draw):
    processors = draw(st.integers(1, 3))
    load = st.one_of(st.none(), st.integers(0, 60_000))
    row = st.tuples(*[load] * processors).filter(lambda row: any(x is not None for x in row))
    rows = draw(st.lists(row, min_size=1, max_size=5))
    base = draw(st.tuples(*[st.sampled_from([0, 0, 7_000])] * processors))
    return tuple(rows), base


@settings(max_examples=60, deadline=None)
@given(instances())
def test_l_equals_l_of_brute_force(instance) -> None:
    loads_us, base_us = instance
    found = assign(loads_us, base_us, time_limit_s=60, seed=0)
    assert found.proven
    assert found.objective_us == found.bound_us == least_us(loads_us, base_us)
    assert found.objective_us == heaviest_us(loads_us, base_us, found.processor)


@pytest.mark.parametrize("seed", range(12))
def test_l_of_cbc_equals_l_of_brute_force_where_every_branch_has_every_choice(seed) -> None:
    branches, processors = (7, 3) if seed % 2 else (6, 4)
    loads_us = random_loads(branches, processors, seed)
    found = assign(loads_us, (0,) * processors, time_limit_s=60, seed=seed)
    assert found.solver.startswith("CBC")
    assert found.proven
    assert found.objective_us == least_us(loads_us, (0,) * processors)


@settings(max_examples=60, deadline=None)
@given(instances())
def test_without_time_there_is_an_assignment_and_a_true_bound(instance) -> None:
    loads_us, base_us = instance
    found = assign(loads_us, base_us, time_limit_s=0, seed=0)
    assert found.bound_us <= least_us(loads_us, base_us) <= found.objective_us
    assert found.objective_us == heaviest_us(loads_us, base_us, found.processor)


def test_three_branches_share_two_processors_as_solved_by_hand() -> None:
    # all on 0: 9; {0,1|2}: 7; {0,2|1}: 6; {0|1,2}: 10; {1,2|0}: 10
    found = assign(((4, 10), (3, 6), (2, 4)), (0, 0), time_limit_s=60, seed=0)
    assert found.processor == (0, 1, 0)
    assert (found.objective_us, found.bound_us, found.proven) == (6, 6, True)
    assert found.solver == EVERY


def test_cbc_is_named_with_its_version_and_takes_over_where_ways_are_many() -> None:
    # 3 processors: 6 branches have 729 placements, 7 have 2187
    found = assign(random_loads(7, 3, 0), (0, 0, 0), time_limit_s=60, seed=0)
    assert found.solver.startswith("CBC 2.")
    assert found.solver.endswith(f"via PuLP {pulp.__version__}")
    assert 3**6 <= FEW < 3**7
    assert assign(random_loads(6, 3, 0), (0, 0, 0), time_limit_s=60, seed=0).solver == EVERY


def test_of_equal_l_the_least_load_counts_then_the_first() -> None:
    # L is 9 for 0 on processor 0; 1 on 1 loads 2 there, on 2 only 1; 2 is 3 on either
    loads_us = ((9, 20, 20), (None, 2, 1), (None, 3, 3))
    found = assign(loads_us, (0, 0, 0), time_limit_s=60, seed=0)
    assert (found.processor, found.objective_us) == ((0, 2, 1), 9)


def test_load_that_is_there_in_any_case_is_counted() -> None:
    # with 5 on processor 0 the same branches: {|0,1,2}: 20; {0|..}: 10; {1|..}: 14; {2|..}: 16;
    # {0,1|2}: 12; {0,2|1}: 11; {1,2|0}: 10; {0,1,2|}: 14
    found = assign(((4, 10), (3, 6), (2, 4)), (5, 0), time_limit_s=60, seed=0)
    assert found.objective_us == 10


def test_a_single_choice_needs_no_solver() -> None:
    forced = assign(((4, None), (None, 3), (2, None)), (0, 0), time_limit_s=60, seed=0)
    assert (forced.processor, forced.objective_us) == ((0, 1, 0), 6)
    single = assign(((9, 4, None),), (0, 6, 0), time_limit_s=60, seed=0)
    assert (single.processor, single.objective_us) == ((0,), 9)
    assert forced.proven
    assert single.proven
    assert {forced.solver, single.solver} == {NO_SOLVER}


def test_a_proven_answer_is_given_again_without_the_solver() -> None:
    loads_us = random_loads(7, 3, 1)
    first = assign(loads_us, (0, 0, 0), time_limit_s=60, seed=0)
    assert assign(loads_us, (0, 0, 0), time_limit_s=60, seed=0) is first


@pytest.mark.parametrize("deterministic", [False, True])
def test_an_answer_that_took_longer_is_not_given_to_whom_has_less_time(deterministic) -> None:
    loads_us = random_loads(30, 4, 3)
    asked = {"seed": 0, "deterministic": deterministic}
    first = assign(loads_us, (0,) * 4, time_limit_s=60, **asked)
    assert first.proven
    assert first.spent_s > 0
    assert assign(loads_us, (0,) * 4, time_limit_s=2 * first.spent_s, **asked) is first
    assert assign(loads_us, (0,) * 4, time_limit_s=first.spent_s, **asked) is not first
    hurried = assign(loads_us, (0,) * 4, time_limit_s=0, **asked)
    assert hurried.solver == "greedy"
    assert hurried.objective_us > first.objective_us


def test_counted_work_gives_the_same_answer_whether_or_not_one_was_kept() -> None:
    loads_us = random_loads(45, 4, 1)
    limits_s = (0.001, 0.005, 0.02, 60.0)

    def solved(limit_s: float):
        return assign(loads_us, (0,) * 4, time_limit_s=limit_s, seed=0, deterministic=True)

    anew = [solved(limit_s) for limit_s in limits_s]
    assert [each.proven for each in anew] == [False, False, False, True]  # only the last is kept
    assert [solved(limit_s) for limit_s in limits_s] == anew


def test_an_answer_that_is_not_proven_is_asked_for_again() -> None:
    loads_us = ((6, 7), (6, 7), (6, 7), (5, 8), (5, 8))
    hurried = assign(loads_us, (0, 0), time_limit_s=0, seed=0)
    patient = assign(loads_us, (0, 0), time_limit_s=60, seed=0)
    assert hurried.solver == "greedy"
    assert patient.proven
    assert hurried.bound_us <= patient.objective_us <= hurried.objective_us


def test_cbc_stopped_at_once_still_gives_an_assignment_and_a_true_bound() -> None:
    loads_us = random_loads(7, 3, 5)
    stopped = assign(loads_us, (0, 0, 0), time_limit_s=1e-9, seed=0)
    assert stopped.solver.startswith("CBC")
    assert stopped.bound_us <= least_us(loads_us, (0, 0, 0)) <= stopped.objective_us


def test_greedy_moves_branches_until_no_single_move_helps() -> None:
    draw = random.Random(11)
    loads_us = tuple(tuple(draw.randint(1, 99) for _ in range(3)) for _ in range(12))
    processor = greedy(loads_us, (0, 0, 0))
    best = heaviest_us(loads_us, (0, 0, 0), processor)
    for b in range(12):
        for p in range(3):
            moved = (*processor[:b], p, *processor[b + 1 :])
            assert heaviest_us(loads_us, (0, 0, 0), moved) >= best


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**40])
def test_every_whole_number_is_a_seed(seed) -> None:
    loads_us = random_loads(7, 3, 2)
    found = assign(loads_us, (0, 0, 0), time_limit_s=60, seed=seed)
    assert found.objective_us == least_us(loads_us, (0, 0, 0))


def test_no_time_limit_may_be_given_as_infinity() -> None:
    found = assign(random_loads(7, 3, 3), (0, 0, 0), time_limit_s=float("inf"), seed=0)
    assert found.proven


HARD = (
    "from parapipe.solvers.branch_ilp import assign\n"
    "found = assign(((4, 10),) * 11, (0, 0), time_limit_s=60, seed=0)\n"
    "print(found.solver.startswith('CBC'), found.objective_us)\n"
)


def test_a_cbc_that_does_not_run_is_one_clear_error(tmp_path) -> None:
    (tmp_path / "a blank").mkdir()  # CBC does not read a file there
    done = run_script(HARD, TMPDIR=tmp_path / "a blank")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("parapipe.errors.MappingError: the CBC that comes with PuLP could not ")


def test_no_file_is_left_behind(tmp_path) -> None:
    assert left_behind_by(HARD, tmp_path / "scratch") == []


def test_highspy_is_not_loaded_though_it_is_installed(tmp_path) -> None:
    # with OR-tools in the same process it would end in an undefined symbol
    (tmp_path / "highspy").mkdir()
    (tmp_path / "highspy" / "__init__.py").write_text("print('highspy was loaded')")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{HARD}import highspy\n"
    assert printed_by(script) == ["True 32", "highspy was loaded"]
