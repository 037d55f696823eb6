"""A candidate of the search over stages, operator by operator: a mapping in exact seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import as_early, assemble, hand_overs_of
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.mapping import Mapping, Placement, Transfer
from parapipe.search.choose import marked, names_among
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import Candidate, StageCandidate
from parapipe.search.stages.unit_schedules import Choice


def listed(
    chosen: Sequence[Candidate],
    graph: OperatorGraph,
    tables: Sequence[CostTable],
    options: MapOptions,
) -> tuple[Configuration, ...]:
    """Return what was chosen in exact seconds, with its names and the fronts that it is on."""
    made = [configure(each, graph, tables) for each in chosen]
    figures = [each.objectives[: 2 + options.energy] for each in made]
    if options.memory:
        figures = [(*some, each.memory_bytes) for some, each in zip(figures, made, strict=True)]
    names = names_among(made, figures, tables[0].processors, memory=options.memory)
    return tuple(marked(made, figures, names))


def configure(
    candidate: Candidate, graph: OperatorGraph, tables: Sequence[CostTable]
) -> Configuration:
    """Make a configuration of a candidate, without names."""
    if isinstance(candidate, Configuration):
        return candidate
    costs = tables[candidate.table]
    stages = [list(choices) for choices in _choices(candidate)]
    sets = (stage.replicas for stage in candidate.stages if stage.replicas)
    turns = [tuple(p for p in range(len(costs.processors)) if mask >> p & 1) for mask in sets]
    mapping = as_early(_mapping(stages, graph, costs), graph, costs).taken_in_turn(turns)
    claims = [choice.claim for choices in stages for choice in choices]
    return Configuration(
        mapping,
        evaluate(mapping, graph, costs),
        proven=all(claim.proven for claim in claims),
        gap=max(claim.gap for claim in claims),
        table=candidate.table,
    )


def _choices(candidate: StageCandidate) -> Iterator[Iterator[Choice]]:
    for stage in candidate.stages:
        options = candidate.found_in.trace(stage.shape, stage.time_ns, stage.energy_nj)
        yield (option.choice for option in options if isinstance(option.choice, Choice))


def _mapping(stages: Iterable[Iterable[Choice]], graph: OperatorGraph, costs: CostTable) -> Mapping:
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
            for moved in _transfers(choice, graph, costs, begin_s, lag):
                # Each unit counts the transfer of what it reads from outside. If an earlier unit
                # of the stage has read it there, it is not moved again: the schedule keeps the gap.
                known = busy.setdefault((moved.tensor, moved.target), moved)
                if (moved.start_s, moved.end_s) < (known.start_s, known.end_s):
                    busy[moved.tensor, moved.target] = moved
            begin_s += schedule.makespan_s
    return assemble(placements, hand_overs_of(placements, graph, costs, busy))


def _transfers(
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
