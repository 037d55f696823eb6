"""Formulas over shapes, as a rules file holds them: arithmetic and nothing else.

Python's parser reads a formula; each of its nodes becomes a function by the tables below, and what
stands in none of them is refused. It is never compiled or run by Python. Lengths and numbers are
bounded, so that no formula can take long.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, isfinite

from parapipe.errors import CostError

LONGEST = 500  # characters
LARGEST = 10**18
_LARGEST_EXPONENT = 64

Value = int | float | str | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a formula can speak of.

    Parameters
    ----------
    names
        Numbers and lists by name.
    attributes
        What `attribute("NAME", default)` gives, where it is there.
    """

    names: Mapping[str, Value]
    attributes: Mapping[str, Value]


_Step = Callable[[Scope], Value]


def check_formula(text: str, names: frozenset[str]) -> str:
    """Return what is wrong with a formula that may use `names`; empty if nothing is."""
    try:
        _read(text, names)
    except ValueError as error:
        return str(error)
    return ""


def evaluate_formula(text: str, scope: Scope) -> float:
    """Return the number that a formula gives, which `check_formula` has found nothing wrong with.

    Raises
    ------
    CostError
        If it divides by zero, leaves a list, mixes numbers with lists, asks for an attribute that
        is not there, or goes beyond 10¹⁸; the sentence goes on after the formula.
    """
    try:
        return _as_number(_read(text, frozenset(scope.names))(scope))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CostError(f"cannot be computed ({error})") from None


def constant_number(text: str) -> float | None:
    """Return the number that a formula gives whatever the operator, if there is one."""
    if "attribute" in text:  # its default is not what every operator has
        return None
    try:
        return evaluate_formula(text, Scope({}, {}))
    except CostError:
        return None


def _read(text: str, names: frozenset[str]) -> _Step:
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"'{text}' is no formula") from None
    try:
        return _step(tree.body, names)
    except RecursionError:
        raise ValueError(f"'{text}' is nested too deep") from None


def _step(node: ast.expr, names: frozenset[str]) -> _Step:
    reader = _READERS.get(type(node))
    if reader is None:
        raise ValueError(
            "holds more than numbers, names, + - * / // % **, comparisons, [ ], if and functions"
        )
    return reader(node, names)


def _constant(node: ast.Constant, _names: frozenset[str]) -> _Step:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"holds {value!r}, which is no number")
    if not isinstance(value, str):
        _bounded(value)
    return lambda scope: value


def _name(node: ast.Name, names: frozenset[str]) -> _Step:
    if node.id not in names:
        known = ", ".join(sorted(names))
        raise ValueError(f"uses '{node.id}', which there is not; known: {known}")
    return lambda scope: scope.names[node.id]


def _binary(node: ast.BinOp, names: frozenset[str]) -> _Step:
    apply = _BINARY.get(type(node.op))
    if apply is None:
        raise ValueError("uses an operator that is none of + - * / // % **")
    left, right = _step(node.left, names), _step(node.right, names)
    return lambda scope: _bounded(apply(_as_number(left(scope)), _as_number(right(scope))))


def _unary(node: ast.UnaryOp, names: frozenset[str]) -> _Step:
    sign = {ast.USub: -1, ast.UAdd: 1}.get(type(node.op))
    if sign is None:
        raise ValueError("uses an operator that is neither + nor -")
    operand = _step(node.operand, names)
    return lambda scope: sign * _as_number(operand(scope))


def _choice(node: ast.IfExp, names: frozenset[str]) -> _Step:
    test, then, other = (_step(part, names) for part in (node.test, node.body, node.orelse))
    return lambda scope: then(scope) if test(scope) else other(scope)


def _comparison(node: ast.Compare, names: frozenset[str]) -> _Step:
    if len(node.ops) != 1 or type(node.ops[0]) not in _ORDER:
        raise ValueError("compares otherwise than by one of == != < <= > >=")
    apply = _ORDER[type(node.ops[0])]
    left, right = _step(node.left, names), _step(node.comparators[0], names)
    return lambda scope: int(apply(left(scope), right(scope)))


