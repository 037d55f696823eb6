from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parapipe.solvers.coarse import map as map_coarsely
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.verify import verify

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP announces PuLP 4

ONE = ((0.0, 1.0), (1.0, 0.0))
FREE3 = ((0.0,) * 3,) * 3
solve = partial(map_coarsely, time_limit_s=60, seed=0)


def three_branches(**changes) -> MappingProblem:
    """Branches of one operator each, joined in operator 3; 1 s from one processor to the other.

    Their loads of equation (2), with the sink on processor 0, are (4, 10), (3, 6) and (2, 4).
    """
    problem = MappingProblem(
        ((4.0, 9.0), (3.0, 5.0), (2.0, 3.0), (1.0, 2.0)),
        tuple(Flow(v, (3,), ONE) for v in range(3)),
        (((0,), (1,), (2,)), 3),
    )
    return replace(problem, **changes)


def test_three_branches_on_two_processors_as_solved_by_hand() -> None:
    # all on 0: 9; {0,1|2}: 7; {0,2|1}: 6; {0|1,2}: 10; {1,2|0}: 10
    schedule = solve(three_branches())
    assert schedule.processor == (0, 1, 0, 0)
    assert schedule.certificate.proves == "L of equation (2)"
    assert schedule.certificate.objective_s == 6.0
    assert schedule.certificate.bound_s == 6.0
    assert schedule.certificate.proven
    # 1 ends at 5 and arrives at 6, when 0 and 2 have run; the sink adds a second
    assert schedule.start_s[3] == 6.0
    assert schedule.makespan_s == 7.0


def test_the_makespan_counts_what_l_leaves_out() -> None:
    # the branches' input lives on processor 0: branch 1 waits for it until 1
    flows = (*three_branches().flows, Flow(None, (0, 1, 2), ONE, 0))
    schedule = solve(three_branches(flows=flows))
    assert schedule.certificate.objective_s == 6.0
    assert schedule.start_s[1] == 1.0
    assert schedule.makespan_s == 8.0


def test_a_sink_that_is_pinned_stays_there_and_moves_the_transfers() -> None:
    # with the sink on 1 the loads are (5, 9), (4, 5), (3, 3): {0|1,2} 8, {0,2|1} 8, {0,1|2} 9,
    # {1|0,2} 12, {2|0,1} 14, {1,2|0} 9, all on 0 12, all on 1 17
    times_s = (*three_branches().time_s[:3], (inf, 2.0))
    schedule = solve(three_branches(time_s=times_s))
    assert schedule.processor[3] == 1
    assert schedule.certificate.objective_s == 8.0


def test_of_equal_l_the_shorter_replay_is_taken() -> None:
    # as above: {0|1,2} ends at max(4 + 1, 5 + 3) + 2 = 10, {0,2|1} at 4 + 2 + 1 + 2 = 9
    times_s = (*three_branches().time_s[:3], (inf, 2.0))
    schedule = solve(three_branches(time_s=times_s))
    assert schedule.processor == (0, 1, 0, 1)
    assert schedule.makespan_s == 9.0


def test_branches_of_one_processor_run_in_the_order_of_their_transfers_to_the_sink() -> None:
    # both on processor 1, sink on 0: the one with the long transfer goes first
    far = ((0.0, 5.0), (5.0, 0.0))
    problem = MappingProblem(
        ((inf, 3.0), (inf, 3.0), (1.0, inf)),
        (Flow(0, (2,), ONE), Flow(1, (2,), far)),
        (((0,), (1,)), 2),
    )
    schedule = solve(problem)
    assert schedule.start_s == (3.0, 0.0, 8.0)  # the other order starts the sink at 11


def test_a_tensor_read_twice_on_the_sinks_processor_is_sent_once() -> None:
    # operator 0's output goes to the sink 2 and to 3 behind it, both on processor 0
    problem = MappingProblem(
        ((inf, 4.0), (2.0, inf), (1.0, inf), (1.0, inf)),
        (Flow(0, (2, 3), ONE), Flow(1, (2,), ONE), Flow(2, (3,), ONE)),
        (((0,), (1,)), 2, 3),
    )
    assert solve(problem).certificate.objective_s == 5.0


def nested(times_s, location: int = 1) -> MappingProblem:
    """Branches (0) and (1, ((2), (3)), 4), joined in 5; moving a tensor takes 0.25 s.

    The tensor that 1 reads lives on `location`.
    """
    near = tuple(tuple(0.0 if p == q else 0.25 for q in range(3)) for p in range(3))
    edges = [(0, 5), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]
    return MappingProblem(
        times_s,
        (*(Flow(u, (v,), near) for u, v in edges), Flow(None, (1,), FREE3, location)),
        (((0,), (1, ((2,), (3,)), 4)), 5),
    )


