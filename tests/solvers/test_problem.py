from __future__ import annotations

from math import inf, nan

import pytest

from parapipe.errors import MappingError
from parapipe.solvers.problem import Flow, MappingProblem, operators_of

FREE = ((0.0, 0.0), (0.0, 0.0))


def test_all_operators_that_can_run_nowhere_are_named() -> None:
    with pytest.raises(MappingError, match=r"operators \[0, 2\] can run on no processor"):
        MappingProblem(((inf, inf), (1.0, inf), (inf, inf)), (), (0, 1, 2))


@pytest.mark.parametrize(
    ("times_s", "flows", "structure", "message"),
    [
        ((), (), (), "at least one operator"),
        (((1.0, 1.0), (1.0,)), (), (0, 1), "operator 1 has 1 times for 2 processors"),
        (((-1.0, 1.0),), (), (0,), "operator 0 has a negative time"),
        (((nan, 1.0),), (), (0,), "operator 0 has a negative time or one that is not a number"),
        (((1.0, 1.0),), (), (0, 0), "every operator exactly once"),
        (((1.0, 1.0),) * 2, (Flow(1, (0,), FREE),), (0, 1), "operator 1 is read before it runs"),
        (((1.0, 1.0),) * 2, (Flow(0, (2,), FREE),), (0, 1), "and there are 2"),
        (((1.0, 1.0),), (Flow(None, (0,), FREE, 2),), (0,), "from processor 2 of 2"),
        (((1.0, 1.0),), (Flow(None, (0,), ((0.0,),), 0),), (0,), "from every processor to every"),
        (
            ((1.0, 1.0),),
            (Flow(None, (0,), ((0.0, inf), (0.0, 0.0)), 0),),
            (0,),
            "negative, infinite or not a number",
        ),
        (
            ((1.0, 1.0),),
            (Flow(None, (0,), ((0.5, 0.0), (0.0, 0.0)), 0),),
            (0,),
            "within one processor must take no time",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(times_s, flows, structure, message) -> None:
    with pytest.raises(ValueError, match=message):
        MappingProblem(times_s, flows, structure)


@pytest.mark.parametrize(("producer", "location"), [(None, None), (0, 0)])
def test_a_flow_has_either_a_producer_or_a_location(producer, location) -> None:
    with pytest.raises(ValueError, match="either a producer or a location"):
        Flow(producer, (1,), FREE, location)


@pytest.mark.parametrize(
    ("transfer_resource", "message"),
    [
        (((None, 0),), "from every processor to every processor"),
        (((None, -1), (1, None)), "from processor 0 to 1 cannot keep -1 busy"),
        (((0, None), (None, None)), "from processor 0 to 0 cannot keep 0 busy"),
    ],
)
def test_a_transfer_resource_that_makes_no_sense_is_refused(transfer_resource, message) -> None:
    with pytest.raises(ValueError, match=message):
        MappingProblem(((1.0, 1.0),), (), (0,), transfer_resource)


def test_a_transfer_keeps_no_third_processor_busy() -> None:
    transfer_resource = ((None, 2, None), (None, None, None), (None, None, None))
    with pytest.raises(ValueError, match="cannot keep 2 busy: name either end, or a link by a num"):
        MappingProblem(((1.0, 1.0, 1.0),), (), (0,), transfer_resource)


def test_links_are_counted_behind_the_processors() -> None:
    alone = MappingProblem(((1.0, 1.0),), (), (0,))
    linked = MappingProblem(((1.0, 1.0),), (), (0,), ((None, 3), (1, None)))
    assert (alone.resources, linked.resources) == (2, 4)
    assert (linked.resource_of(0, 1), linked.resource_of(1, 0), linked.resource_of(0, 0)) == (
        3,
        1,
        None,
    )


def test_operators_of_a_series_are_listed_through_all_nesting() -> None:
    assert operators_of((0, ((1, ((2,), (3,)), 4), (5,)), 6)) == (0, 1, 2, 3, 4, 5, 6)
