"""The key of an answer: the same for the same content, another for any change."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from math import inf, nextafter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parapipe
from parapipe.errors import MappingError
from parapipe.problems import method as method_module
from parapipe.problems.method import (
    Method,
    Question,
    is_optimum,
    solve_one,
    stopped_by_clock,
)
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.scripts import printed_by
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


KEYS = """
import sys
from tests.cases.scripts import printed_by
from tests.cases.solve_cases import branchy, own_key
from parapipe.problems.method import Method
sys.path[:] = [path for path in sys.path if not any(word in path for word in sys.argv[1:])]
for mapper in ("coarse", "fine_milp"):
    print(own_key(branchy(5), Method(mapper, 60.0, 1)))
"""


@pytest.fixture(scope="module")
def keys():
    """Those that this process makes."""
    return [own_key(branchy(5), replace(METHOD, mapper=each)) for each in ("coarse", "fine_milp")]


def paths(*first: Path) -> str:
    """Where Python finds modules and distributions, those of a folder first."""
    return os.pathsep.join([*map(str, first), *sys.path])


@pytest.mark.parametrize("seed", [1, 2])
def test_another_process_makes_the_same_keys(keys, seed) -> None:
    assert printed_by(KEYS, PYTHONPATH=paths(), PYTHONHASHSEED=seed) == keys


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("solvers/lists.py", 0),
        ("reference_mappers/fine_milp.py", 1),
        ("problems/solve.py", 2),
    ],
)
def test_the_source_code_of_the_mappers_counts_and_of_the_one_in_another_package(
    keys, changed, same, tmp_path
) -> None:
    package = Path(parapipe.__file__).parent
    shutil.copytree(package, tmp_path / "parapipe", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "parapipe" / changed).open("a") as file:
        file.write("# changed\n")
    (tmp_path / "tests").symlink_to(package.parent / "tests")
    found = printed_by(f"import os; os.chdir('/')\n{KEYS}", PYTHONPATH=paths(tmp_path))
    assert found[:same] == keys[:same]
    assert not {*found[same:]} & {*keys}


def test_another_solver_and_a_missing_one_make_other_keys(keys, tmp_path) -> None:
    folder = tmp_path / "ortools-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: ortools\nVersion: 0.1\n")
    another = printed_by(KEYS, PYTHONPATH=paths(tmp_path))
    missing = printed_by(KEYS, "site-packages", PYTHONPATH=paths())
    assert len({*keys, *another, *missing}) == 6


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
