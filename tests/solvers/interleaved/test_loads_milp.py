from __future__ import annotations

import random
from dataclasses import replace

import pytest

from parapipe.modulo import least_period
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases import loads_milp
from tests.cases.occupying_cases import any_problem


@pytest.mark.parametrize("seed", range(12))
def test_both_programmes_agree_on_any_kind_of_transfers(seed) -> None:
    agree(any_problem(seed, most_operators=12))


@pytest.mark.parametrize("kind", ["delay", "sender", "receiver", "link"])
def test_both_programmes_agree_on_a_network_of_twenty_operators(kind) -> None:
    rng = random.Random(kind)
    rows = tuple(tuple(rng.uniform(1e-3, 9e-3) for _ in range(3)) for _ in range(20))
    flows = tuple(
        Flow(u, tuple(sorted({u + 1, rng.randint(u + 1, 19)})), moved(rng)) for u in range(19)
    )
    problem = MappingProblem(rows, flows, tuple(range(20)))
    resource = {"sender": lambda p, _: p, "receiver": lambda _, q: q, "link": lambda *_: 3}
    if kind != "delay":
        table = [[None if p == q else resource[kind](p, q) for q in range(3)] for p in range(3)]
        problem = replace(problem, transfer_resource=tuple(map(tuple, table)))
    agree(problem)


def moved(rng):
    return tuple(
        tuple(0.0 if p == q else rng.uniform(1e-4, 2e-3) for q in range(3)) for p in range(3)
    )


def agree(problem) -> None:
    one = least_period.least_period(problem, time_limit_s=100, seed=0, deterministic=True)
    other = loads_milp.least_period(problem, time_limit_s=60, seed=0)
    assert one.proven
    assert other.proven
    assert one.period_s == pytest.approx(other.period_s, rel=1e-5)
    assert one.bound_s <= other.period_s
