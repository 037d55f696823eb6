"""Convolutions that add a tensor: results of ONNX Runtime in every kind of plan."""

import json
import re

import pytest

from parapipe.graph.onnx_import import import_model
from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from tests.cases.armcl_cases import write_case
from tests.cases.armcl_plans import (
    ARRANGEMENTS,
    BIG,
    BOARD,
    LITTLE,
    placed,
    plan_for,
    taking_turns,
)
from tests.cases.residual_cases import conv, network, residual
from tests.cases.runner import assert_near, on_one_core_each, refused
from tests.runtimes.onednn.test_native_runs import assert_equal_to_onnx_runtime

BACKENDS = ("onednn", "plain")


def merged(folder):
    """How many operators of a folder add a tensor."""
    operators = json.loads((folder / "plan.json").read_text())["operators"]
    return sum("includes" in each for each in operators)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [(None, {}), ("Relu", {}), ("LeakyRelu", {"alpha": 0.2}), ("HardSwish", {}), ("Sigmoid", {})],
)
def test_the_sum_comes_before_the_activation(runner, tmp_path, backend, kind, attributes):
    nodes = [conv("x", "a"), ("Add", ("x", "a"), "s" if kind else "y", {})]
    nodes += [(kind, ("s",), "y", attributes)] if kind else []
    folder = tmp_path / "case"
    write_case(network(*nodes), folder, frames=2, backend=backend)
    on_one_core_each(folder)
    assert merged(folder) == 1
    _, made, wanted = runner.outputs(folder, "--frames", 4)
    assert_near(made, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arrangement", ["sequential", "pipe-only", "para-only", "hybrid"])
def test_every_kind_of_plan_gives_the_same(runner, tmp_path, arrangement, backend):
    folder = tmp_path / "case"
    write_case(residual(), folder, frames=3, arrangement=arrangement, backend=backend)
    on_one_core_each(folder)
    _, made, wanted = runner.outputs(folder, "--frames", 50)
    assert_near(made, wanted)


@pytest.mark.parametrize("seed", range(12))
def test_processors_that_take_turns_never_wait_for_each_other_for_ever(runner, tmp_path, seed):
    folder = tmp_path / "case"
    write_case(residual(), folder, frames=3, plan_of=taking_turns, seed=seed, backend="onednn")
    on_one_core_each(folder)
    report, made, wanted = runner.outputs(folder, "--frames", 20)
    assert_near(made, wanted)
    assert report["in_order"]


def parts_together(path):
    """Part k of every operator on the k-th of two processors, with what cuts its borders."""
    graph = import_model(path)
    parts = [re.search(r"/part(\d+)$", operator.name) for operator in graph.operators]
    place = [int(part[1]) % 2 if part else -1 for part in parts]
    for v in reversed(range(len(place))):
        if place[v] < 0:
            place[v] = next((place[w] for w in graph.successors(v) if place[w] >= 0), 0)
    return placed(graph, BOARD, [(0, (BIG, LITTLE)[at]) for at in place])


# Of several parts on one processor, most read borders between each other's Conv and Add.
@pytest.mark.parametrize(
    ("rule", "sums"), [("*:rows=2", 6), ("*:rows=4", 3), ("Conv:rows=3,2", 0), ("*:channels=2", 6)]
)
def test_parts_add_their_parts(runner, tmp_path, rule, sums):
    folder = tmp_path / "split"
    parts, _ = split_proto(residual(), "residuals", [read_rule(rule)])
    write_case(parts, folder, plan_of=parts_together, backend="onednn")
    on_one_core_each(folder)
    assert merged(folder) == sums
    _, made, wanted = runner.outputs(folder, "--frames", 9)
    assert_near(made, wanted)


@pytest.mark.parametrize("strategy", ["plan", "ready-pool", "steal", "streams"])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_all_operators_have_spans(tmp_path, arrangement, strategy):
    path = tmp_path / "model.onnx"
    path.write_bytes(residual().SerializeToString())
    plan = plan_for(path, arrangement)
    run = assert_equal_to_onnx_runtime(plan, tmp_path, strategy=strategy, frames=6)
    spans = {(span.name, span.frame): span for span in run.record.spans}
    assert spans.keys() == {(each.id, frame) for each in plan.operators for frame in range(6)}
    assert all(span.start_s <= span.end_s and span.work_s >= 0 for span in spans.values())


def test_a_sum_that_is_merged_takes_no_time_of_its_own(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(residual().SerializeToString())
    run = assert_equal_to_onnx_runtime(plan_for(path), tmp_path)
    work = {span.name: span.work_s for span in run.record.spans}
    assert {name for name, work_s in work.items() if work_s == 0} == {"one", "two", "y"}


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"shape": [1, 4, 8, 4]}, "adds a tensor of another shape than it makes"),
        ({"backend": "neon"}, "adds a tensor, which ARM Compute Library cannot"),
        ({"inputs": ["x", "", "", "x"]}, "leaves out an input that it needs"),
        ({"inputs": ["x", "a_w", "x"]}, "needs a constant, not 'x', where it reads it"),
        ({"inputs": ["x", "a_w", "", "x", "x"]}, "has 5 inputs, and should have 2 to 4"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_a_tensor_that_cannot_be_added_is_refused(runner, tmp_path, change, mistake):
    folder = tmp_path / "case"
    write_case(network(conv("x", "a"), ("Add", ("x", "a"), "y", {})), folder, backend="onednn")
    document = on_one_core_each(folder)
    (operator,) = document["operators"]
    if "shape" in change:
        document["tensors"]["z"] = {"shape": change["shape"], "dtype": "float32"}
        document["inputs"].append("z")
        operator["inputs"][3] = "z"
    document["processors"][0]["backend"] = change.get("backend", "onednn")
    operator["inputs"] = change.get("inputs", operator["inputs"])
    (folder / "plan.json").write_text(json.dumps(document))
    assert mistake in refused(runner.run(folder))
