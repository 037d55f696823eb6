"""From pydantic's findings to sentences that say what is wrong and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from parapipe.files.mistakes import KeyPath, Mistake, did_you_mean, nearest

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
_LONGEST = 60


def mistakes_of(error: ValidationError, root: type[BaseModel]) -> Iterator[Mistake]:
    """Yield a mistake for each finding, contradictions left out.

    Parameters
    ----------
    root
        The model that a whole file is.
    """
    details = [(_path(each), each) for each in error.errors() if each["type"] != CONTRADICTION]
    misspelt = {
        path: near
        for path, each in details
        if each["type"] == "extra_forbidden"
        and (near := nearest(str(path[-1]), keys_at(path[:-1], root)))
    }
    meant = {(*path[:-1], word) for path, word in misspelt.items()}
    found = (
        Mistake(path, _text(path, each, misspelt.get(path), root))
        for path, each in details
        if not (each["type"] == "missing" and path in meant) and not _is_long_enough(each)
    )
    yield from dict.fromkeys(found)


def _is_long_enough(each: ErrorDetails) -> bool:
    # Pydantic does not count the items that are wrong themselves.
    if each["type"] != "too_short" or not isinstance(each["input"], tuple | list):
        return False
    return bool(len(each["input"]) >= each["ctx"]["min_length"])


def _path(each: ErrorDetails) -> KeyPath:
    return tuple(step for step in each["loc"] if step != "[key]")


def _text(path: KeyPath, each: ErrorDetails, meant: str | None, root: type[BaseModel]) -> str:
    kind = each["type"]
    if kind == "extra_forbidden":
        known = f"known: {', '.join(keys_at(path[:-1], root))}"
        return "is no known key; " + (f"did you mean '{meant}'?" if meant else known)
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
        current = _below(current, step)
    if not (isinstance(current, type) and issubclass(current, BaseModel)):
        return ()
    keys = (field.alias or name for name, field in current.model_fields.items())
    return (*keys, *getattr(current, "short_keys", ()))


def _below(kind: Any, step: str | int) -> Any:  # noqa: ANN401 - a type expression has no type
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        found = (field.annotation for name, field in fields if (field.alias or name) == step)
        return _plain(next(found, None))
    arguments = get_args(kind)
    return _plain(arguments[-1 if get_origin(kind) is dict else 0]) if arguments else None


def _plain(kind: Any) -> Any:  # noqa: ANN401 - a type expression has no type
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return kind
