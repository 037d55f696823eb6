"""Parts write into one buffer and read each other's borders there: nothing is copied."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from tests.cases.armcl_cases import separable, write_case
from tests.cases.armcl_plans import BIG, LITTLE, MIDDLE, parts_apart
from tests.cases.runner import assert_near, on_one_core_each

CHANNELS, SIDE = 4, 8
IMAGE_BYTES = 4 * CHANNELS * SIDE**2


def network(nodes, weights=()):
    """A model of one image x and one result y."""
    shape = (1, CHANNELS, SIDE, SIDE)
    rng = np.random.default_rng(5)
    kernels = [
        numpy_helper.from_array(
            rng.normal(0, 0.2, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32), name
        )
        for name in weights
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "network", [x], [y], kernels)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def conv(source, name):
    return helper.make_node("Conv", [source, f"{name}_w"], [name], pads=[1] * 4, name=name)


def chain():
    """Three convolutions, one behind the other, each with a border of one row."""
    nodes = [conv("x", "a"), conv("a", "b"), conv("b", "y")]
    return network(nodes, ("a_w", "b_w", "y_w"))


def joined(*joins):
    """Three convolutions of x, two of which are joined along rows at a time; the sum of that."""
    nodes = [conv("x", name) for name in "abc"]
    for number, names in enumerate(joins):
        node = helper.make_node("Concat", list(names), [f"j{number}"], axis=2, name=f"j{number}")
        nodes.append(node)
    nodes.append(helper.make_node("Add", ["j0", "j1"], ["y"], name="y"))
    return network(nodes, ("a_w", "b_w", "c_w"))


def split_case(model, rule, processors, folder, backend="onednn"):
    """Export a model whose operators are split, part k on the k-th processor."""
    parts, _ = split_proto(model, "network", [read_rule(rule)])
    write_case(parts, folder, plan_of=parts_apart, processors=processors, backend=backend)
    on_one_core_each(folder)


@pytest.mark.parametrize("backend", ["onednn", "xnnpack"])
@pytest.mark.parametrize("processors", [(BIG,), (BIG, LITTLE), (BIG, LITTLE, MIDDLE)])
@pytest.mark.parametrize("rule", ["Conv:rows=2", "Conv:rows=3,2", "Conv:rows=4", "*:rows=3"])
def test_parts_by_rows_are_joined_and_cut_where_they_lie(
    runner, tmp_path, rule, processors, backend
):
    folder = tmp_path / "split"
    split_case(separable(), rule, processors, folder, backend)
    report, made, wanted = runner.outputs(folder, "--frames", 9)
    assert_near(made, wanted)
    assert report["joins_and_cuts"] > 8
    assert report["views"] == report["joins_and_cuts"]
    assert report["shared_transfers"] == report["transfers"]
    assert report["copied_bytes"] == 0


def test_parts_that_wait_for_each_other_need_memory_for_one_frame(runner, tmp_path):
    folder = tmp_path / "split"
    split_case(chain(), "Conv:rows=2", (BIG, LITTLE), folder)
    report, made, wanted = runner.outputs(folder, "--frames", 9)
    assert_near(made, wanted)
    assert report["copied_bytes"] == 0
    # The first processor loads x for both. Before the next frame of x and a is written, everybody
    # has waited for who reads them; the second processor does not wait for the first one to read b
    # and y, which are there twice.
    assert report["outside_bytes"] == (1 + 1 + 2 + 2) * IMAGE_BYTES


@pytest.mark.parametrize(
    ("joins", "views"),
    [
        (("ab", "bc"), 2),  # a, b and c lie one behind the other
        (("ab", "ab"), 2),
        (("ab", "ba"), 1),  # b would have to lie in two places
        (("ab", "ac"), 1),  # b and c would have to lie in one
        (("aa", "ab"), 1),  # and a tensor lies once
    ],
)
def test_what_cannot_lie_in_one_place_is_copied(runner, tmp_path, joins, views):
    folder = tmp_path / "joined"
    write_case(joined(*joins), folder, frames=2, backend="onednn")
    on_one_core_each(folder)
    report, made, wanted = runner.outputs(folder, "--frames", 4)
    assert_near(made, wanted)
    assert (report["joins_and_cuts"], report["views"]) == (2, views)
