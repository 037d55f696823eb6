"""What an exploration that was ended early has left undone, and how good a front can be at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.paths import simple_bound_s
from parapipe.mapping.units import NANO
from parapipe.pipeline.bounds import Bounds
from parapipe.pipeline.choices import Choice, lookup, options_of
from parapipe.pipeline.mapping import ROUNDING
from parapipe.pipeline.relaxed import Relaxed, Stretch
from parapipe.pipeline.search import few_cuts
from parapipe.pipeline.stage_table import StageTable


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What was left undone.

    Parameters
    ----------
    reasons
        A sentence each.
    latency_s, period_s, energy_j
        No configuration has less.
    """

    reasons: tuple[str, ...]
    latency_s: float
    period_s: float
    energy_j: float


def least_energy_j(operators: int, tables: Iterable[CostTable]) -> float:
    """Return joules per frame that no configuration is below, whatever table it rests on.

    A processor that is used draws static power for a whole period. A period is at least as long as
    the work of that processor for one frame, since one stage alone uses it. So an operator costs at
    least its dynamic energy and the static power of its own processor while it runs.
    """
    return min(
        fsum(
            min(
                table.energy_j(v, p) + static_w * time_s
                for p, static_w in enumerate(table.static_power_w)
                if (time_s := table.time_s(v, p)) < inf
            )
            for v in range(operators)
        )
        for table in tables
    )


def with_others(
    found: Unfinished, graph: OperatorGraph, partition: Partition, tables: Sequence[CostTable]
) -> Unfinished:
    """Return bounds of the first cost table as such of all.

    Where another one has a shorter time, or processors of its own, its relaxed mappings count: the
    shortest path gives its latency, of which the longest stage takes its share at least.
    """
    first, *others = tables
    for costs in others:
        if _is_nowhere_faster(costs, first):
            continue
        relaxed = Relaxed(graph, partition, costs, ())
        whole = Stretch(0, 0, relaxed.units, relaxed.sets[-1])
        latency_s = relaxed.between(whole)[0] * (1 - ROUNDING)
        period_s = latency_s / len(costs.processors)
        found = replace(
            found,
            latency_s=min(found.latency_s, latency_s),
            period_s=min(found.period_s, period_s),
        )
    return found


def _is_nowhere_faster(costs: CostTable, than: CostTable) -> bool:
    """Tell whether no operator takes less time by another cost table, of the same processors."""
    return costs.processors == than.processors and all(
        costs.time_s(v, p) >= than.time_s(v, p)
        for v in range(len(costs.entries))
        for p in range(len(costs.processors))
    )


def unfinished(
    reasons: Sequence[str],
    units: int,
    choices: Sequence[Choice],
    costs: CostTable,
    energy_j: float,
    *,
    replicas: Mapping[int, Sequence[int]],
) -> Unfinished:
    """Return what was left undone, with bounds.

    Parameters
    ----------
    choices
        A schedule of each request, whatever its mapper; what is proven of them counts.
    energy_j
        The bound of the energy.
    replicas
        As for `Bounds`.
    """
    table = StageTable(lookup(options_of(list(map(_shortest, choices)), costs)), energy=False)
    cuts = few_cuts(units, table)
    whole = len(cuts) > units
    table = table if whole else table.at_cuts(cuts)
    bounds = Bounds(len(cuts) - 1, table, len(costs.processors), replicas)
    latency_ns = bounds.after_ns[0, 0, -1]
    return Unfinished(
        tuple(reasons),
        float(latency_ns) / NANO,
        bounds.least_period_ns(whole=whole) / NANO,
        energy_j,
    )


def left_out(
    units: int, most_cuts: int, energy_cuts: int | None, resolution: float
) -> Iterator[str]:
    """Yield what is left out of the front of a network of many units, a sentence each.

    Parameters
    ----------
    most_cuts, energy_cuts
        Boundaries of the search for times and of that with energy: 0 if there is none, and None if
        energy is no objective.
    resolution
        Of the configurations that are shown.
    """
    if units > most_cuts:
        yield f"stages begin and end at {most_cuts - 1} of {units - 1} possible places"
    energy = ""
    if energy_cuts is not None:
        places = f"by stages at {energy_cuts - 1} places" if energy_cuts else "nowhere"
        energy = f"energy is traded {places}, and "
    yield (
        f"{energy}of configurations that match to within a share of {resolution:.3g} one is shown"
    )


def _shortest(choice: Choice) -> Choice:
    """Take the proven bound of a schedule for its makespan."""
    claim = choice.schedule.certificate
    if claim.proven and claim.proves == "makespan":
        return choice
    bound_s = simple_bound_s(choice.request.problem)
    if claim.proves == "makespan":
        bound_s = max(bound_s, claim.bound_s)
    end_s = tuple(min(time_s, bound_s) for time_s in choice.schedule.end_s)
    return replace(choice, schedule=replace(choice.schedule, end_s=end_s))
