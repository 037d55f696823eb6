"""Arguments and options: what they must be, checked by pydantic, and what else options do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from parapipe.errors import ArgumentError
from parapipe.files.mistakes import KeyPath, Mistake, did_you_mean, nearest

if TYPE_CHECKING:
    from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter, ValidationError
    from pydantic_core import CoreSchema, ErrorDetails


CONTRADICTION = "contradiction"  # a finding of which `WholeFile.contradictions` tells more

_SENTENCES: Mapping[str, str] = {
    "missing": "is missing; add it",
    "string_type": "must be text; put it in quotes if it looks like a number",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "finite_number": "must be finite; .inf and .nan say nothing",
    "greater_than_equal": "is {input}, must be at least {ge:g}",
    "less_than_equal": "is {input}, must be at most {le:g}",
    "too_short": "must hold at least {min_length}; add one",
    "too_long": "holds more than {max_length}; leave some out",
    "string_too_short": "is empty; write something or delete the key",
    "string_too_long": "is longer than {max_length} characters; shorten it",
    "string_pattern_mismatch": "'{input}' is not of the form {pattern}",
    "literal_error": "'{input}' is not one of {expected}",
    "value_error": "{error}",
}
_UNITS = ("_s", "_hz", "_v", "_w")
_LONGEST = 60  # characters of a value that are shown


def mistakes_of(error: ValidationError, root: type[BaseModel]) -> Iterator[Mistake]:
    """Yield a mistake for each finding, contradictions left out.

    Parameters
    ----------
    root
        The model that a whole file is.
    """
    details = [
        (tuple(step for step in each["loc"] if step != "[key]"), each)
        for each in error.errors()
        if each["type"] != CONTRADICTION
    ]
    misspelt = {
        path: near
        for path, each in details
        if each["type"] == "extra_forbidden"
        and (near := nearest(str(path[-1]), keys_at(path[:-1], root)))
    }
    meant = {(*path[:-1], word) for path, word in misspelt.items()}
    mistakes = (
        Mistake(path, _sentence(path, each, misspelt.get(path), root))
        for path, each in details
        if not (each["type"] == "missing" and path in meant) and not _is_long_enough(each)
    )
    yield from dict.fromkeys(mistakes)


def _is_long_enough(each: ErrorDetails) -> bool:
    # Pydantic does not count the items that are wrong themselves.
    if each["type"] != "too_short" or not isinstance(each["input"], tuple | list):
        return False
    return bool(len(each["input"]) >= each["ctx"]["min_length"])


def _sentence(path: KeyPath, each: ErrorDetails, meant: str | None, root: type[BaseModel]) -> str:
    kind = each["type"]
    if kind == "extra_forbidden":
        known_keys = f"known: {', '.join(keys_at(path[:-1], root))}"
        return "is no known key; " + (f"did you mean '{meant}'?" if meant else known_keys)
    if kind not in _SENTENCES:
        return each["msg"]
    context: dict[str, Any] = {"input": str(each["input"])[:_LONGEST], **each.get("ctx", {})}
    text = _SENTENCES[kind].format(**context)
    if kind in ("greater_than_equal", "less_than_equal") and str(path[-1]).endswith(_UNITS):
        return text + "; mind the unit at the end of the key"
    if kind == "literal_error":
        return text + did_you_mean(context["input"], re.findall(r"'([^']*)'", context["expected"]))
    return text


def keys_at(path: KeyPath, root: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that a file may have at a path; none if it holds no fixed keys."""
    current: Any = root
    for step in path:
        current = _type_below(current, step)
    if not _is_model(current):
        return ()
    keys = (field.alias or name for name, field in current.model_fields.items())
    return (*keys, *getattr(current, "short_keys", ()))


def _type_below(kind: Any, step: str | int) -> Any:  # noqa: ANN401 - a type expression has no type
    if _is_model(kind):
        fields = kind.model_fields.items()
        annotations = (field.annotation for name, field in fields if (field.alias or name) == step)
        return _without_options(next(annotations, None))
    arguments = get_args(kind)
    return _without_options(arguments[-1 if get_origin(kind) is dict else 0]) if arguments else None


def _is_model(kind: Any) -> bool:  # noqa: ANN401 - a type expression has no type
    from pydantic import BaseModel  # takes time to load, as all of pydantic

    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _without_options(kind: Any) -> Any:  # noqa: ANN401 - a type expression has no type
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return kind


