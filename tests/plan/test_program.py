"""What an executor does with a plan: tasks, waits and channels of the plan drawn by hand."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.build import build_plan
from parapipe.plan.program import program
from parapipe.plan.schema import Plan
from parapipe.plan.segments import segments
from tests.cases.plan_cases import drawn_plan, random_case
from tests.cases.plan_changes import transfer

DRAWN = drawn_plan()


def with_bus():
    """The drawn plan, whose transfers of `a` to little and `b` to gpu occupy a bus."""
    document = copy.deepcopy(json.loads(DRAWN.to_bytes()))
    for tensor, target, start_s in (("a", "little", 1.0), ("b", "gpu", 0.0)):
        entry = transfer(document, tensor, target)
        entry |= {"occupies": "bus", "start_s": start_s, "end_s": start_s + 0.25}
    return Plan.model_validate_json(json.dumps(document))


def named(found, rows):
    return [tuple(found.tasks[i].name for i in row[:2]) + row[2:] for row in rows]


def test_every_processor_is_a_lane_that_takes_its_operators_in_the_order_of_the_plan():
    found = program(DRAWN)
    assert found.resources == ("big", "little", "gpu")
    order = [[found.tasks[i].name for i in resource] for resource in found.graph.orders]
    assert order == [["a", "b"], ["c"], ["d", "e"]]
    seconds = [time_ps / PICOSECONDS for time_ps in found.graph.time_ps]
    assert seconds == [1.0, 2.0, 1.0, 1.0, 1.0]
    assert found.graph.lag == (0, 0, 0, 1, 1)
    assert [found.tasks[i].name for i in found.first] == ["a"]


def test_readers_wait_for_tensors_of_other_resources_and_makers_for_room():
    found = program(DRAWN)
    quarter = PICOSECONDS // 4
    waits = {("a", "c", quarter), ("b", "d", quarter), ("c", "d", quarter), ("a", "e", quarter)}
    assert set(named(found, found.graph.waits)) == waits
    channels = {("a", "c", 2), ("b", "d", 2), ("c", "d", 2), ("a", "e", 2)}
    assert set(named(found, found.graph.channels)) == channels
    assert {slots for *_, slots in program(DRAWN, queue=5).graph.channels} == {5}


def test_a_transfer_that_occupies_a_link_is_a_task_of_that_resource():
    found = program(with_bus())
    assert found.resources == ("big", "little", "gpu", "bus")
    bus = [found.tasks[i] for i in found.graph.orders[3]]
    # That to gpu is for the frame before, and starts with the stage.
    assert [task.name for task in bus] == ["b → gpu", "a → little"]
    assert [found.graph.lag[i] for i in found.graph.orders[3]] == [1, 0]
    assert all(task.operators == () for task in bus)
    waits = named(found, found.graph.waits)
    assert ("a", "a → little", 0) in waits
    assert ("a → little", "c", 0) in waits
    assert ("a", "c", 2) in named(found, found.graph.channels)


def test_segments_are_tasks_too():
    found = program(DRAWN, unit="segment")
    cut = [segment.operators for some in segments(DRAWN, prompt=True).values() for segment in some]
    assert [task.operators for task in found.tasks] == cut
    assert sum(found.graph.time_ps) == sum(program(DRAWN).graph.time_ps)
    assert len({task.name for task in found.tasks}) == len(cut)
    assert all(found.tasks[u].resource != found.tasks[v].resource for u, v, _ in found.graph.waits)


@given(seed=st.integers(0, 10**9))
def test_its_least_period_is_what_the_plan_says_can_be_sustained(seed):
    plan = build_plan(*random_case(seed))
    period_s = float(program(plan).graph.period_ps() / PICOSECONDS)
    assert period_s == pytest.approx(plan.predicted.sustained_period_s, rel=1e-12)


@given(seed=st.integers(0, 10**9))
def test_it_lies_between_the_busiest_processor_and_the_longest_stage(seed):
    plan = build_plan(*random_case(seed))
    found = program(plan)
    period_ps = found.graph.period_ps()
    busiest_ps = max(
        sum(found.graph.time_ps[v] for v in resource) for resource in found.graph.orders
    )
    longest_ps = max(stage.time_s for stage in plan.stages) * PICOSECONDS
    assert busiest_ps <= period_ps <= longest_ps + len(found.tasks)


@given(seed=st.integers(0, 10**9))
def test_the_cycle_that_sets_the_period_lies_in_resources_that_wait_for_each_other(seed):
    found = program(build_plan(*random_case(seed)))
    period_ps, cycle = found.graph.bottleneck()
    resources = {found.tasks[v].resource for v in cycle}
    if len(resources) == 1:
        (resource,) = resources
        works = sum(t for task, t in zip(found.tasks, found.graph.time_ps, strict=True)
                    if task.resource == resource)  # fmt: skip
        assert period_ps == works
    assert len(set(cycle)) == len(cycle)
