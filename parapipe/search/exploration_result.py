"""The result of an exploration, and what one that ended early has left undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.files.record import Figure, Row
from parapipe.mappings.configuration import Configuration
from parapipe.problems.problems import Request
from parapipe.problems.solve import SolvedQuestions
from parapipe.search.mapping_bounds import EnergyBounds
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Schedule


class UnfinishedRow(Row):
    """What was left undone, and how good a configuration can be at most.

    The bounds hold for all configurations that may be listed with the front's options, and with any
    budget. Of operators split, they hold for the ways to split that were found.
    """

    reasons: tuple[str, ...]
    """A sentence each."""
    latency_s: Figure
    """No configuration has less latency: proven."""
    period_s: Figure
    """No configuration has a shorter period: proven."""
    energy_j: Figure
    """No configuration takes less energy per frame: proven."""


def least_energy_j(operators: int, tables: Iterable[CostTable]) -> float:
    """Return joules per frame that no configuration is below, whatever table it rests on."""
    return min(
        EnergyBounds.of(operators, costs, np.zeros(1 << len(costs.processors))).at(inf)
        for costs in tables
    )


@dataclass(frozen=True, slots=True)
class Exploration:
    """All configurations worth showing, by ascending latency, and how they were found.

    Parameters
    ----------
    absent
        Kinds of configuration that do not exist here, and processors that cannot run the model
        alone (`<processor>-alone`), with the reason in plain words.
    cached
        Problems that an earlier run has solved.
    asked
        What the problems are there for, by the names of the processors that they number; an equal
        problem may be asked for in several places.
    traded
        Schedules that trade time for energy, by problem.
    resolution
        Of those that another one matches to within this share in all figures, one is here.
    energy_resolution
        For every configuration that any schedules make there is one that is larger by at most this
        share in latency, period and energy each; infinite if no share is known. None if the search
        chose from the mapper's schedules alone. It is said of the first cost table only.
    energy_timed_out
        Whether time limits kept that share from being less.
    unfinished
        What a budget, an interruption or the size of the network left undone; None if nothing.
    interrupted
        Whether an interruption ended it.
    free
        Bounds without co-runs, where processors slow each other down; else None.
    """

    found: tuple[Configuration, ...]
    schedules: Mapping[MappingProblem, Schedule]
    absent: Mapping[str, str]
    cached: frozenset[MappingProblem]
    asked: Mapping[tuple[str, ...], tuple[Request, ...]]
    traded: SolvedQuestions
    resolution: float
    energy_resolution: float | None
    energy_timed_out: bool
    unfinished: UnfinishedRow | None = None
    interrupted: bool = False
    free: UnfinishedRow | None = None


def by_processors(
    tables: Sequence[CostTable], requests_by_table: Sequence[Sequence[Request]]
) -> dict[tuple[str, ...], tuple[Request, ...]]:
    """Return the distinct requests of all cost tables, by the names of their processors."""
    distinct: dict[tuple[str, ...], dict[Request, None]] = {}
    for table, requests in zip(tables, requests_by_table, strict=True):
        distinct.setdefault(table.processors, {}).update(dict.fromkeys(requests))
    return {names: tuple(requests) for names, requests in distinct.items()}
