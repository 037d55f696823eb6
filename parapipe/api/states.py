"""A front for each state of a chip, cold and in long runs, and what is good in both."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from parapipe.api.checked import Model, Note, PlatformFile, checked
from parapipe.errors import ArgumentError
from parapipe.files.progress import Tell
from parapipe.processes.deadline import search_deadline
from parapipe.search.options import MapKeywords, MapOptions

if TYPE_CHECKING:
    from parapipe.api.front import ParetoFront
    from parapipe.api.search_run import SearchResult
    from parapipe.front.states import StateRow, StateSearch
    from parapipe.platform.thermal_state import State


@dataclass(frozen=True, slots=True)
class StateFronts:
    """The fronts of both states.

    Parameters
    ----------
    fronts
        By state.
    rows
        Each configuration that is on the front of a state, with what it takes in both.
    """

    fronts: Mapping[State, ParetoFront]
    rows: tuple[StateRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what survives as plain data; the fronts have files of their own."""
        return {
            "model": self.fronts["cold"].document.model,
            "platform": self.fronts["cold"].document.platform,
            "configurations": [row.to_json() for row in self.rows],
        }

    def write(self, directory: str | Path, *, progress: Tell | None = None) -> tuple[Path, ...]:
        """Write each front to a folder of its state, and states.json beside them.

        Raises
        ------
        OutputError
            The folder or a file cannot be written.
        """
        from parapipe.api.front import write_fronts
        from parapipe.documents.front_folder import STATES_FILE

        text = json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n"
        return write_fronts(self.fronts, directory, (STATES_FILE, text.encode()), progress)


@checked
def map_states(
    model: Model,
    platform: PlatformFile,
    *,
    options: MapOptions | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    note: Note | None = None,
    **keywords: Unpack[MapKeywords],
) -> StateFronts:
    """Find the front of a model when the chip is cold, and in long runs.

    Each configuration on one front is evaluated in the other state, too: its operators keep their
    processors and their order; frames that take turns then come as often as that order allows. A
    `budget_s` is for each of the two searches.

    Parameters
    ----------
    model, platform
        As for `map`, of one model.
    options, executor, progress, note, keywords
        As for `map`.

    Raises
    ------
    ArgumentError
        A `thermal_state` is given, or a `compiler`.
    PlatformError
        The platform says nothing of long runs.
    """
    from parapipe.api.search_run import SearchRequest, front_of, search_once
    from parapipe.front.states import BOTH, state_rows

    options = replace(options or MapOptions(), **keywords)
    if options.thermal_state is not None or options.compiler is not None:
        raise ArgumentError(
            "map_states: gives both states, and takes no `thermal_state` or `compiler`"
        )
    results: dict[State, SearchResult] = {}
    for state in reversed(BOTH):  # if nothing is said of long runs, at once
        deadline = search_deadline(options.of_stated_costs.budget_s, options.memory_limit_bytes)
        of_state = replace(options, thermal_state=state)
        run = SearchRequest(
            model, platform, of_state, executor, progress, note or warnings.warn, deadline
        )
        results[state] = search_once(run)
    fronts = {state: front_of(results[state]) for state in BOTH}
    searches = {state: _searched(results[state], fronts[state]) for state in BOTH}
    rows = state_rows(results["cold"].graph, searches, options.resolution)
    return StateFronts(fronts, tuple(rows))


def _searched(result: SearchResult, front: ParetoFront) -> StateSearch:
    from parapipe.documents.build_front import setting_of
    from parapipe.front.states import StateSearch

    on_front = tuple(
        (
            each.id,
            each.drawing,
            each.names,
            each.configuration,
            setting_of(each.configuration, result.priced),
        )
        for each in front
        if each.pareto
    )
    objectives = 2 + result.run.options.energy
    return StateSearch(on_front, result.priced.combinations, objectives, result.profiles)
