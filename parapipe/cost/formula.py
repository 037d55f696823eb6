"""Formulas over shapes, as a rules file holds them: arithmetic and nothing else.

simpleeval computes a formula by the tables below; what stands in none of them is refused before.
Lengths and numbers are bounded, so that no formula can take long.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor, isfinite, prod

from simpleeval import InvalidExpression, SimpleEval

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


def check_formula(text: str, names: frozenset[str]) -> str:
    """Return what is wrong with a formula that may use `names`; empty if nothing is."""
    if len(text) > LONGEST:
        return f"is longer than {LONGEST} characters"
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'{text}' is no formula"
    return next(_mistakes(tree.body, names), "")


def _mistakes(tree: ast.expr, names: frozenset[str]) -> Iterator[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _mistakes_of_call(node)
        elif isinstance(node, ast.Name):
            if node.id not in names and id(node) not in called:
                known = ", ".join(sorted(names))
                yield f"uses '{node.id}', which does not exist; known: {known}"
        elif isinstance(node, ast.Constant):
            yield from _mistakes_of_constant(node.value)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            yield _REFUSED[ast.cmpop]
        elif isinstance(node, ast.Slice) and node.step:
            yield "takes a part of a list in steps"
        elif not isinstance(node, (*_OPERATORS, *_PLAIN)):
            yield next(text for kind, text in _REFUSED.items() if isinstance(node, kind))


def _mistakes_of_call(node: ast.Call) -> Iterator[str]:
    match node:
        case ast.Call(ast.Name("attribute"), [ast.Constant(str()), *rest], []) if len(rest) <= 1:
            pass
        case ast.Call(ast.Name("attribute")):
            yield 'calls attribute otherwise than as attribute("NAME", default)'
        case ast.Call(ast.Name(name), keywords=[]) if name in _FUNCTIONS:
            pass
        case _:
            known = ", ".join(sorted(_FUNCTIONS))
            yield f'calls more than {known} and attribute("NAME", default)'


def _mistakes_of_constant(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        yield f"holds {value!r}, which is no number"
    elif not isinstance(value, str) and not _is_bounded(value):
        yield _BEYOND


def evaluate_formula(text: str, scope: Scope) -> float:
    """Return the number that a formula gives, which `check_formula` has found nothing wrong with.

    Raises
    ------
    CostError
        If it divides by zero, leaves a list, mixes numbers with lists, asks for an attribute that
        is not there, or goes beyond 10¹⁸; the sentence goes on after the formula.
    """

    def attribute(name: str, *default: Value) -> Value:
        if name not in scope.attributes and not default:
            raise LookupError(f"the operator has no attribute '{name}'")
        return scope.attributes[name] if name in scope.attributes else default[0]

    functions = {**_FUNCTIONS, "attribute": attribute}
    computed = SimpleEval(operators=_OPERATORS, functions=functions, names=dict(scope.names))
    try:
        return _number(computed.eval(text))
    except IndexError:
        raise CostError("cannot be computed (a list has no such element)") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, InvalidExpression) as error:
        raise CostError(f"cannot be computed ({error})") from None


def constant_number(text: str) -> float | None:
    """Return the number that a formula gives whatever the operator, if there is one."""
    if "attribute" in text:  # its default is not what every operator has
        return None
    try:
        return evaluate_formula(text, Scope({}, {}))
    except CostError:
        return None


def _number(value: Value) -> float:
    if isinstance(value, str | tuple):
        raise TypeError("a list or a text stands where a number should")
    return _bounded(value)


def _is_bounded(value: float) -> bool:
    return isfinite(value) and abs(value) <= LARGEST


def _bounded(value: float) -> float:
    if not _is_bounded(value):
        raise ValueError(_BEYOND)
    return value


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f"takes a power beyond {_LARGEST_EXPONENT}")
    result: float | complex = base**exponent
    if isinstance(result, complex):
        raise TypeError("takes a root of a negative number")
    return result


def _of_numbers(apply: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: _bounded(apply(*map(_number, values)))


def _of_list(apply: Callable[[list[float]], float]) -> Callable[..., float]:
    """Take one list, or the numbers of it each by itself."""

    def step(*values: Value) -> float:
        given = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        return _bounded(apply([_number(value) for value in given]))

    return step


_PLAIN = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Load,
)  # fmt: skip
_REFUSED: Mapping[type[ast.AST], str] = {
    ast.cmpop: "compares otherwise than by one of == != < <= > >=",
    ast.operator: "uses an operator that is none of + - * / // % **",
    ast.unaryop: "uses an operator that is neither + nor -",
    ast.AST: "holds more than numbers, names, + - * / // % **, comparisons, [ ], if and functions",
}
_BEYOND = f"holds or gives a number beyond {LARGEST:g}"
_OPERATORS: Mapping[type[ast.AST], Callable[..., object]] = {
    ast.Add: _of_numbers(operator.add),
    ast.Sub: _of_numbers(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
    ast.FloorDiv: _of_numbers(operator.floordiv),
    ast.Mod: _of_numbers(operator.mod),
    ast.Pow: _of_numbers(_power),
    ast.USub: _of_numbers(operator.neg),
    ast.UAdd: _of_numbers(operator.pos),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _of_numbers(operator.lt),
    ast.LtE: _of_numbers(operator.le),
    ast.Gt: _of_numbers(operator.gt),
    ast.GtE: _of_numbers(operator.ge),
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "prod": _of_list(prod),
    "sum": _of_list(sum),
    "min": _of_list(min),
    "max": _of_list(max),
    "len": len,
    "abs": _of_numbers(abs),
    "ceil": _of_numbers(ceil),
    "floor": _of_numbers(floor),
}
