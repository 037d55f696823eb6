"""A mapper that is no part of parapipe, named MODULE:FUNCTION; it is checked like all."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.cli.command_line import run
from parapipe.errors import MappingError, VerificationError
from parapipe.solvers.registry import mapper

FIRST = """
from parapipe.solvers.replay import certified
from parapipe.solvers.lists import list_schedule
from parapipe.solvers.paths import simple_bound_s
from time import perf_counter

def map(problem, *, time_limit_s, seed):
    began_s = perf_counter()
    table = list_schedule(problem, [-float(v) for v in range(problem.operators)])
    return certified(
        problem, table.processor, table.timed,
        bound_s=simple_bound_s(problem), solver="first", seed=seed, began_s=began_s,
    )

def late(problem, *, time_limit_s, seed):
    from dataclasses import replace
    made = map(problem, time_limit_s=time_limit_s, seed=seed)
    return replace(made, start_s=tuple(2 * s for s in made.start_s))

def broken(problem, *, time_limit_s, seed):
    return 1 / 0

def nothing(problem, *, time_limit_s, seed):
    return None

number = 3
"""


@pytest.fixture
def first(tmp_path, monkeypatch):
    (tmp_path / "first_mapper.py").write_text(FIRST)
    monkeypatch.syspath_prepend(tmp_path)
    return "first_mapper:map"


@pytest.mark.parametrize("jobs", [1, 2])
def test_it_maps_a_network_in_this_process_and_in_others(first, jobs):
    front = parapipe.map(
        "zoo:squeezenet", "amlogic-a311d", mapper=first, jobs=jobs, cache=False, interleave="none"
    )
    assert front.document.options.mapper == first
    best = parapipe.map("zoo:squeezenet", "amlogic-a311d", cache=False, interleave="none")
    assert front.best("latency").latency_s >= best.best("latency").latency_s
    row = front.best("latency")
    assert float(f"{row.plan().predicted.latency_s:.12g}") == row.latency_s


def test_what_it_gives_is_not_kept(first, tmp_path):
    for _ in range(2):
        front = parapipe.map(
            "zoo:alexnet", "amlogic-a311d", mapper=first, cache=tmp_path / "c", interleave="none"
        )
        assert not any(entry["cached"] for entry in front.solve_log())


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("broken", MappingError, r"'first_mapper:broken' failed: ZeroDivisionError: .*line 21\)$"),
        ("nothing", MappingError, "gave a NoneType; it must give a"),
        ("late", VerificationError, ""),
    ],
)
@pytest.mark.usefixtures("first")
def test_what_is_wrong_with_it_is_told(name, error, words):
    with pytest.raises(error, match=words):
        parapipe.map(
            "zoo:squeezenet",
            "amlogic-a311d",
            mapper=f"first_mapper:{name}",
            cache=False,
            jobs=1,
            interleave="none",
        )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module:map", "cannot be imported .* put its folder on PYTHONPATH"),
        ("first_mapper:mop", "module first_mapper has no function 'mop'"),
        ("first_mapper:number", "has no function 'number'"),
        ("first_mapper", "there is no mapper 'first_mapper'; .* MODULE:FUNCTION"),
        ("first mapper:map", "there is no mapper"),
    ],
)
@pytest.mark.usefixtures("first")
def test_one_that_is_not_there_is_named(name, words):
    with pytest.raises(MappingError, match=words):
        mapper(name)


def test_a_command_finds_it_in_the_working_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "second_mapper.py").write_text(FIRST)
    monkeypatch.chdir(tmp_path)
    asked = ["map", "zoo:alexnet", "--platform", "amlogic-a311d", "--quiet", "--no-cache"]
    assert run([*asked, "--mapper", "second_mapper:map"]) == 0, capsys.readouterr().err
    assert run([*asked, "--mapper", "third_mapper:map"]) == 2
