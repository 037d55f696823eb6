from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings

from parapipe.reference_mappers.layer_switched import map as switch
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.verify import verify
from tests.cases.random_dags import dags, placements
from tests.cases.topcuoglu import UNIT_S, ten_tasks

ONE = ((0.0, 1.0), (1.0, 0.0))
FAR = ((0.0, 9.0), (9.0, 0.0))


def sequence(problem, processor):
    """Start and end of operators that run one at a time in the problem's order."""
    starts_s, ends_s = [], []
    for v, p in enumerate(processor):
        start_s = ends_s[-1] if ends_s else 0.0
        for flow in problem.flows:
            if v in flow.consumers:
                u = flow.producer
                made_s, source = (0.0, flow.location) if u is None else (ends_s[u], processor[u])
                start_s = max(start_s, made_s + flow.transfer_s[source][p])
        starts_s.append(start_s)
        ends_s.append(start_s + problem.time_s[v][p])
    return tuple(starts_s), tuple(ends_s)


def test_a_chain_takes_the_detour_that_pays_its_transfers() -> None:
    # operator 1: 5 s here, or 1 + 2 + 1 there and back
    flows = (Flow(0, (1,), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, 9.0), (5.0, 2.0), (1.0, 9.0)), flows, (0, 1, 2))
    schedule = switch(problem, time_limit_s=1.0, seed=0)
    assert schedule.processor == (0, 1, 0)
    assert schedule.start_s == (0.0, 2.0, 5.0)
    assert schedule.certificate.proven
    assert schedule.certificate.objective_s == schedule.makespan_s == 6.0


def test_operators_do_not_overlap_even_where_they_could() -> None:
    problem = MappingProblem(((2.0, 9.0), (9.0, 2.0)), (), (((0,), (1,)),))
    schedule = switch(problem, time_limit_s=1.0, seed=0)
    assert schedule.processor == (0, 1)
    assert schedule.start_s == (0.0, 2.0)
    assert schedule.certificate.proves == "makespan of operators run one at a time"
    assert schedule.certificate.proven


def test_a_transfer_that_is_hidden_behind_other_operators_costs_nothing() -> None:
    # 0's output goes to 2 on the other processor while 1 runs
    times_s = ((1.0, inf), (3.0, inf), (inf, 1.0))
    two_late = ((0.0, 5.0), (5.0, 0.0))
    problem = MappingProblem(times_s, (Flow(0, (2,), ONE),), (0, 1, 2))
    assert switch(problem, time_limit_s=1.0, seed=0).makespan_s == 5.0
    # of a transfer of 5 s the sequence waits for the last two
    late = replace(problem, flows=(Flow(0, (2,), two_late),))
    assert switch(late, time_limit_s=1.0, seed=0).makespan_s == 7.0


def test_readers_on_one_processor_share_a_transfer() -> None:
    problem = MappingProblem(
        ((1.0, inf), (inf, 1.0), (inf, 1.0)), (Flow(0, (1, 2), ONE),), (0, ((1,), (2,)))
    )
    assert switch(problem, time_limit_s=1.0, seed=0).start_s == (0.0, 2.0, 3.0)


def test_a_tensor_from_outside_is_waited_for_where_the_operator_runs() -> None:
    problem = MappingProblem(((4.0, 1.0),), (Flow(None, (0,), ONE, 0),), (0,))
    schedule = switch(problem, time_limit_s=1.0, seed=0)
    assert (schedule.processor, schedule.start_s) == ((1,), (1.0,))
    far = replace(problem, flows=(Flow(None, (0,), FAR, 0),))
    assert switch(far, time_limit_s=1.0, seed=0).processor == (0,)


def test_one_operator_can_be_slower_where_it_is_if_a_later_one_gains() -> None:
    # 0 is faster on processor 0, but its late reader 2 is on processor 1, 9 s away
    problem = MappingProblem(((1.0, 2.0), (1.0, inf), (inf, 1.0)), (Flow(0, (2,), FAR),), (0, 1, 2))
    schedule = switch(problem, time_limit_s=1.0, seed=0)
    assert schedule.processor == (1, 0, 1)
    assert schedule.makespan_s == 4.0


def test_the_ten_tasks_in_sequence_end_before_any_processor_has_run_them_alone() -> None:
    schedule = switch(ten_tasks(), time_limit_s=60.0, seed=0)
    assert schedule.certificate.proven
    # the processors alone take 127, 130 and 143; the least times add up to 91
    assert 91 * UNIT_S < schedule.makespan_s < 127 * UNIT_S


@settings(max_examples=150, deadline=None)
@given(dags(most_operators=6))
def test_it_is_the_best_of_all_placements_in_sequence(problem) -> None:
    schedule = switch(problem, time_limit_s=60.0, seed=0)
    verify(problem, schedule)
    best_s = min(sequence(problem, chosen)[1][-1] for chosen in placements(problem))
    assert schedule.makespan_s == pytest.approx(best_s, rel=1e-12)
    assert schedule.certificate.proven
    assert (schedule.start_s, schedule.end_s) == sequence(problem, schedule.processor)
    spans = zip(schedule.start_s, schedule.end_s, strict=True)
    assert all(end_s <= start_s for (_, end_s), (start_s, _) in pairwise(spans))


def crossed(width: int) -> MappingProblem:
    """Chains that take turns, with transfers that cannot be hidden: many labels differ."""
    operators = 4 * width
    flows = []
    for v in range(operators - width):
        moved_s = 4.0 + v % 3
        flows.append(Flow(v, (v + width,), ((0.0, moved_s), (moved_s + 1, 0.0))))
    rows = tuple((1.0 + v % 2, 2.0 - v % 2 + 0.25 * (v % 3)) for v in range(operators))
    return MappingProblem(rows, tuple(flows), tuple(range(operators)))


@pytest.mark.parametrize("time_limit_s", [-1.0, 0.0, 1e-9])
def test_without_time_there_is_a_schedule_with_a_bound_that_is_not_taken_for_a_proof(
    time_limit_s,
) -> None:
    proof = switch(crossed(3), time_limit_s=60.0, seed=0)
    assert proof.certificate.proven
    hasty = switch(crossed(3), time_limit_s=time_limit_s, seed=0)
    assert 0 < hasty.certificate.bound_s <= proof.makespan_s <= hasty.makespan_s
    assert not hasty.certificate.proven
    assert hasty.certificate.gap > 0


def test_the_same_problem_gets_the_same_schedule() -> None:
    schedules = [switch(crossed(4), time_limit_s=60.0, seed=seed) for seed in (0, 1)]
    assert schedules[0].processor == schedules[1].processor
    assert schedules[0].certificate.bound_s == schedules[1].certificate.bound_s


def test_operators_that_no_processor_supports_together_are_switched() -> None:
    problem = MappingProblem(((1.0, inf), (inf, 2.0)), (Flow(0, (1,), ONE),), (0, 1))
    schedule = switch(problem, time_limit_s=1.0, seed=0)
    assert schedule.processor == (0, 1)
    assert schedule.makespan_s == 4.0
