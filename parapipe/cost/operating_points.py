"""Cost tables at other operating points than the default ones, and with clusters divided.

A processor keeps its operating point while a configuration runs, so a configuration has one for
each processor, and a cost table is made for every combination. What a processor takes for an
operator, and its static power, depend on its own point only: a table for a combination is put
together from columns of a few. The parts of a divided cluster have one clock, that of the cluster.

Transfers, loading and reading are those of the default points, and a GPU's times do not depend on
its host's point; docs/dvfs.md says what that leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import dist, log, prod
from types import MappingProxyType

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.coverage import CoverageRow, coverage_of
from parapipe.cost.pins import Pins, pinned_operators, with_pins
from parapipe.cost.price import PartCost
from parapipe.cost.profile import Profile
from parapipe.errors import PlatformError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.divided import variant_count, variants
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.platform.processor import Processor
from parapipe.platform.sections import OperatingPoint

MOST_COMBINATIONS = 256
_NO_SCALING = "states no clock.scaling"
REFERENCE = "conv1x1"  # class of the operator that operating points are compared by
LEAST_W = 1e-9  # a processor that draws nothing has energies of equal logarithms


@dataclass(frozen=True, slots=True)
class Setting:
    """A platform with each processor at an operating point, and the costs there."""

    platform: Platform
    costs: CostTable


@dataclass(frozen=True, slots=True)
class Settings:
    """All combinations of divisions and operating points: undivided at the default ones first.

    Parameters
    ----------
    points
        Of each processor of the undivided platform: the points considered, the default one first.
    coverage
        Where the times come from, at all these points, of parts too.
    """

    combinations: tuple[Setting, ...]
    points: tuple[tuple[OperatingPoint, ...], ...]
    coverage: CoverageRow


def settings(
    graph: OperatorGraph,
    platform: Platform,
    *,
    most: int,
    profiles: Sequence[Profile] | None = None,
    precision: Precision | None = None,
    pins: Pins = MappingProxyType({}),
    arrival_s: float = 0.0,
) -> Settings:
    """Return the costs of each division at each combination of at most `most` points a processor.

    Parameters
    ----------
    most
        1 for the platform's own operating points alone.
    profiles, precision
        As for `build_cost_table`.
    pins
        Operators that run on one processor only.
    arrival_s
        Seconds between frames as they arrive; 0 if the next one is always there.

    Raises
    ------
    MappingError
        As for `pinned_operators` and `with_pins`.
    PlatformError
        If more are wanted and no processor has a second one of which times are known, or there are
        too many combinations.
    CostError
        As for `build_cost_table`.
    """
    chosen = tuple(considered_points(processor, most) for processor in platform.processors)
    _check(platform, chosen, most)
    pinned = pinned_operators(graph, platform, pins)
    combinations: list[Setting] = []
    parts: dict[str, list[PartCost]] = {}
    for variant in variants(platform):
        points = tuple(chosen[variant.whole(p)] for p in range(len(variant.processors)))
        at = [
            variant.at([own[min(i, len(own) - 1)].frequency_hz for own in points])
            for i in range(max(map(len, chosen)))
        ]
        tables = (
            build_cost_table(graph, each, profiles=profiles, precision=precision) for each in at
        )
        columns = [
            with_pins(replace(table, arrival_s=arrival_s), graph, each, pinned)
            for table, each in zip(tables, at, strict=True)
        ]
        combinations += _combinations(variant, chosen, columns)
        for p, name in enumerate(variant.names):
            used = columns[: len(points[p])]
            parts.setdefault(name, [part for costs in used for part in costs.parts(p)])
    return Settings(tuple(combinations), chosen, coverage_of(parts))


def _check(platform: Platform, chosen: Sequence[Sequence[OperatingPoint]], most: int) -> None:
    if most > 1 and all(len(points) == 1 for points in chosen):
        without = ", ".join(
            f"{p.name} {'has a single point' if len(p.operating_points) == 1 else _NO_SCALING}"
            for p in platform.processors
        )
        raise PlatformError(
            f"platform '{platform.name}' leaves no operating points to choose from ({without}); "
            "map without DVFS, or add points and clock.scaling to the platform"
        )
    divisions = variant_count(platform)
    number = prod(map(len, chosen)) * divisions
    if number > MOST_COMBINATIONS:
        divided = " and divisions" if divisions > 1 else ""
        fewer = "state fewer divisions" if most == 1 else "consider fewer points of each processor"
        raise PlatformError(
            f"platform '{platform.name}' has {number} combinations of operating points{divided}, "
            f"more than {MOST_COMBINATIONS}; {fewer}"
        )


def considered_points(processor: Processor, most: int) -> tuple[OperatingPoint, ...]:
    """Return at most `most` operating points, the default one first, then by falling frequency.

    A point is of low energy if no faster one takes less energy, static power while it works
    included, for a 1×1 convolution. Such points go before others, and of equals the next is always
    the one that is farthest, in time and energy by ratio, from those taken before.
    Where the platform does not say how times follow the clock, only the default.
    """
    default = processor.point
    if most == 1 or processor.clock.scaling is None:
        return (default,)
    figures = {
        point.frequency_hz: _log_figures(processor.at(point.frequency_hz), default.frequency_hz)
        for point in processor.operating_points
    }

    def low_energy(point: OperatingPoint) -> bool:
        energy = figures[point.frequency_hz][1]
        return all(other[1] > energy for hz, other in figures.items() if hz > point.frequency_hz)

    def priority(point: OperatingPoint) -> tuple[bool, float, float]:
        nearest = min(dist(figures[point.frequency_hz], figures[t.frequency_hz]) for t in chosen)
        return low_energy(point), nearest, -point.frequency_hz

    chosen = [default]
    others = [point for point in processor.operating_points if point != default]
    while others and len(chosen) < most:
        chosen.append(max(others, key=priority))
        others.remove(chosen[-1])
    return (default, *sorted(chosen[1:], key=lambda point: -point.frequency_hz))


def _log_figures(processor: Processor, default_hz: float) -> tuple[float, float]:
    """Return the logarithms of time and energy of what takes a second at the default point."""
    slowdown = processor.slowdown(REFERENCE, default_hz)
    time_s = slowdown.value if slowdown else 1.0
    power_w = processor.static_power_w + processor.dynamic_power_w(REFERENCE)
    return log(time_s), log(max(power_w, LEAST_W) * time_s)


def _combinations(
    platform: Platform, chosen: Sequence[Sequence[OperatingPoint]], columns: Sequence[CostTable]
) -> Iterator[Setting]:
    wholes = [platform.whole(p) for p in range(len(platform.processors))]
    for taken in product(*(range(len(points)) for points in chosen)):
        places = [(p, columns[taken[undivided]]) for p, undivided in enumerate(wholes)]
        costs = replace(
            columns[0],
            entries=tuple(
                tuple(table.entries[v][p] for p, table in places)
                for v in range(len(columns[0].entries))
            ),
            input_times_s=tuple(table.input_times_s[p] for p, table in places),
            output_times_s=tuple(table.output_times_s[p] for p, table in places),
            static_power_w=tuple(table.static_power_w[p] for p, table in places),
            makes=tuple(table.makes[p] for p, table in places),
        )
        frequencies = [chosen[undivided][taken[undivided]].frequency_hz for undivided in wholes]
        yield Setting(platform.at(frequencies), costs)
