"""Work that ends early: a verified front all the same, never worse with more time, and bounds."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import partial
from itertools import chain as chained
from itertools import pairwise, repeat
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.pareto import nondominated
from parapipe.plan import build, layout
from parapipe.problems.solve import SolvedQuestions, solve
from parapipe.processes import deadline, shared_work
from parapipe.processes.deadline import LOOK_S, Deadline
from parapipe.search import candidate_selection
from parapipe.search import configurations_from_costs as exploring
from parapipe.search.contract import Moment
from parapipe.search.options import MapOptions
from parapipe.search.stages import stage_incumbents, stage_search
from parapipe.search.stages.labels import Bounds
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_search import StageSearch
from parapipe.search.stages.stage_table import StageTable
from tests.cases.one_search import OneSearch
from tests.cases.pipeline_cases import identical_costs, random_costs
from tests.search.test_configurations_from_costs import chain
from tests.search.test_live_boundaries import cut_everywhere, tangled
from tests.search.test_search import random_case

MODEL = "zoo:squeezenet"


def mapped(**given):
    given = {"objectives": "latency-throughput", **given}
    return parapipe.map(MODEL, "amlogic-a311d", cache=False, jobs=1, interleave="none", **given)


def figures(front):
    return [(row.latency_s, row.period_s) for row in front]


def covers(front, other, share=1.0):
    """Tell whether for each point of the other one there is one that is at least as good."""
    return all(
        any(all(a <= b * share for a, b in zip(one, point, strict=True)) for one in front)
        for point in other
    )


def after(monkeypatch, most):
    """Let only some questions be answered by the mapper before the time is over."""

    def some(questions, solver, report=None, *, deadline, meanwhile, earlier):
        answered = solve(list(dict.fromkeys(questions))[:most], solver)
        meanwhile(answered.answers)
        deadline.interrupted = True
        return SolvedQuestions(answered.answers, answered.cached)

    monkeypatch.setattr(stage_search, "solve", some)
    return mapped()


def test_more_time_never_gives_a_worse_front(monkeypatch):
    fronts = [after(monkeypatch, most) for most in (0, 40)]
    monkeypatch.undo()
    fronts.append(mapped())
    for less, more in pairwise(fronts):
        assert covers(figures(more), figures(less))
    assert not covers(figures(fronts[0]), figures(fronts[-1]))


def test_with_a_budget_its_plans_share_the_work_on_smaller_arenas(monkeypatch):
    work = []

    def laid_out(*given, **options):
        work.append(given[3])
        return layout.laid_out(*given, **options)

    monkeypatch.setattr(build, "laid_out", laid_out)
    front = mapped(budget_s=1.0)
    for row in front:
        row.plan()
    assert len(work) == len(front)
    assert sum(work) == pytest.approx(0.25)
    mapped()[0].plan()
    assert work[-1] == inf


class Work:
    """A clock that moves on with work alone: with each look at it, and with each problem solved.

    At some moment, work is interrupted.
    """

    def __init__(self, interrupted=inf):
        self.done, self.interrupted = 0, interrupted

    def __call__(self):
        self.done += 1
        if self.done == self.interrupted:
            raise KeyboardInterrupt
        return float(self.done)


class OneByOne(Executor):
    """Makes calls in the order in which they were submitted, when they are waited for."""

    def __init__(self, work):
        self.work, self.calls = work, []

    def submit(self, call, *args):
        future = Future()
        self.calls.append((future, partial(call, *args)))
        return future

    def as_completed(self, futures, timeout=None):
        until = inf if timeout is None else self.work.done + timeout
        for future, call in self.calls:
            if future in futures:
                if self.work.done >= until:
                    raise TimeoutError
                if not future.cancelled():
                    self.work()
                    future.set_result(call())
                yield future


def with_work(monkeypatch, most, *, interrupted=False, work=None):
    """Let a budget be counted in work; return an executor, and the budget if it is one."""
    work = work or Work(most if interrupted else inf)
    executor = OneByOne(work)
    for module in (exploring, deadline):
        monkeypatch.setattr(module, "Deadline", partial(Deadline, clock=work))
    monkeypatch.setattr(shared_work, "as_completed", executor.as_completed)
    return {"executor": executor, "budget_s": None if interrupted else float(most)}


KINDS = [(0, 1, 2), (0, 1, 1, 1), (0, 0, 1, 1)]
ENERGY = "latency-throughput-energy"
TO_THE_END = 10**9
nightly = partial(pytest.param, marks=pytest.mark.nightly)


def up_to(most, count):
    """Return budgets, the greater ones further apart, and one that is not used up."""
    return [*sorted({round(most ** (i / count)) for i in range(count + 1)}), TO_THE_END]


def explored(graph, costs, monkeypatch, most, objectives, *, interrupted=False, **more):
    given = with_work(monkeypatch, most, interrupted=interrupted)
    parts = cut_everywhere(graph) if graph.source.name == "tangled" else partition(graph)
    options = MapOptions(
        mapper="auto", time_limit_s=10, objectives=objectives, resolution=0.0, jobs=1,
        budget_s=given["budget_s"],
    )  # fmt: skip
    found = exploring.explore(graph, parts, costs, options, executor=given["executor"], **more)
    count = objectives.count("-") + 1
    evaluated = [each.evaluated for each in found.found]
    return [(e.latency_s, e.period_s, e.energy_j)[:count] for e in evaluated], found


def never_worse(fronts, end_share):
    """Tell whether each front covers the one of the next smaller budget.

    To 1e-9; that of a search to its end, what it did not keep by chance, to within a share.
    """
    return all(
        covers(more, less, end_share if most == TO_THE_END else 1 + 1e-9)
        for (_, less), (most, more) in pairwise(fronts)
    )


RANDOM = [nightly((kinds, seed), 40) for kinds in KINDS for seed in range(4)]


@pytest.mark.parametrize("limit", [{}, {"most_requests": 0}])
@pytest.mark.parametrize("objectives", [nightly("latency-throughput"), ENERGY])
@pytest.mark.parametrize(("case", "count"), [((KINDS[0], 0), 8), ((KINDS[1], 1), 8), *RANDOM])
def test_no_greater_budget_gives_a_worse_front(case, count, objectives, limit, monkeypatch):
    (kinds, seed), budgets = case, up_to(400, count)
    for graph in (chain(4), tangled(4, seed)):
        costs = identical_costs(graph, kinds, seed)
        every = [
            (most, *explored(graph, costs, monkeypatch, most, objectives, **limit))
            for most in budgets
        ]
        end_share = 1.05 if objectives == ENERGY else 1 + 1e-9
        assert never_worse([(most, front) for most, front, _ in every], end_share)
        for _, front, found in every:
            if undone := found.unfinished:
                assert min(row[0] for row in front) >= undone.latency_s * (1 - 1e-9)
                assert min(row[1] for row in front) >= undone.period_s * (1 - 1e-9)
        assert every[0][2].unfinished
        if not limit:
            assert every[-1][2].unfinished is None


@pytest.mark.parametrize("most", [60, 120])
def test_a_share_of_the_budget_is_left_for_interleaved_frames(most, monkeypatch):
    graph, asked = tangled(4, 0), []

    def run(_problem, incumbents, deadline):
        asked.append((bool(incumbents), deadline.left_s >= most / 5))
        return ()

    given = with_work(monkeypatch, most)
    options = MapOptions(mapper="auto", jobs=1, resolution=0.0, budget_s=given["budget_s"])
    costs, parts = identical_costs(graph, (0, 1, 2), 0), cut_everywhere(graph)
    found = exploring.explore(
        graph, parts, costs, options, executor=given["executor"],
        searches=[StageSearch(), OneSearch("interleaved", Moment.LATER, run)],
    )  # fmt: skip
    assert found.unfinished
    assert asked == [(True, True)]


@pytest.mark.parametrize("read_s", [0.0, 60.0])
def test_the_time_for_reading_a_model_starts_no_process_that_helps_and_no_look(read_s):
    graph, asked = tangled(4, 0), []

    def run(problem, _incumbents, _deadline):
        asked.append(problem.helped)
        return ()

    deadline = Deadline(clock=chained([0.0], repeat(read_s)).__next__)
    costs, parts = identical_costs(graph, (0, 1, 2), 0), cut_everywhere(graph)
    options = MapOptions(mapper="auto", jobs=2)
    searches = [StageSearch(), OneSearch("interleaved", Moment.LATER, run)]
    exploring.explore(graph, parts, costs, options, searches=searches, deadline=deadline)
    assert asked == [False]
    assert deadline.look_s == read_s + LOOK_S


@pytest.mark.parametrize("count", [12, nightly(100)])
def test_no_later_interruption_gives_a_worse_front(count, monkeypatch):
    graph, fronts = tangled(4, 0), []
    costs = identical_costs(graph, (0, 1, 2), 0)
    for most in up_to(250, count):
        try:
            front, found = explored(graph, costs, monkeypatch, most, ENERGY, interrupted=True)
        except KeyboardInterrupt:  # there was nothing to end with
            assert not fronts
        else:
            fronts.append((most, front))
    assert never_worse(fronts, 1.05)
    assert len({tuple(front) for _, front in fronts}) > 1
    assert found.unfinished is None


@pytest.mark.parametrize("count", [8, nightly(80)])
def test_no_greater_budget_gives_a_worse_front_of_several_cost_tables(count, monkeypatch):
    graph = chain(3)
    tables = [random_costs(graph, 3, seed) for seed in range(2)]
    object.__setattr__(tables[1], "transfers", tables[0].transfers)
    fronts = [
        (most, explored(graph, tables[0], monkeypatch, most, ENERGY, others=tables[1:])[0])
        for most in up_to(400, count)
    ]
    assert never_worse(fronts, 1.05)


@pytest.mark.parametrize(
    ("units", "kinds", "budgets"),
    [
        (7, (0, 1, 1), up_to(1000, 8)),
        (101, (0, 1), [1, 1800, TO_THE_END]),
        nightly(7, (0, 1, 1), up_to(1000, 80)),
        nightly(101, (0, 1, 1), up_to(10000, 30)),
    ],
)
def test_no_greater_budget_gives_a_worse_front_of_a_long_network(
    units, kinds, budgets, monkeypatch
):
    most = 5 if units < 100 else stage_incumbents.ENERGY_UNITS
    monkeypatch.setattr(stage_incumbents, "ENERGY_UNITS", most)
    monkeypatch.setattr(candidate_selection, "thin_front", lambda front, *_: front)  # to within 5 %
    graph = chain(units)
    costs = identical_costs(graph, kinds, 0)
    fronts = [(w, explored(graph, costs, monkeypatch, w, ENERGY)[0]) for w in budgets]
    assert never_worse(fronts, 1 + 1e-9)
    assert not covers(fronts[0][1], fronts[-1][1])


@pytest.mark.parametrize(
    ("few", "budgets"),
    [
        (False, [1, 900, 2600, TO_THE_END]),
        nightly(False, up_to(5000, 50)),
        nightly(True, up_to(10000, 25)),
    ],
)
def test_no_greater_budget_gives_a_worse_front_of_a_network_of_branches(few, budgets, monkeypatch):
    graph, fronts = parapipe.load_model(MODEL), []
    costs = build_cost_table(graph, parapipe.load_platform("amlogic-a311d"))
    for most in budgets:
        if few:
            front, _ = explored(graph, costs, monkeypatch, most, ENERGY, most_requests=0)
        else:
            rows = mapped(objectives=ENERGY, resolution=0.0, **with_work(monkeypatch, most))
            front = [(row.latency_s, row.period_s, row.energy_j) for row in rows]
        fronts.append((most, front))
    assert never_worse(fronts, 1.05)
    assert not covers(fronts[0][1], fronts[-1][1])
    assert few or rows.document.unfinished is None


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
    def interrupted(questions, solver, report=None, *, deadline, meanwhile, earlier):
        answered = solve(list(dict.fromkeys(questions))[:20], solver)
        meanwhile(answered.answers)
        with deadline.ending():
            raise KeyboardInterrupt
        return answered

    monkeypatch.setattr(stage_search, "solve", interrupted)
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
    assert bounds.least_periods_ns(every_cut=True)[-1] <= period_ns
    assert (
        bounds.least_periods_ns(every_cut=False)[-1] <= bounds.least_periods_ns(every_cut=True)[-1]
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), cut=st.integers(1, 5))
def test_a_search_over_few_cuts_is_exact_for_them_and_its_bound_holds_for_all(seed, cut):
    options, static = random_case(seed, 6, 3)
    table = StageTable(options)
    few = table.at_cuts([0, cut, 6])
    every = search(6, table, static)
    some = search(2, few, static)

    def figures(candidate):
        return candidate.nano_objectives

    allowed = [c for c in every if all(stage.shape.end in (cut, 6) for stage in c.stages)]
    for candidate in nondominated(allowed, figures):
        assert any(
            all(a <= b for a, b in zip(figures(c), figures(candidate), strict=True)) for c in some
        )
    bound_ns = Bounds(2, few, 3).least_periods_ns(every_cut=False)[-1]
    assert bound_ns <= min(candidate.period_ns for candidate in every) < inf


def test_a_search_that_is_over_before_it_has_chosen_where_to_cut_finds_nothing_more():
    options, static = random_case(0, 6, 3)
    known = search(6, StageTable(options), static)
    over = StageTable(options, deadline=Deadline(0.0))
    assert search(6, over, static, incumbents=known, most_cuts=4, deadline=Deadline(0.0)) == []


def test_more_cuts_than_are_searched_are_told(monkeypatch):
    monkeypatch.setattr(stage_incumbents, "MOST_CUTS", 5)
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
    monkeypatch.setattr(stage_incumbents, "ENERGY_UNITS", 5)
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
