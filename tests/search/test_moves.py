"""Transfers that keep something busy, from the platform file to the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

import parapipe
from parapipe.platform.load import find_platform
from parapipe.problems.cache import Cache
from parapipe.problems.method import Method, solve_one
from parapipe.processes.workers import WorkerProcesses
from tests.cases.solve_cases import branchy, own_key, schedules_of, timeless


def mapped(folder, occupied):
    """Map SqueezeNet on the A311D, all of whose links occupy something."""
    text = find_platform("amlogic-a311d").read_text(encoding="utf-8")
    marked = text.replace("source: synchronisation}}", "source: synchronisation}, occupies: LINK}")
    assert marked.count("LINK") == 6
    file = folder / f"{occupied}.yaml"
    file.write_text(marked.replace("LINK", occupied), encoding="utf-8")
    return parapipe.map("zoo:squeezenet", str(file), mapper="heft", cache=False, interleave="none")


@pytest.fixture(scope="module")
def fronts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("platforms")
    return {name: mapped(folder, name) for name in ("nothing", "sender", "bus")}


@pytest.mark.parametrize("occupied", ["sender", "bus"])
def test_every_plan_passes_its_verifier_and_says_what_is_busy_when(fronts, occupied):
    crossing = 0
    for made in fronts[occupied]:
        for moved in made.plan().transfers:
            ends = {"sender": moved.source, "bus": "bus"}
            assert moved.occupies == ends[occupied]
            crossing += 1
    assert crossing > 20


def test_pure_delays_leave_nothing_about_it_in_a_plan(fronts):
    assert b"occupies" not in fronts["nothing"]["para-only"].plan().to_bytes()


def test_work_on_the_sender_makes_the_sustained_period_exceed_the_longest_stage(fronts):
    over = {
        name: max(m.sustained_period_s / m.period_s for m in front)
        for name, front in fronts.items()
    }
    assert over["nothing"] == pytest.approx(1)
    assert over["sender"] > 1.001


def test_busy_transfers_never_help(fronts):
    for name in ("sender", "bus"):
        for figure in ("latency_s", "period_s"):
            least = {
                key: min(getattr(made, figure) for made in fronts[key]) for key in (name, "nothing")
            }
            assert least[name] >= least["nothing"] * 0.999


def test_a_tensor_is_moved_to_a_processor_once_and_not_for_each_unit_that_reads_it(fronts):
    for name in ("sender", "bus"):
        for made in fronts[name]:
            moved = [(moved.tensor, moved.target) for moved in made.plan().transfers]
            assert len(set(moved)) == len(moved)


PROBLEM = replace(branchy(0), transfer_resource=((None, 0, 0), (1, None, 1), (2, 2, None)))
METHOD = Method("fine", 20.0, 0)


def test_transfers_come_back_from_worker_processes():
    with WorkerProcesses(1) as processes:
        found = processes.submit(solve_one, PROBLEM, METHOD).result()
    assert found.transfers
    assert timeless(found) == timeless(solve_one(PROBLEM, METHOD))


def test_a_problem_with_other_carriers_is_another_problem_to_the_cache(tmp_path):
    free = replace(PROBLEM, transfer_resource=())
    assert own_key(free, METHOD) != own_key(PROBLEM, METHOD)
    for expected in (set(), {PROBLEM, free}):
        with Cache(tmp_path, pytest.fail) as cache:
            solved = schedules_of([PROBLEM, free], Method("heft", 5, 0), cache=cache)
        assert solved.cached == expected
    assert solved.schedules[PROBLEM].transfers
    assert not solved.schedules[free].transfers
