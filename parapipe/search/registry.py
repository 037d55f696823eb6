"""Searches by name: which options ask for each, and where it is.

A new one is one file with a class that has `name`, `moment` and `run` (see `Search`), and a line in
both tables here, or an entry point of a package: that one is asked for by its name. Searches run in
this order within their moments. A module is only imported if its search is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from parapipe.errors import MappingError
from parapipe.files.mistakes import did_you_mean
from parapipe.files.plug_ins import Registry
from parapipe.search.contract import Moment, Search
from parapipe.search.options import MapOptions

OPEN = (Moment.STAGES, Moment.LATER)
"""Moments of searches of other packages."""


def memory_counts(options: MapOptions) -> bool:
    """Tell whether memory is limited or an objective."""
    return options.memory or options.max_memory_bytes is not None


def _describe_misfit(search: Any) -> str:  # noqa: ANN401 - of another package
    if not isinstance(search, type) or not callable(getattr(search, "run", None)):
        return "is no class with a method `run`"
    if getattr(search, "moment", None) not in OPEN:
        return f"has no `moment` that is one of {', '.join(f'Moment.{each.name}' for each in OPEN)}"
    return "" if isinstance(getattr(search, "name", None), str) else "has no `name`"


SEARCHES = Registry(
    "search",
    "parapipe.searches",
    {
        "stages": "parapipe.search.stages.stage_search:StageSearch",
        "split": "parapipe.split_search.search:SplitSearch",
        "interleaved": "parapipe.search.interleaved:InterleavedSearch",
        "few-segments": "parapipe.segment_search.search:FewSegmentsSearch",
        "less-memory": "parapipe.memory_search.selection:LessMemorySearch",
        "recomputed": "parapipe.memory_search.recompute:RecomputedSearch",
        "drawn-costs": "parapipe.uncertainty.scenarios:SampledCostsSearch",
        "several": "parapipe.several_models.search:SeveralSearch",
    },
    MappingError,
    _describe_misfit,
)
_REQUESTED: Mapping[str, Callable[[MapOptions], bool]] = {
    "stages": lambda _options: True,
    "split": lambda options: options.split == "auto",
    "interleaved": lambda options: options.interleave == "auto",
    "few-segments": lambda options: options.max_segments is not None,
    "less-memory": memory_counts,
    "recomputed": lambda options: options.recompute and memory_counts(options),
    "drawn-costs": lambda options: options.robust is not None,
    "several": lambda options: bool(options.rates) and options.rate_fps is None,
}


def requested_searches(options: MapOptions) -> list[Search]:
    """Return the searches that options ask for, in the order in which they run.

    Raises
    ------
    MappingError
        If no package adds a search of a name in `options.search`, or it is none.
    """
    from parapipe.search.plug_in_search import PlugInSearch

    searches = [SEARCHES.load(name)() for name, asks in _REQUESTED.items() if asks(options)]
    return searches + [PlugInSearch.of(name) for name in dict.fromkeys(options.search)]


def check_search(name: str) -> None:
    """Raise a MappingError if no package adds a search of that name."""
    if name in SEARCHES.own:
        raise MappingError(f"the search '{name}' is parapipe's own; other options ask for it")
    if not SEARCHES.has(name):
        names = SEARCHES.names_of_others()
        others = f"those of installed packages: {', '.join(names)}"
        there = others if names else "no package has one"
        raise MappingError(f"there is no search '{name}'; {there}{did_you_mean(name, names)}")
    SEARCHES.load(name)
