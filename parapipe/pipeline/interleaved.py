"""Configurations whose processors take turns on several frames, found by the search for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.interleaved.curve import curve
from parapipe.mapping.interleaved.cyclic import ModuloSchedule
from parapipe.pipeline.candidate import Candidate
from parapipe.pipeline.choices import NANO
from parapipe.pipeline.choose import Chosen
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.evaluate import Evaluated, evaluate
from parapipe.pipeline.mapping import Edge, Kind, Mapping, Placement, Transfer
from parapipe.pipeline.whole_problem import whole_problem


@dataclass(frozen=True, slots=True)
class InterleavedCandidate:
    """A configuration that interleaves frames, as candidates of the other searches are.

    `least_period_s` is a lower bound on the period of all mappings.
    """

    mapping: Mapping
    evaluated: Evaluated
    least_period_s: float
    cost_table: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each frame lag uses."""
        return tuple(sum(1 << p for p in stage.processors) for stage in self.mapping.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        return self.mapping.kind

    @property
    def objectives(self) -> tuple[float, float, float]:
        """What the front trades: latency, period, energy."""
        made = self.evaluated
        return (made.latency_s * NANO, made.period_s * NANO, made.energy_j * NANO)

    def configured(self, chosen: Chosen[Any]) -> Configuration:
        """Make a configuration of it; its gap is that of its period."""
        return Configuration(
            self.mapping,
            self.evaluated,
            proven=False,
            gap=max(0.0, 1 - self.least_period_s / self.evaluated.period_s),
            names=chosen.names,
            pareto=chosen.pareto,
            pareto_latency_throughput=chosen.pareto_latency_throughput,
            table=self.cost_table,
        )


Interleaves = Callable[..., Iterable[InterleavedCandidate]]
"""Searches with frames interleaved: `interleaved_candidates`, its options given."""


def interleaved_candidates(
    graph: OperatorGraph,
    costs: CostTable,
    *,
    seed: int,
    known: Sequence[Candidate],
    deadline: Deadline,
    tell: Callable[[int, int], None],
    none: Callable[[str], None],
) -> Iterator[InterleavedCandidate]:
    """Yield configurations of more throughput than all known ones, those of least latency.

    At a bounded number of periods between the shortest known one and the least of all mappings,
    none of which a known configuration beats in latency and period.

    Parameters
    ----------
    seed
        Of all random choices.
    known
        Configurations of stages.
    tell
        Called with the numbers of periods that are done and of all.
    none
        Called with the reason if there is no such configuration.
    """
    shortest_ns = min(each.period_ns for each in known)
    problem = whole_problem(graph, costs)
    any_found = False
    points = curve(problem, shortest_ns / NANO, seed=seed, over=lambda: deadline.over, tell=tell)
    for point in points:
        mapping = mapping_of(point.schedule, graph, costs)
        if mapping.kind == "interleaved":  # stages are what the other searches are for
            found = evaluate(mapping, graph, costs)
            yield InterleavedCandidate(mapping, found, point.least_period / NANO)
            any_found = True
    if not any_found:
        none(
            "the search ended before there was one"
            if deadline.over
            else "no schedule was found that has clearly more throughput than stages, whose "
            f"shortest period is {shortest_ns / NANO * 1e3:.4g} ms"
        )


def mapping_of(schedule: ModuloSchedule, graph: OperatorGraph, costs: CostTable) -> Mapping:
    """Return a modulo schedule as a mapping in seconds: starts within the period, and lags."""
    period, place = schedule.period, schedule.processor
    placements = []
    for v, (p, start) in enumerate(zip(place, schedule.start, strict=True)):
        lag, begin = divmod(start, period)
        start_s = begin / NANO
        placements.append(Placement(v, p, start_s, start_s + costs.time_s(v, p), lag))
    tensors = [name for name in graph.consumers if name in graph.producer]
    moved = {(tensors[flow], q): at for (flow, q), at in schedule.moved}
    transfers: dict[tuple[str, int], Transfer] = {}
    edges: list[Edge] = []
    number: dict[tuple[str, int], int] = {}
    for name, u in graph.producer.items():
        for v in graph.consumers.get(name, ()):
            p, q = place[u], place[v]
            route = (name, q)
            if p != q and route not in transfers:
                lag = min(placements[x].lag for x in graph.consumers[name] if place[x] == q)
                transfer = Transfer(name, u, p, q, lag, costs.transfer_s(name, p, q))
                if (at := moved.get(route)) is not None:
                    transfer = _occupying(transfer, at, period, costs)
                number[route], transfers[route] = len(transfers), transfer
            edges.append(Edge(u, v, number.get(route)))
    return Mapping(
        tuple(placements), tuple(transfers.values()), tuple(edges), period_s=period / NANO
    )


def _occupying(transfer: Transfer, at: int, period: int, costs: CostTable) -> Transfer:
    lag, begin = divmod(at, period)
    return Transfer(
        transfer.tensor,
        transfer.producer,
        transfer.source,
        transfer.target,
        lag,
        transfer.time_s,
        costs.transfer_resource[transfer.source][transfer.target],
        begin / NANO,
        begin / NANO + transfer.time_s,
    )
