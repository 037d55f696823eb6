"""Plans made by several processes are those that one makes."""

import pytest

from parapipe.front.written_plans import plan_texts, written_plans
from parapipe.pipeline import shared_work


@pytest.fixture
def at_once(monkeypatch) -> None:
    """Let others help after the second plan."""
    monkeypatch.setattr(shared_work, "ALONE_S", 0.0)
    monkeypatch.setattr(shared_work, "WORTH_S", 1e-9)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_any_number_of_processes_makes_the_same_plans(jobs, branchy_front, at_once):
    made = list(branchy_front)
    alone = dict(zip((each.id for each in made), plan_texts(made), strict=True))
    found = [*written_plans(branchy_front.configurations, jobs)]
    assert len(found) == len(alone)
    assert dict(found) == alone


def test_the_files_of_a_front_do_not_depend_on_processes(branchy_front, tmp_path, at_once):
    for jobs in (1, 2):
        branchy_front.write(tmp_path / str(jobs), jobs=jobs)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n / "plans").iterdir()} for n in "12")
    assert one == two
