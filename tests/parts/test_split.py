"""Split models have the same results: small models with what is hard, and random rules."""

import random
from collections import Counter

import numpy as np
import onnx
import pytest

from parapipe.errors import SplitError
from parapipe.graph.onnx_import import import_model
from parapipe.graph.work import operator_class
from parapipe.parts.work import CutAxis, cuttable_axes
from tests.cases.quantised_models import quantise, small_qdq
from tests.cases.random_networks import network
from tests.cases.small_models import imported, parsed
from tests.cases.split_models import MODELS, weights, written
from tests.cases.split_runs import equal, feeds, random_rules, run, split

SIZES = {"many_inputs": {"N": 3}}


def same(model, *rules, **options):
    made, found = split(model, *rules, **options)
    inputs = feeds(made)
    assert equal(run(model, inputs), run(made, inputs)), rules
    return made, found


def chain():
    return parsed(
        """
        net (float[1, 4, 12, 9] x) => (float[1, 6, 6, 5] y) {
          a = Conv <pads = [1, 1, 1, 1]> (x, w)
          b = Relu (a)
          c = BatchNormalization (b, scale, bias, mean, var)
          y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (c)
        }
        """,
        w=weights(6, 4, 3, 3), scale=weights(6), bias=weights(6), mean=weights(6),
        var=np.abs(weights(6)) + 1,
    )  # fmt: skip


@pytest.mark.parametrize("granularity", ["fused", "onnx"])
@pytest.mark.parametrize("name", MODELS)
def test_random_rules_leave_the_results_as_they_are(name, granularity):
    for seed in range(4):
        model, dims = MODELS[name](), SIZES.get(name)
        graph = imported(model, granularity=granularity, dims=dims)
        rules = random_rules(graph, random.Random(seed))
        try:
            made, _ = split(model, *rules, granularity=granularity, dims=dims)
        except SplitError as error:
            assert not rules or "branch of an If" in str(error)  # noqa: PT017 - some draws fail
            continue
        inputs = feeds(made)
        assert equal(run(model, inputs), run(made, inputs)), rules


@pytest.fixture(scope="module", params=["small", "QDQ", "QOperator"])
def quantised(request, tmp_path_factory):
    if request.param == "small":
        return small_qdq()
    path = quantise(MODELS["folded"](), tmp_path_factory.mktemp("quantised"), request.param)
    return onnx.load(path)


def test_quantised_operators_are_cut_and_their_parts_still_compute_with_integers(quantised):
    graph = imported(quantised, granularity="fused")
    for seed in range(6):
        same(quantised, *random_rules(graph, random.Random(seed)))
    cut = set()
    for operator in (each for each in graph.operators if each.computes_in):
        for axis, found in cuttable_axes(graph, operator).items():
            if isinstance(found, CutAxis):
                made, _ = same(quantised, f"{operator.id}:{axis}=2")
                before, after = (
                    Counter(v.type for v in imported(each, granularity="fused").operators
                            if v.computes_in)
                    for each in (quantised, made)
                )  # fmt: skip
                # A part of a Concat may be one of its inputs, and no operator at all.
                assert after - before == {operator.type: 1} or operator.type == "Concat"
                cut.add(operator.type)
    assert {"Conv"} < cut


def test_names_of_parts_follow_from_the_names_of_operators():
    model = chain()
    model.graph.node[0].name = "conv"
    made, found = same(model, "conv:rows=2,1")
    names = [node.name for node in made.graph.node]
    assert {"conv/part0", "conv/part1"} < set(names)
    (whole,) = found.split
    assert whole.ranges == ((0, 8), (8, 12))


def test_parts_that_follow_each_other_in_the_same_ranges_are_not_joined_in_between():
    made, _ = same(chain(), "Conv:channels=2", "Relu:channels=2", granularity="onnx")
    assert Counter(node.op_type for node in made.graph.node)["Concat"] == 1


def test_weights_are_shared_out_over_the_parts_of_channels():
    made, _ = same(chain(), "Conv:channels=2")
    sizes = {each.name: list(each.dims) for each in made.graph.initializer}
    assert sizes["w/0:0-3"] == sizes["w/0:3-6"] == [3, 4, 3, 3]
    assert "w" not in sizes


def test_a_tensor_read_outside_of_a_run_keeps_the_run_whole():
    model = parsed(
        """
        net (float[1, 4, 6, 6] x) => (float[1, 4, 6, 6] y) {
          a = Relu (x)  b = Tanh (a)  c = Sigmoid (b)  d = Exp (a)  y = Add (c, d)
        }
        """
    )
    with pytest.raises(SplitError, match="'d' also reads 'a' within it"):
        split(model, "a..c:rows=2")
    made, found = same(model, "a..y:rows=2,1,3")
    assert found.split[0].operators == ("a", "b", "c", "d", "y")
    assert Counter(node.op_type for node in made.graph.node)["Concat"] == 1


