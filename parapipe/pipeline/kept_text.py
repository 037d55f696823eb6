"""Schedules, and sets of them, as the text that the cache keeps."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import inf
from typing import Any

from parapipe.mapping.schedule import Answer, Certificate, EnergyClaim, Schedule, Transfer


def text_of(answer: Schedule | Answer) -> str:
    """Write as JSON, which knows no infinity: there stands null in its place."""
    content = asdict(answer)
    if isinstance(answer, Answer) and answer.resolution == inf:
        content["resolution"] = None
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def schedule_of(content: dict[str, Any]) -> Schedule:
    """Read a schedule; ValueError, TypeError, KeyError or AttributeError if it is none."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    claim = content["certificate"]
    energy = claim["energy"] and EnergyClaim(**claim["energy"])
    fields["certificate"] = Certificate(**{**claim, "energy": energy})
    fields["transfers"] = tuple(Transfer(**moved) for moved in content["transfers"])
    return Schedule(**fields)


def trade_offs_of(content: dict[str, Any]) -> Answer:
    """Read a set of schedules; errors as for `schedule_of`."""
    resolution = content["resolution"]
    return Answer(
        tuple(map(schedule_of, content["schedules"])),
        inf if resolution is None else resolution,
        bool(content["timed_out"]),
    )
