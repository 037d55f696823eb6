"""A number and how it follows from others: one expression gives both its value and its text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from pydantic import BaseModel

from parapipe.files.mistake import KeyPath

_APPLY: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 3}
_LEAF = 4


class Origin(NamedTuple):
    """What a given value is called, and where it stands.

    Parameters
    ----------
    unit
        SI; empty for a share or a count.
    key
        Where it stands in the platform's file, from the section that the expression is of (a
        processor, a link) or from the top; empty if it does not stand there.
    file, line
        Where else it stands; 0 for a file as a whole, no file for what follows from the model.
    note
        What else there is to know of it, or what returns that.
    """

    name: str
    unit: str = ""
    key: KeyPath = ()
    file: str = ""
    line: int = 0
    note: str | Callable[[], str] = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """A given value, a constant, or an operation on two expressions or more.

    Arithmetic on expressions gives expressions, so that what computes a number also tells how.
    Two are equal if their values are.

    Parameters
    ----------
    operation, operands
        `+`, `-`, `*`, `/`, `**` or `max`, and what it is applied to; none for a single value.
    origin
        Of a given value; a constant has none.
    """

    value: float
    operation: str = field(default="", compare=False)
    operands: tuple[Expression, ...] = field(default=(), compare=False)
    origin: Origin | None = field(default=None, compare=False)

    def __add__(self, other: Expression | float) -> Expression:
        return _binary("+", self, other)

    def __sub__(self, other: Expression | float) -> Expression:
        return _binary("-", self, other)

    def __rsub__(self, other: float) -> Expression:
        return _binary("-", other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        return _binary("*", self, other)

    def __truediv__(self, other: Expression | float) -> Expression:
        return _binary("/", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return _binary("/", other, self)

    def __pow__(self, other: float) -> Expression:
        return _binary("**", self, other)

    @property
    def rule(self) -> str:
        """The expression in the names of the given values."""
        return self._text(lambda leaf: leaf.origin.name if leaf.origin else f"{leaf.value:g}")

    @property
    def numbers(self) -> str:
        """The expression with the values put in, to seven digits; Python can evaluate it."""
        return self._text(lambda leaf: f"{leaf.value:.7g}")

    @property
    def givens(self) -> tuple[Expression, ...]:
        """The given values, each once, in the order of the text."""
        return tuple({leaf.origin.name: leaf for leaf in self._leaves() if leaf.origin}.values())

    def _leaves(self) -> Iterator[Expression]:
        if not self.operation:
            yield self
        for operand in self.operands:
            yield from operand._leaves()

    def _text(self, shown: Callable[[Expression], str]) -> str:
        if not self.operation:
            return shown(self)
        if self.operation == "max":
            return f"max({', '.join(operand._text(shown) for operand in self.operands)})"
        left, right = self.operands
        rank, after = _RANK[self.operation], _RANK.get(right.operation, _LEAF)
        closed = after < rank or (
            after == rank and (self.operation in "-/" or right.operation == "/")
        )
        first = _closed(left._text(shown), _RANK.get(left.operation, _LEAF) < rank)
        space = "" if self.operation == "**" else " "
        return f"{first}{space}{self.operation}{space}{_closed(right._text(shown), closed)}"


def known(
    name: str,
    value: float,
    unit: str = "",
    *,
    file: str = "",
    line: int = 0,
    note: str | Callable[[], str] = "",
) -> Expression:
    """Return a given value that does not stand in the platform's file."""
    return Expression(value, origin=Origin(name, unit, (), file, line, note))


def stated(name: str, unit: str, section: object, *key: str | int) -> Expression:
    """Return a value of a platform's file.

    Parameters
    ----------
    section
        The processor, link or platform that holds it.
    key
        Where it stands in that section.
    """
    return Expression(value_at(section, *key), origin=Origin(name, unit, key))


def value_at(section: object, *key: str | int) -> Any:  # noqa: ANN401
    """Return what stands at a key of a section."""
    for step in key:
        section = getattr(section, str(step)) if isinstance(section, BaseModel) else section[step]  # type: ignore[index]
    return section


def total(terms: Iterable[Expression]) -> Expression:
    """Return the sum of the terms; 0 of none."""
    return reduce(operator.add, list(terms) or [Expression(0)])


def largest(*terms: Expression) -> Expression:
    """Return the largest of the terms, of which there is at least one."""
    return Expression(max(term.value for term in terms), "max", terms) if terms[1:] else terms[0]


def _binary(operation: str, left: Expression | float, right: Expression | float) -> Expression:
    first = left if isinstance(left, Expression) else Expression(left)
    second = right if isinstance(right, Expression) else Expression(right)
    return Expression(_APPLY[operation](first.value, second.value), operation, (first, second))


def _closed(text: str, closed: bool) -> str:
    return f"({text})" if closed else text
