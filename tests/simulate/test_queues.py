"""Least slots that keep a demand: compared with all numbers of slots of tiny plans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.plan.build import build_plan, fewest_slots, rebuild_with_slots, with_slots
from parapipe.plan.program import program
from parapipe.plan.verify import verify_plan
from parapipe.simulate.queues import least_slots
from parapipe.simulate.simulation import simulate
from parapipe.simulate.variation import RandomFactors
from tests.cases.plan_cases import random_case

FRAMES = 30
MORE = range(4)
SEEDS = (7, 8, 15, 33, 39)  # plans with one to three channels, in which room matters


@dataclass
class Case:
    """A plan with drawn times, and the longest latency or time between results."""

    seed: int
    saturate: bool

    def __post_init__(self):
        self.plan = build_plan(*random_case(self.seed))
        luck = RandomFactors(0.6, {each.name: 0.2 for each in self.plan.processors}, self.seed)
        self.run = partial(simulate, frames=FRAMES, luck=luck, saturate=self.saturate)

    def longest_s(self, made):
        counted = made.record.frames[5:]
        if not self.saturate:
            return max(frame.done_s - frame.admitted_s for frame in counted)
        return max(b - a for a, b in pairwise(sorted(frame.done_s for frame in counted)))

    def size_bytes(self, slots):
        pairs = zip(slots, fewest_slots(self.plan), self.plan.transfers, strict=True)
        return sum((n - least) * each.size_bytes for n, least, each in pairs)

    @property
    def asked_s(self):
        """Half-way between what the fewest slots give and what room for all frames gives."""
        few = self.longest_s(self.run(with_slots(self.plan, fewest_slots(self.plan))))
        room = [FRAMES] * len(self.plan.transfers)
        return (few + self.longest_s(self.run(with_slots(self.plan, room)))) / 2

    def keeps(self, most_s):
        return lambda made: self.longest_s(made) <= most_s


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_slots_with_fewer_bytes_keep_the_demand(seed, saturate):
    case = Case(seed, saturate)
    most_s = case.asked_s
    found = least_slots(case.plan, case.run, case.keeps(most_s), FRAMES)
    assert found.least
    assert case.longest_s(case.run(with_slots(case.plan, found.slots))) <= most_s
    first = fewest_slots(case.plan)
    every = (
        tuple(n + m for n, m in zip(first, more, strict=True))
        for more in product(MORE, repeat=len(first))
    )
    keeping = [
        case.size_bytes(slots)
        for slots in every
        if case.longest_s(case.run(with_slots(case.plan, slots))) <= most_s
    ]
    assert case.size_bytes(found.slots) == min(keeping)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_the_search_is_too_long_no_channel_can_do_with_fewer(seed):
    case = Case(seed, saturate=False)
    keeps = case.keeps(case.asked_s)
    found = least_slots(case.plan, case.run, keeps, FRAMES, most=0)
    assert not found.least
    assert keeps(case.run(with_slots(case.plan, found.slots)))
    for i, fewest in enumerate(fewest_slots(case.plan)):
        fewer = [n - (j == i) for j, n in enumerate(found.slots)]
        assert found.slots[i] == fewest or not keeps(case.run(with_slots(case.plan, fewer)))


@pytest.mark.parametrize("most", [0, 400])
def test_what_no_slots_keep_is_not_found(most):
    case = Case(15, saturate=False)
    assert least_slots(case.plan, case.run, lambda _: False, FRAMES, most=most) is None


def test_what_the_fewest_slots_keep_gets_no_more():
    case = Case(15, saturate=False)
    found = least_slots(case.plan, case.run, lambda _: True, FRAMES)
    assert (found.slots, found.least) == (fewest_slots(case.plan), True)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9), saturate=st.booleans(), data=st.data())
def test_more_slots_let_no_task_end_later(seed, saturate, data):
    plan = build_plan(*random_case(seed))
    luck = RandomFactors(0.5, {each.name: 0.3 for each in plan.processors}, seed)
    few = [n + data.draw(st.integers(0, 2)) for n in fewest_slots(plan)]
    many = [n + data.draw(st.integers(0, 3)) for n in few]
    ends = [
        simulate(with_slots(plan, slots), frames=25, luck=luck, saturate=saturate).replayed.end_ps
        for slots in (few, many)
    ]
    for before, after in zip(*ends, strict=True):
        assert all(b <= a for a, b in zip(before, after, strict=True))


@settings(max_examples=25)
@given(seed=st.integers(0, 10**9), more=st.integers(0, 3))
def test_a_plan_with_more_slots_keeps_all_rules_and_has_room_for_them(seed, more):
    plan = build_plan(*random_case(seed))
    made = rebuild_with_slots(plan, [each.queue_depth + more for each in plan.transfers])
    verify_plan(made)
    assert made.predicted.sustained_period_s <= plan.predicted.sustained_period_s * (1 + 1e-9)
    assert program(made).graph.channels == tuple(
        (u, v, slots + more) for u, v, slots in program(plan).graph.channels
    )
    queues = {(each.tensor, each.processors): each for each in plan.buffers}
    for each in made.buffers:
        if each.content == "queue":
            before = queues[each.tensor, each.processors]
            assert len(each.offset_bytes) >= len(before.offset_bytes) or not more


def test_as_many_slots_as_a_plan_has_change_nothing():
    plan = build_plan(*random_case(15))
    assert rebuild_with_slots(plan, [each.queue_depth for each in plan.transfers]) == plan


def test_fewer_slots_than_a_plan_needs_are_refused():
    plan = build_plan(*random_case(15))
    with pytest.raises(VerificationError):
        rebuild_with_slots(plan, [1] * len(plan.transfers))
