"""The noun for a whole mapping: what is derived from it, on mappings written by hand."""

from __future__ import annotations

import pytest

from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.event_graph import sustained_period_s
from parapipe.mappings.mapping import Edge, Mapping, Placement, Transfer, channel_depth, kind_of
from tests.cases.plan_cases import Costs, graph_of, mapping_of, operator

CHAIN = graph_of(
    [operator("a", "x"), operator("b", "a"), operator("c", "b")], inputs=["x"], outputs=["c"]
)
# a takes 2 s on processor 0, b 1 s on processor 1, c 1 s on processor 0; each transfer 0.5 s
COSTS = Costs(
    [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]], {("a", 0, 1): 0.5, ("b", 1, 0): 0.5, ("b", 1, 1): 0.0}
)


def interleaved():
    """Processor 0 runs a of one frame, then c of the frame before; b ends in the next period.

    processor 0:  a a c | a a c          c starts at 5 s: 2 s into the period, one frame later
    processor 1:  b . . b | b . . b      b from 2.5 to 3.5 s
    """
    placements = [
        Placement(0, 0, 0.0, 2.0, 0),
        Placement(1, 1, 2.5, 3.5, 0),
        Placement(2, 0, 2.0, 3.0, 1),
    ]
    return mapping_of(CHAIN, COSTS, placements, period_s=3.0)


def two_stages():
    placements = [
        Placement(0, 0, 0.0, 2.0, 0),
        Placement(1, 1, 0.5, 1.5, 1),
        Placement(2, 1, 1.5, 2.5, 1),
    ]
    return mapping_of(CHAIN, COSTS, placements)


def test_stages_are_what_has_one_lag():
    first, second = two_stages().stages
    assert (first.lag, first.processors, first.time_s, first.shared) == (0, (0,), 2.0, False)
    assert (second.lag, second.processors, second.time_s, second.shared) == (1, (1,), 2.5, False)
    assert [moved.tensor for moved in second.transfers] == ["a"]


@pytest.mark.parametrize(
    ("widths", "kind"),
    [([1], "sequential"), ([2], "para-only"), ([1, 1], "pipe-only"), ([1, 2], "hybrid")],
)
def test_the_kind_follows_from_how_many_processors_each_stage_uses(widths, kind):
    assert kind_of(widths) == kind


def test_a_processor_that_serves_several_lags_makes_the_mapping_interleaved():
    assert interleaved().kind == "interleaved"
    assert two_stages().kind == "pipe-only"


def test_operators_of_different_frames_take_turns_in_one_order_for_each_processor():
    mapping = interleaved()
    assert [(at.operator, at.lag) for at in mapping.orders[0]] == [(0, 0), (2, 1)]
    assert mapping.lags == {0: (0, 1), 1: (0,)}
    assert [stage.shared for stage in mapping.stages] == [True, True]


def test_stages_on_which_no_processors_take_turns_stay_the_same_mapping():
    mapping = two_stages()
    assert mapping.with_replicas([]) is mapping


def test_stages_that_share_processors_form_one_group():
    assert [len(group) for group in interleaved().groups] == [2]
    assert [len(group) for group in two_stages().groups] == [1, 1]


def test_stages_between_two_that_share_a_processor_belong_to_their_group():
    placements = [Placement(v, v % 2, 0.0, 1.0, v) for v in range(3)]
    mapping = Mapping((*placements, Placement(3, 2, 0.0, 1.0, 3)))
    assert [[stage.lag for stage in group] for group in mapping.groups] == [[0, 1, 2], [3]]


def test_an_operator_may_end_in_the_next_period_and_its_input_is_held_for_longer():
    mapping = interleaved()
    assert [mapping.at[v].end_s > mapping.period_s for v in range(3)] == [False, True, False]
    assert mapping.slots(Edge(0, 1)) == channel_depth(0, 1) == 2
    late = Mapping((Placement(0, 0, 0.0, 1.0, 0), Placement(1, 1, 2.5, 3.5, 1)), period_s=3.0)
    assert late.slots(Edge(0, 1)) == 3


def test_interleaved_frames_are_evaluated_by_their_period():
    found = evaluate(interleaved(), CHAIN, COSTS)
    assert found.period_s == 3.0
    # a starts at 0 s; c ends 3 s into the period after
    assert found.latency_s == 6.0
    assert found.sustained_period_s == 3.0  # processor 0 works all the time
    # 2 J a second of work, and 0.5 W of each of the two processors
    assert found.energy_j == pytest.approx(2 * 4.0 + 3.0 * 2 * 0.5)
    assert found.board_energy_j == pytest.approx(found.energy_j + 3.0 * 0.25)


def test_plain_stages_are_evaluated_by_the_longest():
    found = evaluate(two_stages(), CHAIN, COSTS)
    assert (found.latency_s, found.period_s, found.longest_stage_s) == (4.5, 2.5, 2.5)
    assert found.sustained_period_s == 2.0  # the transfer is hidden


def test_stages_that_share_a_processor_take_what_it_works_for_all_of_them():
    # 2 s, then 1 s elsewhere, then 1 s on the first processor again
    placements = [
        Placement(0, 0, 0.0, 2.0, 0),
        Placement(1, 1, 0.5, 1.5, 1),
        Placement(2, 0, 0.5, 1.5, 2),
    ]
    found = evaluate(mapping_of(CHAIN, COSTS, placements), CHAIN, COSTS)
    assert found.latency_s == 2.0 + 1.5 + 1.5
    assert found.longest_stage_s == 2.0
    assert found.period_s == 2.0 + 1.5
    assert found.sustained_period_s == 3.0


def test_a_transfer_that_keeps_a_processor_busy_counts_in_the_sustained_period():
    placements = (Placement(0, 0, 0.0, 2.0, 0), Placement(1, 1, 1.0, 2.0, 1))
    delay = Transfer("a", 0, 0, 1, 1, 1.0)
    busy = Transfer("a", 0, 0, 1, 1, 1.0, resource=0, start_s=0.0, end_s=1.0)
    edge = (Edge(0, 1, 0),)
    assert sustained_period_s(Mapping(placements, (delay,), edge)) == 2.0
    assert sustained_period_s(Mapping(placements, (busy,), edge)) == 3.0
