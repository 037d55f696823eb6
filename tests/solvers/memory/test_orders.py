"""Least-memory orders: solved by hand, by trying all orders, and on trees by Liu's algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.memory.least_memory import MOST_STATES, least_order
from parapipe.solvers.memory.orders import PRIORITIES, LiveTensor, OrderProblem, order_by


def problem_of(operators: int, *tensors: tuple[int, int | None, set[int]]) -> OrderProblem:
    return OrderProblem(
        operators, tuple(LiveTensor(size, maker, frozenset(to)) for size, maker, to in tensors)
    )


# Two branches from 0 to 5, each of a tensor of 10 bytes that shrinks to one.
BRANCHES = problem_of(
    6, (1, 0, {1, 2}), (10, 1, {3}), (10, 2, {4}), (1, 3, {5}), (1, 4, {5}), (1, 5, set())
)


def test_one_branch_goes_behind_the_other():
    found = least_order(BRANCHES)
    assert found.peak_bytes == found.bound_bytes == 12  # 1 of the root, 10, and 1 of the branch
    assert BRANCHES.peak_bytes(found.order) == 12
    assert found.proven
    assert found.gap == 0


def test_breadth_first_keeps_all_branches_and_depth_first_does_not():
    breadth = order_by(BRANCHES, PRIORITIES["breadth-first"])
    depth = order_by(BRANCHES, PRIORITIES["depth-first"])
    assert breadth == [0, 1, 2, 3, 4, 5]
    assert depth == [0, 1, 3, 2, 4, 5]
    assert (BRANCHES.peak_bytes(breadth), BRANCHES.peak_bytes(depth)) == (21, 12)


def test_the_longest_path_goes_first():
    problem = problem_of(4, (1, 0, {3}), (1, 1, {2}), (1, 2, {3}), (1, 3, set()))
    assert order_by(problem, PRIORITIES["longest path"]) == [1, 0, 2, 3]


def test_what_releases_most_goes_first():
    problem = problem_of(4, (1, 0, set()), (1, 1, {2, 3}))
    assert order_by(problem, PRIORITIES["most released"]) == [1, 0, 2, 3]


def test_what_frees_bytes_goes_first():
    problem = problem_of(2, (9, None, {1}), (5, 0, set()), (1, 1, set()))
    assert order_by(problem, PRIORITIES["bytes freed"]) == [1, 0]


def test_a_kept_tensor_stays_to_the_end():
    tensors = (LiveTensor(5, 0, frozenset({1}), kept=True), LiveTensor(3, 1, frozenset({2})))
    problem = OrderProblem(3, (*tensors, LiveTensor(4, 2, frozenset())))
    assert problem.peak_bytes([0, 1, 2]) == least_order(problem).peak_bytes == 5 + 3 + 4


def test_operators_that_wait_for_each_other_are_refused():
    with pytest.raises(ValueError, match="wait for each other"):
        problem_of(2, (1, 0, {1}), (1, 1, {0}))


def test_no_operators_need_what_is_there():
    found = least_order(OrderProblem(0, (LiveTensor(7, None, frozenset(), kept=True),)))
    assert (found.order, found.peak_bytes, found.bound_bytes) == ((), 7, 7)


@st.composite
def problems(draw: st.DrawFn, most: int = 6) -> OrderProblem:
    """Problems whose operators read tensors of lower ones, and some that are there before all."""
    operators = draw(st.integers(1, most))
    sizes = st.integers(0, 9)
    tensors = []
    for maker in (None, *range(operators), *draw(st.sets(st.integers(0, operators - 1)))):
        later = range(0 if maker is None else maker + 1, operators)
        readers = draw(st.sets(st.sampled_from(later), max_size=3)) if later else set()
        tensors.append(LiveTensor(draw(sizes), maker, frozenset(readers), draw(st.booleans())))
    return OrderProblem(operators, tuple(tensors))


def all_orders(problem: OrderProblem) -> Iterator[Sequence[int]]:
    for order in permutations(range(problem.operators)):
        place = {v: i for i, v in enumerate(order)}
        if all(place[u] < place[v] for v, us in enumerate(problem.before) for u in us):
            yield order


def peak_by_definition(problem: OrderProblem, order: Sequence[int]) -> int:
    place = {v: i for i, v in enumerate(order)}
    sizes = [0] * problem.operators
    for t in problem.tensors:
        first = 0 if t.maker is None else place[t.maker]
        reads = [place[v] for v in t.readers]
        last = problem.operators - 1 if t.kept else max(reads, default=first)
        if t.maker is None and not t.readers and not t.kept:
            last = problem.operators - 1  # nothing ends it
        for step in range(first, last + 1):
            sizes[step] += t.size_bytes
    return max(sizes)


@given(problems())
def test_the_peak_is_that_of_an_exhaustive_search(problem):
    least = min(peak_by_definition(problem, order) for order in all_orders(problem))
    found = least_order(problem)
    assert found.proven
    assert found.peak_bytes == peak_by_definition(problem, found.order) == least


@given(problems(most=10), st.integers(0, 6))
def test_a_search_that_is_cut_short_still_tells_a_bound(problem, most_states):
    short, full = least_order(problem, most_states, deterministic_s=0), least_order(problem)
    assert short.bound_bytes <= full.peak_bytes <= short.peak_bytes
    assert short.peak_bytes == problem.peak_bytes(short.order)
    assert short.states <= most_states


@given(problems())
def test_every_priority_gives_a_topological_order(problem):
    for priority in PRIORITIES.values():
        assert tuple(order_by(problem, priority)) in set(map(tuple, all_orders(problem)))


Profile = list[tuple[int, int]]  # hills and the valleys behind them


def hills_and_valleys(profile: Profile) -> Profile:
    """Put steps together: the highest hill, the lowest valley behind it, and so on."""
    found: Profile = []
    while profile:
        at = max(range(len(profile)), key=lambda i: (profile[i][0], i))
        low = min(range(at, len(profile)), key=lambda i: (profile[i][1], -i))
        found.append((profile[at][0], profile[low][1]))
        profile = profile[low + 1 :]
    return found


def liu(children: list[list[int]], size: list[int], v: int) -> Profile:
    """Return the profile of a subtree's best order (Liu, SIAM J. Alg. Disc. Meth. 8, 1987)."""
    steps = []
    for child in children[v]:
        before = 0
        for hill, valley in liu(children, size, child):
            steps.append((valley - hill, hill - before, valley - before))
            before = valley
    profile, now = [], 0
    for _, up, left in sorted(steps, key=lambda each: each[0]):
        profile.append((now + up, now + left))
        now += left
    return hills_and_valleys([*profile, (now + size[v], size[v])])


