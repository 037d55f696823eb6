"""Stage search: equal to brute force over every configuration."""

from __future__ import annotations

import random
from functools import reduce
from math import hypot, log
from operator import or_
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mappings.mapping import kind_of
from parapipe.pareto import most_balanced, nondominated, thin_front
from parapipe.search.stages.options import Option
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_table import StageTable
from tests.cases.pipeline_cases import every_division


class Every(NamedTuple):
    """A configuration of the enumeration."""

    kind: str
    nano_objectives: tuple[float, ...]


def mask_of(stage):
    mask = 0
    for option in stage:
        mask |= option.processors
    return mask


def every_configuration(units, options, static_power_w):
    """Enumerate every choice of options and cuts, with nothing but the definitions."""

    def chains(unit, locations):
        if unit == units:
            yield ()
            return
        for option in options(unit, locations):
            for rest in chains(unit + option.units, option.locations):
                yield (option, *rest)

    for chain in chains(0, ()):
        for stages in every_division(chain):
            masks = [mask_of(stage) for stage in stages]
            if sum(masks) != reduce(or_, masks):
                continue
            times = [sum(option.time_ns for option in stage) for stage in stages]
            used = sum(masks)
            static = sum(w for p, w in enumerate(static_power_w) if used >> p & 1)
            energy = sum(option.energy_nj for option in chain) + static * max(times)
            yield Every(
                kind_of([mask.bit_count() for mask in masks]), (sum(times), max(times), energy)
            )


def random_case(seed, units, processors, *, merged=False):
    """Draw options of each unit; with merged, of some merged units as well."""
    rng = random.Random(seed)
    table = {}
    live = [0] + [rng.choice([1, 1, 2]) for _ in range(units - 1)] + [0]

    def options(unit, locations):
        if (unit, locations) not in table:
            made = []
            for _ in range(rng.randint(1, 4)):
                mask = rng.randrange(1, 1 << processors)
                inside = [p for p in range(processors) if mask >> p & 1]
                length = rng.randint(1, units - unit) if merged and made else 1
                out = tuple((rng.choice(inside),) for _ in range(live[unit + length]))
                figures = rng.randint(1, 9), rng.randint(0, 9)
                made.append(Option(mask, out, *figures, len(made), length))
            table[unit, locations] = made
        return table[unit, locations]

    return options, [rng.choice([0.0, 0.5, 1.0]) for _ in range(processors)]


@pytest.mark.parametrize("energy", [True, False])
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    units=st.integers(1, 5),
    processors=st.integers(1, 4),
    merged=st.booleans(),
)
def test_the_front_and_the_best_of_each_kind_equal_brute_force(
    energy, seed, units, processors, merged
):
    options, static = random_case(seed, units, processors, merged=merged)
    found = search(units, StageTable(options, energy=energy), static)
    agree(found, list(every_configuration(units, options, static)), energy=energy)


