"""What a search over stages chooses from, and a candidate of it as a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, fsum, inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import assemble, hand_overs_of, with_earliest_starts
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.mapping import Kind, Mapping, Placement, Transfer, kind_of
from parapipe.problems.identical_processors import (
    NO_REPLICAS,
    Replicable,
    is_consecutive,
    is_leading,
    replica_sets,
)
from parapipe.problems.time_energy import Locations, Tolerance, coarsen
from parapipe.search.stages.stage_table import StageShape, StageTable
from parapipe.search.stages.unit_schedules import Choice
from parapipe.solvers.problem import NANO


@dataclass(frozen=True, slots=True)
class ChosenStage:
    """A stage as the search sees it: its shape, and which of its times and dynamic energies.

    `replicas` is a bit mask of the processors that take turns on it, or 0.
    """

    shape: StageShape
    time_ns: int
    energy_nj: int
    replicas: int = 0

    @property
    def processors(self) -> int:
        """Bit mask of the processors that it uses."""
        return self.replicas or self.shape.processors

    @property
    def every_ns(self) -> int:
        """Least time between its frames."""
        return every_ns(self.time_ns, self.replicas)


def every_ns(time_ns: int, replicas: int) -> int:
    """Return the least time between the frames of a stage, in whole nanoseconds, rounded up."""
    return -(-time_ns // max(1, replicas.bit_count()))


@dataclass(frozen=True, slots=True)
class StageCandidate:
    """A configuration as the search over stages sees it: `configure` makes a `Configuration` of it.

    `energy_nj` holds static energy, too: of the processors used, over one period. `found_in` knows
    the schedules behind it, and `table` is the number of the cost table that they rest on.
    """

    stages: tuple[ChosenStage, ...]
    latency_ns: int
    period_ns: float
    energy_nj: float
    stage_table: StageTable = field(repr=False, compare=False)
    table: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(stage.processors for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        if any(stage.replicas for stage in self.stages):
            return "replicated"
        return kind_of([mask.bit_count() for mask in self.processors])

    @property
    def period_s(self) -> float:
        """Least seconds between frames."""
        return self.period_ns / NANO

    @property
    def nano_objectives(self) -> tuple[float, float, float]:
        """What the front trades: latency and period in nanoseconds, energy in nanojoules."""
        return (self.latency_ns, self.period_ns, self.energy_nj)


@dataclass(frozen=True, slots=True)
class EvaluatedCandidate:
    """A candidate with what its configuration takes, which is made again when it is wanted.

    A configuration of thousands of operators takes megabytes, and a search may find thousands.

    Parameters
    ----------
    kind, processors, period_s, nano_objectives
        As of the `Configuration`.
    """

    found: StageCandidate
    kind: Kind
    processors: tuple[int, ...]
    period_s: float
    nano_objectives: tuple[float, float, float]

    @property
    def table(self) -> int:
        """Number of the cost table."""
        return self.found.table


Candidate: TypeAlias = StageCandidate | EvaluatedCandidate | Configuration
"""What there is to choose from."""
Numbers = NDArray[np.int64]


class Aim(NamedTuple):
    """What a label may become: a configuration of the front, or the best of a kind."""

    kind: Kind | None = None
    order: tuple[int, ...] = (0, 1, 2)  # of latency, period and energy, for the best of a kind

    def allows(self, masks: Numbers) -> NDArray[np.bool_]:
        """Tell which sets of processors may be a stage's."""
        if self.kind == "pipe-only":
            narrow: NDArray[np.bool_] = np.bitwise_count(masks) == 1
            return narrow
        return np.ones(masks.shape, bool)

    def best(self, candidates: Iterable[StageCandidate]) -> StageCandidate | None:
        """Return the best of its kind."""
        return min((c for c in candidates if c.kind == self.kind), key=self.rank, default=None)

    def rank(self, candidate: StageCandidate) -> tuple[float, ...]:
        """Return figures, the most important first."""
        return tuple(candidate.nano_objectives[i] for i in self.order)


FRONT = Aim()
PIPE = Aim("pipe-only", (1, 0, 2))
HYBRIDS = (Aim("hybrid", (0, 1, 2)), Aim("hybrid", (1, 0, 2)))


