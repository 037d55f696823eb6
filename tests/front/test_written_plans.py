"""Plans made by several processes are those that one makes."""

import os

import pytest

from parapipe.front import written_plans as module
from parapipe.front.written_plans import plan_texts, written_plans


@pytest.fixture
def at_once(monkeypatch) -> None:
    """Let others help from the second plan on."""
    monkeypatch.setattr(module, "ALONE_S", 0.0)


@pytest.fixture(scope="module")
def alone(branchy_front) -> dict[str, bytes]:
    made = list(branchy_front)
    return dict(zip((each.id for each in made), plan_texts(made), strict=True))


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_any_number_of_processes_makes_the_same_plans(jobs, branchy_front, alone, at_once):
    found = [*written_plans(branchy_front.configurations, jobs)]
    assert len(found) == len(alone)
    assert dict(found) == alone


def test_quick_plans_are_made_without_other_processes(monkeypatch, branchy_front, alone):
    monkeypatch.setattr(module, "WorkerProcesses", None)
    monkeypatch.setattr(module, "ALONE_S", 1e9)
    assert [*written_plans(branchy_front.configurations, 2)] == [*alone.items()]


def dies(_configurations: object) -> None:
    os._exit(3)


def test_what_a_process_that_ends_has_left_is_made_here(monkeypatch, branchy_front, alone, at_once):
    made = list[str]()

    def here(configurations):
        made.extend(each.id for each in configurations)
        return plan_texts(configurations)

    pool = module.WorkerProcesses

    class Dying(pool):
        def submit(self, _function, *given):
            return super().submit(dies, *given)

    monkeypatch.setattr(module, "WorkerProcesses", Dying)
    monkeypatch.setattr(module, "plan_texts", here)
    assert dict(written_plans(branchy_front.configurations, 2)) == alone
    assert 0 < len(made) < len(alone)


def test_where_no_process_can_be_started_all_is_made_here(
    monkeypatch, branchy_front, alone, at_once
):
    def refuse(_count):
        raise OSError

    monkeypatch.setattr(module, "WorkerProcesses", refuse)
    assert dict(written_plans(branchy_front.configurations, 2)) == alone


def test_the_files_of_a_front_do_not_depend_on_processes(branchy_front, tmp_path, at_once):
    for jobs in (1, 2):
        branchy_front.write(tmp_path / str(jobs), jobs=jobs)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n / "plans").iterdir()} for n in "12")
    assert one == two