@dataclass(frozen=True, slots=True)
class Must:
    """What a value must be, beside a type in `Annotated`.

    Parameters
    ----------
    be
        Words for the message.
    ge, gt, le, lt
        Bounds, as pydantic names them.
    filled
        Whether a text or a list must not be empty.
    infinite
        Whether a number may be infinite.
    lax
        Whether another type will do that pydantic converts, as a list for a tuple.
    """

    be: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    filled: bool = False
    infinite: bool = False
    lax: bool = False

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the type's schema with these bounds."""
        from pydantic_core import core_schema

        schema: Any = handler(source)
        bounds = {"ge": self.ge, "gt": self.gt, "le": self.le, "lt": self.lt}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        if schema["type"] == "float":
            schema["allow_inf_nan"] = self.infinite  # with a bound, NaN never fits
        if self.lax:
            schema["strict"] = False
        if schema["type"] in ("int", "float"):
            return core_schema.no_info_before_validator_function(_plain_number, schema)
        if self.filled:
            return core_schema.no_info_after_validator_function(_require_filled, schema)
        return schema  # type: ignore[no-any-return]


NotEmpty = Annotated[str, Must("a text that is not empty", filled=True)]
Count = Annotated[int, Must("a whole number of at least 1", ge=1)]
FromZero = Annotated[int, Must("a whole number of at least 0", ge=0)]
Share = Annotated[float, Must("a number of at least 0 and less than 1", ge=0, lt=1)]
Seconds = Annotated[float, Must("a positive finite number of seconds", gt=0)]


def check_arguments(
    function: str, hints: Mapping[str, object], arguments: Mapping[str, object]
) -> None:
    """Raise an ArgumentError that names every argument that is not of its type, if it has one."""
    wrong = [
        f"{name} must be {type_text(hints[name])}, and is {_value_text(value)}"
        f"{did_you_mean(value, _choices(hints[name])) if isinstance(value, str) else ''}"
        for name, value in arguments.items()
        if name in hints and not _fits(value, hints[name])
    ]
    if wrong:
        raise ArgumentError("; ".join(wrong), function)


def type_text(hint: object) -> str:
    """Say what a type asks for."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        texts = [part.be for part in parts[1:] if isinstance(part, Must)]
        return texts[-1] if texts else type_text(parts[0])
    if origin is Literal:
        return " or ".join(f"'{part}'" for part in parts)
    if origin in (Union, UnionType):
        last = ", or None" if type(None) in parts else ""
        return " or ".join(type_text(part) for part in parts if part is not type(None)) + last
    if origin is Callable:
        return "a function"
    return "True or False" if hint is bool else f"of type {getattr(hint, '__name__', hint)}"


def is_repeatable(hint: object) -> bool:
    """Tell whether a type takes several values, in a list or by name."""
    if get_origin(hint) in (Annotated, Union, UnionType):
        return any(is_repeatable(part) for part in get_args(hint))
    return get_origin(hint) in (Sequence, Mapping)


def _choices(hint: object) -> list[str]:
    """Return the words that a type takes, if it lists them."""
    if get_origin(hint) is Literal:
        return [part for part in get_args(hint) if isinstance(part, str)]
    if get_origin(hint) in (Annotated, Union, UnionType):
        return [word for part in get_args(hint) for word in _choices(part)]
    return []


def _fits(value: object, hint: object) -> bool:
    from pydantic import ValidationError

    try:
        _adapter(hint).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(strict=True, arbitrary_types_allowed=True))


def _plain_number(value: object) -> object:
    """Return NumPy's numbers as Python's."""
    if isinstance(value, int | float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _require_filled(value: Any) -> Any:  # noqa: ANN401 - what pydantic has looked at
    if not value:
        raise ValueError
    return value


def _value_text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class Traits:
    """What an option does beside its type and its meaning: metadata of its field in a record.

    Parameters
    ----------
    section
        Of help that lists it.
    metavar
        What help calls its value, if its type does not say that.
    several
        What it means for several models: the same for each; the same, and its keys begin with a
        model's name and a slash; a value by each model's name, for several models only. Or it is
        refused, or has no effect.
    not_of_sets
        Why a map of several sets of shapes does not take it; nothing if it does.
    changes_results
        Whether results depend on it. If not, it is neither in the command that makes a front again
        nor in the options of a sweep.
    reads_model
        Whether a model is read with it.
    solves
        Whether it decides how a subgraph is solved, and so belongs to the key in the cache.
    idle
        Says why it has no effect beside the values of all options, by name; nothing if it has one.
    text
        Writes a value as the command line takes it.
    """

    section: Literal["common", "model", "search", "limits"]
    metavar: str | None = None
    several: Literal["same", "prefixed", "by model", "refused", "no effect"] = "same"
    not_of_sets: str = ""
    changes_results: bool = True
    reads_model: bool = False
    solves: bool = False
    idle: Callable[[Mapping[str, Any]], str] = lambda _given: ""
    text: Callable[[Any], str] = str


def traits(
    section: Literal["common", "model", "search", "limits"],
    **others: Any,  # noqa: ANN401 - `Traits` has their types
) -> Mapping[str, Traits]:
    """Return the metadata of an option's field."""
    return {"traits": Traits(section, **others)}


def needs(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the trait of an option that has no effect without another one."""
    why = f"has no effect without --{name}; give both or neither"
    return lambda given: "" if given[name] else why
