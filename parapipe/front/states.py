"""Fronts of a model in both states of a chip, and which configurations are good in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from parapipe.cost.operating_points import Setting
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.platform.thermal_state import State

BOTH: tuple[State, State] = ("cold", "sustained")
Figures = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class StateFigures:
    """What a configuration takes in a state."""

    latency_s: float
    period_s: float
    energy_j: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> StateFigures:
        """Return them by name."""
        return cls(*figures[:3])


@dataclass(frozen=True, slots=True)
class StateRow:
    """A configuration of the front of one state, in both.

    Parameters
    ----------
    state, id
        Whose front it is on, and what it is called there.
    cold, sustained
        What it takes; the other state's is None where it was not evaluated: of frames that take
        turns, of operators in parts, and at operating points that the other state does not have.
    survives
        Whether no configuration of the other state's front is as good in every objective and better
        in one by more than the resolution; None if it was not evaluated there.
    """

    state: State
    id: str
    drawing: str
    names: tuple[str, ...]
    cold: StateFigures | None
    sustained: StateFigures | None
    survives: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StateSearch:
    """The front of a state, as its rows compare it.

    Parameters
    ----------
    configurations
        Those of the front, with their ids, drawings and names.
    settings
        All costs that there are in this state.
    objectives
        How many of latency, period and energy are objectives.
    """

    configurations: Sequence[tuple[str, str, tuple[str, ...], Configuration, Setting]]
    settings: Sequence[Setting]
    objectives: int


def state_rows(
    graph: OperatorGraph, searches: Mapping[State, StateSearch], resolution: float
) -> Iterator[StateRow]:
    """Yield a row for each configuration on the front of a state."""
    for state, search in searches.items():
        (other,) = (each for each in BOTH if each != state)
        others_figures = [each[3].objectives for each in searches[other].configurations]
        for name, drawing, names, configuration, at in search.configurations:
            figures = _figures_in(searches[other], graph, configuration, at)
            survives = figures and not any(
                _beats(each[: search.objectives], figures[: search.objectives], resolution)
                for each in others_figures
            )
            own = StateFigures.of(configuration.objectives)
            elsewhere = StateFigures.of(figures) if figures else None
            cold, sustained = (own, elsewhere) if state == "cold" else (elsewhere, own)
            yield StateRow(state, name, drawing, names, cold, sustained, survives)


def _figures_in(
    search: StateSearch, graph: OperatorGraph, configuration: Configuration, at: Setting
) -> Figures | None:
    """Return what a configuration takes in another state; None if that is not evaluated."""
    mapping = configuration.mapping
    if mapping.period_s is not None or configuration.split:
        return None
    for setting in search.settings:
        if _same_points(setting, at, mapping.processors):
            try:
                moved = mapping_of(graph, None, setting.costs, assignment_of(mapping))
            except AssignmentError:
                return None
            evaluated = evaluate(moved.with_replicas(mapping.replicated), graph, setting.costs)
            return evaluated.latency_s, evaluated.period_s, evaluated.energy_j
    return None


def _same_points(setting: Setting, at: Setting, used: Sequence[int]) -> bool:
    """Whether processors are divided equally, and run as they do there: by default, or at a point.

    A processor at the default point of its state is compared with one at the default of the other.
    """
    if setting.platform.names != at.platform.names:
        return False
    pairs = [(setting.platform.processors[p], at.platform.processors[p]) for p in used]
    return all(
        one.is_default == other.is_default and (one.is_default or one.point == other.point)
        for one, other in pairs
    )


def _beats(other: Sequence[float], figures: Sequence[float], resolution: float) -> bool:
    """Whether another one is as good in everything, and better in one by more than a share."""
    pairs = list(zip(other, figures, strict=True))
    return all(a <= b for a, b in pairs) and any(a * (1 + resolution) < b for a, b in pairs)
