"""Networks cut into pieces, and pieces that are run together or replaced."""

from __future__ import annotations

import os
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import PlanError, StrategyError
from parapipe.runtime.folder import RunError
from parapipe.simulate.strategies import Arrivals, strategy_replay
from parapipe.strategies.cut import (
    Operator,
    by_name,
    by_subgraph,
    by_type,
    chains,
    cut,
    operators_of,
    part_runs,
    stretches,
)
from parapipe.strategies.order_of_plan import ReadyPool
from parapipe.strategies.steal import Steal
from parapipe.strategies.strategy_executor import StrategyExecutor
from parapipe.strategies.work import Job
from tests.cases.branchy import branchy
from tests.cases.decided import work
from tests.cases.hand_made import Piece, folder_of, node, scalar


class BySubgraph(ReadyPool):
    cut = cut(by_subgraph())


class ByNameThenType(ReadyPool):
    cut = cut(by_name(r"left|right"), by_type("Add"))


class InStretches(Steal):
    cut = stretches(4)


class Circle(ReadyPool):
    """The first and the last operator of the network as one piece."""

    @staticmethod
    def cut(operators):
        return {operators[0].id: "ends", operators[-1].id: "ends"}


@pytest.fixture(scope="module")
def plan(branchy_front):
    return next(each for each in branchy_front if each.kind == "sequential").plan()


def pieces(plan, strategy):
    return {task.operators for task in plan.simulate(strategy=strategy, frames=3).document.tasks}


def test_a_network_is_cut_at_its_subgraphs(plan):
    assert pieces(plan, BySubgraph) == {
        ("right0", "left0", "join0"), ("right1", "left1", "join1")
    }  # fmt: skip


def test_what_an_expression_finds_names_the_piece(plan):
    # A piece "left" would hold left0 and left1, and join0 between them waits for the former.
    with pytest.raises(PlanError, match=r"^pieces would wait for each other in a circle \("):
        pieces(plan, ByNameThenType)

    class Forks(ReadyPool):
        cut = cut(by_name(r"(?<=left|ight)\d"), by_type("Add"))

    assert pieces(plan, Forks) == {
        ("right0", "left0"), ("join0",), ("right1", "left1"), ("join1",)
    }  # fmt: skip


def test_a_piece_that_a_way_leaves_and_comes_back_to_is_refused(plan):
    with pytest.raises(PlanError, match=r"circle \(.*ends"):
        pieces(plan, Circle)


def test_rules_see_operators_with_what_they_read_and_take(plan):
    left, right, join, *_ = operators_of(plan)
    assert (left.type, left.subgraph, left.part, left.reads) == ("Conv", 1, None, ())
    assert join.reads == (left.id, right.id)
    assert all(each.time_s > 0 for each in (left, right, join))


def test_chains_end_where_several_read_and_where_several_are_read():
    reads = {"a": "", "b": "a", "c": "b", "d": "c", "e": "c", "f": "de", "g": "f", "h": ""}
    rows = [Operator(v, v, "Conv", 1, None, "big", 1.0, tuple(made)) for v, made in reads.items()]
    found = chains(rows)
    assert {tuple(v for v in reads if found[v] == name) for name in found.values()} == {
        ("a", "b", "c"), ("d",), ("e",), ("f", "g"), ("h",)
    }  # fmt: skip


def test_parts_go_on_until_they_need_what_others_have_made():
    # x is cut for a0 and a1; b0 and b1 follow; c0 reads b0 and a slice s of b1, c1 b1 only, on q.
    reads = {
        "x0": "", "x1": "", "a0": "x0", "a1": "x1", "b0": "a0", "b1": "a1", "s": "b1", "j": "b0 s",
        "c0": "j", "c1": "b1", "y": "c0 c1",
    }  # fmt: skip
    rows = [
        Operator(
            v, v, "Conv", 1, int(v[1]) if v[1:] and v[0] != "x" else None,
            "q" if v == "c1" else "p", 1.0, tuple(made.split()),
        )
        for v, made in reads.items()
    ]  # fmt: skip
    found = part_runs(rows)
    assert {tuple(v for v in reads if found[v] == name) for name in found.values()} == {
        ("x0", "a0", "b0"), ("x1", "a1", "b1"), ("s", "j", "c0"), ("c1",), ("y",)
    }  # fmt: skip


def test_stretches_take_about_equal_times_and_begin_where_others_are_waited_for():
    times_s = {"a": 1, "b": 1, "c": 3, "d": 1, "e": 2}
    reads = {"a": "", "b": "a", "c": "b", "x": "b", "d": "c", "e": "dx"}
    rows = [
        Operator(v, v, "Conv", 1, None, "q" if v == "x" else "p", times_s.get(v, 5.0), tuple(made))
        for v, made in reads.items()
    ]
    for count, expected in ((2, "abc d x e"), (4, "ab c d x e"), (1, "abcd x e")):
        found = stretches(count)(rows)
        of = {v: (name, v == "x") for v, name in found.items()}
        assert {"".join(v for v in found if of[v] == each) for each in of.values()} == {
            *expected.split()
        }, count
    with pytest.raises(StrategyError, match="1 stretch or more, not 0"):
        stretches(0)


