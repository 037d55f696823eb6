"""The base of all records in plans, exported ones included."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Fields as they are declared: none unknown, none converted, no number that is none."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )
