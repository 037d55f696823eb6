"""Fronts of a model in both states of a chip, and which configurations are good in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.operating_points import Setting
from parapipe.cost.price import OperatorCost
from parapipe.cost.profile import Profile
from parapipe.errors import AssignmentError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.configuration import Configuration, SplitModel
from parapipe.mappings.evaluate import keep_bandwidth, settle
from parapipe.mappings.retiming import retimed
from parapipe.platform.support import Refusal
from parapipe.platform.thermal_state import State
from parapipe.split_search.part_prices import scaled_cost

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
        What it takes; the other state's is None where it was not evaluated: at operating points
        that the other state does not have.
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
    profiles
        What they come from, for models with operators in parts.
    """

    configurations: Sequence[tuple[str, str, tuple[str, ...], Configuration, Setting]]
    settings: Sequence[Setting]
    objectives: int
    profiles: Sequence[Profile] | None


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
    mapping, costs = configuration.mapping, None
    for setting in search.settings:
        if _same_points(setting, at, mapping.processors):
            costs = setting.costs
            break
    if costs is None:
        return None
    if configuration.split:
        graph = configuration.split.graph
        costs = _costs_of_parts(configuration.split, at, setting, search.profiles)
    try:
        if mapping.period_s is None:
            moved = mapping_of(graph, None, costs, assignment_of(mapping))
            moved = moved.with_replicas(mapping.replicated)
        else:
            moved = keep_bandwidth(retimed(mapping, graph, costs), costs)
    except AssignmentError:
        return None
    _, evaluated = settle(moved, graph, costs)
    return evaluated.latency_s, evaluated.period_s, evaluated.energy_j


def _costs_of_parts(
    split: SplitModel, at: Setting, other: Setting, profiles: Sequence[Profile] | None
) -> CostTable:
    """Return what a split model costs in another state.

    A part that takes less than such an operator by itself, since the whole was measured, does so by
    the same share.
    """
    own, table = (
        build_cost_table(
            split.graph, each.platform, profiles=profiles, precision=each.costs.precision
        )
        for each in (at, other)
    )
    entries = []
    for v, row in enumerate(table.entries):
        made: list[OperatorCost | Refusal] = []
        for p, cost in enumerate(row):
            stated = split.costs.cost(v, p)
            if isinstance(cost, Refusal) or stated is None or not own.time_s(v, p):
                made.append(cost)
            else:
                made.append(scaled_cost(cost, stated.time_s / own.time_s(v, p)))
        entries.append(tuple(made))
    return replace(table, entries=tuple(entries), arrival_s=other.costs.arrival_s)


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
