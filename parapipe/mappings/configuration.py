"""A configuration: a mapping that a search found, what it takes, and why it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.mappings.evaluate import Evaluated
from parapipe.mappings.mapping import Kind, Mapping
from parapipe.solvers.problem import NANO

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.mappings.memory import PeakMemory
    from parapipe.mappings.service import Service

CLOSE = 1e-6  # share within which a bound proves: programmes are solved, and times rounded, to that
DIGITS = 12  # more than any cost has


def stated_figure(figure: float) -> float:
    """Return a figure as a front states it: sums of the same times are equal in any order."""
    return float(f"{figure:.{DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Least:
    """What no configuration is below that the options of `map` allow.

    Of operators split, that is said of the ways to split that were found.

    Parameters
    ----------
    period_s
        Whatever its latency.
    latency_s, energy_j
        If its period is at most that of the configuration; 0 if nothing is known.
    rounding_s
        What the latency may be above its bound by, since times count in whole nanoseconds.
    """

    period_s: float
    latency_s: float = 0.0
    energy_j: float = 0.0
    rounding_s: float = 0.0

    def gap(self, evaluated: Evaluated) -> float:
        """Return the share by which it is above the least where that is nearest."""
        shares = (
            self.period_s / evaluated.period_s,
            self.latency_s / evaluated.latency_s,
            self.energy_j / evaluated.energy_j,
        )
        gap = 1 - max(shares)
        rounded = evaluated.latency_s <= self.latency_s + self.rounding_s
        return 0.0 if gap <= CLOSE or rounded else gap


@dataclass(frozen=True, slots=True)
class SplitModel:
    """A model with operators split into parts, or with operators that run again.

    Parameters
    ----------
    rules
        What is split how, as `parapipe split` takes it, or which operators run again for whom.
    alone
        Costs of operators that run alone, if the others are those under an expected load.
    """

    rules: tuple[str, ...]
    graph: OperatorGraph
    costs: CostTable
    alone: CostTable | None = None

    @property
    def recomputes(self) -> bool:
        """Whether operators run again."""
        from parapipe.parts.recompute import read_recompute_rule

        return any(map(read_recompute_rule, self.rules))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A mapping that is worth showing.

    Parameters
    ----------
    mapping
        Where and when everything runs.
    evaluated
        What it takes.
    proven, gap
        Whether every schedule's objective is proven, and the largest of their gaps; with `least`,
        how far it is from the nearest bound there, 0 if proven.
    table
        Which cost table it was found with: 0 is the first.
    names
        Names it has ("hybrid-L", ...), in a fixed order; may be empty, as before it is marked.
    pareto
        Whether no other one listed beats it in the objectives: see `on_front`.
    pareto_latency_throughput
        Whether none beats it in latency and throughput alone, the paper's front.
    split
        The model with operators split into parts, which the mapping is of; None if it is of the
        model as it is.
    robust
        Whether it is on the front of a quantile of its figures, if that was asked for.
    several
        What each model gets, if the mapping is of several.
    least
        Bounds, if it is a modulo schedule.
    peak
        The memory that it needs; None if that was not asked.
    """

    mapping: Mapping
    evaluated: Evaluated
    proven: bool
    gap: float
    table: int
    names: tuple[str, ...] = ()
    pareto: bool = False
    pareto_latency_throughput: bool = False
    split: SplitModel | None = None
    robust: bool = False
    several: Service | None = None
    least: Least | None = None
    peak: PeakMemory | None = None

    def graph_of(self, graph: OperatorGraph) -> OperatorGraph:
        """Return the graph that the mapping is of, given the model's."""
        return self.split.graph if self.split else graph

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        return self.mapping.kind

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        stages = self.mapping.stages
        return tuple(sum(1 << p for p in stage.replicas or stage.processors) for stage in stages)

    @property
    def period_s(self) -> float:
        """Least seconds between frames."""
        return self.evaluated.period_s

    @property
    def objectives(self) -> tuple[float, float, float]:
        """Latency and period in seconds, energy in joules, as a front states them."""
        evaluated = self.evaluated
        return (
            stated_figure(evaluated.latency_s),
            stated_figure(evaluated.period_s),
            stated_figure(evaluated.energy_j),
        )

    @property
    def nano_objectives(self) -> tuple[float, float, float]:
        """Latency and period in nanoseconds, energy in nanojoules, as searches compare them.

        With its memory, whole numbers, so that sums of times do not depend on their order.
        """
        evaluated = self.evaluated
        figures = (evaluated.latency_s * NANO, evaluated.period_s * NANO, evaluated.energy_j * NANO)
        if self.peak is None:
            return figures
        latency_ns, period_ns, energy_nj = map(round, figures)
        return latency_ns, period_ns, energy_nj

    @property
    def memory_bytes(self) -> int:
        """The most at one moment, in all memories; 0 if it is not known."""
        return self.peak.total.size_bytes if self.peak else 0