def _pick(node: ast.Subscript, names: frozenset[str]) -> _Step:
    whole = _step(node.value, names)
    if isinstance(node.slice, ast.Slice):
        if node.slice.step:
            raise ValueError("takes a part of a list in steps")
        bounds = (node.slice.lower, node.slice.upper)
        low, high = (_step(bound, names) if bound else None for bound in bounds)
        return lambda scope: _as_list(whole(scope))[
            _index(low(scope)) if low else None : _index(high(scope)) if high else None
        ]
    at = _step(node.slice, names)
    return lambda scope: _element(_as_list(whole(scope)), _index(at(scope)))


def _call(node: ast.Call, names: frozenset[str]) -> _Step:
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    if called == "attribute":
        return _attribute(node, names)
    apply = _FUNCTIONS.get(called)
    if apply is None or node.keywords:
        known = ", ".join(sorted(_FUNCTIONS))
        raise ValueError(f'calls more than {known} and attribute("NAME", default)')
    arguments = [_step(argument, names) for argument in node.args]

    def step(scope: Scope) -> Value:
        given = tuple(argument(scope) for argument in arguments)
        if len(given) == 1 and isinstance(given[0], tuple):
            given = given[0]
        if called == "len":
            return _bounded(len(given))
        if called in _OF_ONE and len(given) != 1:
            raise TypeError("a function of one number is given more or less")
        return _bounded(apply([_as_number(value) for value in given]))

    return step


def _attribute(node: ast.Call, names: frozenset[str]) -> _Step:
    match node.args:
        case [ast.Constant(value=str() as name), *rest] if len(rest) <= 1 and not node.keywords:
            default = _step(rest[0], names) if rest else None
        case _:
            raise ValueError('calls attribute otherwise than as attribute("NAME", default)')

    def step(scope: Scope) -> Value:
        if name in scope.attributes:
            return scope.attributes[name]
        if default is None:
            raise LookupError(f"the operator has no attribute '{name}'")
        return default(scope)

    return step


def _as_number(value: Value) -> float:
    if isinstance(value, str | tuple):
        raise TypeError("a list or a text stands where a number should")
    return value


def _as_list(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise TypeError("[ ] stands behind what is no list")
    return value


def _index(value: Value) -> int:
    number = _as_number(value)
    if number != int(number):
        raise TypeError(f"{number:g} is no place in a list")
    return int(number)


def _element(whole: tuple[Value, ...], at: int) -> Value:
    if not -len(whole) <= at < len(whole):
        raise LookupError(f"a list of {len(whole)} has no element {at}")
    return whole[at]


def _bounded(value: float) -> float:
    if not isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"holds or gives a number beyond {LARGEST:g}")
    return value


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f"takes a power beyond {_LARGEST_EXPONENT}")
    result: float | complex = base**exponent
    if isinstance(result, complex):
        raise TypeError("takes a root of a negative number")
    return result


def _product(numbers: list[float]) -> float:
    result: float = 1
    for number in numbers:
        result = _bounded(result * number)
    return result


_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: _as_number(a) < _as_number(b),
    ast.LtE: lambda a, b: _as_number(a) <= _as_number(b),
    ast.Gt: lambda a, b: _as_number(a) > _as_number(b),
    ast.GtE: lambda a, b: _as_number(a) >= _as_number(b),
}
_OF_ONE = frozenset({"abs", "ceil", "floor"})
_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "prod": _product,
    "sum": sum,
    "min": min,
    "max": max,
    "len": len,
    "abs": lambda numbers: abs(*numbers),
    "ceil": lambda numbers: ceil(*numbers),
    "floor": lambda numbers: floor(*numbers),
}
_READERS: Mapping[type[ast.expr], Callable[..., _Step]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.Compare: _comparison,
    ast.Subscript: _pick,
    ast.Call: _call,
}
