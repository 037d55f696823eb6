"""Work shared by processes: all is done once, whoever does it, and whatever becomes of others."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from parapipe.processes.shared_work import run_beside, shared_work
from parapipe.processes.workers import shared_processes
from tests.cases.refusals import no_more_files

ITEMS = [f"item {number}" for number in range(40)]
HERE = os.getpid()
LONG_S = 0.1


def told(items: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Take a while, and say who; the second item takes so long that others help with the rest.

    How long the first takes does not count.
    """
    for number, each in enumerate(items):
        time.sleep(LONG_S if number < 2 else 0.02)
        yield each.upper(), os.getpid()


def found_by(jobs: int, make=told) -> tuple[list[str], set[int]]:
    """Return what is made of all items, in their order, and by whom."""
    found = [*shared_work(make, ITEMS, jobs)]
    assert sorted(number for number, _ in found) == [*range(len(ITEMS))]
    made = dict(found)
    return [made[number][0] for number in range(len(ITEMS))], {who for _, who in made.values()}


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_all_is_made_once_in_any_number_of_processes(jobs):
    made, who = found_by(jobs)
    assert made == [each.upper() for each in ITEMS]
    assert who == {HERE} if jobs == 1 else HERE in who


def waits_for_others(begun: Path, here: int, items: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Go on, in this process, once another one has begun."""
    if os.getpid() != here:
        begun.touch()
    for number, each in enumerate(items):
        if number < 2 and os.getpid() == here:
            time.sleep(LONG_S)
        while number > 1 and not begun.exists():
            time.sleep(0.01)
        yield each.upper(), os.getpid()


def test_others_help(tmp_path):
    made, who = found_by(2, partial(waits_for_others, tmp_path / "begun", HERE))
    assert made == [each.upper() for each in ITEMS]
    assert len(who) == 2


def test_what_takes_no_time_is_made_without_other_processes():
    with shared_processes() as kept:
        assert [*shared_work(iter, ITEMS, 2)] == [*enumerate(ITEMS)]
        assert kept.count == 0


def elsewhere(
    happens: Callable[[], object], begun: Path, here: int, items: Iterable[str]
) -> Iterator[tuple[str, int]]:
    """Let something happen in the other process in place of its first item."""
    for each in waits_for_others(begun, here, items):
        if os.getpid() != here:
            happens()
        yield each


def fails() -> None:
    raise ValueError("no such item")


def test_what_a_process_that_ends_has_left_is_made_here(tmp_path):
    made, who = found_by(2, partial(elsewhere, partial(os._exit, 3), tmp_path / "begun", HERE))
    assert made == [each.upper() for each in ITEMS]
    assert who == {HERE}


def test_an_error_in_another_process_is_raised_here(tmp_path):
    with pytest.raises(ValueError, match="no such item"):
        found_by(2, partial(elsewhere, fails, tmp_path / "begun", HERE))


def test_where_no_process_can_be_started_all_is_made_here():
    with no_more_files():
        made, who = found_by(2)
    assert made == [each.upper() for each in ITEMS]
    assert who == {HERE}


def test_processes_that_are_kept_help_and_stay(tmp_path):
    with shared_processes() as kept:
        _, who = found_by(2, partial(waits_for_others, tmp_path / "begun", HERE))
        assert kept.running(1).submit(os.getpid).result() in who


def test_processes_end_where_nobody_waits_for_what_they_do(tmp_path):
    with shared_processes() as kept:
        begun = tmp_path / "begun"
        sleeper = partial(elsewhere, partial(time.sleep, 1000), begun, HERE)
        some = shared_work(sleeper, ITEMS, 2)
        while not begun.exists():
            next(some)
        assert kept.count == 1
        some.close()
        assert kept.count == 0


def several(begun: Path, here: int) -> Iterator[tuple[str, int]]:
    """Yield, and say who; end where the folder says so."""
    if os.getpid() != here:
        begun.touch()
        if begun.parent.name == "ends":
            os._exit(3)
    yield from ((each, os.getpid()) for each in ITEMS)


@pytest.mark.parametrize("case", ["kept", "alone", "ends", "refused"])
def test_something_is_made_beside_where_another_process_does(case, tmp_path):
    (tmp_path / case).mkdir()
    make = partial(several, tmp_path / case / "begun", HERE)
    refused = no_more_files() if case == "refused" else nullcontext()
    kept = nullcontext() if case == "alone" else shared_processes()
    with kept, refused, run_beside(make, here=make, over=lambda: False) as made:
        found = [*made]
    assert [each for each, _ in found] == ITEMS
    assert ({who for _, who in found} == {HERE}) == (case != "kept")


def sleeps(begun: Path) -> list[str]:
    begun.touch()
    time.sleep(1000)
    return ITEMS


def test_nobody_waits_for_what_is_made_beside_once_work_is_over(tmp_path):
    begun = tmp_path / "begun"
    with shared_processes() as kept:
        here = partial(pytest.fail, "here")
        with run_beside(partial(sleeps, begun), here=here, over=begun.exists) as made:
            assert [*made] == []
        assert kept.count == 0


def test_nobody_makes_anything_beside_once_its_context_is_left(tmp_path):
    with shared_processes() as kept:
        make = partial(sleeps, tmp_path / "begun")
        with run_beside(make, here=partial(pytest.fail, "here"), over=lambda: False):
            assert kept.count == 1
        assert kept.count == 0


def test_no_more_processes_help_than_there_are_jobs(tmp_path):
    """There are more of another call, which waited for them."""
    with shared_processes() as kept:
        kept.running(3)
        _, who = found_by(2, partial(waits_for_others, tmp_path / "begun", HERE))
        assert kept.count == 1
    assert len(who) == 2