def test_a_residual_block_is_one_run():
    model = parsed(
        """
        net (float[1, 4, 10, 6] x) => (float[1, 4, 10, 6] y) {
          a = Conv <pads = [1, 1, 1, 1]> (x, w)  b = Relu (a)
          c = Conv <pads = [1, 1, 1, 1]> (b, w)  d = Add (c, x)  y = Relu (d)
        }
        """,
        w=weights(4, 4, 3, 3),
    )
    made, _ = same(model, "a..y:rows=3,2")
    slices = [node.input[0] for node in made.graph.node if node.op_type == "Slice"]
    assert slices == ["x"] * 4  # with halos for the convolutions, without for the sum


def test_slices_and_joins_in_one_buffer_are_views_and_others_are_copies():
    channels, rows = (imported(same(chain(), f"Conv:{axis}=2")[0]) for axis in ("channels", "rows"))
    joins = [next(v for v in graph.operators if v.type == "Concat") for graph in (channels, rows)]
    assert joins[0].work.written_bytes == 0
    assert operator_class(joins[0], channels) == "view"
    assert joins[1].work.written_bytes == 6 * 12 * 9 * 4
    assert operator_class(joins[1], rows) == "concat"


def test_external_weights_stay_in_their_file(tmp_path):
    path = written(chain(), tmp_path, external=True)
    model = onnx.load(path, load_external_data=False)
    made, _ = split(model, "Conv:channels=1,2")
    parts = {each.name: each for each in made.graph.initializer}
    entries = [
        {entry.key: entry.value for entry in parts[f"w/0:{ends}"].external_data}
        for ends in ("0-2", "2-6")
    ]
    assert [each["length"] for each in entries] == [str(2 * 36 * 4), str(4 * 36 * 4)]
    assert int(entries[1]["offset"]) - int(entries[0]["offset"]) == 2 * 36 * 4
    onnx.save(made, tmp_path / "split.onnx")
    inputs = feeds(model)
    assert equal(run(str(path), inputs), run(str(tmp_path / "split.onnx"), inputs))
    assert len(import_model(tmp_path / "split.onnx").operators) > 4


def test_open_dimensions_are_fixed_to_what_the_parts_are_made_for():
    model = parsed("net (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }")
    made, _ = same(model, "y:batch=2", dims={"N": 6})
    assert [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim] == [6, 4]


def test_an_operator_in_its_own_words_stays_whole():
    model = parsed(
        "net (float[2, 4] x) => (float[2, 4] y) { a = Relu (x) y = CumSum (a, axis) }",
        axis=np.array(1),
    )
    _, found = same(model, "*:1=2")
    assert [(each.name, each.why) for each in found.whole] == [
        ("y", "there is no rule that cuts its type")
    ]
    with pytest.raises(SplitError, match=r"nothing of 'test' is split: y \(CumSum\): there is no"):
        split(model, "y:1=2")


@pytest.mark.parametrize("granularity", ["fused", "onnx"])
@pytest.mark.parametrize("seed", range(20))
def test_random_networks_in_parts_by_random_rules_have_the_same_results(seed, granularity):
    rng = random.Random(seed)
    model = network(rng)
    graph = imported(model, granularity=granularity)
    rules = [rule for _ in range(5) for rule in random_rules(graph, rng)[:1]]
    for rule in rules:
        same(model, rule, granularity=granularity)
    same(model, *random_rules(graph, rng, most=1), granularity=granularity)
    same(model, *random_rules(graph, rng), granularity=granularity)


def test_columns_of_external_weights_are_cut_out_when_the_model_is_loaded(tmp_path):
    text = "net (float[4, 64] x) => (float[4, 32] y) { y = MatMul (x, w) }"
    path = written(parsed(text, w=weights(64, 32)), tmp_path, external=True)
    model = onnx.load(path, load_external_data=False)
    (tmp_path / "weights.data").rename(tmp_path / "away")
    made, _ = split(model, "y:channels=1,3")  # without a look at the weights
    (tmp_path / "away").rename(tmp_path / "weights.data")
    assert [node.input[0] for node in made.graph.node if node.op_type == "Slice"] == ["w", "w"]
    onnx.save(made, tmp_path / "split.onnx")
    inputs = feeds(model)
    assert equal(run(str(path), inputs), run(str(tmp_path / "split.onnx"), inputs))
