"""Rules files: the work of operators that parapipe does not know."""

import re
from pathlib import Path

import onnx
import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.rules import apply_rules, idle_rules, load_rules, read_rules
from parapipe.errors import CostError, RulesError
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
MODEL = """<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
g (float[1,64,28,28] x) => (float[1,64,28,28] y) <float[1,64,28,28] a> {
    [first] a = com.example.DeformableAttention<heads = 4>(x, x)
    [last] y = Relu(a)
}"""
RULE = (
    "schema: parapipe/rules/1\nrules:\n- {type: %s, domain: com.example, macs: '%s', source: me}\n"
)


def model():
    return onnx.parser.parse_model(MODEL)


def graph():
    return import_proto(model(), source=ModelSource("g.onnx", ""), granularity="onnx")


def documented():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return text


def test_the_example_of_the_documentation_prices_its_operator():
    before, relu = graph().operators
    ruled, same = apply_rules(graph(), read_rules(documented(), "r.yaml"), "r.yaml").operators
    assert not before.work.modelled
    assert ruled.work.macs == 64 * 28 * 28 * 64 * 4
    assert ruled.work.read_bytes == 2 * 2 * 4 * 64 * 28 * 28
    assert ruled.work.written_bytes == before.work.written_bytes
    assert (ruled.work.modelled, ruled.work.rule) == (True, "r.yaml")
    assert same == relu


def test_a_rule_may_take_the_place_of_a_known_count():
    text = RULE.replace("domain: com.example, ", "") % ("Relu", 7.2)
    assert apply_rules(graph(), read_rules(text, "r.yaml"), "r.yaml").operators[1].work.macs == 8


def test_a_rule_in_place_of_a_count_needs_none_of_its_assumptions():
    text = """<ir_version: 10, opset_import: ["" : 24]>
    g (float[1, 64, 8] c, float[1, 1, 8] u, int64[1] at) => (float[1, 64, 8] y, float[1, 64, 8] z)
    { y = TensorScatter <axis = 1> (c, u, at)  z = Relu (y) }"""
    source = ModelSource("g.onnx", "")
    before = import_proto(onnx.parser.parse_model(text), source=source, granularity="onnx")
    assert [note.split()[0] for note in before.notes] == ["TensorScatter"]
    rule = RULE.replace("domain: com.example, ", "") % ("TensorScatter", 0)
    assert apply_rules(before, read_rules(rule, "r.yaml"), "r.yaml").notes == ()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("DeformableAttention", []),
        (
            "DeformableAtention",
            [
                (
                    "the rule for com.example.DeformableAtention fits no operator of the model; "
                    "did you mean 'com.example.DeformableAttention'?"
                )
            ],
        ),
        ("Loop", ["the rule for com.example.Loop fits no operator of the model"]),
    ],
)
def test_a_rule_that_fits_no_operator_is_told(tmp_path, kind, told):
    path, rules = tmp_path / "model.onnx", tmp_path / "rules.yaml"
    path.write_bytes(model().SerializeToString())
    rules.write_text(RULE % (kind, 5))
    notes = []
    parapipe.load_model(path, rules=rules, note=notes.append)
    assert notes == [f"rules file '{rules}': {each}" for each in told]
    noted = []
    parapipe.inspect(path, rules=rules, note=noted.append)
    assert noted == notes


def test_the_standard_domain_has_two_names():
    text = RULE.replace("domain: com.example, ", "") % ("Relu", 1)
    assert idle_rules(graph(), read_rules(text, "r.yaml")) == ()


