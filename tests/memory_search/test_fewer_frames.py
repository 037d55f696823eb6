"""Interleaved mappings with less memory: what is held, against lives of tensors, and limits."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import MemoryLimit, peak_memory
from parapipe.memory_search.low_memory import FewerFrames
from parapipe.modulo.cyclic_problem import NANO, CyclicProblem
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.modulo.reordering import BufferedData, Sizes, less_buffered
from parapipe.modulo.verify import check
from parapipe.platform.memories import MemorySystem
from parapipe.problems.problems import whole_problem
from parapipe.search.interleaved import mapping_of, modulo_schedule_of
from tests.cases.pipeline_cases import random_costs
from tests.cases.plan_cases import random_case

SEEDS = st.integers(0, 10**9)


class Case:
    """Random tensors and costs, two memories, and operators anywhere on three processors."""

    def __init__(self, seed):
        rng = random.Random(seed)
        graph, *_ = random_case(seed)
        # what nobody reads, and what stays to a frame's end, is no hand-over: it counts nothing
        ends = {*graph.inputs, *graph.outputs}
        sizes = {
            name: 0 if name in ends or not graph.consumers.get(name) else rng.randint(1, 50)
            for name in graph.tensors
        }
        tensors = {name: replace(t, shape=(sizes[name],)) for name, t in graph.tensors.items()}
        self.graph = replace(graph, tensors=tensors, constants={})
        self.costs = random_costs(self.graph, 3, seed)
        names = self.costs.processors
        where = {name: rng.randint(0, 1) for name in names}
        pairs = [(p, q) for p in names for q in names if p != q]
        copying = frozenset(rng.sample(pairs, 2))
        system = MemorySystem(("a", "b"), False, where, (1, 1), (None, None), copying, {})
        object.__setattr__(self.costs, "memory_system", system)
        self.storage = Storage.of(self.graph, self.costs)
        self.net = CyclicProblem(whole_problem(self.graph, self.costs))
        place = [rng.randrange(3) for _ in self.graph.operators]
        self.works = Jobs.of(self.net, place)
        period = round(max(self.works.cyclic.loads(self.works.place)) * rng.choice([1, 1.1, 1.5]))
        self.schedule = schedule_jobs(self.works, period)

    @property
    def sizes(self):
        tensors = [name for name in self.graph.consumers if name in self.graph.producer]
        return Sizes(
            lambda flow, p: self.storage.tensor_bytes(tensors[flow], p),
            lambda flow, p, q: self.storage.copies(tensors[flow], p, q),
        )

    def held(self, schedule):
        works = Jobs.of(self.net, schedule.processor)
        return BufferedData(works, schedule.period, self.sizes).mean(works.starts(schedule))

    def sized(self, found):
        peak = peak_memory(found.mapping, self.storage, found.evaluated.period_s)
        return replace(found, peak=peak)

    def configuration(self, schedule):
        mapping = mapping_of(schedule, self.graph, self.costs)
        made = evaluate(mapping, self.graph, self.costs)
        return self.sized(Configuration(mapping, made, False, 0.0, (), True, True, 0))

    def fewer(self, limit_bytes):
        limit = MemoryLimit(limit_bytes)
        return FewerFrames(self.storage, self.costs, limit, 0.0, self.sized, seed=0)


def mean_bytes(peak, period_s):
    """The mean of memory over a period."""
    points = [*peak.usage, (period_s, 0)]
    return sum(size * (end_s - at_s) for (at_s, size), (end_s, _) in pairwise(points)) / period_s


@settings(max_examples=150)
@given(seed=SEEDS)
def test_what_is_held_is_the_mean_of_memory_over_a_period(seed):
    case = Case(seed)
    if case.schedule is None:
        return
    found = case.configuration(case.schedule)
    period_s = case.schedule.period / NANO
    expected = mean_bytes(found.peak.total, period_s)
    assert case.held(case.schedule) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_thriftier_schedules_pass_the_check_and_the_first_holds_no_more(seed):
    case = Case(seed)
    if case.schedule is None:
        return
    found = less_buffered(case.net, case.schedule, case.sizes, seed, 2_000)
    for each in found:
        check(case.net.problem, each)
        assert (each.period, each.processor) == (case.schedule.period, case.schedule.processor)
    if not case.works.routes and found:
        assert case.held(found[0]) <= case.held(case.schedule) * (1 + 1e-9)


@settings(max_examples=60)
@given(seed=SEEDS)
def test_a_mapping_becomes_the_schedule_again_that_it_was_made_of(seed):
    case = Case(seed)
    if case.schedule is not None:
        mapping = mapping_of(case.schedule, case.graph, case.costs)
        again = modulo_schedule_of(mapping, case.graph)
        assert again == case.schedule


def cases_with_room(count):
    """Cases whose peak depends on the period."""
    for seed in range(10**6):
        case = Case(seed)
        if case.schedule is None or len(case.graph.operators) < 5:
            continue
        total = sum(case.works.time)
        slow = schedule_jobs(case.works, total)
        tight, loose = (case.configuration(each) for each in (case.schedule, slow))
        if slow and loose.memory_bytes < 0.7 * tight.memory_bytes:
            yield case, tight, loose
            count -= 1
        if not count:
            return


def test_a_limit_that_frames_one_by_one_keep_is_kept_at_a_shorter_period():
    shorter = 0
    for case, tight, loose in cases_with_room(5):
        limit = float(loose.memory_bytes)
        found = [*case.fewer(limit).like(tight, inf)]
        fitting = [each for each in found if each.memory_bytes <= limit]
        for each in found:
            mapping, period_s = each.mapping, each.evaluated.period_s
            assert mapping.period_s in (period_s, None)  # None of frames one by one: of a stage
            again = modulo_schedule_of(replace(mapping, period_s=period_s), case.graph)
            check(case.net.problem, again)
            assert period_s >= tight.mapping.period_s
        one_by_one_s = loose.mapping.period_s
        shorter += any(each.evaluated.period_s < one_by_one_s for each in fitting)
    assert shorter == 5


def test_without_a_limit_the_period_stays():
    for case, tight, _ in cases_with_room(2):
        found = [*case.fewer(None).like(tight, inf)]
        assert {each.mapping.period_s for each in found} == {tight.mapping.period_s}
        assert min(each.memory_bytes for each in found) <= tight.memory_bytes


@pytest.mark.nightly
def test_under_a_limit_googlenet_has_more_throughput_than_what_fits_of_its_front():
    given = {"interleave": "auto", "objectives": "latency-throughput", "note": lambda _: None}
    model, platform = "zoo:googlenet", "amlogic-a311d"
    free = parapipe.map(model, platform, **given)
    fastest = min(free, key=lambda row: row.period_s)
    weights_bytes = fastest.memories[0].weights_bytes
    limit = weights_bytes + 0.5 * (fastest.peak_memory_bytes - weights_bytes)
    limited = parapipe.map(model, platform, max_memory_bytes=limit, **given)
    assert all(row.peak_memory_bytes <= limit for row in limited)
    fits = [row.period_s for row in free if row.peak_memory_bytes <= limit]
    assert min(row.period_s for row in limited) < min(fits)
