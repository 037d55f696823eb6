"""Which operators a processor runs: allow and deny lists with conditions, never code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from parapipe.files.yaml_file import Strict
from parapipe.platform.fields import (
    AttributeLike,
    AttributeValue,
    DataType,
    Many,
    Name,
    OneOrMore,
    OperatorType,
    Text,
)

Number = Annotated[float, Field(allow_inf_nan=False)]
Position = Annotated[int, Field(ge=0, le=1000)]


class Unlisted(StrEnum):
    """What a type is, of which no allow list has a rule that matches the operator."""

    TYPE = "not among the allowed operators"
    FORM = "only allowed with other attributes or data types"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a processor does not run an operator; as a text, a sentence without its end.

    Parameters
    ----------
    processor
        Its name.
    cause
        Ends the sentence "Conv cannot run on gpu: …", or is a sentence itself if there is no type.
    type, operator
        ONNX type and name of the operator, which may be a part of a fused one. The type is empty
        where it does not matter, the name where only the type and its form were asked for.
    """

    processor: str
    cause: str
    type: str = ""
    operator: str = ""

    def __str__(self) -> str:
        cause = f"{self.type} is {self.cause}" if isinstance(self.cause, Unlisted) else self.cause
        return f"{self.type} cannot run on {self.processor}: {cause}" if self.type else cause


class Condition(Strict):
    """What an attribute's value must be; all parts that are given must hold.

    Parameters
    ----------
    equals
        Exactly this number, text or list.
    one_of
        One of these; for a list, every element.
    min, max
        Bounds, inclusive; for a list, of every element.
    any_min, any_max
        For a list: at least one element is in the bound.
    length
        Number of elements of a list.
    present
        Whether the attribute is written down at all.
    default
        Value to take where the attribute is not written down. Without it, a condition on a
        missing attribute does not hold.
    """

    equals: AttributeValue | None = None
    one_of: Many[AttributeValue] | None = None
    min: Number | None = None
    max: Number | None = None
    any_min: Number | None = None
    any_max: Number | None = None
    length: Annotated[int, Field(ge=0, le=64)] | None = None
    present: bool | None = None
    default: AttributeValue | None = None

    def holds(self, value: AttributeLike | None) -> bool:
        """Say whether the condition holds; the value is None where the attribute is missing."""
        if self.present is not None and self.present != (value is not None):
            return False
        if value is None:
            value = self.default
        if value is None:
            return self.present is False
        items = value if isinstance(value, tuple) else (value,)
        return (
            (self.equals is None or value == self.equals)
            and (self.length is None or len(items) == self.length)
            and (self.one_of is None or all(item in self.one_of for item in items))
            and self._within_bounds(items)
        )

    def _within_bounds(self, items: tuple[int | float | str, ...]) -> bool:
        low, high, any_low, any_high = bounds = (self.min, self.max, self.any_min, self.any_max)
        numbers = [item for item in items if not isinstance(item, str)]
        return bounds == (None,) * 4 or (
            len(numbers) == len(items)
            and (low is None or all(x >= low for x in numbers))
            and (high is None or all(x <= high for x in numbers))
            and (any_low is None or any(x >= any_low for x in numbers))
            and (any_high is None or any(x <= any_high for x in numbers))
        )


class Rule(Strict):
    """A set of operators: by type, data type, attributes and which inputs are constants.

    Parameters
    ----------
    type
        ONNX operator types; `*` stands for all.
    data_types
        Data types it is about; all if left out.
    where
        Conditions on attributes, all of which must hold.
    constant_inputs
        Positions of inputs, counted from 0, that must be constants (weights) or omitted.
    """

    type: OneOrMore[OperatorType]
    data_types: Many[DataType] | None = None
    where: dict[Text, Condition] = Field(default_factory=dict)
    constant_inputs: Annotated[Many[Position], Field(max_length=100)] = ()

    def names(self, type: str) -> bool:
        """Say whether the rule is about this operator type."""
        return type in self.type or "*" in self.type

    def matches(
        self,
        type: str,
        dtype: str,
        attributes: Mapping[str, AttributeLike],
        activations: Collection[int] = (),
    ) -> bool:
        """Say whether the rule is about this operator; `activations` as for `Support.refusal`."""
        return (
            self.names(type)
            and not any(position in activations for position in self.constant_inputs)
            and (self.data_types is None or dtype in self.data_types)
            and all(test.holds(attributes.get(name)) for name, test in self.where.items())
        )


class Denial(Rule):
    """Operators that do not run, and why.

    Parameters
    ----------
    reason
        Ends the sentence "Conv cannot run on gpu: …".
    """

    reason: Text


class Support(Strict):
    """The operators that a processor runs.

    Parameters
    ----------
    allow
        An operator runs if one of these rules matches it; all do if left out.
    deny
        Exceptions from `allow`.
    source
        Key of an entry under `sources`.
    """

    allow: Many[Rule] | None = None
    deny: Many[Denial] = ()
    source: Name | None = None

    def refusal(
        self,
        type: str,
        dtype: str,
        attributes: Mapping[str, AttributeLike],
        activations: Collection[int] = (),
    ) -> str | None:
        """Return the cause why the operator does not run; None if it does.

        Parameters
        ----------
        activations
            Positions of its inputs that are no constants.
        """
        for denial in self.deny:
            if denial.matches(type, dtype, attributes, activations):
                return denial.reason
        if self.allow is None:
            return None
        rules = [rule for rule in self.allow if rule.names(type)]
        if any(rule.matches(type, dtype, attributes, activations) for rule in rules):
            return None
        for rule in rules:
            if rule.matches(type, dtype, attributes):
                varying = sorted(set(rule.constant_inputs).intersection(activations))
                return f"its input {_and_list(varying)} (counted from 0) must be constant"
        if rules:
            return Unlisted.FORM
        return Unlisted.TYPE


def _and_list(positions: Sequence[int]) -> str:
    *first, last = map(str, positions)
    return f"{', '.join(first)} and {last}" if first else last
