"""What no mapping of a kind is below: least periods, latencies and energies.

A front holds configurations of several searches, and what it states of all of them is the least of
what is proven of each:

- *Interleaved frames*: each operator on one processor, loads within the period; see
  `modulo`. This covers stages, too, where hand-overs only delay or keep the receiver
  busy, and no processors take turns.
- *Stages* between units, replicated ones included: `stage_bounds`. The period of stages is the
  longest one, as in the paper. What hand-overs keep the sender or a link busy for is not in it.
- *Anything else* of whole operators, such as stages that are cut inside a unit so that less memory
  is needed: `operator_bounds`. For each frame, every operator runs once, wherever; over many
  frames, its share on each processor is any number from 0 to 1. Loads within the period are a
  linear programme in these shares, and what its prices prove holds for replicas, too.

None is below what the memory needs to serve a frame, either, where its bandwidth is known: each
operator counts where it moves fewest bytes. Nor is a period below the loop of a state, shared among
the sequences that take turns: each operator of the loop counts where it is fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.configuration import CLOSE
from parapipe.modulo.assignment_programme import (
    ROUNDING,
    Objective,
    solve_relaxation,
    state_programme,
)
from parapipe.modulo.latency_curve import critical_path_s
from parapipe.modulo.least_energy import shared_energy_j
from parapipe.modulo.least_period import restrict_to
from parapipe.problems.identical_processors import Groups, Replicable, replica_sets
from parapipe.problems.problems import whole_problem
from parapipe.search.stages.labels import Bounds
from parapipe.search.stages.relaxed import Relaxed, Stretch
from parapipe.search.stages.relaxed_step import membership
from parapipe.search.stages.search import few_cuts
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.unit_schedules import Choice, options_lookup, unit_options
from parapipe.solvers.paths import simple_bound_s
from parapipe.solvers.problem import NANO

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """What no mapping of a kind takes less time than.

    Parameters
    ----------
    periods_s
        Least periods, by the bit mask of the processors that may be used.
    latency_s
        The least latency, whatever the period.
    stages, rounding_ns
        Bounds of stages that tell the least latency by the period, if there are any, and what
        rounding to whole nanoseconds may add to theirs.
    """

    periods_s: Numbers
    latency_s: float
    stages: Bounds | None = None
    rounding_ns: int = 0

    @property
    def period_s(self) -> float:
        """The least period."""
        return float(self.periods_s.min())

    def latency_at(self, period_s: float) -> float:
        """Return the least latency with at most a period; infinite if none is so short."""
        most_s = period_s * (1 + CLOSE)
        if most_s < self.period_s:
            return inf
        if self.stages is None:
            return self.latency_s
        latency_ns = self.stages.least_latency_ns(most_s * NANO + self.rounding_ns)
        return max(self.latency_s, (latency_ns - self.rounding_ns) / NANO)


def stage_bounds(
    units: int, operators: int, choices: Sequence[Choice], costs: CostTable, replicable: Replicable
) -> TimeBounds:
    """Return bounds of all stages that begin and end at boundaries.

    Parameters
    ----------
    units, operators
        Number of the last boundary, and how many operators there are: times of each are rounded.
    choices
        A schedule of each request, whatever its mapper; what is proven of them counts.
    replicable
        Processors that may take turns on frames.
    """
    table = StageTable(
        options_lookup(unit_options(list(map(_at_bound, choices)), costs)), energy=False
    )
    cuts = few_cuts(units, table)
    every_cut = len(cuts) > units
    bounds = Bounds(
        len(cuts) - 1,
        table if every_cut else table.at_cuts(cuts),
        len(costs.processors),
        replica_sets(replicable.staged),
        replica_sets(replicable.alone),
    )
    known_s = least_known_period_s(costs)
    periods_s = np.maximum(bounds.least_periods_ns(every_cut=every_cut) - operators, 0) / NANO
    latency_s = max(0.0, float(bounds.after_ns[0, 0, -1]) - operators) / NANO
    return TimeBounds(
        np.maximum(periods_s, known_s),
        max(latency_s, known_s),
        bounds if every_cut else None,
        operators,
    )


def relaxed_bounds(graph: OperatorGraph, partition: Partition, costs: CostTable) -> TimeBounds:
    """Return bounds of all stages between units before any of their schedules is known.

    The shortest path gives the latency, of which the longest stage takes its share at least.
    """
    paths = Relaxed(graph, partition, costs, (), limited=True)
    network = Stretch(0, 0, paths.units, paths.sets[-1])
    latency_s = min(paths.least_between(network)[0], paths.least_latency_s) * (1 - ROUNDING)
    return bounds_of_all_sets(costs, latency_s / len(costs.processors), latency_s)


def bounds_of_all_sets(costs: CostTable, period_s: float, latency_s: float) -> TimeBounds:
    """Return bounds that are the same for all sets of processors."""
    known_s = least_known_period_s(costs)
    periods_s = np.full(1 << len(costs.processors), max(period_s, known_s))
    return TimeBounds(periods_s, max(latency_s, known_s))


def least_known_period_s(costs: CostTable) -> float:
    """Return seconds that no period or latency is below, for bytes and loops of states; or 0."""
    return costs.least_period_s * (1 - ROUNDING)


def is_nowhere_faster(costs: CostTable, than: CostTable) -> bool:
    """Tell whether no operator takes less time by another cost table, of the same processors."""
    return costs.processors == than.processors and all(
        costs.time_s(v, p) >= than.time_s(v, p)
        for v in range(len(costs.entries))
        for p in range(len(costs.processors))
    )


def operator_bounds(graph: OperatorGraph, costs: CostTable) -> TimeBounds:
    """Return bounds of all mappings of a graph's operators: by loads, and by the longest path."""
    problem = whole_problem(graph, costs)
    loads = state_programme(replace(problem, transfer_resource=()), lambda _flow, _p, _q: False)
    path_s = critical_path_s(problem) * (1 - ROUNDING)
    return bounds_of_all_sets(costs, solve_relaxation(loads, Objective()).bound, path_s)