def test_nested_branches_use_a_processor_that_has_no_branch() -> None:
    times_s = (
        (5.0, inf, inf),
        (inf, 1.0, 2.0),
        (inf, 4.0, 5.0),
        (inf, 4.0, 5.0),
        (inf, 1.0, 2.0),
        (1.0, inf, inf),
    )
    schedule = solve(nested(times_s))
    # the branch is whole on 1 in equation (2): 1 + 4 + 4 + 1, and its transfer to the sink
    assert schedule.certificate.objective_s == 10.25
    assert schedule.processor in ((0, 1, 1, 2, 1, 0), (0, 1, 2, 1, 1, 0))
    # 1 until 1, sent until 1.25, there until 6.25, back at 6.5, 4 until 7.5, sent until 7.75
    assert schedule.makespan_s == 8.75


def test_nested_branches_stay_where_spreading_them_gains_nothing() -> None:
    times_s = (
        (20.0, inf, inf),  # lasts longer than the other branch on one processor
        (inf, 1.0, 2.0),
        (inf, 4.0, 5.0),
        (inf, 4.0, 5.0),
        (inf, 1.0, 2.0),
        (1.0, inf, inf),
    )
    schedule = solve(nested(times_s))
    assert schedule.processor == (0, 1, 1, 1, 1, 0)
    assert schedule.makespan_s == 21.0


def test_nested_branches_that_end_in_the_outer_sink_are_spread_too() -> None:
    # the last operators of Inception-v3: a branch forks and both ends go to the outer Concat
    edges = [(0, 4), (1, 2), (1, 3), (2, 4), (3, 4)]
    problem = MappingProblem(
        ((6.0, inf, inf), (inf, 1.0, 9.0), (inf, 6.0, 6.5), (inf, 6.0, 6.5), (1.0, inf, inf)),
        tuple(Flow(u, (v,), FREE3) for u, v in edges),
        (((0,), (1, ((2,), (3,)))), 4),
    )
    schedule = solve(problem)
    assert sorted(schedule.processor[2:4]) == [1, 2]
    assert schedule.makespan_s == 8.5


def test_a_parallel_part_without_a_sink_is_balanced() -> None:
    problem = MappingProblem(((4.0, 4.0), (3.0, 3.0), (1.0, 1.0)), (), (((0,), (1,), (2,)),))
    schedule = solve(problem)
    assert schedule.certificate.objective_s == 4.0
    assert schedule.makespan_s == 4.0


def test_a_mere_chain_takes_a_shortest_path_and_proves_its_makespan() -> None:
    flows = (Flow(0, (1,), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, 9.0), (5.0, 2.0), (1.0, 9.0)), flows, (0, 1, 2))
    schedule = solve(problem)
    assert schedule.processor == (0, 1, 0)
    assert schedule.certificate.proves == "makespan"
    assert schedule.certificate.objective_s == schedule.makespan_s == 6.0
    assert schedule.certificate.proven


def test_a_series_that_is_entangled_goes_whole_on_its_fastest_processor() -> None:
    flows = (Flow(0, (1, 2), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, 2.0), (5.0, 2.0), (1.0, 2.0)), flows, (0, 1, 2))
    schedule = solve(problem)
    assert schedule.processor == (1, 1, 1)
    assert schedule.certificate.proves == "L of equation (2)"
    assert schedule.certificate.objective_s == 6.0
    assert schedule.certificate.proven


def test_an_entangled_series_that_no_processor_supports_is_split_and_not_proven() -> None:
    flows = (Flow(0, (1, 2), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, inf), (inf, 2.0), (1.0, 2.0)), flows, (0, 1, 2))
    schedule = solve(problem)
    assert schedule.processor[:2] == (0, 1)
    assert not schedule.certificate.proven
    assert schedule.certificate.bound_s == 4.0
    assert schedule.certificate.objective_s >= schedule.makespan_s


