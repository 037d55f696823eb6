"""The key of an answer: the same for the same content, another for any change."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from math import inf, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import MappingError
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.pipeline import method as method_module
from parapipe.pipeline.method import (
    Method,
    is_optimum,
    solve_one,
    stopped_by_clock,
)
from parapipe.pipeline.question import Question
from tests.cases.solve_cases import alone_schedule, branchy, chain, own_key

METHOD = Method("coarse", 60.0, 1)


def changed_row(rows, row, column, value):
    new = [list(each) for each in rows]
    new[row][column] = value
    return tuple(map(tuple, new))


@given(seed=st.integers(0, 10**6))
def test_problems_of_the_same_content_have_the_same_key(seed) -> None:
    assert own_key(branchy(seed), METHOD) == own_key(branchy(seed), METHOD)


@given(v=st.integers(0, 9), p=st.integers(0, 2))
def test_any_time_that_differs_by_the_last_bit_makes_another_key(v, p) -> None:
    problem = branchy(3)
    for time_s in (nextafter(problem.time_s[v][p], 1.0), inf):
        other = replace(problem, time_s=changed_row(problem.time_s, v, p, time_s))
        assert own_key(other, METHOD) != own_key(problem, METHOD)


@given(flow=st.integers(0, 9), p=st.integers(0, 2), q=st.integers(0, 2))
def test_any_transfer_that_differs_by_the_last_bit_makes_another_key(flow, p, q) -> None:
    problem = branchy(3)
    if p == q:
        return
    old = problem.flows[flow]
    moved = changed_row(old.transfer_s, p, q, nextafter(old.transfer_s[p][q], 1.0))
    flows = list(problem.flows)
    flows[flow] = replace(old, transfer_s=moved)
    assert own_key(replace(problem, flows=tuple(flows)), METHOD) != own_key(problem, METHOD)


def test_readers_producer_home_and_structure_count() -> None:
    times = ((1.0, 2.0), (1.0, 2.0), (1.0, 2.0))
    apart = ((0.0, 1.0), (1.0, 0.0))
    problems = [
        MappingProblem(times, flows, structure)
        for flows in (
            (),
            (Flow(0, (2,), apart),),
            (Flow(1, (2,), apart),),
            (Flow(0, (1, 2), apart),),
            (Flow(None, (2,), apart, location=0),),
            (Flow(None, (2,), apart, location=1),),
            (Flow(0, (1,), apart), Flow(0, (2,), apart)),
        )
        for structure in ((0, 1, 2), (((0,), (1,)), 2), (((0, 1),), 2))
    ]
    assert len({own_key(problem, METHOD) for problem in problems}) == len(problems)


def test_mapper_seed_time_limit_and_determinism_count() -> None:
    methods = [
        METHOD,
        replace(METHOD, mapper="heft"),
        replace(METHOD, seed=2),
        replace(METHOD, time_limit_s=61.0),
        replace(METHOD, deterministic=True),
    ]
    assert len({own_key(branchy(0), method) for method in methods}) == len(methods)


@pytest.mark.parametrize("change", ["_version", "_code"])
def test_another_solver_or_another_source_code_of_the_mappers_makes_another_key(
    change, monkeypatch
) -> None:
    before = own_key(branchy(0), METHOD)
    method_module._surroundings.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(method_module, change, lambda *_: "another")
        after = own_key(branchy(0), METHOD)
    method_module._surroundings.cache_clear()
    assert after != before
    assert own_key(branchy(0), METHOD) == before


def test_the_source_code_of_a_mapper_in_another_package_counts() -> None:
    assert method_module._code("fine") == method_module._code("heft")
    assert method_module._code("fine_milp") != method_module._code("fine")


def test_a_missing_solver_has_a_key_too(monkeypatch) -> None:
    assert method_module._version("no-such-solver") == "no no-such-solver"


def test_another_process_makes_the_same_key() -> None:
    script = (
        "from tests.cases.solve_cases import branchy, own_key; "
        "from parapipe.pipeline.method import Method; "
        "print(own_key(branchy(5), Method('coarse', 60.0, 1)))"
    )
    path = os.pathsep.join(sys.path)
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, env=environment, text=True, check=True, stdout=subprocess.PIPE
        )  # fmt: skip
        assert done.stdout.strip() == own_key(branchy(5), METHOD)


def test_an_optimum_stands_under_a_key_that_no_time_limit_changes_unless_deterministic() -> None:
    longer = replace(METHOD, time_limit_s=600.0)
    optimum, own = Question(branchy(0)).keys(METHOD)
    assert Question(branchy(0)).keys(longer)[0] == optimum
    assert Question(branchy(0)).keys(longer)[1] != own
    assert len(Question(branchy(0)).keys(replace(METHOD, deterministic=True))) == 1


def test_only_a_proven_makespan_is_an_optimum() -> None:
    proven = alone_schedule(1.0)
    assert is_optimum(proven)
    assert not is_optimum(alone_schedule(1.0, proven=False))
    other = replace(proven.certificate, proves="L of equation (2)")
    assert not is_optimum(replace(proven, certificate=other))


def test_a_mapper_is_found_by_its_name() -> None:
    assert solve_one(chain(0), METHOD).certificate.proves == "makespan"
    with pytest.raises(MappingError, match="no mapper 'corase'"):
        solve_one(chain(0), replace(METHOD, mapper="corase"))


def test_a_mapper_that_counts_its_work_is_told_to_when_determinism_is_asked_for(
    monkeypatch,
) -> None:
    told = []

    def counting(problem, *, time_limit_s, seed, deterministic=False):
        told.append((time_limit_s, seed, deterministic))
        return alone_schedule(1.0, proven=False)

    monkeypatch.setattr(method_module.registry, "mapper", lambda _: counting)
    for deterministic in (False, True):
        solve_one(chain(0), Method("counting", 9.0, 3, deterministic))
    assert told == [(9.0, 3, False), (9.0, 3, True)]
    assert stopped_by_clock([alone_schedule(1.0, proven=False)], Method("counting", 0.1, 3)) == 0


def test_schedules_that_took_all_their_time_and_are_not_proven_are_counted() -> None:
    took_quarter_s = [alone_schedule(1.0), alone_schedule(1.0, proven=False)]
    assert stopped_by_clock(took_quarter_s, Method("heft", 0.25, 0)) == 1
    assert stopped_by_clock(took_quarter_s, Method("heft", 1.0, 0)) == 0
