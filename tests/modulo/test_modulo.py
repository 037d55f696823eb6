"""Modulo schedules against exhaustive search, hand-solved cases, and what must always hold."""

import random
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.modulo.beam_search import prices_of, times, values_of
from parapipe.modulo.cyclic_problem import NEVER, CyclicProblem, ModuloSchedule
from parapipe.modulo.exact_latency import least_latency_by_cp_sat
from parapipe.modulo.least_latency import improve, least_latency
from parapipe.modulo.modulo_schedules import (
    FREE,
    Jobs,
    first_fit,
    pack,
    schedule_jobs,
    with_work,
    without_work,
)
from parapipe.modulo.reordering import reorder_jobs
from parapipe.modulo.verify import check
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.nightly import nightly_from

NANO = 1e-9
NONE, SENDER, RECEIVER, LINK = "delay", "sender", "receiver", "link"


def problem_of(times, edges, moved, occupies=NONE):
    """A problem in whole nanoseconds; `edges`: readers by maker; `moved`: time of each transfer."""
    processors = range(len(times[0]))
    matrix = tuple(tuple(0.0 if p == q else moved * NANO for q in processors) for p in processors)
    named = {
        NONE: lambda p, q: None, SENDER: lambda p, q: p, RECEIVER: lambda p, q: q,
        LINK: lambda p, q: len(processors),
    }[occupies]  # fmt: skip
    return MappingProblem(
        tuple(tuple(t * NANO if t < inf else inf for t in row) for row in times),
        tuple(Flow(u, tuple(readers), matrix) for u, readers in edges.items() if readers),
        tuple(range(len(times))),
        tuple(tuple(None if p == q else named(p, q) for q in processors) for p in processors),
    )


def random_problem(seed, *, operators, occupies, processors=2, longest=3):
    rng = random.Random(seed)
    times = [[rng.randint(1, longest) for _ in range(processors)] for _ in range(operators)]
    if operators > 2 and rng.random() < 0.3:
        times[rng.randrange(operators)][rng.randrange(processors)] = inf
    edges = {u: [] for u in range(operators)}
    for v in range(1, operators):
        for u in {rng.randrange(v), *([rng.randrange(v)] if rng.random() < 0.4 else [])}:
            edges[u].append(v)
    return problem_of(times, edges, rng.randint(0, 2), occupies)


def exhaustive(cyclic, period):
    """The least latency at a period: over assignments, orders on the circles, and lags."""
    able = [[p for p, t in enumerate(row) if t <= period] for row in cyclic.time]
    return min((exhaustive_for(cyclic, place, period) for place in product(*able)), default=inf)


def exhaustive_for(cyclic, place, period):
    jobs = Jobs.of(cyclic, place)
    if max(cyclic.loads(place)) > period:
        return inf
    count = len(jobs.time)
    best = inf

    def meets(w, begin, begins):
        return any(
            jobs.resource[w] == jobs.resource[x]
            and ((begins[x] - begin) % period < jobs.time[w]
                 or (begin - begins[x]) % period < jobs.time[x])
            for x in range(len(begins))
        )  # fmt: skip

    def place_next(begins):
        nonlocal best
        w = len(begins)
        if w == count:
            best = min(best, latency_of(jobs, period, begins))
            return
        for begin in range(period) if w else (0,):
            if not meets(w, begin, begins):
                place_next([*begins, begin])

    place_next([])
    return best


def latency_of(jobs, period, begins):
    """The least latency for given starts within the period: whichever operator starts first."""
    operators = jobs.cyclic.operators
    order = [*range(operators)]
    for w in range(operators, len(begins)):
        maker = jobs.before[w][0][0]
        order.insert(order.index(maker) + 1, w)
    found = inf
    for first in range(operators):
        start = {}
        for w in order:
            ready = begins[first]
            for u, gap in jobs.before[w]:
                ready = max(ready, start[u] + jobs.time[u] + gap)
            start[w] = ready + (begins[w] - ready) % period
        # A transfer goes as late as its first reader lets it; and it must be within a period.
        sayable = all(
            (min(start[x] for x, _ in jobs.after[w]) - start[w] - jobs.time[w]) % period
            + jobs.time[w] < period
            for w in range(operators, len(begins))
        )  # fmt: skip
        if sayable:
            last = max(start[v] + jobs.time[v] for v in range(operators))
            found = min(found, last - begins[first])
    return found