def test_operators_before_and_behind_a_parallel_part_are_placed_too() -> None:
    # 0 → (1 ∥ 2) → 3 → 4; 4 is so much faster on processor 1 that it moves there
    edges = [(0, (1, 2)), (1, (3,)), (2, (3,)), (3, (4,))]
    problem = MappingProblem(
        ((1.0, 1.0), (3.0, 9.0), (9.0, 3.0), (1.0, 2.0), (9.0, 1.0)),
        tuple(Flow(u, readers, ONE) for u, readers in edges),
        (0, ((1,), (2,)), 3, 4),
    )
    schedule = solve(problem)
    # 2 takes 3 s on processor 1 and its output 1 s to the sink; so 0 had better run there, that 2
    # starts at 1 and the sink at 5: on processor 0 it would make that 6
    assert schedule.processor == (1, 0, 1, 0, 1)
    assert schedule.certificate.objective_s == 4.0
    assert schedule.start_s == (0.0, 2.0, 1.0, 5.0, 7.0)


def test_a_branch_that_no_processor_supports_whole_is_torn_and_its_load_counts() -> None:
    # branch (0, 1) needs both processors: 2 on 0, and 3 + 1 for the sink on 1; branch (2) then
    # goes beside the lighter load: max(2 + 3, 4) = 5 on processor 0, max(2, 4 + 3 + 1) = 8 on 1
    problem = MappingProblem(
        ((2.0, inf), (inf, 3.0), (3.0, 3.0), (1.0, 4.0)),
        (Flow(0, (1,), ONE), Flow(1, (3,), ONE), Flow(2, (3,), ONE)),
        (((0, 1), (2,)), 3),
    )
    schedule = solve(problem)
    assert schedule.processor == (0, 1, 0, 0)
    assert schedule.certificate.objective_s == 5.0
    assert not schedule.certificate.proven
    assert schedule.certificate.bound_s == (2 + 3 + 3) / 2
    assert schedule.makespan_s == 8.0  # 0 until 2, sent until 3, 1 until 6, sent until 7, 3


def test_a_branch_with_an_unsupported_operator_avoids_that_processor() -> None:
    times_s = ((4.0, inf), (inf, 5.0), (2.0, 3.0), (1.0, 2.0))
    schedule = solve(three_branches(time_s=times_s))
    assert schedule.processor[:2] == (0, 1)
    assert schedule.certificate.objective_s == 6.0


def test_processors_that_may_not_be_used_stay_empty() -> None:
    times_s = tuple((inf, row[1]) for row in three_branches().time_s)
    schedule = solve(three_branches(time_s=times_s))
    assert schedule.used == {1}
    assert schedule.certificate.objective_s == schedule.makespan_s - 2.0 == 17.0


def test_operators_that_take_no_time_are_scheduled() -> None:
    times_s = ((0.0, 0.0),) * 4
    flows = tuple(Flow(v, (3,), ((0.0, 0.0), (0.0, 0.0))) for v in range(3))
    schedule = solve(three_branches(time_s=times_s, flows=flows))
    assert schedule.makespan_s == 0.0
    assert schedule.certificate.gap == 0.0


def test_a_sink_that_is_equally_fast_everywhere_goes_where_the_branches_are_fast() -> None:
    times_s = ((9.0, 4.0), (5.0, 3.0), (3.0, 2.0), (0.0, 0.0))
    assert solve(three_branches(time_s=times_s)).processor[3] == 1


@pytest.mark.parametrize("time_limit_s", [0.0, -1.0, 1e-9, 1e-3])
def test_a_time_limit_of_almost_nothing_gives_a_schedule_with_an_honest_bound(
    time_limit_s,
) -> None:
    schedule = map_coarsely(three_branches(), time_limit_s=time_limit_s, seed=0)
    assert schedule.certificate.bound_s <= 6.0 <= schedule.certificate.objective_s
    assert schedule.certificate.gap < 1


def test_costs_are_rounded_down_for_the_bound_only() -> None:
    times_s = ((4.0000007, 9.0), (3.0, 5.0), (2.0, 3.0), (1.0, 2.0))
    claim = solve(three_branches(time_s=times_s)).certificate
    assert claim.bound_s == 6.0
    assert claim.objective_s == 6.0000007
    assert claim.proven


MICRO = 1e-6


@st.composite
def transfers(draw, processors):
    cells = draw(st.lists(st.integers(0, 3_000), min_size=9, max_size=9))
    return tuple(
        tuple(0.0 if p == q else cells[3 * p + q] * MICRO for q in range(processors))
        for p in range(processors)
    )


@st.composite
def rows(draw, processors):
    time = st.sampled_from([*(us * MICRO for us in (0, 70, 800, 1_234, 2_500, 4_000)), inf])
    row = st.tuples(*[time] * processors)
    return draw(row.filter(lambda row: min(row) < inf))


