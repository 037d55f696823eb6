"""Plans made by several processes are those that one makes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from parapipe.front.pareto_front import plan_texts, texts_by_id
from parapipe.processes.workers import shared_processes
from tests.cases.nightly import nightly_from

TIMES = 80  # so often all plans are made: what is left after the second is worth a helper's while


@contextmanager
def helpers(jobs: int) -> Iterator[None]:
    """Processes that have been started, so that little work is enough for them to help."""
    with shared_processes() as kept:
        if jobs > 1:
            kept.running(jobs - 1)
        yield
        assert kept.count == jobs - 1


@pytest.mark.parametrize("jobs", nightly_from(1, [2, 1, 3]))
def test_any_number_of_processes_makes_the_same_plans(jobs, branchy_front):
    made = list(branchy_front)
    alone = dict(zip((each.id for each in made), plan_texts(made), strict=True))
    with helpers(jobs):
        found = [*texts_by_id(branchy_front.configurations * TIMES, jobs)]
    assert len(found) == len(alone) * TIMES
    assert {*found} == {*alone.items()}


def test_the_files_of_a_front_do_not_depend_on_processes(branchy_front, tmp_path):
    several = tuple(
        each.model_copy(update={"id": f"{each.id}-{number}"})
        for number in range(TIMES)
        for each in branchy_front.configurations
    )
    front = replace(branchy_front, configurations=several)
    for jobs in (1, 2):
        with helpers(jobs):
            front.write(tmp_path / str(jobs), jobs=jobs)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n / "plans").iterdir()} for n in "12")
    assert one == two
    assert len(one) == len(branchy_front) * TIMES
