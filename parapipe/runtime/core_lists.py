"""Lists of cores, as people write them: big=0,1 or big=0-3.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PART = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def cores_of(values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each processor, from values as big=0,2-3.

    Raises
    ------
    ValueError
        If one is not of this form or names a core twice, or if two of them contradict each other.
    """
    found: dict[str, tuple[int, ...]] = {}
    for value in values:
        name, _, listed = value.rpartition("=")
        cores = tuple(core for part in listed.split(",") for core in _range(part, value))
        twice = sorted({core for core in cores if cores.count(core) > 1})
        if not name:
            raise ValueError(_form(value))
        if twice:
            raise ValueError(f"'{value}' names core {', '.join(map(str, twice))} twice")
        if found.setdefault(name, cores) != cores:
            raise ValueError(f"'{name}' is given twice, with different cores: say which")
    return found


def _range(part: str, value: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(_form(value))
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError(f"'{value}' holds the range {part}, which ends before it begins")
    return range(first, last + 1)


def _form(value: str) -> str:
    return f"'{value}' is not PROCESSOR=CORES, as in big=0,1 or big=0-3"