@st.composite
def problems(draw):
    """Series and parallel parts nested at will, sources fed from outside, any support."""
    processors = draw(st.integers(1, 3))
    count = 0

    def new() -> int:
        nonlocal count
        count += 1
        return count - 1

    def series(depth: int, heads: tuple[int, ...]):
        """Return a series behind `heads`, and its last operators."""
        steps = []
        kinds = draw(
            st.lists(st.sampled_from("pop" if depth else "o"), min_size=depth // 2, max_size=2)
        )
        for kind in (*kinds, "o"):
            if kind == "o":
                v = new()
                edges.extend((u, v) for u in heads)
                steps.append(v)
                heads = (v,)
            else:
                built = [series(depth - 1, heads) for _ in range(draw(st.integers(2, 3)))]
                steps.append(tuple(branch for branch, _ in built))
                heads = tuple(v for _, ends in built for v in ends)
        return tuple(steps), heads

    edges: list[tuple[int, int]] = []
    structure, _ = series(2, ())
    readers: dict[int, list[int]] = {}
    for u, v in edges:
        readers.setdefault(u, []).append(v)
    flows = [Flow(u, tuple(sorted(vs)), draw(transfers(processors))) for u, vs in readers.items()]
    if draw(st.booleans()):
        location = draw(st.integers(0, processors - 1))
        flows.append(Flow(None, (0,), draw(transfers(processors)), location))
    times_s = tuple(draw(rows(processors)) for _ in range(count))
    return MappingProblem(times_s, tuple(flows), structure)


def longest_path_s(problem: MappingProblem) -> float:
    """Seconds that remain when every operator is as fast as it can be and nothing is moved."""
    ends = [0.0] * problem.operators
    for v, row in enumerate(problem.time_s):
        feeds = [f.producer for f in problem.flows if v in f.consumers and f.producer is not None]
        ends[v] = min(row) + max((ends[u] for u in feeds), default=0.0)
    return max(ends)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_every_problem_gets_a_valid_schedule_above_simple_bounds(problem) -> None:
    schedule = solve(problem)
    verify(problem, schedule)
    assert schedule.makespan_s >= longest_path_s(problem) - 1e-12
    work_s = sum(min(row) for row in problem.time_s)
    assert schedule.makespan_s >= work_s / problem.processors - 1e-12
    assert schedule.certificate.bound_s <= schedule.certificate.objective_s
    again = solve(problem)
    claim, repeated = schedule.certificate, again.certificate
    assert replace(again, certificate=claim) == schedule
    assert replace(repeated, wall_s=claim.wall_s) == claim


@st.composite
def forks(draw):
    """Branches of one to three operators, all supported everywhere, joined in one sink."""
    processors = draw(st.integers(1, 3))
    branches, count = [], 0
    for length in draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)):
        branches.append(tuple(range(count, count + length)))
        count += length
    flows = []
    for branch in branches:
        edges = zip(branch, (*branch[1:], count), strict=True)
        flows += [Flow(u, (v,), draw(transfers(processors))) for u, v in edges]
    time = st.integers(1, 9_000).map(lambda us: us * MICRO)
    times_s = draw(st.tuples(*[st.tuples(*[time] * processors)] * (count + 1)))
    return MappingProblem(times_s, tuple(flows), (tuple(branches), count))


@settings(max_examples=80, deadline=None)
@given(forks())
def test_l_of_equation_2_equals_brute_force_over_all_assignments(problem) -> None:
    branches, sink = problem.structure
    location = min(range(problem.processors), key=lambda p: problem.time_s[sink][p])
    sent = {flow.producer: flow.transfer_s for flow in problem.flows if flow.consumers == (sink,)}

    def heaviest_s(chosen) -> float:
        loads = [0.0] * problem.processors
        for branch, p in zip(branches, chosen, strict=True):
            loads[p] += sum(problem.time_s[v][p] for v in branch) + sent[branch[-1]][p][location]
        return max(loads)

    choices = product(range(problem.processors), repeat=len(branches))
    least_s = min(heaviest_s(chosen) for chosen in choices)
    schedule = solve(problem)
    answer = [schedule.processor[branch[0]] for branch in branches]
    assert schedule.processor[sink] in [
        p for p in range(problem.processors) if problem.time_s[sink][p] == min(problem.time_s[sink])
    ]
    if schedule.processor[sink] == location:
        assert schedule.certificate.objective_s == pytest.approx(least_s, abs=1e-12)
        assert heaviest_s(answer) == pytest.approx(least_s, abs=1e-12)
    assert schedule.certificate.proven
    assert all(len({schedule.processor[v] for v in branch}) == 1 for branch in branches)