@dataclass(frozen=True)
class SearchSpace:
    """What a search chooses from.

    Parameters
    ----------
    pipes
        Whether to look only for pipelines of one processor for each stage.
    replicable
        Groups of identical processors that may take turns on frames.
    most_stages
        Of a configuration; any number if it is None.
    arrival_ns
        Time between frames, as they arrive or as the memory serves them, at least: static energy is
        for at least so long.
    power_budget_w
        What processors may draw on average: periods are no less than what that asks for.
    """

    units: int
    stages: StageTable
    static_power_w: tuple[float, ...]
    tolerance: Tolerance
    cost_table: int
    identical: Sequence[Sequence[int]]
    pipes: bool = False
    replicable: Replicable = NO_REPLICAS
    most_stages: int | None = None
    arrival_ns: float = 0.0
    power_budget_w: float | None = None

    @cached_property
    def places(self) -> Sequence[Sequence[Locations]]:
        """Locations of live tensors at each boundary."""
        return self.stages.places(self.units)

    @property
    def counts_stages(self) -> bool:
        """Whether the number of stages is limited to less than that of processors."""
        return self.most_stages is not None and self.most_stages < len(self.static_power_w)

    @cached_property
    def number(self) -> list[dict[Locations, int]]:
        """Number of each place at its boundary."""
        return [{at: i for i, at in enumerate(some)} for some in self.places]

    @cached_property
    def sets(self) -> Numbers:
        """All sets of processors, as bit masks."""
        return np.arange(1 << len(self.static_power_w))

    @cached_property
    def is_leading(self) -> NDArray[np.bool_]:
        """Which sets use identical processors in turn."""
        return np.array([is_leading(mask, self.identical) for mask in self.sets.tolist()])

    @cached_property
    def is_consecutive(self) -> NDArray[np.bool_]:
        """Which sets a stage may use, given that."""
        return np.array([is_consecutive(mask, self.identical) for mask in self.sets.tolist()])

    @cached_property
    def static_w(self) -> NDArray[np.float64]:
        """Static power of each set."""
        return np.array(
            [
                fsum(power for p, power in enumerate(self.static_power_w) if mask >> p & 1)
                for mask in self.sets.tolist()
            ]
        )

    def paced_ns(
        self, used: Numbers, period_ns: NDArray[Any], dynamic_nj: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the periods at which sets of processors draw no more than the power budget.

        As `power_need` does: none is shortened, and infinite is what no period is enough for.
        """
        if self.power_budget_w is None:
            return period_ns
        left_w = self.power_budget_w - self.static_w[used]
        with np.errstate(divide="ignore", invalid="ignore"):
            needed_ns = np.where(left_w > 0, dynamic_nj / left_w, np.inf)
        paced: NDArray[Any] = np.where(
            needed_ns > self.arrival_ns, np.maximum(period_ns, needed_ns), period_ns
        )
        return paced

    @cached_property
    def replicas(self) -> dict[int, list[int]]:
        """Sets of processors that may take turns on a stage, by the bit mask of their first."""
        return {} if self.pipes else replica_sets(self.replicable.staged)

    @cached_property
    def aims(self) -> tuple[Aim, ...]:
        """What labels may become."""
        if self.pipes:
            return (PIPE,)
        return (FRONT,) if self.stages.energy else (FRONT, PIPE, *HYBRIDS)

    def single_stages(self) -> Iterator[StageCandidate]:
        """Yield all of one stage; with `pipes`, those on one processor, and the fastest.

        Processors that take turns on the whole network follow from one that runs it.
        """
        every = self.stages.last_stages(0, self.units, [()], range(len(self.sets)))
        fronts = {shape.processors: front for shape, front in every}
        if self.pipes:
            fastest = min(fronts, key=lambda mask: int(fronts[mask].time_ns.min()), default=0)
            narrow = {mask for mask in fronts if mask.bit_count() == 1 or mask == fastest}
            fronts = {mask: front for mask, front in fronts.items() if mask in narrow}
        alone = replica_sets(self.replicable.alone)
        for mask, front in fronts.items():
            some = coarsen(front, self.tolerance.stage)
            for time_ns, energy_nj in some.pairs():
                shape = StageShape(0, self.units, (), (), mask)
                taken = (each for each in alone.get(mask, ()) if self.is_leading[each])
                for replicas in (0, *taken):
                    yield self.candidate((ChosenStage(shape, time_ns, energy_nj, replicas),))

    def candidate(self, chosen: tuple[ChosenStage, ...]) -> StageCandidate:
        """Return the configuration that some stages make."""
        times_ns = [stage.time_ns for stage in chosen]
        if self.stages.energy:
            dynamic_nj = sum(stage.energy_nj for stage in chosen)
        else:  # the labels left energy out
            dynamic_nj = sum(
                option.energy_nj
                for each in chosen
                for option in self.stages.trace(each.shape, each.time_ns, each.energy_nj)
            )
        used = sum(stage.processors for stage in chosen)
        static_w = float(self.static_w[used])
        period_ns: float = max(stage.every_ns for stage in chosen)
        if self.power_budget_w is not None:
            paced_ns = float(self.paced_ns(*map(np.array, (used, period_ns, dynamic_nj))))
            period_ns = ceil(paced_ns) if paced_ns < inf else inf
        return StageCandidate(
            chosen,
            sum(times_ns),
            period_ns,
            dynamic_nj + static_w * max(period_ns, self.arrival_ns),
            self.stages,
            self.cost_table,
        )


def configure(
    candidate: Candidate, graph: OperatorGraph, tables: Sequence[CostTable]
) -> Configuration:
    """Make a configuration of a candidate, without names."""
    if isinstance(candidate, Configuration):
        return candidate
    if isinstance(candidate, EvaluatedCandidate):
        candidate = candidate.found
    costs = tables[candidate.table]
    traces = (
        candidate.stage_table.trace(stage.shape, stage.time_ns, stage.energy_nj)
        for stage in candidate.stages
    )
    stages = [[o.choice for o in some if isinstance(o.choice, Choice)] for some in traces]
    sets = (stage.replicas for stage in candidate.stages if stage.replicas)
    turns = [tuple(p for p in range(len(costs.processors)) if mask >> p & 1) for mask in sets]
    mapping = with_earliest_starts(join_stages(stages, graph, costs), graph, costs).with_replicas(
        turns
    )
    claims = [choice.claim for choices in stages for choice in choices]
    return Configuration(
        mapping,
        evaluate(mapping, graph, costs),
        proven=all(claim.proven for claim in claims),
        gap=max(claim.gap for claim in claims),
        table=candidate.table,
    )


def evaluate_candidate(
    candidate: Candidate, graph: OperatorGraph, tables: Sequence[CostTable]
) -> Candidate:
    """Return a candidate with what its configuration takes."""
    if not isinstance(candidate, StageCandidate):
        return candidate
    made = configure(candidate, graph, tables)
    return EvaluatedCandidate(
        candidate, made.kind, made.processors, made.period_s, made.nano_objectives
    )


def join_stages(
    stages: Iterable[Iterable[Choice]], graph: OperatorGraph, costs: CostTable
) -> Mapping:
    """Put the schedules of each stage one behind the other."""
    placements: dict[int, Placement] = {}
    busy: dict[tuple[str, int], Transfer] = {}
    for lag, choices in enumerate(stages):
        begin_s = 0.0
        for choice in choices:
            schedule = choice.schedule
            for v, p, start_s, end_s in zip(
                choice.request.operators,
                schedule.processor,
                schedule.start_s,
                schedule.end_s,
                strict=True,
            ):
                placements[v] = Placement(v, p, begin_s + start_s, begin_s + end_s, lag)
            for moved in _list_transfers(choice, graph, costs, begin_s, lag):
                # Each unit counts the transfer of what it reads from outside. If an earlier unit
                # of the stage has read it there, it is not moved again: the schedule keeps the gap.
                earlier = busy.setdefault((moved.tensor, moved.target), moved)
                if (moved.start_s, moved.end_s) < (earlier.start_s, earlier.end_s):
                    busy[moved.tensor, moved.target] = moved
            begin_s += schedule.makespan_s
    return assemble(placements, hand_overs_of(placements, graph, costs, busy))


def _list_transfers(
    choice: Choice, graph: OperatorGraph, costs: CostTable, begin_s: float, lag: int
) -> Iterator[Transfer]:
    """Yield the transfers that occupy something, of a schedule that begins so late in its stage."""
    request, schedule = choice.request, choice.schedule
    for moved in schedule.transfers:
        flow = request.problem.flows[moved.flow]
        source = flow.location if flow.producer is None else schedule.processor[flow.producer]
        assert source is not None
        tensor = request.tensors[moved.flow]
        yield Transfer(
            tensor,
            graph.producer[tensor],
            source,
            moved.target,
            lag,
            costs.transfer_s(tensor, source, moved.target),
            request.problem.resource_of(source, moved.target),
            begin_s + moved.start_s,
            begin_s + moved.end_s,
        )
