"""Plans whose processors work on several frames: what they keep, and every rule broken once."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.mappings.event_graph import PICOSECONDS, picoseconds
from parapipe.mappings.mapping import Placement
from parapipe.plan.build import build_plan, fewest_slots, with_slots
from parapipe.plan.mapped import mapping_view, route_of
from parapipe.plan.program import program
from parapipe.plan.segments import segments
from parapipe.plan.verify import verify_plan
from parapipe.simulate.simulation import simulate
from tests.cases.interleaved import (
    DRAWN,
    between_stages,
    chain,
    interleaved,
    plan_of,
    random_document,
    sending,
    three_frames,
    two_processors,
    wrapped,
)
from tests.cases.plan_cases import Costs, graph_of, mapping_of, operator, platform_of, random_case
from tests.cases.plan_changes import place, transfer, violations

SEEDS = st.integers(0, 10**9)


@pytest.mark.parametrize("case", DRAWN)
def test_plans_drawn_by_hand_keep_the_rules(case):
    assert violations(case()) == []


@pytest.mark.parametrize("case", DRAWN)
def test_the_event_graph_repeats_every_period(case):
    document = case()
    period_ps = program(plan_of(document)).graph.period_ps()
    assert period_ps == Fraction(document["predicted"]["period_s"]) * PICOSECONDS


@given(seed=SEEDS)
def test_any_assignment_has_a_schedule_that_keeps_the_rules_and_repeats_every_period(seed):
    graph, *_ = random_case(seed)
    document = random_document(graph, seed)
    if document is None:
        return
    assert violations(document) == []
    period_s = document["predicted"]["period_s"]
    found = program(plan_of(document)).graph.period_ps()
    assert found == Fraction(period_s) * PICOSECONDS


def test_a_frame_is_under_way_from_its_first_start_to_its_last_end():
    document = two_processors()
    assert document["predicted"]["latency_s"] == 5.0
    document["predicted"]["latency_s"] = 2.0
    assert violations(document) == ["the latency is 2 s, and the stages take 5 s"]


def test_the_mapping_of_a_plan_says_what_is_interleaved():
    view = mapping_view(plan_of(wrapped()))
    assert view.mapping.kind == "interleaved"
    assert view.mapping.lags == {0: (0, 1), 1: (0, 2)}
    late = [at for at in view.placements.values() if at.end_s > view.mapping.period_s]
    assert [view.id(at) for at in late] == ["b"]
    assert mapping_view(plan_of(between_stages())).interleaved == {1}


def test_a_mapping_written_down_is_read_again():
    graph, costs = chain("abc"), Costs([[2.0] * 2, [1.0] * 2, [1.0] * 2], {})
    placements = [
        Placement(0, 0, 0.0, 2.0, 0),
        Placement(1, 1, 2.5, 3.5, 0),
        Placement(2, 0, 2.0, 3.0, 1),
    ]
    mapping = mapping_of(graph, costs, placements, period_s=3.0)
    plan = build_plan(graph, platform_of(2), costs, mapping)
    found = mapping_view(plan).mapping
    assert sorted(found.placements, key=lambda at: at.operator) == placements
    assert (found.transfers, found.edges) == (mapping.transfers, mapping.edges)
    assert found.period_s == 3.0


def test_a_segment_holds_operators_of_one_frame():
    found = segments(plan_of(three_frames()), prompt=True)
    assert [(each.operators, each.lag) for each in found["big"]] == [
        (("a",), 0), (("c",), 1), (("e",), 2)
    ]  # fmt: skip


@given(seed=SEEDS)
def test_segments_wait_for_each_other_in_no_circle(seed):
    graph, *_ = random_case(seed)
    document = random_document(graph, seed)
    if document is not None:
        assert program(plan_of(document), unit="segment").graph.period_ps() > 0


def changed(case, change):
    document = case()
    change(document)
    return violations(document)


MUTATIONS = [
    (
        two_processors,
        lambda d: place(d, "c").update(start_s=2.0, end_s=3.0),
        "operator 'c' starts at 2 s, and stage 0 repeats every 2 s",
    ),
    (
        two_processors,
        lambda d: d["stages"][0].update(time_s=1.5),
        "stage 0 takes 1.5 s, and as it works on several frames it should take the period, 2 s",
    ),
    (
        wrapped,
        lambda d: place(d, "b").update(end_s=2.5),
        (
            "operator 'd' starts at 0.25 s of a period on processor 'little', which runs 'b' until "
            "0.5 s of it"
        ),
    ),
    (
        two_processors,
        lambda d: place(d, "a").update(end_s=1.5),
        "operator 'c' starts at 1 s on processor 'big', which runs 'a' until 1.5 s",
    ),
    (
        two_processors,
        lambda d: place(d, "b").update(end_s=1.5, start_s=0.5),
        "operator 'b' reads 'a' from 0.5 s, and it arrives on 'little' at 1 s",
    ),
    (
        two_processors,
        lambda d: place(d, "d").update(lag=1),
        "operator 'd' reads 'c' from 0 s, and it arrives on 'little' at 2 s",
    ),
    (
        wrapped,
        lambda d: transfer(d, "c", "little").update(time_s=0.5),
        "operator 'd' reads 'c' from 0.25 s, and it arrives on 'little' at 0.5 s",
    ),
    (
        three_frames,
        lambda d: place(d, "b").update(lag=2),
        "operator 'c' reads 'b' at frame lag 1, and it is made at 2",
    ),
    (
        two_processors,
        lambda d: [place(d, v).update(lag=place(d, v)["lag"] + 1) for v in "abcd"],
        "stage 0 has the frame lags [1, 2, 3], and [0, 1, 2] should follow",
    ),
    (
        between_stages,
        lambda d: place(d, "e").update(lag=2),
        "stage 2 has the frame lags [2], and [3] should follow",
    ),
    (
        between_stages,
        lambda d: place(d, "e").update(lag=3),
        "operator 'e' reads 'd' from 0.25 s, and it arrives on 'npu' at 0.75 s",
    ),
    (
        between_stages,
        lambda d: place(d, "e").update(start_s=0.0),
        "operator 'e' reads 'd' from 0 s, and it arrives on 'npu' at 0.25 s",
    ),
    (
        three_frames,
        lambda d: transfer(d, "d", "big").update(queue_depth=1),
        "the transfer of tensor 'd' from 'little' to 'big' has a queue of 1, and needs 2",
    ),
    (
        between_stages,
        lambda d: transfer(d, "d", "npu").update(queue_depth=1),
        "the transfer of tensor 'd' from 'big' to 'npu' has a queue of 1, and needs 2",
    ),
    (
        sending,
        lambda d: transfer(d, "a", "little").update(start_s=0.75, end_s=1.0),
        "the transfer of tensor 'a' from 'big' to 'little' starts at 0.75 s, and it is made at 1 s",
    ),
    (
        sending,
        lambda d: transfer(d, "a", "little").update(start_s=2.25, end_s=2.5),
        (
            "the transfer of tensor 'a' from 'big' to 'little' starts at 2.25 s, and its stage "
            "repeats every 2.25 s"
        ),
    ),
    (
        sending,
        lambda d: transfer(d, "a", "little").update(start_s=1.125, end_s=1.375),
        (
            "the transfer of tensor 'a' from 'big' to 'little' and operator 'c' keep 'big' busy "
            "at the same time"
        ),
    ),
    (
        sending,
        lambda d: transfer(d, "a", "little").update(start_s=2.125, end_s=2.375),
        (
            "the transfer of tensor 'a' from 'big' to 'little' and operator 'a' keep 'big' busy "
            "at the same time"
        ),
    ),
    (
        two_processors,
        lambda d: d["predicted"].update(sustained_period_s=1.5),
        "the sustained period is 1.5 s, and processor 'big' is busy for 2 s a frame",
    ),
]


@pytest.mark.parametrize(("case", "change", "violation"), MUTATIONS)
def test_a_broken_rule_is_named(case, change, violation):
    assert violation in changed(case, change)


def test_a_tensor_is_held_as_long_as_its_last_reader_runs():
    # `a` is read two periods and a half after it was begun: by c of the frame before the last.
    graph = graph_of(
        [operator("a", "x"), operator("b", "a"), operator("c", "a b")], inputs=["x"], outputs=["c"]
    )
    orders = {
        "big": [("a", 0.0, 1.0, 0), ("b", 1.0, 2.0, 1)],
        "little": [("c", 1.5, 2.5, 2)],
    }
    document = interleaved(graph, [orders], 2.0)
    assert violations(document) == []
    moved = transfer(document, "a", "little")
    assert moved["queue_depth"] == 4
    moved["queue_depth"] = 3
    assert violations(document) == [
        "the transfer of tensor 'a' from 'big' to 'little' has a queue of 3, and needs 4"
    ]


def held_at_once(made, read, period_s):
    """The most frames that are held between two operators at any time, counted one by one."""
    begin_s, end_s = made.start_s, (read.lag - made.lag) * period_s + read.end_s
    count = int((end_s - begin_s) / period_s) + 2
    lives = [(begin_s + n * period_s, end_s + n * period_s) for n in range(2 * count)]
    rounding = 1e-9 * period_s
    return max(sum(a <= at < b - rounding for a, b in lives) for at, _ in lives)


@given(seed=SEEDS)
def test_a_queue_has_a_slot_for_each_frame_that_is_held_and_keeps_the_period(seed):
    document = random_document(random_case(seed)[0], seed)
    if document is None:
        return
    plan = plan_of(document)
    view, period_s = mapping_view(plan), plan.predicted.period_s
    slots = view.mapping.channel_slots
    assert slots == tuple(
        max(2, *(held_at_once(each.made, each.read, period_s) for each in view.users[route]))
        for route in map(route_of, view.moved)
    )
    assert fewest_slots(plan) == slots  # the verifier's own rule
    made = with_slots(plan, slots)
    assert program(made).graph.period_ps() <= picoseconds(period_s)
    simulated = simulate(made, frames=30).record.frames
    latest_s = max(each.done_s - each.admitted_s for each in simulated)
    first_s = min(at.start_s + at.lag * period_s for at in view.placements.values())
    assert latest_s <= plan.predicted.latency_s + first_s + 1e-9
    for i in (i for i, depth in enumerate(slots) if depth > 2):
        less = with_slots(plan, [depth - (j == i) for j, depth in enumerate(slots)])
        with pytest.raises(VerificationError, match=f"a queue of {slots[i] - 1}, and needs"):
            verify_plan(less)