@given(st.data(), st.integers(2, 14))
def test_on_trees_the_peak_is_that_of_lius_algorithm(data, operators):
    size = [data.draw(st.integers(1, 20)) for _ in range(operators)]
    reader = [data.draw(st.integers(v + 1, operators - 1)) for v in range(operators - 1)]
    children: list[list[int]] = [[] for _ in range(operators)]
    for v, w in enumerate(reader):
        children[w].append(v)
    tensors = [(size[v], v, {w}) for v, w in enumerate(reader)]
    problem = problem_of(operators, *tensors, (size[-1], operators - 1, set()))
    found = least_order(problem)
    oracle = max(hill for hill, _ in liu(children, size, operators - 1))
    assert found.bound_bytes <= oracle <= found.peak_bytes
    assert not found.proven or found.peak_bytes == oracle


def wide(width: int, depth: int, seed: int) -> OrderProblem:
    """Columns of operators, each read by the next of its column and by a random one; a last one."""
    rng = Random(seed)
    last = width * depth
    readers: list[set[int]] = [{v + width} if v + width < last else {last} for v in range(last)]
    for v in range(width, last):
        readers[(v // width - 1) * width + rng.randrange(width)].add(v)
    tensors = [(rng.randint(1, 100), v, to) for v, to in enumerate(readers)]
    return problem_of(last + 1, *tensors, (1, last, set()))


def test_beyond_the_limit_of_states_cp_sat_proves_a_better_order():
    problem = wide(14, 3, seed=1)
    without = least_order(problem, most_states=1000, deterministic_s=0)
    assert not without.proven
    found = least_order(problem, most_states=1000)
    assert found.proven
    assert without.bound_bytes < found.peak_bytes < without.peak_bytes
    assert problem.peak_bytes(found.order) == found.peak_bytes


@pytest.mark.nightly
def test_a_graph_that_is_wide_enough_has_too_many_states():
    assert least_order(wide(14, 3, seed=1), deterministic_s=0).states == MOST_STATES


@settings(max_examples=40)
@given(problems())
def test_cp_sat_alone_proves_the_least_peak(problem):
    found = least_order(problem, most_states=0)
    least = min(map(problem.peak_bytes, all_orders(problem)))
    assert found.proven
    assert found.peak_bytes == problem.peak_bytes(found.order) == least


@given(problems(), st.integers(0, 2))
def test_cp_sat_that_is_cut_short_still_tells_a_bound(problem, most_states):
    found = least_order(problem, most_states, deterministic_s=1e-6)
    least = min(map(problem.peak_bytes, all_orders(problem)))
    assert found.bound_bytes <= least <= found.peak_bytes == problem.peak_bytes(found.order)
