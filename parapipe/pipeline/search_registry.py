"""Searches beside that over stages, by name: which options ask for each, and where it is.

A new one is one file with a class that has `name`, `moment` and `run` (see `Search`), and one entry
here. Searches run in this order within their moments. A module is only imported if its search is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.search_contract import Search


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a search is, and which options ask for it."""

    module: str
    made_by: str
    requested: Callable[[MapOptions], bool]


def _memory_counts(options: MapOptions) -> bool:
    return options.memory or options.max_memory_bytes is not None


_SEARCHES: Mapping[str, _Entry] = {
    "split": _Entry(
        "parapipe.pipeline.split_search", "SplitSearch", lambda options: options.split == "auto"
    ),
    "interleaved": _Entry(
        "parapipe.pipeline.interleaved",
        "InterleavedSearch",
        lambda options: options.interleave == "auto",
    ),
    "less-memory": _Entry("parapipe.pipeline.fitting", "LessMemorySearch", _memory_counts),
    "recomputed": _Entry(
        "parapipe.pipeline.recomputed",
        "RecomputedSearch",
        lambda options: options.recompute and _memory_counts(options),
    ),
    "drawn-costs": _Entry(
        "parapipe.pipeline.scenarios",
        "DrawnCostsSearch",
        lambda options: options.robust is not None,
    ),
    "several": _Entry(
        "parapipe.pipeline.several_search",
        "SeveralSearch",
        lambda options: bool(options.rates),
    ),
}


def requested_searches(options: MapOptions) -> list[Search]:
    """Return the searches that options ask for, in the order in which they run."""
    asked = (each for each in _SEARCHES.values() if each.requested(options))
    return [getattr(import_module(each.module), each.made_by)() for each in asked]
