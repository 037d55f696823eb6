"""Schedules, and sets of them, as the JSON text that the cache keeps."""

from __future__ import annotations

from math import inf
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

from parapipe.mapping.energy.trade_off import TradeOffs
from parapipe.mapping.schedule import Schedule


def _unbounded(content: object) -> object:
    """Put back the infinite resolution, which is null in JSON."""
    unknown = isinstance(content, dict) and content.get("resolution", 0) is None
    return {**content, "resolution": inf} if unknown else content  # type: ignore[dict-item]


_SCHEDULE = TypeAdapter(Schedule)
_TRADE_OFFS: TypeAdapter[TradeOffs] = TypeAdapter(Annotated[TradeOffs, BeforeValidator(_unbounded)])


def text_of(answer: Schedule | TradeOffs) -> str:
    """Write as JSON; every number comes back to the last bit."""
    if isinstance(answer, Schedule):
        return _SCHEDULE.dump_json(answer).decode()
    return _TRADE_OFFS.dump_json(answer).decode()


def schedule_of(text: str) -> Schedule:
    """Read a schedule; ValueError if it is none."""
    return _SCHEDULE.validate_json(text)


def trade_offs_of(text: str) -> TradeOffs:
    """Read a set of schedules; ValueError if it is none."""
    return _TRADE_OFFS.validate_json(text)
