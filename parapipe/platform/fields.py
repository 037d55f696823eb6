"""What the fields of a platform file may hold: numbers with bounds, names, expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PlainValidator

from parapipe.files.mistakes import KeyPath
from parapipe.files.yaml_file import Strict

DataType = Literal[
    "float64", "float32", "float16", "bfloat16", "float8", "float4",
    "int64", "int32", "int16", "int8", "int4", "int2",
    "uint64", "uint32", "uint16", "uint8", "uint4", "uint2",
    "bool", "complex64", "complex128", "string",
]  # fmt: skip
ClassOrDefault = Literal[
    "conv1x1", "conv3x3", "conv-other", "depthwise", "gemm", "matmul", "pool", "norm",
    "elementwise", "softmax", "concat", "move", "view", "other",
    "default",
]  # fmt: skip
Provenance = Literal["measured", "stated", "fitted", "nominal"]
OPERATOR_CLASSES: tuple[str, ...] = get_args(ClassOrDefault)[:-1]
AttributeLike = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]

Item = TypeVar("Item")
Many = Annotated[tuple[Item, ...], Field(strict=False)]

# The bounds are far from any hardware: what they catch is MHz for Hz, mV for V, ms for s.
Seconds = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]
Hertz = Annotated[float, Field(ge=1e6, le=1e12, allow_inf_nan=False)]
Volts = Annotated[float, Field(ge=0.1, le=20, allow_inf_nan=False)]
Watts = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
BytesPerSecond = Annotated[float, Field(ge=1e4, le=1e15, allow_inf_nan=False)]
MacsPerSecond = Annotated[float, Field(ge=1e6, le=1e18, allow_inf_nan=False)]
WattsPerV2Hz = Annotated[float, Field(ge=0, le=1e-5, allow_inf_nan=False)]
WattsPerVolt = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
Deviation = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
CoreId = Annotated[int, Field(ge=0, le=4095)]
Text = Annotated[str, Field(min_length=1, max_length=4000)]
Prose = Annotated[str, Field(max_length=4000)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
OptionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
OptionValue = Annotated[str, Field(max_length=4000)]
OperatorType = Annotated[str, Field(pattern=r"^(\*|[A-Za-z_][A-Za-z0-9_]{0,99})$")]


def _checked_shares(shares: dict[ClassOrDefault, float]) -> dict[ClassOrDefault, float]:
    missing = [name for name in OPERATOR_CLASSES if name not in shares]
    if missing and "default" not in shares:
        raise ValueError(f"says nothing of {', '.join(missing)}; add them or a default")
    return shares


Shares = Annotated[dict[ClassOrDefault, Share], AfterValidator(_checked_shares)]
Ratio = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
Ratios = Annotated[dict[ClassOrDefault, Ratio], AfterValidator(_checked_shares)]


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _attribute_value(value: object) -> AttributeLike:
    if isinstance(value, list):
        value = tuple(value)
    if _is_scalar(value):
        return value  # type: ignore[return-value]
    if isinstance(value, tuple) and all(_is_scalar(item) for item in value):
        return value
    raise ValueError("must be a number, a text or a list of them")


def _is_scalar(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


OneOrMore = Annotated[
    tuple[Item, ...], Field(strict=False, min_length=1), BeforeValidator(_as_tuple)
]
AttributeValue = Annotated[Any, PlainValidator(_attribute_value)]


class Section(Strict):
    """A part that holds numbers, and says where they come from.

    Parameters
    ----------
    source
        Key of an entry under `sources`.
    """

    source: Name


_APPLY: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 3}
_LEAF_RANK = 4


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

    def _text(self, leaf_text: Callable[[Expression], str]) -> str:
        if not self.operation:
            return leaf_text(self)
        if self.operation == "max":
            return f"max({', '.join(operand._text(leaf_text) for operand in self.operands)})"
        left, right = self.operands
        rank, after = _RANK[self.operation], _RANK.get(right.operation, _LEAF_RANK)
        bracket = after < rank or (
            after == rank and (self.operation in "-/" or right.operation == "/")
        )
        first = _bracketed(left._text(leaf_text), _RANK.get(left.operation, _LEAF_RANK) < rank)
        space = "" if self.operation == "**" else " "
        return f"{first}{space}{self.operation}{space}{_bracketed(right._text(leaf_text), bracket)}"


def named_value(
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


def file_value(name: str, unit: str, section: object, *key: str | int) -> Expression:
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


def _bracketed(text: str, bracket: bool) -> str:
    return f"({text})" if bracket else text


class Travel(Strict):
    """Seconds = latency + bytes / bandwidth; without a bandwidth, the size does not matter."""

    latency_s: Seconds
    bandwidth_bytes_per_s: BytesPerSecond | None = None


def travel_time(section: Strict, size_bytes: float, *key: str | int) -> Expression:
    """Return the seconds for that many bytes by the `Travel` at a key of a section, or by itself.

    What is called a conversion says so.
    """
    of = "conversion " if "conversion" in key else ""
    time = file_value(f"{of}latency", "s", section, *key, "latency_s")
    rate = (*key, "bandwidth_bytes_per_s")
    if value_at(section, *rate) is None:
        return time
    return time + named_value("bytes", size_bytes, "B") / file_value(
        f"{of}bandwidth", "B/s", section, *rate
    )
