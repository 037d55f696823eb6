from __future__ import annotations

import re

import pulp
import pytest

from parapipe.solvers.cbc import Answer, run_cbc
from tests.cases.scripts import left_behind_by, printed_by, run_script

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP announces PuLP 4


def split(numbers: list[int]) -> pulp.LpProblem:
    """Split numbers into two heaps so that the larger sum is least."""
    model = pulp.LpProblem("split", pulp.LpMinimize)
    larger = pulp.LpVariable("larger", lowBound=0)
    left = [pulp.LpVariable(f"left_{i}", cat=pulp.LpBinary) for i in range(len(numbers))]
    on_left = pulp.lpSum(n * x for n, x in zip(numbers, left, strict=True))
    model += larger
    model += larger >= on_left
    model += larger >= sum(numbers) - on_left
    return model


def test_the_optimum_comes_with_an_equal_bound() -> None:
    # {7, 5} and {6, 4, 3} would be 12 and 13; 25 is odd
    model = split([7, 6, 5, 4, 3])
    answer = run_cbc(model, time_limit_s=60, seed=0)
    assert (answer.found, answer.optimal, answer.rounded_bound) == (True, True, 13)
    assert model.objective.value() == 13
    assert answer.solver.startswith("CBC 2.")
    assert answer.solver.endswith(f"via PuLP {pulp.__version__}")


def test_no_solution_is_found_where_there_is_none() -> None:
    model = split([7, 6])
    model += model.objective <= 6
    answer = run_cbc(model, time_limit_s=60, seed=0)
    assert not answer.found
    assert not answer.optimal


def test_stopped_at_once_cbc_claims_no_optimum_and_no_bound_above_it() -> None:
    answer = run_cbc(split([3**k for k in range(20)]), time_limit_s=1e-9, seed=0)
    assert not answer.optimal
    assert answer.rounded_bound is None or answer.rounded_bound <= 3**19


def test_a_node_limit_given_as_an_option_stops_cbc_without_an_optimum() -> None:
    answer = run_cbc(
        split([7919, 6841, 5779, 4729, 3701, 2711, 1789]),
        time_limit_s=60,
        seed=0,
        options=["maxNodes 0", "cuts off", "preprocess off"],
    )
    assert not answer.optimal
    assert answer.rounded_bound is not None
    # half of 33469, rounded up, to which a tolerance may add nothing
    assert answer.rounded_bound <= 16735


@pytest.mark.parametrize(
    ("bound", "whole"),
    [(None, None), (12.0, 12), (12.0000001, 12), (11.9999999, 12), (12.01, 13), (-1e50, -(10**50))],
)
def test_a_bound_of_a_whole_objective_is_rounded_up_but_for_tolerances(bound, whole) -> None:
    assert Answer(True, False, bound, "CBC").rounded_bound == (whole and pytest.approx(whole))


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**40])
def test_every_whole_number_is_a_seed(seed) -> None:
    assert run_cbc(split([4, 3, 2]), time_limit_s=60, seed=seed).rounded_bound == 5


def test_no_time_limit_may_be_given_as_infinity() -> None:
    assert run_cbc(split([4, 3, 2]), time_limit_s=float("inf"), seed=0).optimal


SPLIT = (
    "from parapipe.solvers.cbc import run_cbc\n"
    "from tests.solvers.test_cbc import split\n"
    "print(run_cbc(split([4, 3, 2]), time_limit_s=60, seed=0).rounded_bound)\n"
)


def test_a_cbc_that_does_not_run_is_one_clear_error(tmp_path) -> None:
    (tmp_path / "a blank").mkdir()  # CBC does not read a file there
    done = run_script(SPLIT, TMPDIR=tmp_path / "a blank")
    assert re.search(
        r"^parapipe\.errors\.MappingError: the CBC that comes with PuLP could not be run .*; check "
        "that the folder for temporary files has space and no blank in its name",
        done.stderr.splitlines()[-1],
    )


def test_no_file_is_left_behind(tmp_path) -> None:
    assert left_behind_by(SPLIT, tmp_path / "scratch") == []


def test_pulp_is_imported_without_highspy(tmp_path) -> None:
    # with OR-tools in the same process it would end in an undefined symbol
    (tmp_path / "highspy").mkdir()
    (tmp_path / "highspy" / "__init__.py").write_text("print('highspy was loaded')")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from parapipe.solvers.cbc import import_pulp\n"
        "print(import_pulp().__name__)\n"
        "import highspy\n"
    )
    assert printed_by(script) == ["pulp", "highspy was loaded"]
