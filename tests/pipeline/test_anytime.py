"""Work that ends early: a verified front all the same, never worse with more time, and bounds."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.pipeline import explore as exploring
from parapipe.pipeline.bounds import Bounds
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.dominance import nondominated
from parapipe.pipeline.search import search
from parapipe.pipeline.solve import Solved, solve
from parapipe.pipeline.stage_table import StageTable
from tests.pipeline.test_search import random_case

MODEL = "zoo:squeezenet"


def mapped(**given):
    given = {"objectives": "latency-throughput", **given}
    return parapipe.map(MODEL, "amlogic-a311d", cache=False, jobs=1, **given)


def figures(front):
    return [(row.latency_s, row.period_s) for row in front]


def covers(front, other):
    """Tell whether for each point of the other one there is one that is at least as good."""
    return all(any(a <= c and b <= d for a, b in front) for c, d in other)


def after(monkeypatch, most):
    """Let only some questions be answered by the mapper before the time is over."""

    def some(questions, solver, report=None, *, deadline, meanwhile, known):
        answered = solve(list(dict.fromkeys(questions))[:most], solver)
        meanwhile(answered.answers)
        deadline.interrupted = True
        return Solved(answered.answers, answered.cached)

    monkeypatch.setattr(exploring, "solve", some)
    return mapped()


def test_more_time_never_gives_a_worse_front(monkeypatch):
    fronts = [after(monkeypatch, most) for most in (0, 10, 40, 80)]
    monkeypatch.undo()
    fronts.append(mapped())
    for less, more in pairwise(fronts):
        assert covers(figures(more), figures(less))
    assert not covers(figures(fronts[0]), figures(fronts[-1]))


def test_a_front_that_was_ended_early_says_so_and_its_bounds_hold(monkeypatch):
    whole = mapped()
    assert whole.document.unfinished is None
    early = after(monkeypatch, 10)
    undone = early.document.unfinished
    assert "subgraphs were not solved in time" in undone.reasons[0]
    assert 0 < undone.latency_s <= min(row.latency_s for row in whole) * (1 + 1e-9)
    assert 0 < undone.period_s <= min(row.period_s for row in whole) * (1 + 1e-9)
    for row in early:
        row.plan()  # each is verified
    assert max(row.gap for row in early) > 0


def test_a_budget_of_a_moment_still_gives_a_front():
    front = mapped(budget_s=1e-6)
    assert front.document.unfinished
    assert {"big-alone", "little-alone", "gpu-alone"} <= {n for row in front for n in row.names}


def test_an_interruption_ends_with_the_best_so_far_once_there_is_a_front(monkeypatch):
    def interrupted(questions, solver, report=None, *, deadline, meanwhile, known):
        answered = solve(list(dict.fromkeys(questions))[:20], solver)
        meanwhile(answered.answers)
        with deadline.ending():
            raise KeyboardInterrupt
        return answered

    monkeypatch.setattr(exploring, "solve", interrupted)
    assert mapped().document.unfinished


def test_an_interruption_before_that_is_one():
    deadline = Deadline()
    with pytest.raises(KeyboardInterrupt), deadline.ending():
        raise KeyboardInterrupt
    assert not deadline.over


def test_a_deadline_counts_from_its_beginning():
    clock = iter([10.0, 11.0, 12.5, 13.0]).__next__
    deadline = Deadline(3.0, clock=clock)
    assert deadline.left_s == 2.0
    assert not deadline.over
    assert deadline.over


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), units=st.integers(1, 6), processors=st.integers(1, 3))
def test_bounds_are_below_every_configuration(seed, units, processors):
    options, static = random_case(seed, units, processors)
    table = StageTable(options)
    every = search(units, table, static)
    bounds = Bounds(units, table, processors)
    latency_ns = min(candidate.latency_ns for candidate in every)
    period_ns = min(candidate.period_ns for candidate in every)
    assert bounds.after_ns[0, 0, -1] == latency_ns
    assert bounds.least_period_ns(whole=True) <= period_ns
    assert bounds.least_period_ns(whole=False) <= bounds.least_period_ns(whole=True)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), cut=st.integers(1, 5))
def test_a_search_over_few_cuts_is_exact_for_them_and_its_bound_holds_for_all(seed, cut):
    options, static = random_case(seed, 6, 3)
    table = StageTable(options)
    few = table.at_cuts([0, cut, 6])
    every = search(6, table, static)
    some = search(2, few, static)

    def figures(candidate):
        return candidate.objectives

    allowed = [c for c in every if all(stage.shape.end in (cut, 6) for stage in c.stages)]
    for candidate in nondominated(allowed, figures):
        assert any(
            all(a <= b for a, b in zip(figures(c), figures(candidate), strict=True)) for c in some
        )
    bound_ns = Bounds(2, few, 3).least_period_ns(whole=False)
    assert bound_ns <= min(candidate.period_ns for candidate in every) < inf


def test_more_cuts_than_are_searched_are_told(monkeypatch):
    monkeypatch.setattr(exploring, "MOST_CUTS", 5)
    front = mapped()
    first, second = front.document.unfinished.reasons
    assert first.startswith("stages begin and end at 4 of ")
    assert second.startswith("of configurations that match to within a share of 0.01 ")
    monkeypatch.undo()
    assert covers(figures(mapped()), figures(front))
    assert min(row.period_s for row in front) >= front.document.unfinished.period_s


def test_a_network_of_many_units_has_a_front_near_the_exact_one(monkeypatch):
    energy = "latency-throughput-energy"
    whole = mapped(objectives=energy)
    monkeypatch.setattr(exploring, "ENERGY_UNITS", 5)
    front = mapped(objectives=energy)
    (reason,) = front.document.unfinished.reasons
    assert reason.startswith("energy is traded by stages at 59 places, and of configurations ")
    assert front.document.options.energy_resolution is None
    assert len(front) < len(whole)
    # all places are among the 59: what is left out is matched
    shortest = [row for row in whole if row.pareto_latency_throughput]
    assert shortest
    for row in shortest:
        assert any(
            other.latency_s <= row.latency_s * 1.05 and other.period_s <= row.period_s * 1.05
            for other in front
        )
    named = {name: row for row in whole for name in row.names}
    for name in ("sequential", "pipe-only", "para-only", "hybrid-L", "hybrid-T"):
        figures_of = [(each.latency_s, each.period_s) for each in (front[name], named[name])]
        assert figures_of[0] == pytest.approx(figures_of[1])