@settings(max_examples=200)
@given(seed=st.integers(0, 10**9), cut=st.sampled_from([part_runs, stretches(2), stretches(5)]))
def test_whole_networks_are_cut_into_pieces_that_never_wait_in_a_circle(seed, cut):
    draw = random.Random(seed)
    rows = []
    for v in range(draw.randint(1, 30)):
        reads = draw.sample(range(v), min(v, draw.randint(0, 3)))
        part = draw.choice([None, 0, 1, 2])
        name, reads = str(v), tuple(map(str, reads))
        rows.append(Operator(name, name, "Conv", 1, part, draw.choice("pq"), 1.0, reads))
    found = cut(rows)
    of = {each.id: (found[each.id], each.processor) for each in rows}
    between = nx.DiGraph((of[r], of[v.id]) for v in rows for r in v.reads if of[r] != of[v.id])
    assert nx.is_directed_acyclic_graph(between)


@pytest.mark.parametrize("strategy", [BySubgraph, InStretches, ReadyPool])
def test_pieces_run_on_this_machine(plan, strategy, tmp_path):
    model = branchy(tmp_path / "branchy.onnx")
    cores = {each.name: (0,) for each in plan.processors}
    run = plan.run(model=model, strategy=strategy, cores=cores, frames=6, saturate=True)
    assert len(run.record.spans) == 6 * len(run.document.tasks)


class Chains:
    """Two tasks at one go where the second waits for the first only."""

    follows_plan = False
    replace = None

    def __init__(self, work):
        self._work = work

    def schedule(self, state):
        for processor in state.free:
            for job in state.ready()[:1]:
                behind = [
                    Job(v, job.frame)
                    for v in self._work.readers[job.task][:1]
                    if self._work.producers[v] == (job.task,)
                ]
                replace = self.replace if behind else None
                if all(state.may_follow(each, [job]) for each in behind):  # else: no room yet
                    state.execute([job, *behind], on=processor, replace=replace)


def test_pieces_of_a_chain_are_run_one_behind_the_other_at_one_go():
    todo = work([[1, 1], [2, 2], [3, 3]], [(0, 1), (1, 2)], [[0, 1, 2], []])
    spans, _ = strategy_replay(todo, Chains, "chains", 1, Arrivals(None, 2))
    assert [(s.name, s.start_s, s.end_s) for s in spans] == [("a", 0, 1), ("b", 1, 3), ("c", 3, 6)]
    assert spans[0].resource == spans[1].resource


def test_a_piece_that_waits_for_others_than_those_before_it_is_refused():
    class Greedy(Chains):
        def schedule(self, state):
            state.execute([Job(0, 0), Job(2, 0)], on=0)

    todo = work([[1, 1], [2, 2], [3, 3]], [(0, 2), (1, 2)], [[0, 1, 2], []])
    with pytest.raises(StrategyError, match=r"'p' is given what it cannot do now \(\(0, 0, 0\), "):
        strategy_replay(todo, Greedy, "greedy", 1, Arrivals(None, 2))


def chain_folder(path):
    """y = 2 (x + 1), each operator in a session."""
    pieces = [
        Piece("00-a", "a", [node("Add", "x", "one", "t")], ["x"], ["t"], 0, None,
              [scalar("one", 1.0)]),
        Piece("01-a", "a", [node("Mul", "t", "two", "y")], ["t"], ["y"], 0, None,
              [scalar("two", 2.0)]),
    ]  # fmt: skip
    shapes = {name: [2, 3] for name in "xty"}
    cores = {"a": (min(os.sched_getaffinity(0)),)}
    return folder_of(path, pieces, inputs=["x"], outputs=["y"], shapes=shapes, cores=cores)


class Replacing(Chains):
    @staticmethod
    def replace(inputs):
        return {"y": inputs["x"] + 100}


class Lacking(Chains):
    @staticmethod
    def replace(inputs):
        return {"t": inputs["x"]}


@pytest.mark.parametrize(("strategy", "result"), [(Chains, 2 * (5 + 1)), (Replacing, 105)])
def test_on_this_machine_pieces_are_run_at_one_go_or_replaced(strategy, result, tmp_path):
    executor = StrategyExecutor(chain_folder(tmp_path), strategy, "mine")
    found = list(executor.run({"x": np.full((2, 3), 5, np.float32)} for _ in range(20)))
    assert [each["y"][0, 0] for each in found] == [result] * 20
    assert len(executor.record.spans) == 40


def test_a_function_that_does_not_return_what_others_read_ends_the_run(tmp_path):
    executor = StrategyExecutor(chain_folder(tmp_path), Lacking, "mine")
    with pytest.raises(RunError, match=r"^segment '00-a' on .*: replace does not return y$"):
        list(executor.run([{"x": np.full((2, 3), 5, np.float32)}]))
