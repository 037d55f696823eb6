"""Rules for parts: what they concern, and mistakes in them."""

import pytest

from parapipe.errors import SplitError
from parapipe.parts.rules import find_targets, read_rule
from tests.cases.small_models import graph_of

GRAPH = """
net (float[1, 4, 6, 6] x) => (float[1, 4, 6, 6] y) {
  conv1 = Conv (x, w)  relu1 = Relu (conv1)  conv2 = Conv (relu1, w)  y = Sigmoid (conv2)
}
"""


def concerned(*rules, granularity="onnx"):
    import numpy as np

    graph = graph_of(GRAPH, granularity=granularity, w=np.ones((4, 4, 1, 1), np.float32))
    return [each.name for each in find_targets(graph, [read_rule(rule) for rule in rules])]


def test_a_rule_is_a_selector_an_axis_and_shares():
    rule = read_rule("net/conv:0:rows=3,2.5")
    assert (rule.selector, rule.axis, rule.shares) == ("net/conv:0", "rows", (3, 2.5))
    assert read_rule("*:-1=3").shares == (1, 1, 1)


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (["Conv:rows=2"], ["conv1", "conv2"]),
        (["conv?:rows=2"], ["conv1", "conv2"]),
        (["conv1:rows=2", "*:channels=2"], ["conv1", "relu1", "conv2", "y"]),
        (["relu1..conv2:rows=2"], ["relu1..conv2"]),
        (["conv1..y:rows=2", "*:rows=3"], ["conv1..y"]),
    ],
)
def test_a_selector_is_a_type_a_name_or_a_run_and_the_first_rule_counts(rules, names):
    assert concerned(*rules) == names


def test_a_fused_operator_goes_by_the_name_of_each_of_its_nodes():
    assert concerned("relu1:rows=2", granularity="fused") == ["conv1"]
    assert concerned("Conv:rows=2", granularity="fused") == ["conv1", "conv2"]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("Conv", "write SELECTOR:AXIS=SHARES"),
        ("Conv:rows", "write SELECTOR:AXIS=SHARES"),
        ("Conv:rows=a", "write SELECTOR:AXIS=SHARES"),
        ("Conv:rows=1,,2", "write SELECTOR:AXIS=SHARES"),
        ("Conv:row=2", "there is no axis 'row'; did you mean 'rows'?"),
        ("Conv:rows=1", "the number of parts must be from 2 to 64"),
        ("Conv:rows=2.5", "the number of parts must be from 2 to 64"),
        ("Conv:rows=65", "the number of parts must be from 2 to 64"),
        ("Conv:rows=1,0", "each more than 0"),
    ],
)
def test_what_is_no_rule_is_refused(rule, complaint):
    with pytest.raises(SplitError) as caught:
        read_rule(rule)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        (["Covn:rows=2"], "no type or name 'Covn'; did you mean 'Conv'?"),
        (["conv1..relu3:rows=2"], "there is no operator 'relu3'; did you mean 'relu1'?"),
        (["y..conv1:rows=2"], "no way leads from 'y' to 'conv1'"),
        (["conv1:rows=2", "conv1..y:rows=2"], "takes in operators that 'conv1:rows=2' concerns"),
    ],
)
def test_rules_that_fit_no_operator_or_each_other_are_refused(rules, complaint):
    with pytest.raises(SplitError) as caught:
        concerned(*rules)
    assert complaint in str(caught.value)
