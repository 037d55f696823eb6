"""The base of all records in files: frozen, every field checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """Fields as they are declared: none unknown, none converted, none changed later."""

    # few classes are used in one command, so the others are not built
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, perhaps with other fields; what follows from fields is computed anew."""
        copy = super().model_copy(update=update, deep=deep)
        for name in vars(copy).keys() - type(self).model_fields.keys():
            del vars(copy)[name]
        return copy


Figure = Annotated[float, Field(ge=0, le=1e18)]
"""A number of seconds, joules and the like: far below what overflows once numbers are added up."""

PositiveFigure = Annotated[float, Field(ge=1e-18, le=1e18)]
"""One that may stand below a fraction line."""


def _is_interval(value: object) -> bool:
    return isinstance(value, tuple) and [*map(type, value)] == [float, float]


class Record(Frozen):
    """Fields as they are declared: none unknown, none converted, no number that is none."""

    model_config = ConfigDict(allow_inf_nan=False)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield numbers, texts and pairs of numbers: what they hold beside would be pages."""
        for name, value in super().__repr_args__():
            if isinstance(value, str | int | float) or _is_interval(value):
                yield name, value

    def __str__(self) -> str:
        return repr(self)

    def __dir__(self) -> list[str]:
        """Return the names that are meant for users: none of pydantic's."""
        return sorted({name for name in super().__dir__() if name[0] != "_"} - {*dir(BaseModel)})

    def to_bytes(self, cached: Mapping[str, str] = MappingProxyType({})) -> bytes:
        """Return the record as JSON in UTF-8: a line for each entry of its lists and tables.

        Fields stand in the order of the schema, names in tables in alphabetical order, and numbers
        with the fewest digits that give the same double again (Python's `repr`).

        Parameters
        ----------
        cached
            What `texts` gives for fields that have the same values in another record.
        """
        texts = {**self.texts(*(type(self).model_fields.keys() - cached)), **cached}
        fields = [
            f" {as_json(field.alias or name)}: {texts[name]}"
            for name, field in type(self).model_fields.items()
            if name in texts
        ]
        return ("{\n" + ",\n".join(fields) + "\n}\n").encode()

    def texts(self, *names: str) -> dict[str, str]:
        """Return fields as `to_bytes` writes them, by their names; those left out have none."""
        values = self.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(names))
        keys = {name: type(self).model_fields[name].alias or name for name in names}
        return {name: _in_lines(values[key]) for name, key in keys.items() if key in values}


class Row(Record):
    """A record that can take its figures from what holds them under the same names."""

    @classmethod
    def of(cls, *sources: object, **own: Any) -> Self:  # noqa: ANN401 - any field
        """Return the record: of `sources` the first one's attribute, if a field is not given."""
        named = {field.alias or name: name for name, field in cls.model_fields.items()}
        values = {
            key: next(getattr(each, name) for each in sources if hasattr(each, name))
            for key, name in named.items()
            if key not in own
        }
        return cls(**values, **own)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self.model_dump(mode="json", by_alias=True)


def without_none(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a record's values without those of some fields that are None: added in a version."""
    return {key: value for key, value in values.items() if value is not None or key not in names}


def _in_lines(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {as_json(entry)}" for entry in value) + "\n ]"
    if isinstance(value, dict) and value:
        entries = (f"  {as_json(key)}: {as_json(entry)}" for key, entry in value.items())
        return "{\n" + ",\n".join(entries) + "\n }"
    return as_json(value)


def as_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return a value as JSON in one line."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)  # one for many short lines
