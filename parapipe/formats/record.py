"""The base of all records in documents."""

from __future__ import annotations

from typing import Any, Self

from parapipe.plan.record import Record


class Row(Record):
    """A record that can take its figures from what holds them under the same names."""

    @classmethod
    def of(cls, *found: object, **own: Any) -> Self:  # noqa: ANN401 - any field
        """Return the record of `found`: the first one's attribute, if a field is not given."""
        named = {field.alias or name: name for name, field in cls.model_fields.items()}
        taken = {
            key: next(getattr(each, name) for each in found if hasattr(each, name))
            for key, name in named.items()
            if key not in own
        }
        return cls(**taken, **own)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self.model_dump(mode="json", by_alias=True)
