"""Models in which operators run again: their results, their names, and what is refused."""

from __future__ import annotations

import random

import onnx
import pytest

from parapipe.errors import SplitError
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource
from parapipe.memory_search.recompute import numbered, rules_of
from parapipe.parts.recompute import read_recompute_rule, recompute_proto
from tests.cases import split_models
from tests.cases.random_networks import network
from tests.cases.small_network import small_network
from tests.cases.split_runs import equal, feeds, run


def graph_of(model):
    return import_proto(model, source=ModelSource("m", ""))


def again(model, *rules):
    return recompute_proto(model, "m", [read_recompute_rule(rule) for rule in rules])


def random_row(graph, rng):
    """All operators in their order; before each, some of those before it again."""
    for v in range(len(graph.operators)):
        yield from (u for u in range(v) if rng.random() < 0.3)
        yield v


def test_a_fused_operator_runs_again_with_all_its_nodes_and_its_reader_reads_that():
    made = again(small_network(), "r1:again1=r4")
    nodes = {node.name: node for node in made.graph.node}
    assert nodes["right1"].input[0] == "r1/again1"
    assert nodes["left1"].input[0] == "r1"
    for name in ("conv1", "norm", "relu1"):
        assert nodes[f"{name}/again1"].op_type == nodes[name].op_type
    assert nodes["relu1/again1"].input[0] == "b1/again1"  # what has no effect is passed over
    assert {"r1", "r1/again1"} <= {operator.id for operator in graph_of(made).operators}
    inputs = feeds(small_network())
    assert equal(run(small_network(), inputs), run(made, inputs))


def test_a_run_reads_other_runs():
    made = again(small_network(), "r2:again1=c3", "r1:again2=r2/again1")
    reads = {node.name: node.input[0] for node in made.graph.node}
    assert reads["left3"] == "r2/again1"
    assert reads["left1/again1"] == "r1/again2"
    assert "left1" not in reads  # nothing reads the first run any longer


@pytest.mark.parametrize("seed", range(12))
def test_any_row_of_runs_has_the_same_results(seed):
    rng = random.Random(seed)
    rules = []
    while not rules:
        model = network(rng)
        graph = graph_of(model)
        rules = [*rules_of(graph, [*numbered(graph, [*random_row(graph, rng)])])]
    made = again(model, *rules)
    onnx.checker.check_model(made, full_check=True)
    inputs = feeds(model)
    assert equal(run(model, inputs), run(made, inputs))


@pytest.mark.parametrize("name", sorted(split_models.MODELS))
def test_models_with_all_that_files_hold_run_again_or_are_refused_in_a_line(name):
    model = split_models.MODELS[name]()
    graph = graph_of(model)
    rng = random.Random(name)
    for _ in range(3):
        rules = [*rules_of(graph, [*numbered(graph, [*random_row(graph, rng)])])]
        if not rules:
            continue
        try:
            made = again(model, *rules)
        except SplitError as error:
            assert str(error).endswith(("holds other graphs", "in the branch of an If"))  # noqa: PT017 - some models only
            continue
        inputs = feeds(made)
        assert equal(run(model, inputs), run(made, inputs))
        assert len(graph_of(made).operators) > 0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("r9:again1=r4", "'r9:again1=r4': there is no operator 'r9'"),
        ("r1:again1=r9", "there is no operator 'r9'"),
        ("r1:again1=prob", "'prob' does not read what it makes"),
        ("r1:again1=r4/again1", "no rule makes 'r4/again1' run"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(rule, words):
    with pytest.raises(SplitError, match=words):
        again(small_network(), rule)


def test_what_is_drawn_by_chance_does_not_run_again():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> m (float[4] x) => (float[4] y) '
        "{ r = RandomUniformLike(x)\n s = Add(r, x)\n y = Mul(r, s) }"
    )
    with pytest.raises(SplitError, match="makes another result each time"):
        again(model, "r:again1=y")


def test_other_rules_are_none_of_these():
    assert read_recompute_rule("Conv:rows=2") is None
    assert read_recompute_rule("a:again0=b") is None
    assert read_recompute_rule("a:b:again12=c=d").operator == "a:b"
