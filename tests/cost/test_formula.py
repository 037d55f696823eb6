"""Formulas of rules files: what they give, and what they refuse."""

import pytest

from parapipe.cost.rules import LONGEST, Scope, check_formula, evaluate_formula
from parapipe.errors import CostError

SCOPE = Scope(
    {"inputs": ((1, 3, 8, 8), (4,)), "outputs": ((1, 4),), "input_bytes": (768, 16)},
    {"heads": 3, "mode": "fast", "pads": (1, 2)},
)
NAMES = frozenset(SCOPE.names)


@pytest.mark.parametrize(
    ("formula", "number"),
    [
        ("prod(outputs[0]) * inputs[0][1]", 12),
        ("prod(inputs[0][2:])", 64),
        ("inputs[0][-1] ** 2 // 5 % 7 - +1", 4),
        ("sum(input_bytes) / 2", 392),
        ("max(1, len(inputs), -5) + min(inputs[1])", 6),
        ("ceil(7 / 2) + floor(7 / 2) + abs(-1)", 8),
        ('attribute("heads") * attribute("groups", 5)', 15),
        ('sum(attribute("pads"))', 3),
        ('2 if attribute("mode") == "fast" else 1 / 0', 2),
        ("(1 < 2) + (1 >= 2) + (1 != 2)", 2),
        ("prod(inputs[0][4:])", 1),
    ],
)
def test_a_formula_gives_its_number(formula, number):
    assert check_formula(formula, NAMES) == ""
    assert evaluate_formula(formula, SCOPE) == number


@pytest.mark.parametrize(
    ("formula", "mistake"),
    [
        ("", "is no formula"),
        ("1 +", "is no formula"),
        ("__import__('os').system('true')", "calls more than abs"),
        ("open('x')", "calls more than"),
        ("prod(outputs[0], key=1)", "calls more than"),
        ("inputs.__class__", "holds more than numbers"),
        ("[x for x in inputs]", "holds more than numbers"),
        ("lambda: 1", "holds more than numbers"),
        ("(x := 1)", "holds more than numbers"),
        ("f'{inputs}'", "holds more than numbers"),
        ("True", "holds True, which is no number"),
        ("1 @ 2", "none of"),
        ("~1", "neither"),
        ("1 < 2 < 3", "compares otherwise"),
        ("inputs[::2]", "in steps"),
        ("attribute(inputs)", "attribute otherwise"),
        ("size", "uses 'size', which does not exist; known: input_bytes, inputs, outputs"),
        ("1e300", "beyond 1e"),
        ("1" * (LONGEST + 1), f"longer than {LONGEST}"),
        ("(" * 240 + ")" * 240, "is no formula"),
    ],
)
def test_what_is_no_arithmetic_is_refused_before_anything_is_computed(formula, mistake):
    assert mistake in check_formula(formula, NAMES)


@pytest.mark.parametrize(
    ("formula", "mistake"),
    [
        ("1 / 0", "division by zero"),
        ("inputs[2]", "a list has no such element"),
        ("inputs[0]", "a list or a text stands where a number should"),
        ("inputs[0.5]", "indices must be integers"),
        ("inputs[0][0][0]", "not subscriptable"),
        ("9 ** 9 ** 9", "beyond 64"),
        ("10 ** 18 * 10", "beyond 1e"),
        ("(-1) ** 0.5", "root of a negative"),
        ("'a' * 100", "a list or a text"),
        ('attribute("none")', "no attribute 'none'"),
        ("max()", "cannot be computed"),
        ("abs(1, 2)", "exactly one argument"),
    ],
)
def test_what_gives_no_number_says_why(formula, mistake):
    assert check_formula(formula, NAMES) == ""
    with pytest.raises(CostError, match="cannot be computed") as caught:
        evaluate_formula(formula, SCOPE)
    assert mistake in str(caught.value)


def test_a_number_at_the_bound_is_taken_and_one_beyond_is_not():
    assert evaluate_formula("10 ** 18", SCOPE) == 10**18
    with pytest.raises(CostError):
        evaluate_formula("10 ** 18 + 1", SCOPE)
