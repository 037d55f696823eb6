"""The search over divisions of a cluster: solved by hand, by brute force, and never worse."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from parapipe.cost.operating_points import settings
from parapipe.graph.partition import partition
from parapipe.pareto import nondominated
from parapipe.search.configurations_from_costs import explore
from parapipe.search.interleaved import InterleavedSearch
from parapipe.search.mapping_bounds import relaxed_bounds
from parapipe.search.options import MapOptions
from parapipe.search.stages.stage_search import StageSearch
from tests.cases.divided import convolutions, divided, divisions
from tests.cases.hand_built import platform, processor
from tests.cases.pipeline_cases import turns_taken

EXACT = MapOptions(mapper="coarse", resolution=0.0, energy_resolution=0.0, jobs=1, cache=False)

NANO = 1e-9  # the search compares in whole nanoseconds and nanojoules


def explored(graph, platform, *further):
    searches = [StageSearch(), *further]
    known = settings(graph, platform, most=1, profiles=[])
    costs, *others = (each.costs for each in known.combinations)
    found = explore(graph, partition(graph), costs, EXACT, others=others, searches=searches).found
    return [(each, known.combinations[each.table].platform) for each in found]


def figures(found):
    made = found.evaluated
    return made.latency_s, made.period_s, made.energy_j


def names_used(found, platform):
    return {platform.names[p] for p in found.mapping.processors}


def test_cores_that_bring_nothing_bring_twice_the_throughput_as_two_pairs():
    # With a parallel share of 0, two cores are as fast as four. Two equal convolutions on four
    # cores take a frame each two times; on two pairs, whose hand-over takes no time, each time.
    graph = convolutions(8, 8)
    soc = divided((2, 2), others=(), share=0.0, hand_over_s=0.0)
    found = explored(graph, soc)
    whole = min(figures(each)[1] for each, soc in found if names_used(each, soc) == {"big"})
    best, platform = min(found, key=lambda each: figures(each[0])[1])
    macs = graph.operators[0].work.macs
    assert whole == pytest.approx(2 * (1e-5 + macs / 1e9))
    assert figures(best)[1] == pytest.approx(whole / 2)
    assert names_used(best, platform) == {"big-4-5", "big-6-7"}
    assert best.mapping.kind == "pipe-only"


def test_where_all_work_is_parallel_a_division_brings_no_throughput():
    # Thrice the time on a third of the cores; and three cores wait for the one, or for nothing.
    found = explored(convolutions(8, 8), divided((1, 3), others=(), share=1.0, hand_over_s=1e-3))
    (best,) = {
        frozenset(names_used(each, soc))
        for each, soc in found
        if figures(each)[1] == min(figures(other)[1] for other, _ in found)
    }
    assert best == {"big"}


def by_hand(graph, into, share, hand_over_s):
    """Yield the figures of every mapping of a chain, from the numbers of the platform alone."""
    names = [operator.id for operator in graph.operators]
    moved = [graph.tensors[name].size_bytes for name in names]
    work = [each.work for each in graph.operators]
    whole_s = [1e-5 + max(w.macs, w.read_bytes + w.written_bytes) / 1e9 for w in work]
    for sizes in ((4,), *into):
        # times on each part and then the GPU; the share of the cores is that of the power
        slow = [share * 4 / size + 1 - share for size in sizes] + [1.0]
        power = [size / 4 for size in sizes] + [1.0]
        gpu, count = len(sizes), len(names)

        def move_s(v, p, q, gpu=gpu):
            if p == q:
                return 0.0
            return 1e-4 + moved[v] / 1e9 if gpu in (p, q) else hand_over_s

        for placed in product(range(gpu + 1), repeat=count):
            for width in range(count):
                for cuts in combinations(range(1, count), width):
                    runs = list(zip((0, *cuts), (*cuts, count), strict=True))
                    used = [set(placed[first:last]) for first, last in runs]
                    if sum(map(len, used)) != len(set().union(*used)):
                        continue
                    own_s = [
                        whole_s[v] * slow[placed[v]]
                        + (move_s(v - 1, placed[v - 1], placed[v]) if v else 0.0)
                        for v in range(count)
                    ]
                    stages_s = [sum(own_s[first:last]) for first, last in runs]
                    dynamic = sum(
                        2.0 * power[p] * whole_s[v] * slow[p] for v, p in enumerate(placed)
                    )
                    # parts of one size are identical
                    for turns in turns_taken(used, (*sizes, "gpu")):
                        taken = zip(used, turns, strict=True)
                        static_w = sum(0.25 * power[p] * n for each, n in taken for p in each)
                        period_s = max(t / n for t, n in zip(stages_s, turns, strict=True))
                        yield sum(stages_s), period_s, dynamic + period_s * static_w


@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("channels", [(8, 8, 8), (4, 16, 8), (16, 2, 2, 16)])
def test_the_front_equals_brute_force_over_divisions_and_operators(share, channels):
    graph, into, hand_over_s = convolutions(*channels), ((2, 2), (1, 3)), 3e-5
    soc = divided(*into, share=share, hand_over_s=hand_over_s)
    shown = {
        tuple(round(figure, 9) for figure in figures(each))
        for each, _ in explored(graph, soc)
        if each.pareto
    }
    every = list({tuple(round(f, 9) for f in each) for each in by_hand(
        graph, into, share, hand_over_s)})  # fmt: skip
    assert shown == {every[i] for i in nondominated(range(len(every)), lambda i: every[i])}


@hypothesis_settings(deadline=None, max_examples=25)
@given(
    st.lists(st.sampled_from([2, 4, 8, 16]), min_size=1, max_size=4),
    st.sampled_from([((2, 2),), ((1, 3), (3, 1)), ((1, 1, 2), (2, 2)), ((1, 1, 1, 1),)]),
    st.floats(0, 1),
    st.sampled_from([0.0, 1e-5, 1e-3]),
)
def test_divisions_never_worsen_the_front(channels, into, share, hand_over_s):
    graph = convolutions(*channels)
    before = explored(graph, divided())
    check_never_worse(before, explored(graph, divided(*into, share=share, hand_over_s=hand_over_s)))


def check_never_worse(before, after):
    """Each configuration has one in `after` that is at least as good in every figure."""
    for one, _ in before:
        assert any(
            all(a <= b + NANO for a, b in zip(figures(other), figures(one), strict=True))
            for other, _ in after
        )


def check_declared(seed):
    """Compare the fronts with and without streams or divisions, frames in turn included."""
    rng = random.Random(seed)
    graph = convolutions(*rng.choices([2, 4, 8, 16], k=rng.randint(3, 5)))
    gpu = {
        "kind": "gpu",
        "cores": [],
        "launch": {"source": "guess", "overhead_s": rng.choice([1e-5, 5e-5, 2e-4])},
        "peak": {"source": "guess", "macs_per_s": {"float32": rng.choice([5e8, 1.5e9, 2.5e9])}},
    }
    streams = {"slowdown": [1, 1.1, 1.3], "hand_over": {"latency_s": 1e-5}, "source": "guess"}
    into = divisions((2, 2), (1, 3), share=rng.random(), hand_over_s=1e-5)

    def found(big, gpu):
        soc = platform(processor("big", cores=[4, 5, 6, 7], **big), processor("gpu", **gpu))
        return explored(graph, soc, InterleavedSearch())

    before = found({}, gpu)
    check_never_worse(before, found({"divisions": into}, gpu))
    check_never_worse(before, found({}, gpu | {"streams": streams}))


@pytest.mark.parametrize("seed", range(6))
def test_streams_and_divisions_lose_no_frames_in_turn(seed):
    check_declared(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6, 60))
def test_streams_and_divisions_lose_no_frames_in_turn_of_many_models(seed):
    check_declared(seed)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_bounds_of_an_unfinished_front_hold_for_divisions_too(share):
    graph = convolutions(8, 8, 8)
    soc = divided((2, 2), others=(), share=share, hand_over_s=0.0)
    known = settings(graph, soc, most=1, profiles=[])
    tables = [each.costs for each in known.combinations]
    found = explored(graph, soc)
    held = [relaxed_bounds(graph, partition(graph), costs) for costs in tables]
    for each, _ in found:
        latency_s, period_s, _ = figures(each)
        assert held[each.table].latency_s <= latency_s
        assert held[each.table].period_s <= period_s
    least_s = [min(figures(each)[1] for each, _ in found if each.table == i) for i in (0, 1)]
    assert held[1].period_s <= least_s[1] < least_s[0]
