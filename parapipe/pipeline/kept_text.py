"""Schedules, and sets of them, as the text that the cache keeps."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import inf
from typing import Any

from parapipe.mapping.energy.trade_off import EnergyCertificate, TradeOff, TradeOffs
from parapipe.mapping.schedule import Certificate, Schedule, Transfer


def text_of(answer: Schedule | TradeOffs) -> str:
    """Write as JSON, which knows no infinity: there stands null in its place."""
    content = asdict(answer)
    if isinstance(answer, TradeOffs) and answer.resolution == inf:
        content["resolution"] = None
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def schedule_of(content: dict[str, Any]) -> Schedule:
    """Read a schedule; ValueError, TypeError, KeyError or AttributeError if it is none."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    fields["certificate"] = Certificate(**content["certificate"])
    fields["transfers"] = tuple(Transfer(**moved) for moved in content["transfers"])
    return Schedule(**fields)


def trade_offs_of(content: dict[str, Any]) -> TradeOffs:
    """Read a set of schedules; errors as for `schedule_of`."""
    resolution = content["resolution"]
    return TradeOffs(
        tuple(
            TradeOff(schedule_of(point["schedule"]), EnergyCertificate(**point["claim"]))
            for point in content["points"]
        ),
        inf if resolution is None else resolution,
        bool(content["timed_out"]),
    )
