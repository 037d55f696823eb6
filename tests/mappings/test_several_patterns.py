"""Patterns of several models, against exhaustive search that shares no code with the package."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.service import service_of
from parapipe.plan.build import build_plan
from parapipe.plan.verify import verify_plan
from parapipe.several_models.patterns import Demand
from tests.cases.plan_cases import graph_of, operator, platform_of
from tests.cases.several_cases import patterns, random_model, random_patterns

SEEDS = st.integers(0, 10**9)


def found_in(search, *, energy=False):
    """What the search finds: mapping, evaluation, and what each model gets."""
    reached = search.reached()
    every = []
    schedules = search.schedules(reached, energy=energy, tell=lambda _done, _of: None)
    for mapping in map(search.mapped, schedules):
        taken = evaluate(mapping, search.graph, search.costs)
        got = service_of(
            mapping,
            taken,
            search.graph,
            search.costs,
            bound_s=reached.bound_s,
        )
        every.append((mapping, taken, got))
    return reached, every


def fits(period, times, place, begin=()):
    """Whether the circles of a period have room for all operators, at whole starts."""
    v = len(begin)
    if v == len(times):
        return True
    for at in range(period):
        taken = {(at + i) % period for i in range(times[v][place[v]])}
        if len(taken) < times[v][place[v]]:
            return False
        others = (
            {(begin[u] + i) % period for i in range(times[u][place[u]])}
            for u in range(v)
            if place[u] == place[v]
        )
        if not any(taken & each for each in others) and fits(period, times, place, (*begin, at)):
            return True
    return False


def least_period(times):
    """The first period, in whole seconds, at which some assignment has a pattern."""
    period = 1
    while True:
        for place in product(range(len(times[0])), repeat=len(times)):
            if fits(period, times, place):
                return period
        period += 1


@pytest.mark.parametrize("seed", range(6))
def test_rates_of_two_models_on_two_processors_grow_as_much_as_exhaustive_search_finds(seed):
    search = random_patterns(seed, most=4)
    times = [[int(t) for t in row] for row in search.costs.table]
    # a reader may wait as many periods as it takes: with pure delays, room on the circles is all
    least_s = least_period(times)
    reached, every = found_in(search)
    assert reached.shared.proven
    assert reached.shared.period_s == least_s
    most = max(got.rate_factor for *_, got in every)
    assert most == pytest.approx(search.period_s / least_s, rel=1e-6)


def starts_at(period, times, place, begin=()):
    """All whole starts on the circles, the first one at 0 or later."""
    v = len(begin)
    if v == len(times):
        yield begin
        return
    for at in range(period):
        taken = {(at + i) % period for i in range(times[v][place[v]])}
        others = (
            {(begin[u] + i) % period for i in range(times[u][place[u]])}
            for u in range(v)
            if place[u] == place[v]
        )
        if len(taken) == times[v][place[v]] and not any(taken & each for each in others):
            yield from starts_at(period, times, place, (*begin, at))


def ways_of(times, edges, *, moved, period):
    """When both processors are busy with a frame, and its least latency then, the least first."""
    found = {}
    for place in product(range(2), repeat=len(times)):
        for begin in starts_at(period, times, place):
            busy = [0, 0]
            for at, p, time in zip(begin, place, times, strict=True):
                busy[p] |= sum(1 << (at + i) % period for i in range(time[p]))
            least = latency_of(
                range(len(times)), edges, (times, place), begin, moved=moved, period=period
            )
            found[tuple(busy)] = min(least, found.get(tuple(busy), least))
    return sorted(found.items(), key=lambda way: way[1])


def least_cost(parts, edges, weights, *, moved, period):
    """The least cost of two frames, of all pairs of ways that are not busy at the same time."""
    one, other = (
        ways_of(times, each, moved=moved, period=period)
        for times, each in zip(parts, edges, strict=True)
    )
    least = float("inf")
    for (big, little), latency in one:
        for (other_big, other_little), other_latency in other:
            counted = weights[0] * latency, weights[1] * other_latency
            cost = max(counted) + sum(counted) / 100
            if cost >= least:
                break
            if not (big & other_big or little & other_little):
                least = cost
    return least


def latency_of(frame, edges, placed, begin, *, moved, period):
    """The least latency of a frame whose operators have these starts on the circles."""
    times, place = placed
    best = float("inf")
    for first in frame:
        start = {}
        for v in frame:
            ready = max(
                [
                    begin[first],
                    *(
                        start[u] + times[u][place[u]] + moved * (place[u] != place[v])
                        for u in edges[v]
                    ),
                ]
            )
            start[v] = ready + (begin[v] - ready) % period
        end = max(start[v] + times[v][place[v]] for v in frame)
        best = min(best, end - begin[first])
    return best


def latencies_beside_exhaustive_search(seed, operators):
    """The cost of the latencies found, and the least one of starts at whole seconds."""
    search = random_patterns(seed, least=min(operators), most=max(operators))
    times = [[int(t) for t in row] for row in search.costs.table]
    period = least_period(times) + seed % 2
    moved, size = int(search.costs.moved), search.frames.operators[0]
    demands = [Demand("m0", 1 / period), Demand("m1", 1 / period, priority=1.5)]
    parts = [times[:size], times[size:]]
    before = [search.graph.predecessors(v) for v in range(len(times))]
    edges = [before[:size], [[u - size for u in each] for each in before[size:]]]
    models = again(search.graph, parts)
    search = patterns(models, (1, 1), float(moved), demands, float(period))
    weights = search.frames.urgency
    least = least_cost(parts, edges, weights, moved=moved, period=period)
    _, every = found_in(search)
    costs = [
        max(w * each for w, each in zip(weights, got.latency_s, strict=True))
        + sum(w * each for w, each in zip(weights, got.latency_s, strict=True)) / 100
        for *_, got in every
    ]
    return min(costs), least


@pytest.mark.parametrize(
    ("seed", "operators"),
    [
        *((seed, (2, 4)) for seed in (100, 101, 102)),
        pytest.param(103, (4, 4), marks=pytest.mark.nightly),
    ],
)
def test_latencies_at_the_asked_period_are_those_of_exhaustive_search(seed, operators):
    found, least = latencies_beside_exhaustive_search(seed, operators)
    assert found == pytest.approx(least, rel=2e-3)  # weights are in thousandths for the solver


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(200, 220))
def test_latencies_of_four_operators_each_are_never_above_those_of_whole_seconds(seed):
    found, least = latencies_beside_exhaustive_search(seed, (4, 4))
    assert least * 0.95 <= found <= least * (1 + 2e-3)  # between whole seconds there may be less


def again(graph, parts):
    """The models of a pattern with one frame each, by themselves, with their times."""
    found, begin = [], 0
    for number, times in enumerate(parts):
        prefix = f"m{number}/"
        made = [
            operator(
                each.id.removeprefix(prefix),
                " ".join(name.removeprefix(prefix) for name in each.inputs),
            )
            for each in graph.operators[begin : begin + len(times)]
        ]
        begin += len(times)
        one = graph_of(made, inputs=["x"], outputs=[made[-1].id])
        found.append((one, [[float(t) for t in row] for row in times]))
    return found


@pytest.mark.nightly
@settings(max_examples=3)
@given(seed=SEEDS)
def test_sharing_is_never_below_processors_of_its_own_or_in_turn_or_one_each(seed):
    search = random_patterns(seed, most=6, counts=(1 + seed % 3, 1), processors=2 + seed % 2)
    reached, every = found_in(search)
    for baseline in reached.baselines:
        assert reached.shared.period_s <= baseline.period_s * (1 + 1e-9)
    assert reached.bound_s <= reached.shared.bound_s <= reached.shared.period_s
    most = max(got.rate_factor for *_, got in every)
    assert most >= search.period_s / reached.shared.period_s * (1 - 1e-6)
    assert most <= search.period_s / reached.bound_s * (1 + 1e-9)


@pytest.mark.nightly
@settings(max_examples=2)
@given(seed=SEEDS)
def test_plans_of_all_patterns_keep_the_rules_and_the_asked_period(seed):
    search = random_patterns(seed, most=5, counts=(2, 1 + seed % 2), processors=2 + seed % 2)
    platform = platform_of(len(search.costs.processors))
    _, every = found_in(search, energy=True)
    assert every
    for mapping, taken, got in every:
        plan = build_plan(search.graph, platform, search.costs, mapping, found=taken)
        verify_plan(plan)
        assert taken.period_s == search.period / 1e9
        assert [each.latency_s for each in plan.models] == list(got.latency_s)
        assert [len(each.come_s) for each in plan.models] == list(search.frames.counts)


def test_two_frames_of_one_model_come_half_a_period_apart():
    model = random_model(random.Random(3), 3, 2)
    search = patterns([model], (2,))
    _, every = found_in(search)
    for *_, taken, got in every:
        [(first_s, second_s)] = got.come_s
        apart_s = abs(second_s - first_s) % taken.period_s
        assert apart_s == pytest.approx(taken.period_s / 2)


def test_two_models_of_one_operator_each_have_a_processor_each():
    rng = random.Random(0)
    one, other = random_model(rng, 1, 2), random_model(rng, 1, 2)
    one[1][0][:] = [1.0, 9.0]
    other[1][0][:] = [9.0, 2.0]
    reached, every = found_in(patterns([one, other], (1, 1)))
    assert reached.shared.period_s == 2.0
    assert {tuple(at.processor for at in mapping.placements) for mapping, *_ in every} >= {(0, 1)}
