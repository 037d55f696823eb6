"""The base of all that is read from files and written to them: it never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


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
