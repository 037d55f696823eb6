"""What the fields of a platform file may hold: numbers with bounds, names, closed sets."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

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
Provenance = Literal["measured", "fitted", "nominal"]
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


def _complete(shares: dict[ClassOrDefault, float]) -> dict[ClassOrDefault, float]:
    missing = [name for name in OPERATOR_CLASSES if name not in shares]
    if missing and "default" not in shares:
        raise ValueError(f"says nothing of {', '.join(missing)}; add them or a default")
    return shares


Shares = Annotated[dict[ClassOrDefault, Share], AfterValidator(_complete)]


def _one_or_more(value: object) -> object:
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
    tuple[Item, ...], Field(strict=False, min_length=1), BeforeValidator(_one_or_more)
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
