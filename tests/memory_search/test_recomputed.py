"""`map --recompute`: brute force over rows of runs, a run of what it finds, and DenseNet-121."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from functools import partial

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.api.load import locate_model
from parapipe.errors import MappingError
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.onnx_import import import_model, import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.graph.partition import partition
from parapipe.mappings.memory import order_problem
from parapipe.memory_search.recompute import Rows, numbered, rules_of
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import random_frames
from parapipe.solvers.memory.least_memory import peak_of_runs
from tests.cases.random_networks import network
from tests.cases.session_runs import assert_equal, frame, run_in_turn, run_whole
from tests.solvers.memory.test_recompute import least_cost

UNIT = 4 * 64 * 64  # bytes of a, c, e
AXES = 8  # the constant
OWN = {"cache": False, "jobs": 1, "interleave": "none", "draws": 0}
OBJECTIVES = "latency-throughput-memory"


def model_with_a_cheap_tensor():
    """`big`, ten times as large as what it is made of, is read again behind a larger tensor."""
    chunks = {"big": ["a"] * 10, "d": ["c"] * 15}
    joined = {name: f"Concat<axis=1>({', '.join(of)})" for name, of in chunks.items()}
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> cheap '
        "(float[1,1,64,64] x) => (float[1,10,64,64] y) { "
        f"a = Relu(x)\n big = {joined['big']}\n"
        "axes = Constant<value_ints=[1]>()\n c = ReduceMax(big, axes)\n"
        f"d = {joined['d']}\n e = ReduceMean(d, axes)\n y = Mul(big, e) }}"
    )
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("cheap") / "cheap.onnx"
    onnx.save(model_with_a_cheap_tensor(), path)
    return path


@pytest.fixture(scope="module")
def front(model):
    return parapipe.map(model, "amlogic-a311d", recompute=True, objectives=OBJECTIVES, **OWN)


def recomputed(front):
    return [row for row in front.document.configurations if row.split]


def test_without_recomputation_all_that_is_alive_at_once_is_needed(model):
    with pytest.raises(MappingError, match=f"needs {26 * UNIT / 1e6:.4g} MB"):
        parapipe.map(model, "amlogic-a311d", max_memory_bytes=21 * UNIT + AXES, **OWN)


def test_with_it_the_cheap_tensor_is_made_again(front, model):
    (thriftiest,) = [row for row in recomputed(front) if "least-memory" in row.names]
    last_bytes = 21 * UNIT  # what the last operator reads and makes
    assert thriftiest.peak_memory_bytes == last_bytes + AXES
    assert thriftiest.drawing.endswith("(recomputed)")
    assert thriftiest.split == ("big:again1=c",)
    (stage,) = thriftiest.stages
    name = stage.processors[0].name
    alone = [row for row in front.document.configurations if f"{name}-alone" in row.names]
    assert alone[0].peak_memory_bytes == 26 * UNIT + AXES
    assert alone[0].energy_j < thriftiest.energy_j
    costs = front[alone[0].id].costs
    big = [each.id for each in import_model(model).operators].index("big")
    more_s = costs.time_s(big, costs.processors.index(name))
    assert thriftiest.latency_s == pytest.approx(alone[0].latency_s + more_s)
    assert thriftiest.gap == pytest.approx(1 - alone[0].latency_s / thriftiest.latency_s)


def test_a_limit_alone_gives_the_same(front, model):
    limited = parapipe.map(
        model, "amlogic-a311d", recompute=True, max_memory_bytes=21 * UNIT + AXES, **OWN
    )
    assert recomputed(limited) == list(limited.document.configurations)
    assert {row.split for row in recomputed(limited)} == {("big:again1=c",)}
    assert limited.document.options.recompute
    assert "--recompute" in limited.document.command


def test_its_plan_runs_with_equal_results_and_holds_what_it_promises(front, model, tmp_path):
    row = next(row for row in recomputed(front) if "least-memory" in row.names)
    plan = front[row.id].plan()
    with locate_model(plan, model) as changed:
        place = tmp_path / "folder"
        place.mkdir()
        write_session_folder(plan, changed, place, single=True, in_place=False)
    document = json.loads((place / "plan.json").read_text())
    feeds = frame(document)
    assert_equal(run_in_turn(place, feeds), run_whole(str(model), feeds, ["y"]))
    folder = open_folder(place)
    core = min(os.sched_getaffinity(0))
    executor = Executor(
        folder.on_cores({each.name: (core,) for each in folder.processors}), in_step=True
    )
    assert len(list(executor.run(random_frames(folder, 3)))) == 3
    assert executor.record.peak_tensor_bytes <= row.peak_memory_bytes
    assert executor.record.peak_tensor_bytes > 20 * UNIT


def graph_of(model):
    return import_proto(model, source=ModelSource("m", ""))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_are_those_of_trying_all_runs(seed):
    rng = random.Random(seed)
    graph = graph_of(network(rng))
    if len(graph.operators) > 5:  # trying all takes too long
        return
    time_s = [rng.randint(1, 9) * 1e-6 for _ in graph.operators]
    size_bytes = {name: tensor.size_bytes for name, tensor in graph.tensors.items()}
    rows = Rows(graph, partition(graph), time_s, size_bytes.__getitem__)
    problem = order_problem(graph, range(len(graph.operators)))
    assert rows.least.peak_bytes == peak_of_runs(problem, rows.least.runs)
    for limit in {rows.floor_bytes, (rows.floor_bytes + rows.least.peak_bytes) // 2}:
        row, proven = rows.within(limit)
        order = rows.least.runs
        placed = order_problem(graph, order)
        least = least_cost(placed, [round(time_s[v] * 1e9) for v in order], limit)
        assert proven
        assert (row is None) == (least is None)
        if row is not None:
            assert sum(round(time_s[v] * 1e9) for v in row.runs) == least
            assert row.peak_bytes == peak_of_runs(problem, row.runs) <= limit


@pytest.mark.parametrize("seed", range(20))
def test_the_last_run_keeps_the_name_and_runs_that_nothing_reads_are_left_out(seed):
    rng = random.Random(seed)
    graph = graph_of(network(rng))
    row = [u for v in range(len(graph.operators)) for u in (*rng.sample(range(v), min(v, 2)), v)]
    runs = [*numbered(graph, row)]
    assert len(runs) == len(set(runs))
    assert {run for _, run in runs if not run} == {0}
    for v, count in Counter(v for v, _ in runs).items():
        assert [run for u, run in runs if u == v] == [*range(count - 1, -1, -1)]
    named = {rule.partition("=")[0] for rule in rules_of(graph, runs)}
    wanted = {f"{graph.operators[v].id}:again{run}" for v, run in runs if run}
    assert named == wanted


@pytest.mark.nightly
def test_densenet_121_needs_less_than_its_least_order():
    graph = parapipe.load_model("zoo:densenet-121")
    by_order = order_problem(graph, range(len(graph.operators)))
    peak_of = partial(parapipe.map, "zoo:densenet-121", "amlogic-a311d", **OWN)
    front = peak_of(recompute=True, objectives=OBJECTIVES)
    (least,) = [row for row in front.document.configurations if "least-memory" in row.names]
    floor = min(row.peak_memory_bytes for row in front.document.configurations if not row.split)
    assert least.split
    assert least.peak_memory_bytes < floor
    (memory,) = least.memories
    assert memory.peak_bytes - memory.weights_bytes < by_order.bound_bytes()
