from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers import registry
from parapipe.solvers.chain import is_chain, only_schedule, place_run
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay
from parapipe.solvers.verify import verify
from tests.cases.occupying_cases import any_problem

ONE = ((0.0, 1.0), (1.0, 0.0))


def test_operators_that_each_read_only_their_predecessor_are_a_chain() -> None:
    flows = (Flow(0, (1,), ONE), Flow(1, (2,), ONE))
    assert is_chain(MappingProblem(((1.0, 1.0),) * 3, flows, (0, 1, 2)), (0, 1, 2))


def test_operators_that_read_further_back_are_no_chain() -> None:
    flows = (Flow(0, (1, 2), ONE), Flow(1, (2,), ONE))
    assert not is_chain(MappingProblem(((1.0, 1.0),) * 3, flows, (0, 1, 2)), (0, 1, 2))


def test_operators_that_do_not_read_each_other_are_no_chain() -> None:
    assert not is_chain(MappingProblem(((1.0, 1.0),) * 2, (), (0, 1)), (0, 1))


def test_a_detour_over_the_faster_processor_is_taken_if_it_pays_its_transfers() -> None:
    # operator 1: 5 s here, or 1 + 2 + 1 there and back
    flows = (Flow(0, (1,), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, 9.0), (5.0, 2.0), (1.0, 9.0)), flows, (0, 1, 2))
    run = place_run(problem, (0, 1, 2), {})[0]
    assert (run.processor, run.end_s) == ((0, 1, 0), 6.0)


def test_there_is_a_run_for_each_processor_of_the_last_operator() -> None:
    problem = MappingProblem(((2.0, 3.5), (1.0, 1.5)), (Flow(0, (1,), ONE),), (0, 1))
    runs = place_run(problem, (0, 1), {})
    assert [(run.processor, run.end_s) for run in runs] == [((0, 0), 3.0), ((0, 1), 4.5)]


def test_it_is_not_taken_if_it_does_not() -> None:
    flows = (Flow(0, (1,), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, 9.0), (5.0, 3.5), (1.0, 9.0)), flows, (0, 1, 2))
    run = place_run(problem, (0, 1, 2), {})[0]
    assert (run.processor, run.end_s) == ((0, 0, 0), 7.0)


def test_the_last_operator_goes_where_its_placed_readers_get_it_soonest() -> None:
    far = ((0.0, 5.0), (5.0, 0.0))
    problem = MappingProblem(((2.0, 3.0), (1.0, 1.0)), (Flow(0, (1,), far),), (0, 1))
    assert place_run(problem, (0,), {})[0].processor == (0,)
    assert place_run(problem, (0,), {1: 1})[0].processor == (1,)


def test_an_operator_placed_before_stays_where_it_is() -> None:
    problem = MappingProblem(((2.0, 3.0), (1.0, 1.0)), (Flow(0, (1,), ONE),), (0, 1))
    assert place_run(problem, (0, 1), {0: 1})[0].processor == (1, 1)


@st.composite
def chains(draw):
    processors = draw(st.integers(1, 3))
    length = draw(st.integers(1, 4))
    time = st.one_of(st.just(inf), st.integers(0, 9).map(float))
    row = st.tuples(*[time] * processors).filter(lambda row: min(row) < inf)

    def matrix():
        cells = draw(st.lists(st.integers(0, 6), min_size=9, max_size=9))
        return tuple(
            tuple(0.0 if p == q else float(cells[3 * p + q]) for q in range(processors))
            for p in range(processors)
        )

    flows = [Flow(v, (v + 1,), matrix()) for v in range(length - 1)]
    location = st.integers(0, processors - 1)
    readers = draw(st.sets(st.integers(0, length - 1)))
    flows += [Flow(None, (v,), matrix(), draw(location)) for v in sorted(readers)]
    rows = draw(st.tuples(*[row] * length))
    return MappingProblem(rows, tuple(flows), tuple(range(length)))


@settings(max_examples=150, deadline=None)
@given(chains())
def test_the_end_of_a_chain_is_the_earliest_of_all_placements(problem) -> None:
    run = tuple(range(problem.operators))
    supported = [[p for p, t in enumerate(row) if t < inf] for row in problem.time_s]
    least_s = min(replay(problem, chosen, run).end_s[-1] for chosen in product(*supported))
    found = place_run(problem, run, {})[0]
    assert found.end_s == least_s
    assert replay(problem, found.processor, run).end_s[-1] == least_s


def on_one(problem, processor):
    """The problem with one processor for all operators; None where it runs not all of them."""
    rows = tuple(
        tuple(t if p == processor else inf for p, t in enumerate(row)) for row in problem.time_s
    )
    return None if any(min(row) == inf for row in rows) else replace(problem, time_s=rows)


@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(0, 2))
def test_what_a_chain_on_one_processor_takes_is_what_every_mapper_answers(problem, processor):
    if processor >= problem.processors or (problem := on_one(problem, processor)) is None:
        return
    found = only_schedule(problem, 7)
    verify(problem, found)
    assert found.certificate.proven
    for name in registry.MAPPERS.names():
        answer = registry.mapper(name)(problem, time_limit_s=10, seed=7)
        assert answer.makespan_s == pytest.approx(found.makespan_s, abs=1e-9), name
        assert found.certificate.bound_s <= answer.makespan_s + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_a_single_operator_starts_when_its_last_transfer_has_ended(seed) -> None:
    problem = any_problem(seed)
    outside = tuple(
        replace(flow, consumers=(0,), producer=None, location=flow.location or 0)
        for flow in problem.flows[:3]
    )
    for p, time_s in enumerate(problem.time_s[0]):
        if time_s == inf:
            continue
        row = tuple(t if q == p else inf for q, t in enumerate(problem.time_s[0]))
        single = replace(problem, time_s=(row,), flows=outside, structure=(0,))
        found = only_schedule(single, 0)
        verify(single, found)
        best = registry.mapper("fine")(single, time_limit_s=10, seed=0)
        assert found.makespan_s == pytest.approx(best.makespan_s)


def test_a_choice_of_processors_or_branches_is_left_to_mappers() -> None:
    assert only_schedule(MappingProblem(((1.0, 2.0),), (), (0,)), 0) is None
    assert only_schedule(MappingProblem(((1.0, inf), (inf, 1.0)), (), (0, 1)), 0) is None
    assert only_schedule(MappingProblem(((1.0,), (1.0,)), (), (0, 1)), 0) is None