@dataclass(frozen=True)
class EnergyBounds:
    """What no mapping takes less energy than, by the processors that it uses.

    A processor that is used draws static power for a whole period. A period is at least as long as
    the work of that processor for one frame: of r that take turns on a stage, each is at work for
    r periods, at every r-th frame. So an operator costs at least its dynamic energy and the static
    power of its own processor while it runs.

    Parameters
    ----------
    energies_j, periods_s
        By set of processors, all of which are used: the least energy and the least period.
    shares
        Tells the least energy of a set at a period, where that is worth a linear programme.
    """

    energies_j: Numbers
    periods_s: Numbers
    shares: Callable[[int, float], float] | None = None

    @classmethod
    def of(cls, operators: int, costs: CostTable, periods_s: Numbers) -> EnergyBounds:
        """Return bounds of a cost table.

        Parameters
        ----------
        periods_s
            As of `TimeBounds`.
        """
        count = len(costs.processors)
        dynamic_j, own_j = np.full((2, operators, count), inf)
        for v, p in product(range(operators), range(count)):
            if (time_s := costs.time_s(v, p)) < inf:
                dynamic_j[v, p] = costs.energy_j(v, p)
                own_j[v, p] = dynamic_j[v, p] + costs.static_power_w[p] * time_s
        inside = membership(count)
        least_j, least_own_j = (
            np.array([np.where(some, each, inf).min(axis=1).sum() for some in inside])
            for each in (dynamic_j, own_j)
        )
        frames_s = np.where(periods_s < inf, np.maximum(periods_s, costs.least_frame_s), 0)
        static_j = inside @ np.array(costs.static_power_w) * frames_s
        return cls(np.maximum(least_j + static_j, least_own_j) * (1 - ROUNDING), periods_s)

    @classmethod
    def of_replicas(
        cls, graph: OperatorGraph, costs: CostTable, times: TimeBounds, groups: Groups
    ) -> EnergyBounds:
        """Return bounds of mappings in which two processors of a group take turns, at least."""
        problem = replace(whole_problem(graph, costs), transfer_resource=())
        inside = membership(problem.processors)
        several = [inside[:, list(group)].sum(axis=1) > 1 for group in groups]
        any_mapping = cls.of(problem.operators, costs, times.periods_s)
        energies_j = np.where(np.any(several, axis=0), any_mapping.energies_j, inf)
        dynamic_j = tuple(
            tuple(costs.energy_j(v, p) if time_s < inf else 0.0 for p, time_s in enumerate(row))
            for v, row in enumerate(problem.time_s)
        )

        def shares(mask: int, period_s: float) -> float:
            part = restrict_to(problem, np.flatnonzero(inside[mask]).tolist())
            if part is None:
                return inf
            frame_s = costs.frame_s(times.periods_s[mask])
            static_j = float(inside[mask] @ np.array(costs.static_power_w)) * frame_s
            return shared_energy_j(part, dynamic_j, period_s) + float(static_j) * (1 - ROUNDING)

        return cls(energies_j, times.periods_s, shares)

    def at(self, period_s: float, most_j: float = inf) -> float:
        """Return the least energy with at most a period, as far as it is below another one."""
        most_s = period_s * (1 + CLOSE)
        energies_j = np.where(self.periods_s <= most_s, self.energies_j, inf)
        if self.shares is None:
            return min(most_j, float(energies_j.min()))
        for mask in np.argsort(energies_j, kind="stable").tolist():
            if (least_j := float(energies_j[mask])) >= most_j:
                break
            most_j = min(most_j, max(least_j, self.shares(mask, most_s)))
        return most_j


def _at_bound(choice: Choice) -> Choice:
    """Take the proven bound of a schedule for its makespan."""
    claim = choice.schedule.certificate
    if claim.proven and claim.proves == "makespan":
        return choice
    bound_s = simple_bound_s(choice.request.problem)
    if claim.proves == "makespan":
        bound_s = max(bound_s, claim.bound_s)
    end_s = tuple(min(time_s, bound_s) for time_s in choice.schedule.end_s)
    return replace(choice, schedule=replace(choice.schedule, end_s=end_s))
