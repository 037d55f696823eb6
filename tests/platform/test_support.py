"""Allow and deny lists: which operators a processor runs, and why not."""

import pytest

from parapipe.platform.support import Condition, Support

SUPPORT = Support.model_validate(
    {
        "allow": [
            {"type": ["Conv", "MaxPool"]},
            {"type": "Softmax", "where": {"axis": {"one_of": [-1, 1], "default": -1}}},
            {"type": "MatMul", "data_types": ["float16"]},
        ],
        "deny": [
            {"type": "Conv", "where": {"group": {"min": 2}}, "reason": "no groups"},
            {
                "type": "*",
                "where": {"dilations": {"any_min": 2}, "auto_pad": {"equals": "SAME_UPPER"}},
                "reason": "no dilation with SAME_UPPER",
            },
        ],
    }
)


@pytest.mark.parametrize(
    ("type_", "dtype", "attributes", "reason"),
    [
        ("Conv", "float32", {}, None),
        ("Conv", "float32", {"group": 1}, None),
        ("Conv", "float32", {"group": 2}, "no groups"),
        ("MaxPool", "float32", {"group": 2}, None),
        ("Conv", "float32", {"dilations": (1, 2)}, None),
        ("Conv", "float32", {"dilations": (1, 1), "auto_pad": "SAME_UPPER"}, None),
        (
            "Conv",
            "float32",
            {"dilations": (1, 2), "auto_pad": "SAME_UPPER"},
            "no dilation with SAME_UPPER",
        ),
        ("Softmax", "float32", {}, None),
        ("Softmax", "float32", {"axis": 1}, None),
        (
            "Softmax",
            "float32",
            {"axis": 2},
            "only allowed with other attributes or data types",
        ),
        ("MatMul", "float16", {}, None),
        (
            "MatMul",
            "float32",
            {},
            "only allowed with other attributes or data types",
        ),
        ("Erf", "float32", {}, "not among the allowed operators"),
    ],
)
def test_an_operator_runs_if_a_rule_allows_it_and_none_denies_it(type_, dtype, attributes, reason):
    assert SUPPORT.refusal(type_, dtype, attributes) == reason


def test_without_an_allow_list_everything_runs_that_is_not_denied():
    support = Support.model_validate({"deny": [{"type": "Erf", "reason": "has no function"}]})
    assert support.refusal("Anything", "int8", {}) is None
    assert support.refusal("Erf", "int8", {}) == "has no function"


def test_an_empty_allow_list_allows_nothing():
    assert Support(allow=()).refusal("Conv", "float32", {}) is not None


@pytest.mark.parametrize(
    ("condition", "holds", "fails"),
    [
        ({"equals": 3}, (3, 3.0), (4, "3", (3,), None)),
        ({"equals": "SAME"}, ("SAME",), ("VALID", 1, None)),
        ({"equals": [1, 1]}, ((1, 1),), ((1, 2), (1,), 1, None)),
        ({"one_of": [1, 2]}, (1, 2, (1, 2, 1)), (3, (1, 3), None)),
        ({"min": 2}, (2, (2, 3)), (1, (1, 3), "3", None)),
        ({"max": 2}, (2, (1, 2)), (3, (1, 3), "1", None)),
        ({"min": 2, "max": 3}, (2, 3, (2, 3)), (1, 4, (2, 4))),
        ({"any_min": 2}, ((1, 2), 2), ((1, 1), 1, None)),
        ({"any_max": 2}, ((2, 3), 2), ((3, 3), 3, None)),
        ({"length": 2}, ((1, 5),), ((1,), 1, (1, 2, 3), None)),
        ({"present": True}, (0, "", ()), (None,)),
        ({"present": False}, (None,), (0, "x")),
        ({"min": 2, "default": 2}, (None, 2), (1,)),
        ({"min": 2, "default": 1}, (2,), (None, 1)),
    ],
    ids=str,
)
def test_a_condition_holds_for_these_values_and_fails_for_those(condition, holds, fails):
    test = Condition.model_validate(condition)
    assert [test.holds(value) for value in holds] == [True] * len(holds)
    assert [test.holds(value) for value in fails] == [False] * len(fails)


WEIGHTED = Support.model_validate(
    {
        "allow": [
            {"type": ["Conv", "BatchNormalization"], "constant_inputs": [1, 2]},
            {"type": "MatMul", "constant_inputs": [0]},
            {"type": "MatMul", "constant_inputs": [1]},
        ],
        "deny": [{"type": "MatMul", "constant_inputs": [0, 1], "reason": "it is a constant"}],
    }
)


@pytest.mark.parametrize(
    ("type_", "activations", "reason"),
    [
        ("Conv", (), None),
        ("Conv", (0,), None),
        ("Conv", (0, 3), None),
        ("Conv", (0, 1), "its input 1 (counted from 0) must be constant"),
        ("BatchNormalization", (0, 1, 2), "its input 1 and 2 (counted from 0) must be constant"),
        ("MatMul", (0,), None),
        ("MatMul", (1,), None),
        ("MatMul", (0, 1), "its input 0 (counted from 0) must be constant"),
        ("MatMul", (), "it is a constant"),
    ],
)
def test_an_input_that_must_be_constant_is_no_activation(type_, activations, reason):
    assert WEIGHTED.refusal(type_, "float32", {}, activations) == reason


def test_other_attributes_are_told_before_constants():
    support = Support.model_validate(
        {"allow": [{"type": "Conv", "where": {"group": {"equals": 1}}, "constant_inputs": [1]}]}
    )
    assert support.refusal("Conv", "float32", {"group": 2}, {0, 1}) == (
        "only allowed with other attributes or data types"
    )