def test_all_mistakes_are_told_with_line_and_key(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(
        "schema: parapipe/rules/1\nrules:\n- type: A\n  macs: sizes\n  source: me\n"
        "- type: B\n  mac: 1\n  macs: [1]\n"
    )
    with pytest.raises(RulesError, match=r"rules file .* has 4 mistakes") as caught:
        load_rules(path)
    known = "input_bytes, inputs, output_bytes, outputs"
    assert caught.value.mistakes == (
        f"{path}:4: rules[0].macs: uses 'sizes', which does not exist; known: {known}",
        f"{path}:6: rules[1].source: is missing; add it",
        f"{path}:7: rules[1].mac: is no known key; did you mean 'macs'?",
        f"{path}:8: rules[1].macs: must be text; put it in quotes if it looks like a number",
    )


def test_second_rules_and_negative_numbers_are_told_with_all_other_mistakes():
    text = (
        "schema: parapipe/rules/1\nrules:\n- {type: A, macs: -1, source: me}\n"
        "- {type: A, macs: 1 - 3, source: me}\n- {type: B, macs: sizes, source: me}\n"
        "- {type: A, domain: com.example, macs: 0, source: me}\n"
    )
    with pytest.raises(RulesError, match="has 4 mistakes") as caught:
        read_rules(text, "r.yaml")
    assert [mistake[:45] for mistake in caught.value.mistakes] == [
        "r.yaml:3: rules[0].macs: is -1, must be at le",
        "r.yaml:4: rules[1]: is a second rule for A, b",
        "r.yaml:4: rules[1].macs: is -2, must be at le",
        "r.yaml:5: rules[2].macs: uses 'sizes', which ",
    ]


def test_a_default_of_an_attribute_may_be_negative():
    read_rules(RULE % ("A", 'attribute("axis", -1)'), "r.yaml")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            RULE % ("A", 1) + "- {type: A, domain: com.example, macs: 2, source: me}\n",
            "second rule",
        ),
        ("schema: parapipe/rules/1\nrules: []\n", "at least 1"),
        ("schema: parapipe/rules/2\nrules: []\n", "parapipe/rules/1"),
        ("a: &a [x]\nb: *a\n", "alias"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(text, mistake):
    with pytest.raises(RulesError) as caught:
        read_rules(text, "r.yaml")
    assert mistake in " ".join(caught.value.mistakes)


def test_a_formula_that_does_not_fit_names_the_operator():
    for formula, mistake in (
        ("inputs[7][0]", "no such element"),
        ("len(inputs) - 9", "is -7, below 0"),
    ):
        rules = read_rules(RULE % ("DeformableAttention", formula), "r.yaml")
        with pytest.raises(CostError, match=rf"'first' \(DeformableAttention\).*{mistake}"):
            apply_rules(graph(), rules, "r.yaml")


def test_map_and_inspect_take_rules(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    rules = tmp_path / "rules.yaml"
    rules.write_text(documented())
    assert parapipe.inspect(str(path)).macs == 0
    assert parapipe.inspect(str(path), rules=rules).macs == 64 * 28 * 28 * 64 * 4
    fused = parapipe.load_model(str(path), rules=rules)
    assert fused.granularity == "fused"
    assert fused.operators[0].work.rule == str(rules)


def test_a_rule_lets_processors_run_what_their_platform_does_not_list(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    rules = tmp_path / "rules.yaml"
    target = parapipe.load_platform("amlogic-a311d")
    rules.write_text(RULE % ("DeformableAttention", 5))
    with pytest.raises(CostError, match=r"supports 1 DeformableAttention \('first'"):
        build_cost_table(parapipe.load_model(str(path), rules=rules), target)
    rules.write_text(rules.read_text().replace("source:", "processors: [little], source:"))
    costs = build_cost_table(parapipe.load_model(str(path), rules=rules), target)
    assert [costs.unsupported(0, p) is None for p in range(3)] == [False, True, False]
    assert costs.coverage().ruled == ("DeformableAttention",)
    cost = costs.cost(0, 1)
    assert cost
    assert cost.parts[0].source.endswith(f"work by rules {rules}")


def test_mistakes_of_rules_are_told_before_the_model_is_read(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULE % ("A", -1))
    with pytest.raises(RulesError, match="one mistake"):
        parapipe.load_model("no-such-model.onnx", rules=rules)


def test_a_misspelt_processor_is_named_with_the_nearest(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    rules = tmp_path / "rules.yaml"
    text = RULE % ("DeformableAttention", 5)
    rules.write_text(text.replace("source:", "processors: [litle, npu], source:"))
    with pytest.raises(CostError) as caught:
        parapipe.inspect(path, rules=rules, platform="amlogic-a311d")
    assert str(caught.value) == (
        f"rules in '{rules}' name processors that platform 'amlogic-a311d' does not have: litle, "
        "npu; it has big, little, gpu; did you mean 'little'?"
    )
