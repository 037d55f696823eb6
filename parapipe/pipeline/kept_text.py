"""Answers as the JSON text that the cache keeps; worker processes need neither it nor pydantic."""

from __future__ import annotations

from math import inf
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

from parapipe.mapping.schedule import Answer


def _unbounded(content: object) -> object:
    """Put back the infinite resolution, which is null in JSON."""
    unknown = isinstance(content, dict) and content.get("resolution", 0) is None
    return {**content, "resolution": inf} if unknown else content  # type: ignore[dict-item]


_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, BeforeValidator(_unbounded)])


def text_of(answer: Answer) -> str:
    """Write an answer as JSON; every number comes back to the last bit."""
    return _ANSWER.dump_json(answer).decode()


def read_answer(text: str) -> Answer:
    """Read an answer; ValueError if the text is none."""
    return _ANSWER.validate_json(text)