def sequential(cyclic):
    columns = zip(*cyclic.time, strict=True)
    return max(sum(column) for column in columns if max(column) < NEVER)


def periods(cyclic):
    slowest = [max(t for t in row if t < NEVER) for row in cyclic.time]
    return range(1, sum(slowest) + 1)


CASES = [
    *(((seed, 2, 3, kind)) for seed in range(3) for kind in (NONE, SENDER, RECEIVER, LINK)),
    *(((seed, 3, 3, kind)) for seed in range(2) for kind in (NONE, RECEIVER)),
    *(((seed, 2, 4, NONE)) for seed in range(4)),
]


@pytest.mark.parametrize(("seed", "processors", "operators", "occupies"), CASES)
def test_the_exact_search_equals_exhaustive_search_at_every_period(
    seed, processors, operators, occupies
):
    problem = random_problem(seed, operators=operators, occupies=occupies, processors=processors,
                             longest=2)  # fmt: skip
    cyclic = CyclicProblem(problem)
    for period in periods(cyclic):
        found = least_latency_by_cp_sat(cyclic, period)
        assert found.proven
        expected = exhaustive(cyclic, period)
        assert (found.schedule.latency if found.schedule else inf) == expected, period
        if found.schedule:
            check(problem, found.schedule)
            assert found.bound == expected
            assert cyclic.critical_path <= expected


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_search_equals_exhaustive_search_of_six_operators_at_the_least_period(seed):
    problem = random_problem(seed, operators=6, occupies=NONE, longest=1)
    cyclic = CyclicProblem(problem)
    for period in (3, 4):
        found = least_latency_by_cp_sat(cyclic, period)
        assert found.proven
        assert (found.schedule.latency if found.schedule else inf) == exhaustive(cyclic, period)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from([NONE, SENDER, RECEIVER, LINK]))
def test_every_schedule_of_a_given_assignment_passes_the_check(seed, kind):
    rng = random.Random(seed)
    problem = random_problem(
        seed, operators=rng.randint(1, 14), occupies=kind, processors=3, longest=9
    )
    cyclic = CyclicProblem(problem)
    place = [rng.choice([p for p, t in enumerate(row) if t < NEVER]) for row in cyclic.time]
    jobs = Jobs.of(cyclic, place)
    loads = cyclic.loads(place)
    assert loads == [
        sum(t for at, t in zip(jobs.resource, jobs.time, strict=True) if at == resource)
        for resource in range(problem.resources)
    ]
    least = max(loads)
    assert schedule_jobs(jobs, least - 1) is None
    for period in (least, least + 1, 2 * least):
        found = schedule_jobs(jobs, period)
        if kind == NONE:
            assert found is not None
        if found is None:
            continue
        check(problem, found)
        other = reorder_jobs(cyclic, found, seed, pieces=2_000)
        check(problem, other)
        assert (other.period, other.processor) == (found.period, found.processor)
        assert cyclic.critical_path <= other.latency <= found.latency
        together = jobs.schedule(period, pack(jobs, period))
        assert found.latency >= cyclic.critical_path
        if kind == NONE:
            check(problem, together)
            check(problem, improve(cyclic, found))


def test_orders_of_less_latency_are_found_where_no_processor_has_a_gap():
    gains = []
    for seed in range(10):
        cyclic = CyclicProblem(
            random_problem(seed, operators=40, occupies=NONE, processors=3, longest=9)
        )
        place = [min(range(3), key=row.__getitem__) for row in cyclic.time]
        found = schedule_jobs(Jobs.of(cyclic, place), max(cyclic.loads(place)))
        gains.append(reorder_jobs(cyclic, found, seed).latency / found.latency)
    assert min(gains) < 0.8
    assert max(gains) <= 1


