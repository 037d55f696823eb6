"""Figures with their units, as a user writes them: 150ms, 4W, 0.12J."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import click

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
WATTS = {"W": 1.0, "mW": 1e-3}
JOULES = {"J": 1.0, "mJ": 1e-3}
_FORM = re.compile(r"\s*([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ]*)\s*")


class Quantity(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A positive number with a unit, told in the base unit."""

    def __init__(self, units: Mapping[str, float], example: str) -> None:
        self.units = units
        self.example = example
        self.name = "figure with unit"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number in the base unit; usage error if the text is not of this form."""
        if isinstance(value, float):
            return value
        match = _FORM.fullmatch(str(value))
        units = " or ".join(filter(None, self.units))
        if match and not match[2] and "" not in self.units:
            first, second = (f"{match[1]}{unit}" for unit in list(self.units)[:2])
            self.fail(f"'{value}' has no unit: give one, as in {first} or {second}", param, ctx)
        if match is None or match[2] not in self.units:
            self.fail(f"'{value}' is not a number in {units}, as in {self.example}", param, ctx)
        try:
            number = float(match[1]) * self.units[match[2]]
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"'{value}' is not positive and finite, as {self.example} is", param, ctx)
        return number