@pytest.mark.parametrize(
    ("limits", "energy"),
    [
        ({"FEW_CUTS": 2}, True),
        ({"FEW_CUTS": 2}, False),
        ({"FEW_CUTS": 3, "FEW_PROCESSORS": 0}, False),  # stages of one processor each come first
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_first_passes_change_nothing(limits, energy, seed, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(f"parapipe.search.stages.search.{name}", value)
    for i in range(40):
        options, static = random_case(100 * seed + i, 5, 3, merged=bool(i % 2))
        found = search(5, StageTable(options, energy=energy), static)
        agree(found, list(every_configuration(5, options, static)), energy=energy)


@pytest.mark.parametrize("seed", range(40))
def test_a_search_for_pipes_alone_finds_the_best_of_them(seed):
    options, static = random_case(seed, 5, 3, merged=bool(seed % 2))
    found = search(5, StageTable(options, energy=False), static, pipes=True)
    every = list(every_configuration(5, options, static))
    assert {c.kind for c in found} <= {"sequential", "pipe-only", "para-only"}
    for kind, order in {"sequential": (0, 1), "pipe-only": (1, 0)}.items():
        best = [
            min(
                ([c.nano_objectives[i] for i in order] for c in filter_kind(some, kind)),
                default=None,
            )
            for some in (found, every)
        ]
        assert best[0] == best[1]


def test_a_search_for_pipes_alone_finds_nothing_where_there_are_none():
    def options(unit, _):
        return [] if unit == 1 else [Option(1, ((0,),), 5, 5, unit)]

    assert search(3, StageTable(options, energy=False), [0.0], pipes=True) == []


def agree(found, every, *, energy):
    """Compare the fronts, and the best of each kind in each order that a name stands for."""
    count = 3 if energy else 2

    def figures(candidate):
        return candidate.nano_objectives[:count]

    assert energy or {c.kind for c in found} == {c.kind for c in every}
    assert list(map(figures, nondominated(found, figures))) == list(
        map(figures, nondominated(every, figures))
    )
    for kind in () if energy else {c.kind for c in every}:
        orders = {"sequential": (0, 1, 2), "para-only": (0, 1, 2), "pipe-only": (1, 0, 2)}
        for order in [orders[kind]] if kind in orders else [(0, 1, 2), (1, 0, 2)]:

            def rank(candidate, order=order):
                return [figures(candidate)[i] for i in order if i < count]

            assert rank(min(filter_kind(found, kind), key=rank)) == rank(
                min(filter_kind(every, kind), key=rank)
            )


def filter_kind(candidates, kind):
    return [c for c in candidates if c.kind == kind]


@given(seed=st.integers(0, 10**9), merged=st.booleans())
def test_a_candidate_reports_what_its_options_add_up_to(seed, merged):
    options, static = random_case(seed, 4, 3, merged=merged)
    runs = StageTable(options)
    for found in search(4, runs, static):
        stages = [runs.trace(s.shape, s.time_ns, s.energy_nj) for s in found.stages]
        assert [s.shape.begin for s in found.stages[1:]] == [s.shape.end for s in found.stages[:-1]]
        locations, unit = (), 0
        for option in (o for stage in stages for o in stage):
            assert option in options(unit, locations)
            locations, unit = option.locations, unit + option.units
        assert unit == 4
        times = [sum(option.time_ns for option in stage) for stage in stages]
        dynamic_nj = sum(option.energy_nj for stage in stages for option in stage)
        static_w = sum(w for p, w in enumerate(static) if sum(found.processors) >> p & 1)
        assert found.energy_nj == dynamic_nj + static_w * max(times)
        assert found.latency_ns == sum(times)
        assert found.period_ns == max(times)
        masks = [mask_of(stage) for stage in stages]
        assert tuple(masks) == found.processors
        assert all(not a & b for i, a in enumerate(masks) for b in masks[:i])


def test_a_processor_that_leaves_and_returns_is_not_a_pipeline():
    # Unit 1 runs only on processor 1, units 0 and 2 only on processor 0: one stage of both.
    only = [Option(1, ((0,),), 5, 0, 0), Option(2, ((1,),), 5, 0, 0), Option(1, (), 5, 0, 0)]
    (found,) = search(3, StageTable(lambda unit, locations: [only[unit]]), [0.0, 0.0])
    assert [(s.shape.begin, s.shape.end) for s in found.stages] == [(0, 3)]


def test_static_energy_is_that_of_the_used_processors_over_one_period():
    only = [Option(1, ((0,),), 4, 3, 0), Option(2, (), 6, 2, 0)]
    found = search(2, StageTable(lambda unit, locations: [only[unit]]), [0.5, 0.25, 9.0])
    assert {(len(c.stages), c.period_ns, c.energy_nj) for c in found} == {
        (1, 10, 5 + 7.5),
        (2, 6, 5 + 4.5),
    }


def test_the_most_balanced_point_is_nearest_to_the_ideal_one():
    assert most_balanced([(0, 10), (4, 4), (10, 0)], lambda x: x) == (4, 4)
    assert most_balanced([(3, 3)], lambda x: x) == (3, 3)


def test_a_factor_counts_the_same_in_each_objective_however_far_the_front_extends():
    near = [(10, 40), (15, 20), (40, 10)]  # 1.5 and 2 times the least; the others 4 times
    assert most_balanced(near, lambda x: x) == (15, 20)
    assert most_balanced([*near, (90_000, 9.9)], lambda x: x) == (15, 20)


@given(st.lists(st.tuples(*[st.integers(1, 10**9)] * 3), min_size=1))
def test_units_do_not_change_which_point_is_the_most_balanced(points):
    scaled = {point: tuple(10**9 * value for value in point) for point in points}
    least = [min(column) for column in zip(*points, strict=True)]

    def distance(point):
        return hypot(*(log(value / low) for value, low in zip(point, least, strict=True)))

    for objectives in (lambda point: point, scaled.__getitem__):
        found = most_balanced(points, objectives)
        assert distance(found) == pytest.approx(min(map(distance, points)), abs=1e-9)


def test_objectives_that_are_zero_have_a_distance():
    assert most_balanced([(2, 8, 0), (4, 4, 0), (3, 5, 0)], lambda x: x) == (3, 5, 0)
    assert most_balanced([(2, 8, 0), (9, 2, 10**9)], lambda x: x) == (2, 8, 0)


def test_equal_points_are_kept_once():
    assert nondominated([(1, 2), (1, 2), (2, 1), (2, 2)], lambda x: x) == [(1, 2), (2, 1)]


@given(st.lists(st.tuples(*[st.integers(1, 50)] * 3), min_size=1, max_size=30))
def test_a_thinned_front_stays_within_its_resolution(points):
    front = nondominated(points, lambda x: x)
    kept = thin_front(front, lambda x: x, 0.1, front[-1:])
    assert front[-1] in kept
    assert set(kept) <= set(front)
    for point in front:
        assert any(all(a <= 1.1 * b for a, b in zip(other, point, strict=True)) for other in kept)


@given(st.lists(st.tuples(*[st.integers(1, 50)] * 3), min_size=1, max_size=30))
def test_a_resolution_of_zero_leaves_a_front_whole(points):
    front = nondominated(points, lambda x: x)
    assert sorted(thin_front(front, lambda x: x, 0.0, ())) == front
