"""Strategies on processors that slow each other down, in simulations."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.cost.co_run import Draw, Running, SlowdownTable
from parapipe.mappings.co_run_times import Slowdowns
from parapipe.plan.co_run import law_of
from parapipe.plan.memory_traffic import moved_bytes
from parapipe.platform.co_run import Slowdown
from parapipe.simulate.simulation import simulate
from parapipe.simulate.strategies import Arrivals, price_plan, simulate_decided, strategy_replay
from parapipe.strategies.registry import strategy
from tests.cases.co_runs import disturbed_board
from tests.cases.decided import random_costs, work
from tests.cases.small_network import saved
from tests.plan.test_co_run_rules import random_plan

TABLE = SlowdownTable(
    (
        Slowdown(processor="p", busy=("q",), factor=1.5),
        Slowdown(processor="q", busy=("p",), factor=1.5),
    ),
    {"p": Draw(1e9), "q": Draw(1e9)},
)


def replayed(todo, name, frames, arrivals):
    running = [
        [Running(name, 0, each) for name, each in zip("pq", row, strict=True)]
        for row in todo.time_s
    ]
    slowdowns = Slowdowns(TABLE, running)
    spans, passed = strategy_replay(
        todo, strategy(name)[1], name, frames, arrivals, co_runs=slowdowns
    )
    return {(span.name, span.frame): (span.start_s, span.end_s) for span in spans}, passed


@pytest.mark.parametrize("name", ["plan", "steal", "ready-pool", "streams"])
def test_two_tasks_in_a_row_slow_each_other_down_while_both_run(name):
    # b is at work for 3 s of each period, in which a does 2 of its 4 s: the period is 5 s.
    todo = work([[4.0, inf], [inf, 2.0]], [(0, 1)], [(0,), (1,)])
    spans, _ = replayed(todo, name, 12, Arrivals(None, 2))
    for frame in range(2, 10):
        begin_s, end_s = spans["a", frame]
        assert end_s - begin_s == pytest.approx(5)
        assert spans["a", frame + 1][0] == pytest.approx(end_s)
        assert spans["b", frame] == pytest.approx((end_s, end_s + 3))


def test_who_waits_for_a_tensor_slows_nobody_down():
    # a ends frame 0 at 4 s; b waits for 1 s more, and then runs for 2 s, 3 with a beside it
    todo = work([[4.0, inf], [inf, 2.0]], [(0, 1)], [(0,), (1,)], moved_s=1.0)
    spans, _ = replayed(todo, "ready-pool", 2, Arrivals(None, 2))
    assert spans["a", 0] == pytest.approx((0, 4))
    assert spans["b", 0] == pytest.approx((5, 8))
    assert spans["a", 1] == pytest.approx((4, 9))
    assert spans["b", 1] == pytest.approx((10, 12))


class Planned:
    """A table of costs for a plan with a law: operators move there what they move in the plan."""

    def __init__(self, plan, table):
        self.co_run, self._table = law_of(plan), table
        names = plan.co_run.names
        self.wholes = tuple(names.get(each.name, each.name) for each in plan.processors)
        moved = moved_bytes(plan)
        self._moved = [moved[each.id] for each in plan.operators]

    def __getattr__(self, name):
        return getattr(self._table, name)

    def cost(self, v, _p):
        return Running("", self._moved[v], 0.0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_the_plan_on_the_engine_is_the_plan_as_it_is_replayed_with_its_law(seed, stages, paced):
    plan = random_plan(seed, stages=stages)
    if plan is None or any(each.occupies for each in plan.transfers):
        return
    if any(each.replicas for stage in plan.stages for each in stage.processors):
        return  # to those that take turns, what is moved takes what the random table says
    costs = random_costs(plan, seed)
    costs = type(costs)(Planned(plan, costs.table), costs.place, costs.row)
    decides = strategy("plan")[1]
    one = price_plan(plan, costs, decides)
    found = simulate_decided([one], decides, "plan", frames=12, saturate=not paced)[0]
    wanted = simulate(plan, frames=12, saturate=not paced)
    ends_s = {(span.name, span.frame): span.end_s for span in wanted.record.spans}
    assert len(found.record.spans) == len(ends_s)
    for span in found.record.spans:
        assert span.end_s == pytest.approx(ends_s[span.name, span.frame], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["steal", "ready-pool"])
def test_a_simulation_follows_the_law_of_the_platform_whatever_decides(name, tmp_path):
    file = disturbed_board(tmp_path, 1.5)
    front = parapipe.map(saved(tmp_path), file, interleave="none", note=lambda _note: None)
    plan = max((row.plan() for row in front), key=lambda each: len(each.processors))
    how = {"strategy": name, "saturate": True, "frames": 20}
    slowed = plan.simulate(platform=file, **how).document.period.observed_s
    free = plan.simulate(platform="amlogic-a311d", **how).document.period.observed_s
    assert free < slowed < 1.5 * free * (1 + 1e-9)
