"""What placed operators hand over, and how the mapping of it is numbered."""

from parapipe.mappings.assembly import HandOver, assemble, hand_overs_of
from parapipe.mappings.mapping import Edge, Placement, Transfer
from tests.cases.plan_cases import Costs, graph_of, operator

# a is read on its own processor, twice on processor 2 and once on processor 1
GRAPH = graph_of(
    [
        operator("a", "x"),
        operator("b", "a"),
        operator("c", "a"),
        operator("d", "a"),
        operator("e", "a b"),
    ],
    inputs=["x"],
    outputs=["c", "d", "e"],
)
COSTS = Costs([[1.0] * 3] * 5, {("a", 0, 2): 0.5, ("a", 0, 1): 0.25})
PLACEMENTS = {
    v: Placement(v, p, 0.0, 1.0, lag)
    for v, (p, lag) in enumerate([(0, 0), (0, 0), (2, 3), (1, 1), (2, 2)])
}
TO_TWO = Transfer("a", 0, 0, 2, 2, 0.5)
TO_ONE = Transfer("a", 0, 0, 1, 1, 0.25)
BACK = Transfer("b", 1, 0, 2, 2, 0.25)


def test_a_tensor_goes_to_each_processor_once_for_the_earliest_of_its_readers():
    found = [*hand_overs_of(PLACEMENTS, GRAPH, COSTS, {})]
    assert [each.transfers for each in found] == [[TO_TWO, TO_ONE], [BACK], [], [], []]
    assert [each.readers for each in found[:2]] == [(1, 2, 3, 4), (4,)]


def test_a_transfer_that_keeps_something_busy_stands_in_for_the_delay():
    busy = Transfer("a", 0, 0, 1, 1, 0.25, 0, 1.0, 1.25)
    first, *_ = hand_overs_of(PLACEMENTS, GRAPH, COSTS, {("a", 1): busy})
    assert first.transfers == [TO_TWO, busy]


def test_readers_of_each_hand_over_know_the_number_of_its_transfer():
    made = assemble(
        PLACEMENTS,
        [HandOver(0, (1, 2, 3), (TO_TWO, TO_ONE)), HandOver(0, (4,), (TO_TWO,))],
        period_s=2.0,
    )
    assert (made.placements, made.period_s) == (tuple(PLACEMENTS.values()), 2.0)
    assert made.transfers == (TO_TWO, TO_ONE, TO_TWO)
    assert made.edges == (Edge(0, 1), Edge(0, 2, 0), Edge(0, 3, 1), Edge(0, 4, 2))
