"""The mapper `streams`, by hand, and on problems of any shape."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings

from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.streams import map as streams
from parapipe.solvers.verify import verify
from tests.cases.random_dags import dags


def at_once(processors):
    return ((0.0,) * processors,) * processors


def branches(*times_s, alike=2, branch=2):
    """Return an operator, three branches and their join: on processors alike, then on others."""
    rows = tuple(
        (time_s,) * alike + tuple(times_s[1:]) for time_s in [times_s[0]] * (2 + 3 * branch)
    )
    last = len(rows) - 1
    flows = [Flow(0, tuple(1 + b * branch for b in range(3)), at_once(len(rows[0])))]
    for b in range(3):
        ends = [1 + b * branch + i for i in range(branch)] + [last]
        flows += [Flow(u, (v,), at_once(len(rows[0]))) for u, v in pairwise(ends)]
    return MappingProblem(rows, tuple(flows), tuple(range(len(rows))))


def solved(problem):
    return streams(problem, time_limit_s=1.0, seed=0)


def test_three_branches_on_two_streams_end_as_by_hand():
    # one operator, six on two streams, and the join: no schedule is shorter
    schedule = solved(branches(1.0))
    assert schedule.makespan_s == 5.0
    assert sorted(set(schedule.processor)) == [0, 1]
    verify(branches(1.0), schedule)


def test_a_chain_gains_nothing():
    rows = ((1.0, 1.0),) * 6
    flows = tuple(Flow(v, (v + 1,), ((0.0, 0.1), (0.1, 0.0))) for v in range(5))
    schedule = solved(MappingProblem(rows, flows, tuple(range(6))))
    assert schedule.makespan_s == 6.0
    assert len(schedule.used) == 1


def test_of_processors_of_two_kinds_those_of_the_kind_that_ends_first_are_streams():
    slow, fast = branches(1.0, 4.0), branches(1.0, 0.1)
    assert solved(slow).used == {0, 1}
    assert solved(fast).used == {2}


def test_an_operator_that_the_streams_do_not_support_goes_where_it_is_fastest():
    rows = ((1.0, 1.0, inf, inf), (inf, inf, 3.0, 2.0), (1.0, 1.0, inf, inf))
    flows = tuple(Flow(v, (v + 1,), at_once(4)) for v in range(2))
    schedule = solved(MappingProblem(rows, flows, (0, 1, 2)))
    assert schedule.processor[1] == 3
    assert schedule.makespan_s == pytest.approx(4.0)


@given(dags())
@settings(max_examples=60, deadline=None)
def test_every_schedule_keeps_the_rules(problem):
    verify(problem, solved(problem))
