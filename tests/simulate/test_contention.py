"""Processors that share the memory: what operators move, and how much longer they take."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.cost.co_run import LinearContention
from parapipe.errors import SimulationError
from parapipe.plan.memory_traffic import moved_bytes
from parapipe.plan.program import program
from parapipe.simulate.simulation import simulate
from parapipe.simulate.variation import Contention, Memory
from tests.cases.co_runs import disturbed_board
from tests.cases.plan_cases import drawn_plan
from tests.cases.small_network import saved

PLAN = drawn_plan()
# Each tensor of the drawn plan has 24 bytes: a 2 x 3 matrix of float32.


def test_a_plan_tells_what_its_operators_move_as_the_graph_does():
    front = parapipe.map(
        "zoo:squeezenet", "amlogic-a311d", mapper="heft", cache=False, interleave="none"
    )
    graph = parapipe.load_model("zoo:squeezenet", granularity="fused")
    moved = {v.id: v.work.read_bytes + v.work.written_bytes for v in graph.operators}
    assert moved_bytes(front["sequential"].plan()) == moved


def test_a_task_takes_longer_by_what_the_others_move():
    tasks = program(PLAN)
    moved = moved_bytes(PLAN)
    assert moved["e"] == 3 * 24
    # While e runs for 1 s it moves a tenth of 720 bytes/s; contention 0.5 makes others 5 % longer.
    slowdown = Contention(PLAN, tasks, Memory(LinearContention(0.5 / 720))).slowdown
    at = {task.name: i for i, task in enumerate(tasks.tasks)}
    assert slowdown([(at["e"], 0)]) == [1.0]
    both = slowdown([(at["c"], 0), (at["e"], 0)])
    assert both == pytest.approx([1.05, 1 + 0.5 * moved["c"] / 720])


def test_an_idle_memory_is_as_good_as_one_without_end():
    alone = simulate(PLAN, frames=1)
    crowded = simulate(PLAN, frames=1, memory=Memory(LinearContention(1e-15)))
    assert crowded.record.frames[0].done_s == pytest.approx(alone.record.frames[0].done_s)


def test_more_contention_takes_longer():
    done_s = [
        simulate(PLAN, frames=20, saturate=True, memory=memory).record.frames[-1].done_s
        for memory in (Memory(LinearContention(c / 100)) for c in (1e-9, 0.1, 0.5))
    ]
    free_s = simulate(PLAN, frames=20, saturate=True).record.frames[-1].done_s
    assert done_s[0] == pytest.approx(free_s)
    assert done_s[0] < done_s[1] < done_s[2]


def test_contention_without_a_number_is_the_law_of_the_platform(tmp_path):
    board = disturbed_board(tmp_path, 1.5)
    options = {"interleave": "none", "mapper": "heft", "draws": 0, "note": lambda _note: None}
    front = parapipe.map(saved(tmp_path), board, **options)
    plan = max((row.plan() for row in front), key=lambda each: len(each.processors))
    how = {"saturate": True, "frames": 20}
    by_plan = plan.simulate(**how).record.spans
    assert plan.simulate(platform=board, contention=True, **how).record.spans == by_plan
    assert plan.simulate(platform=board, contention=1e-9, **how).record.spans != by_plan
    with pytest.raises(SimulationError, match="give its section co_run, contention in its section"):
        plan.simulate(platform="amlogic-a311d", contention=True, **how)
