"""Fronts under a limit of memory, and fronts that trade it: brute force, and never worse."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from decimal import ROUND_CEILING
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parapipe
from parapipe.digits import plain
from parapipe.errors import MappingError
from parapipe.graph.lifetimes import peak_activations
from parapipe.graph.operator_graph import (
    Constant,
    ModelSource,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.graph.partition import partition
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import megabytes, peak_memory
from parapipe.memory_search import selection
from parapipe.memory_search.low_memory import low_memory_order, moves
from parapipe.pareto import nondominated
from parapipe.platform.memories import MemorySystem
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from parapipe.search.registry import requested_searches
from tests.cases.branchy import branchy
from tests.cases.pipeline_cases import every_division, random_costs
from tests.cases.plan_cases import random_case


def chain(operators, rng):
    made = tuple(
        Operator(f"t{v}", f"op{v}", "", "Conv", {}, (f"t{v - 1}" if v else "x", f"w{v}"),
                 (f"t{v}",), Work(1, 4, 4), ())
        for v in range(operators)
    )  # fmt: skip
    names = ["x", *(op.id for op in made)]
    tensors = {name: Tensor(name, (rng.randint(1, 9),), "float32") for name in names}
    weights = {
        f"w{v}": Constant(f"w{v}", (rng.randint(1, 3),), "float32") for v in range(operators)
    }
    source = ModelSource("chain", "")
    return OperatorGraph(source, "fused", made, tensors, weights, ("x",), (made[-1].id,))


def every_configuration(graph, costs):
    """Each operator of a chain on each processor, cut wherever that is allowed, with its peak."""
    count, storage = len(graph.operators), Storage.of(graph, costs)
    for placed in product(range(len(costs.processors)), repeat=count):
        for stages in every_division(range(count)):
            used = [{placed[v] for v in stage} for stage in stages]
            if sum(map(len, used)) == len(set().union(*used)):
                assignment = Assignment(placed, tuple(map(tuple, stages)), ordered=True)
                mapping = mapping_of(graph, None, costs, assignment)
                made = evaluate(mapping, graph, costs)
                peak = peak_memory(mapping, storage, made.period_s)
                yield figures(made), [peak.total.size_bytes, *(m.size_bytes for m in peak.memories)]


def figures(made):
    return tuple(round(value, 8) for value in (made.latency_s, made.period_s, made.energy_j))


def options(**more):
    return MapOptions(mapper="coarse", resolution=0.0, jobs=1, time_limit_s=10, **more)


def case(seed, *, apart):
    """A chain of four operators on three processors, two of which may share a memory."""
    rng = random.Random(seed)
    graph = chain(4, rng)
    costs = random_costs(graph, 3, seed)
    if apart:
        names = costs.processors
        where = {name: int(i == 2) for i, name in enumerate(names)}
        system = MemorySystem(
            ("dram", "local"), False, where, (1, 1), (None, None), frozenset(), {}
        )
        costs = put(costs, system)
    return graph, costs


def put(costs, system):
    object.__setattr__(costs, "memory_system", system)
    return costs


def explored(graph, costs, **more):
    asked = options(**more)
    searches = requested_searches(replace(asked, interleave="none"))
    return explore(graph, partition(graph), costs, asked, searches=searches)


def mapped(graph, costs, **more):
    return explored(graph, costs, **more).found


def peak_of(found, graph, costs):
    return peak_memory(found.mapping, Storage.of(graph, costs), found.evaluated.period_s)


def beats(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True))


CASES = [
    pytest.param(seed, apart, marks=[pytest.mark.nightly] * (seed >= 6))
    for seed in range(12)
    for apart in (False, True)
]


@pytest.mark.parametrize(("seed", "apart"), CASES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_what_is_shown_fits_and_is_no_worse_than_what_fits_of_the_whole_front(seed, apart, share):
    graph, costs = case(seed, apart=apart)
    every = [*every_configuration(graph, costs)]
    sizes = sorted({size for _, (size, *_) in every})
    limit = float(sizes[int(share * (len(sizes) - 1))])
    found = mapped(graph, costs, max_memory_bytes=limit)
    assert all(peak_of(each, graph, costs).total.size_bytes <= limit for each in found)
    shown = [figures(each.evaluated) for each in found if each.pareto]
    best = nondominated({made for made, (size, *_) in every if size <= limit}, lambda made: made)
    for made in shown:  # nothing is better than the best of all
        assert any(beats(one, made) for one in best)
    for each in mapped(graph, costs):
        if peak_of(each, graph, costs).total.size_bytes <= limit:
            assert any(beats(one, figures(each.evaluated)) for one in shown)


@pytest.mark.parametrize(("seed", "apart"), CASES)
def test_less_than_the_least_of_all_mappings_is_refused_with_the_least(seed, apart):
    graph, costs = case(seed, apart=apart)
    least = min(size for _, (size, *_) in every_configuration(graph, costs))
    assert mapped(graph, costs, max_memory_bytes=float(least))
    with pytest.raises(MappingError) as caught:
        mapped(graph, costs, max_memory_bytes=least - 0.5)
    assert f"needs {plain(least / 1e6)} MB instead of" in str(caught.value)
    assert "of it are weights" in str(caught.value)
    proven = Storage.of(graph, costs).least_bytes(costs)
    assert proven <= least
    assert f"no mapping needs less than {plain(proven / 1e6)} MB" in str(caught.value)


@pytest.mark.parametrize("seed", range(6))
def test_a_limit_may_hold_for_one_memory(seed):
    graph, costs = case(seed, apart=True)
    every = [*every_configuration(graph, costs)]
    local = sorted({size for _, (_, _, size) in every})
    limit = float(local[len(local) // 2])
    found = mapped(graph, costs, max_memory_bytes={"local": limit})
    assert all(peak_of(each, graph, costs).memories[1].size_bytes <= limit for each in found)
    assert min(figures(each.evaluated) for each in found) == min(
        made for made, (_, _, size) in every if size <= limit
    )


@pytest.mark.parametrize(("seed", "apart"), CASES)
def test_with_memory_as_an_objective_the_front_trades_it(seed, apart):
    graph, costs = case(seed, apart=apart)
    found = mapped(graph, costs, objectives="latency-throughput-energy-memory")
    shown = [
        (*figures(each.evaluated), peak_of(each, graph, costs).total.size_bytes)
        for each in found
        if each.pareto
    ]
    assert sorted(shown) == sorted(nondominated(shown, lambda each: each))
    least = min(size for _, (size, *_) in every_configuration(graph, costs))
    (named,) = (each for each in found if "least-memory" in each.names)
    assert peak_of(named, graph, costs).total.size_bytes == least == min(s[3] for s in shown)
    for each in mapped(graph, costs):
        if each.pareto:
            own = (*figures(each.evaluated), peak_of(each, graph, costs).total.size_bytes)
            assert any(beats(one, own) for one in shown)


@pytest.mark.parametrize(
    ("size_bytes", "told"),
    [
        (30_000_000, "30 MB"),
        (9_014_000, "9.014 MB"),
        (9_014_001, "9.015 MB"),
        (999_999_999, "1000 MB"),
    ],
)
def test_what_is_needed_is_told_so_that_a_limit_of_it_is_kept(size_bytes, told):
    assert megabytes(size_bytes, ROUND_CEILING) == told


def interrupted(*_given, **_named):
    raise KeyboardInterrupt


def test_an_interruption_before_anything_fits_is_one(monkeypatch):
    graph, costs = case(0, apart=False)
    monkeypatch.setattr(selection, "cheap_cuts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explored(graph, costs, max_memory_bytes=1e9)


@pytest.mark.parametrize("name", ["_worth_changing", "_fewer_frames", "_with_moved_operators"])
def test_an_interruption_of_the_search_for_less_memory_keeps_what_fits(name, monkeypatch):

    graph, costs = case(0, apart=False)
    limit = 2.0 * min(size for _, (size, *_) in every_configuration(graph, costs))
    monkeypatch.setattr(selection, name, interrupted)
    found = explored(graph, costs, max_memory_bytes=limit)
    assert found.interrupted
    assert "the search for what needs less memory was ended early" in found.unfinished.reasons
    assert all(peak_of(each, graph, costs).total.size_bytes <= limit for each in found.found)


def test_kinds_that_do_not_fit_are_absent_with_the_least_that_was_found():
    graph, costs = case(0, apart=False)
    sequential = min(size for made, (size, *_) in every_configuration(graph, costs))
    exploration = explored(graph, costs, max_memory_bytes=float(sequential))
    assert "pipe-only" not in {each.mapping.kind for each in exploration.found}
    assert exploration.absent["pipe-only"].startswith("the least memory found is ")


def listed_absent():
    """The kinds of a chain that are absent with a limit, in their order."""
    graph, costs = case(0, apart=False)
    least = float(min(size for _, (size, *_) in every_configuration(graph, costs)))
    return [*explored(graph, costs, max_memory_bytes=least).absent]


def test_kinds_that_do_not_fit_are_in_one_order_in_every_process():
    script = "from tests.mappings.test_memory_limit import listed_absent; print(*listed_absent())"
    for seed in ("1", "2", "3"):  # sets of words have another order with each
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, env=environment | {"PYTHONHASHSEED": seed}, text=True, check=True,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert done.stdout.split() == ["pipe-only", "hybrid"]


def side_by_side(*, kept=False, sizes=(10, 10, 1, 1)):
    """Two branches, a to c and b to d, and e that joins them; tensors of so many numbers."""
    reads = {"a": "x", "b": "x", "c": "a", "d": "b", "e": "c d"}
    made = tuple(
        Operator(name, name, "", "Conv", {}, tuple(inputs.split()), (name,), Work(1, 4, 4), ())
        for name, inputs in reads.items()
    )
    shapes = {"x": 1, **dict(zip("abcd", sizes, strict=True)), "e": 1}
    tensors = {name: Tensor(name, (size,), "float32") for name, size in shapes.items()}
    outputs = ("e", "a") if kept else ("e",)
    source = ModelSource("branches", "")
    return OperatorGraph(source, "fused", made, tensors, {}, ("x",), outputs)


def test_a_branch_that_frees_what_it_made_goes_first():
    graph = side_by_side()
    assert low_memory_order(graph, range(5)) == (0, 2, 1, 3, 4)
    assert peak_activations(graph, range(5)).size_bytes == 21 * 4
    assert peak_activations(graph, low_memory_order(graph, range(5))).size_bytes == 12 * 4


def test_a_branch_whose_tensor_stays_goes_last():
    assert low_memory_order(side_by_side(kept=True), range(5)) == (1, 3, 0, 2, 4)


def test_a_branch_that_grows_goes_after_one_that_shrinks():
    assert low_memory_order(side_by_side(sizes=(1, 10, 10, 1)), range(5)) == (1, 3, 0, 2, 4)


@given(seed=st.integers(0, 10**9))
def test_thrifty_orders_are_topological(seed):
    graph, *_ = random_case(seed)
    order = low_memory_order(graph, range(len(graph.operators)))
    place = {v: i for i, v in enumerate(order)}
    assert sorted(order) == [*range(len(graph.operators))]
    assert all(place[u] < place[v] for v in order for u in graph.predecessors(v))


def test_only_an_order_that_no_search_for_times_prefers_fits():
    # On one processor every order takes the same time. The first branch grows, the second shrinks:
    # with a and c before b, both large tensors are alive beside x; with b and d before c only one.
    graph = side_by_side(sizes=(1, 10, 10, 1))
    costs = random_costs(graph, 1, 0)
    (plain,) = mapped(graph, costs)
    (frugal,) = mapped(graph, costs, max_memory_bytes=13.0 * 4)
    assert peak_of(plain, graph, costs).total.size_bytes == 21 * 4
    assert peak_of(frugal, graph, costs).total.size_bytes <= 13 * 4
    assert figures(plain.evaluated) == figures(frugal.evaluated)
    assert frugal.proven == plain.proven


@pytest.mark.parametrize(("seed", "apart"), CASES)
def test_moved_operators_keep_to_the_order_and_stages_to_their_own_processors(seed, apart):
    graph, costs = case(seed, apart=apart)
    for found in mapped(graph, costs):
        others = [*moves(found, list(graph.tensors), graph, costs)]
        assert others
        for other in others:
            at = other.mapping.at
            assert sorted(at) == [*range(len(graph.operators))]
            assert other.mapping.kind != "interleaved"
            assert sum(at[v].processor != found.mapping.at[v].processor or
                       at[v].lag != found.mapping.at[v].lag for v in at) >= 1  # fmt: skip
            for v in at:
                for u in graph.predecessors(v):
                    assert (at[u].lag, at[u].end_s) <= (at[v].lag, at[v].start_s)


def test_an_operator_moves_where_that_alone_fits():
    # A chain of a large and a small tensor; little has a memory of 8 bytes of its own. On both, in
    # one stage, with the cut at the large tensor a copy of it would lie there; b moves instead.
    reads = {"a": "x", "b": "a", "c": "b"}
    made = tuple(
        Operator(name, name, "", "Conv", {}, (read,), (name,), Work(1, 4, 4), ())
        for name, read in reads.items()
    )
    tensors = {
        name: Tensor(name, (size,), "float32")
        for name, size in {"x": 1, "a": 9, "b": 1, "c": 1}.items()
    }
    graph = OperatorGraph(ModelSource("c", ""), "fused", made, tensors, {}, ("x",), ("c",))
    where = {"p0": 0, "p1": 1}
    system = MemorySystem(("dram", "local"), False, where, (1, 1), (None, None), frozenset(), {})
    costs = put(random_costs(graph, 2, 0), system)
    mapping = mapping_of(graph, None, costs, Assignment((0, 1, 1), ((0, 1, 2),), ordered=True))
    evaluated = evaluate(mapping, graph, costs)
    given = Configuration(mapping, evaluated, True, 0.0, (), True, True, 0)
    assert peak_of(given, graph, costs).memories[1].size_bytes == 40
    local = [
        (peak_of(each, graph, costs).memories[1].size_bytes, each.mapping.at[1].processor)
        for each in moves(given, ["a"], graph, costs)
    ]
    assert (8, 0) in local


def test_a_memory_that_the_platform_does_not_have_is_named(tmp_path):
    with pytest.raises(MappingError, match="no memory 'dram'; it has 'shared memory assumed'"):
        parapipe.map(branchy(tmp_path / "m.onnx"), "amlogic-a311d", max_memory_bytes={"dram": 1e6})


def test_a_limit_that_everything_keeps_changes_nothing(branchy_front, tmp_path):
    path = branchy(tmp_path / "m.onnx")
    stages = {"interleave": "none", "cache": False, "jobs": 1}
    limited = parapipe.map(path, "amlogic-a311d", max_memory_bytes=1e12, **stages)
    assert [(row.drawing, row.latency_s, row.energy_j, row.names) for row in limited] == [
        (row.drawing, row.latency_s, row.energy_j, row.names) for row in branchy_front
    ]