@pytest.mark.nightly
@given(seed=st.integers(0, 10**6))
def test_what_is_built_passes_the_check_and_keeps_the_bound(seed):
    problem = random_problem(seed, operators=12, occupies=NONE, processors=3, longest=9)
    cyclic = CyclicProblem(problem)
    least = float((times(cyclic) * prices_of(cyclic)).min(axis=1).sum())
    for above in (0.02, 0.3):
        period = int(least * (1 + above)) + 1
        found = least_latency(cyclic, period, values_of(cyclic, period), above=above)
        if found is not None:
            check(problem, found)
            assert found.period >= max(cyclic.loads(found.processor)) >= least * (1 - 1e-9)


@pytest.mark.parametrize("seed", nightly_from(5, range(10)))
def test_no_search_beats_the_exact_one(seed):
    cyclic = CyclicProblem(random_problem(seed, operators=5, occupies=NONE, longest=4))
    for period in periods(cyclic):
        exact = least_latency_by_cp_sat(cyclic, period)
        found = least_latency(cyclic, period, values_of(cyclic, period), above=0.3)
        if found is not None:
            assert exact.schedule is not None
            assert found.latency >= exact.schedule.latency


def test_a_chain_of_two_processors_takes_turns():
    # a, c on 0 and b, d on 1, 1 each: a period of 2, and nothing waits
    cyclic = CyclicProblem(
        problem_of([[1, inf], [inf, 1], [1, inf], [inf, 1]], {0: [1], 1: [2], 2: [3]}, 0)
    )
    found = schedule_jobs(Jobs.of(cyclic, (0, 1, 0, 1)), 2)
    assert found is not None
    # c comes two later than a, when the next a starts: it waits for one
    assert (found.period, found.latency) == (2, 5)
    assert least_latency_by_cp_sat(cyclic, 2).bound == 5
    assert least_latency_by_cp_sat(cyclic, 3).bound == 4


def test_work_goes_over_the_end_of_a_period():
    circle = with_work(FREE, 10, 8, 4)
    assert circle == ((0, 8), (2, 10))
    assert first_fit(circle, 10, 0, 6) == 2
    assert first_fit(circle, 10, 13, 5) == 13
    assert first_fit(circle, 10, 14, 5) == 22
    assert first_fit(circle, 10, 0, 7) is None
    assert with_work(circle, 10, 12, 6) == ((0,), (10,))


@given(data=st.data(), period=st.integers(1, 30))
def test_work_taken_away_leaves_what_the_rest_makes(data, period):
    circle, placed = FREE, []
    for _ in range(data.draw(st.integers(1, 8))):
        time = data.draw(st.integers(1, period))
        start = first_fit(circle, period, data.draw(st.integers(0, 100)), time)
        if start is not None:
            circle = with_work(circle, period, start, time)
            placed.append((start, time))
    for start, time in data.draw(st.permutations(placed)):
        placed.remove((start, time))
        circle = without_work(circle, period, start, time)
        rest = FREE
        for each in placed:
            rest = with_work(rest, period, *each)
        assert circle == rest


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"latency": 6}, "the latency is 6, and a frame takes 5"),
        ({"start": (0, 1, 2, 4)}, "operator 0 and operator 2 keep resource 0 busy"),
        ({"start": (0, 1, 1, 4)}, "flow 1 arrives on 0 at 2, and is read at 1"),
        ({"moved": (((0, 1), 1),)}, "the transfer (0, 1) is not needed"),
    ],
)
def test_a_broken_rule_is_named(change, violation):
    problem = problem_of([[1, inf], [inf, 1], [1, inf], [inf, 1]], {0: [1], 1: [2], 2: [3]}, 0)
    good = {"period": 2, "processor": (0, 1, 0, 1), "start": (0, 1, 3, 4), "moved": (),
            "latency": 5}  # fmt: skip
    check(problem, ModuloSchedule(**good))
    with pytest.raises(VerificationError, match="the modulo schedule is wrong") as caught:
        check(problem, ModuloSchedule(**{**good, **change}))
    assert violation in str(caught.value)
