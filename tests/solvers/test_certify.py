from __future__ import annotations

from functools import partial
from time import perf_counter

import pytest

from parapipe.errors import VerificationError
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import Timed, certified

TWO = MappingProblem(((0.1,), (0.2,)), (), (0, 1))
certify = partial(certified, TWO, [0, 0], solver="by hand", seed=3, began_s=perf_counter())


def test_a_bound_below_the_makespan_proves_nothing() -> None:
    claim = certify(Timed((0.0, 0.1), (0.1, 0.1 + 0.2)), bound_s=0.2).certificate
    assert (claim.proves, claim.solver, claim.seed) == ("makespan", "by hand", 3)
    assert (claim.objective_s, claim.bound_s, claim.proven) == (0.1 + 0.2, 0.2, False)
    assert claim.wall_s > 0


def test_a_bound_that_differs_by_rounding_proves() -> None:
    claim = certify(Timed((0.0, 0.1), (0.1, 0.1 + 0.2)), bound_s=0.3).certificate
    assert claim.objective_s > 0.3  # 0.1 + 0.2 is 0.30000000000000004
    assert claim.proven
    assert claim.bound_s == 0.3


def test_a_bound_a_picosecond_below_does_not_prove() -> None:
    assert not certify(Timed((0.0, 0.1), (0.1, 0.1 + 0.2)), bound_s=0.3 - 1e-12).certificate.proven


def test_a_bound_above_the_makespan_is_cut_to_it() -> None:
    claim = certify(Timed((0.0, 0.1), (0.1, 0.1 + 0.2)), bound_s=0.4).certificate
    assert claim.bound_s == claim.objective_s


def test_a_wrong_schedule_does_not_get_out() -> None:
    with pytest.raises(VerificationError, match="operator 1 starts at 0"):
        certify(Timed((0.0, 0.0), (0.1, 0.2)), bound_s=0.0)
