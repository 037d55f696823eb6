"""What is made again under a limit of memory: solved by hand, and by trying all rows of runs."""

from __future__ import annotations

from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.memory.least_memory import peak_of_runs, recompute, working_set_bytes
from parapipe.solvers.memory.orders import OrderProblem, order_by
from tests.solvers.memory.test_orders import problem_of, problems

# A large tensor of operator 1, cheap to make from a small one, that 2 and 4 read.
SKIP = problem_of(5, (1, 0, {1}), (10, 1, {2, 4}), (1, 2, {3}), (10, 3, {4}), (1, 4, set()))
LONG = problem_of(
    6, (1, 0, {1}), (10, 1, {2, 5}), (1, 2, {3}), (15, 3, {4}), (1, 4, {5}), (1, 5, set())
)


def test_a_cheap_tensor_with_a_far_reader_is_made_again():
    assert peak_of_runs(LONG, range(6)) == 10 + 1 + 15
    found = recompute(LONG, range(6), [5, 2, 3, 4, 1, 1], 20)
    assert found.runs == (0, 1, 2, 3, 4, 1, 5)
    assert found.cost == found.bound == 16 + 2
    assert found.peak_bytes == 1 + 15 + 1  # beside 2's and 4's tensors, that of 0
    assert found.proven


def test_nothing_is_made_again_where_all_fits():
    found = recompute(LONG, range(6), [5, 2, 3, 4, 1, 1], 26)
    assert (found.runs, found.cost, found.peak_bytes) == ((0, 1, 2, 3, 4, 5), 16, 26)


def test_below_what_one_operator_reads_and_makes_nothing_helps():
    assert working_set_bytes(SKIP) == 10 + 10 + 1
    found = recompute(SKIP, range(5), [1] * 5, 20)
    assert (found.runs, found.bound, found.proven) == ((), None, True)


def test_a_row_that_leaves_an_operator_out_is_refused():
    with pytest.raises(ValueError, match="every operator has to run"):
        peak_of_runs(SKIP, range(4))


def test_a_row_in_a_wrong_order_is_refused():
    with pytest.raises(ValueError, match="operator 2 runs before one that it waits for"):
        peak_of_runs(SKIP, (0, 2, 1, 3, 4))


@given(problems())
def test_without_repetition_the_peak_is_that_of_the_order(problem):
    # What is there and never read counts from the start in an order, and is dropped in a row.
    tensors = (t for t in problem.tensors if t.maker is not None or t.readers or t.kept)
    problem = OrderProblem(problem.operators, tuple(tensors))
    order = order_by(problem, lambda _state, v: v)
    assert peak_of_runs(problem, order) == problem.peak_bytes(order)


def least_cost(problem: OrderProblem, costs: list[int], most_bytes: int) -> int | None:
    """Shortest way over all choices of what is alive and what runs, slot by slot."""
    slots = [u for v in range(problem.operators) for u in (*range(v), v)]
    first = {sum(range(v + 1)) + v for v in range(problem.operators)}
    there = frozenset(t for t, each in enumerate(problem.tensors) if each.maker is None)
    kept = {t for t, each in enumerate(problem.tensors) if each.kept}
    heap = [(0, 0, sorted(there))]
    seen = set()
    while heap:
        cost, at, listed = heappop(heap)
        alive = frozenset(listed)
        if (at, alive) in seen:
            continue
        seen.add((at, alive))
        if at == len(slots):
            if kept <= alive:
                return cost
            continue
        v = slots[at]
        rest = [t for t in listed if t not in problem.reads[v]]
        if alive.issuperset(problem.reads[v]):
            for dropped in range(1 << len(rest)):
                now = alive - {t for i, t in enumerate(rest) if dropped >> i & 1}
                now |= set(problem.makes[v])
                if sum(problem.tensors[t].size_bytes for t in now) <= most_bytes:
                    heappush(heap, (cost + costs[v], at + 1, sorted(now)))
        if at not in first:
            heappush(heap, (cost, at + 1, listed))
    return None


@settings(max_examples=60)
@given(st.data(), problems(most=4))
def test_the_cost_is_that_of_trying_all_rows(data, problem):
    costs = [data.draw(st.integers(1, 9)) for _ in range(problem.operators)]
    peak = problem.peak_bytes(range(problem.operators))
    most_bytes = data.draw(st.integers(working_set_bytes(problem), peak))
    found = recompute(problem, range(problem.operators), costs, most_bytes)
    least = least_cost(problem, costs, most_bytes)
    assert found.proven
    assert found.bound == least
    if least is not None:
        assert found.cost == least
        assert found.peak_bytes == peak_of_runs(problem, found.runs) <= most_bytes
