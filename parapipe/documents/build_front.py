"""front.json written: an exploration as the document that everything else is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, TypeVar

from parapipe.cost.cost_table import CostTable
from parapipe.cost.measured_network import (
    MeasuredNetwork,
    as_run_elsewhere,
    measured_networks,
    priced_as_run,
    recognise,
)
from parapipe.cost.operating_points import Setting, Settings
from parapipe.cost.profile import Profile, shipped_profiles
from parapipe.documents.doubt import DrawnFigureRow, doubts
from parapipe.documents.drawing import drawing, growth_row, several_row
from parapipe.documents.figure_table import derived
from parapipe.documents.front_records import (
    DvfsRow,
    GrowthRow,
    Inputs,
    LeastRow,
    MemoryRow,
    MemorySystemRow,
    Options,
    ProcessorRow,
    StageRow,
)
from parapipe.documents.front_schema import (
    SCHEMA,
    ConfigurationRow,
    EvaluatedRow,
    FrontDocument,
    OperatorEntry,
    PlatformProcessor,
    SubgraphEntry,
)
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.part_marks import origins
from parapipe.graph.partition import Partition
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.configuration import Configuration, stated
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.memory import PeakMemory, peaks_of
from parapipe.plan.schema import OperatingPoint
from parapipe.platform.divided import divisions_used
from parapipe.platform.sections import OperatingPoint as PlatformPoint
from parapipe.search.exploration import Exploration, UnfinishedRow
from parapipe.search.options import MapOptions
from parapipe.uncertainty.robust import RobustRow
from parapipe.uncertainty.samples import DrawnFront
from parapipe.version import __version__

if TYPE_CHECKING:
    from parapipe.several_models.patterns import Demand, Reached

Bounds = TypeVar("Bounds", LeastRow, UnfinishedRow)


def front_document(
    graph: OperatorGraph,
    partition: Partition,
    settings: Settings,
    exploration: Exploration,
    options: MapOptions,
    *,
    command: str,
    inputs: Inputs,
    networks: Sequence[MeasuredNetwork],
    drawn: DrawnFront | None = None,
    robust: RobustRow | None = None,
    several: tuple[Sequence[Demand], Reached] | None = None,
) -> FrontDocument:
    """Write an exploration down. Configurations are numbered by ascending latency.

    Parameters
    ----------
    settings
        The cost tables of the exploration, in its order, and their platforms.
    command
        What makes the front again.
    networks
        That were measured as a whole, and that costs come from.
    drawn
        What the configurations take in draws of the costs, if there are any.
    robust
        What was done for a robust front, if that was asked for.
    several
        What is asked for several models, and what ways without sharing reach.
    """
    platform, costs = settings.combinations[0].platform, settings.combinations[0].costs
    evaluated = evaluator(graph, settings, networks) if platform.evaluation else lambda _: None
    peak_of = peaks_of(graph, lambda found: settings.combinations[found.table].costs)
    peaks = [peak_of(found) for found in exploration.found]
    objectives = tuple(options.objectives.split("-"))
    sure: Iterable[dict[str, DrawnFigureRow]] = repeat({})
    if drawn:
        sizes = [peak.total.size_bytes for peak in peaks]
        quantile = robust.quantile if robust else None
        sure = doubts(exploration.found, drawn, objectives, sizes, quantile)
    width = max(2, len(str(len(exploration.found))))
    found_within = exploration.energy_resolution
    trades = found_within is not None
    proves = {schedule.certificate.proves for schedule in exploration.schedules.values()}
    proves |= {"energy" for _ in exploration.traded.answers}
    return FrontDocument(
        schema=SCHEMA,
        parapipe=__version__,
        model=graph.source.name,
        model_sha256=graph.source.sha256,
        platform=platform.name,
        processors=tuple(
            {
                processor.name: PlatformProcessor.of(
                    processor,
                    data_type=data_type,
                    part_of=processor.whole.name if processor.whole else None,
                )
                for at in settings.combinations
                for processor, data_type in zip(
                    at.platform.processors, at.costs.working, strict=True
                )
            }.values()
        ),
        command=command,
        inputs=inputs,
        options=Options.of(
            options,
            resolution=exploration.resolution,
            precision=costs.precision,
            objectives=objectives,
            schedules=_schedules(exploration.energy_resolution),
            proves=tuple(sorted(proves)),
            energy_resolution=None if found_within == inf else found_within,
            energy_resolution_asked=options.energy_resolution if trades else None,
            energy_timed_out=exploration.energy_timed_out,
        ),
        operators=tuple(OperatorEntry.of(graph.operators[v]) for v in partition.order),
        subgraphs=tuple(
            SubgraphEntry(
                number=number,
                first_operator=graph.operators[subgraph.operators[0]].id,
                last_operator=graph.operators[subgraph.operators[-1]].id,
                parallelism=subgraph.parallelism,
            )
            for number, subgraph in enumerate(partition.subgraphs, start=1)
        ),
        configurations=tuple(
            _row(
                f"c{number:0{width}d}",
                found,
                at,
                graph,
                stages=tuple(_stages(found, at, graph, partition)),
                evaluated=evaluated(found),
                memory=peak,
                several=growth_row(found, several[0]) if several else None,
                **doubt,
            )
            for number, (found, peak, doubt) in enumerate(
                zip(exploration.found, peaks, sure, strict=False), start=1
            )
            for at in [setting_of(found, settings)]
        ),
        conversion=_conversion(costs),
        absent=dict(exploration.absent),
        notes=graph.notes,
        unfinished=_stated(exploration.unfinished) if exploration.unfinished else None,
        coverage=settings.coverage,
        memory=MemorySystemRow.of_system(platform.memory_system),
        dvfs=_considered_points(settings),
        robust=robust,
        several=several_row(
            graph, *several, exploration.found[0].evaluated.period_s, platform.names
        )
        if several
        else None,
    )


def setting_of(found: Configuration, settings: Settings) -> Setting:
    """Return the platform and the costs that a configuration rests on."""
    at = settings.combinations[found.table]
    return replace(at, costs=found.split.costs) if found.split else at


def _conversion(costs: CostTable) -> str | None:
    """Say what figures suppose; None if the model is planned as it stands."""
    if costs.precision == "model":
        return None
    by_type: dict[str, list[str]] = {}
    for name, data_type in zip(costs.processors, costs.working, strict=True):
        by_type.setdefault(data_type or "the model's own types", []).append(name)
    types = "; ".join(f"{', '.join(names)} in {each}" for each, names in by_type.items())
    return (
        f"planned as after conversion to {costs.precision} ({types}): its accuracy is yours to "
        "check"
    )


def _schedules(energy_resolution: float | None) -> str:
    shortest = "the shortest that the mapper finds"
    if energy_resolution is None:
        return f"one per subgraph, processors and locations: {shortest}"
    others = "others that take longer and less energy"
    return f"per subgraph, processors and locations {shortest}, and {others}"


def _considered_points(settings: Settings) -> dict[str, DvfsRow] | None:
    """Return the operating points of each processor, None if each has a single one."""
    if all(len(points) == 1 for points in settings.points):
        return None
    processors = settings.combinations[0].platform.processors
    return {
        processor.name: DvfsRow(
            operating_points=tuple(map(_point, points)),
            listed=len(processor.operating_points),
            switching_up_s=getattr(processor.clock.switching, "up_s", None),
            switching_down_s=getattr(processor.clock.switching, "down_s", None),
        )
        for processor, points in zip(processors, settings.points, strict=True)
    }


def _point(point: PlatformPoint) -> OperatingPoint:
    return OperatingPoint(frequency_hz=point.frequency_hz, voltage_v=point.voltage_v)


def _row(
    name: str,
    found: Configuration,
    at: Setting,
    graph: OperatorGraph,
    *,
    stages: tuple[StageRow, ...],
    evaluated: EvaluatedRow | None,
    memory: PeakMemory,
    several: GrowthRow | None,
    **doubt: DrawnFigureRow,
) -> ConfigurationRow:
    made = found.evaluated
    (latency_s, period_s, energy_j), board_energy_j = found.objectives, stated(made.board_energy_j)
    stated_figures = {"latency_s": latency_s, "period_s": period_s, "energy_j": energy_j}
    return ConfigurationRow.of(
        found,
        made,
        **{**stated_figures, **derived(stated_figures, ConfigurationRow)},
        id=name,
        kind=found.mapping.kind,
        stages=stages,
        drawing=drawing(found, stages, at, graph),
        split=found.split.rules if found.split else (),
        divided=divisions_used(at.platform, [p.name for s in stages for p in s.processors]),
        sustained_period_s=stated(made.sustained_period_s),
        board_energy_j=board_energy_j,
        board_frames_per_joule=1 / board_energy_j,
        latency_with_io_s=made.input_s + latency_s + made.output_s,
        evaluated=evaluated,
        least=_stated(LeastRow.of(found.least)) if found.least else None,
        peak_memory_bytes=memory.total.size_bytes,
        memories=tuple(map(MemoryRow.of_peak, memory.memories)),
        several=several,
        **{"intervals": None, "medians": None, "chances": None, "quantiles": None, **doubt},
    )


def _stated(row: Bounds) -> Bounds:
    """Return bounds in as many digits as figures have, so that none is above what it bounds."""
    figures = {key: stated(each) for key, each in dict(row).items() if isinstance(each, float)}
    return row.model_copy(update=figures)


def _stages(
    found: Configuration, at: Setting, graph: OperatorGraph, partition: Partition
) -> Iterator[StageRow]:
    """Yield the stages, and what each processor does for a frame in any of them."""
    mapping, costs, count = found.mapping, at.costs, len(at.costs.processors)
    busy_s, transfer_s, dynamic_energy_j = ([0.0] * count for _ in range(3))
    for placed in (each for stage in mapping.stages for each in stage.placements):
        turns = mapping.replicas.get(placed.processor, (placed.processor,))
        for p in turns:
            busy_s[p] += (placed.end_s - placed.start_s) / len(turns)
            dynamic_energy_j[p] += costs.energy_j(placed.operator, p) / len(turns)
    for moved in (each for stage in mapping.stages for each in stage.transfers):
        if moved.resource is not None and moved.resource < count:  # else a shared link
            transfer_s[moved.resource] += moved.end_s - moved.start_s
    processors = [
        ProcessorRow(
            name=processor.name,
            operating_point=_point(processor.point),
            busy_s=busy_s[p],
            transfer_s=transfer_s[p],
            dynamic_energy_j=dynamic_energy_j[p],
            static_power_w=costs.static_power_w[p],
        )
        for p, processor in enumerate(at.platform.processors)
    ]
    wholes = _wholes(found, graph)
    place = {v: i for i, v in enumerate(partition.order)}
    for stage in mapping.stages:
        inside = sorted(
            {wholes[placed.operator] for placed in stage.placements}, key=place.__getitem__
        )
        yield StageRow(
            processors=tuple(processors[p] for p in stage.replicas or stage.processors),
            first_operator=graph.operators[inside[0]].id,
            last_operator=graph.operators[inside[-1]].id,
            subgraphs=partition.numbers(inside),
            time_s=stated(stage.time_s),
            in_turn=bool(stage.replicas),
        )


def _wholes(found: Configuration, graph: OperatorGraph) -> Sequence[int]:
    """Return the model's operator for each one that a configuration runs, by index."""
    if found.split is None:
        return range(len(graph.operators))
    number = {operator.id: v for v, operator in enumerate(graph.operators)}
    made = found.split.graph.operators
    origin = origins(made, number)
    return [number[origin[operator.id]] for operator in made]


def networks_behind(
    profiles: Sequence[Profile] | None, profile_name: str
) -> tuple[MeasuredNetwork, ...]:
    """Return the networks that were measured as a whole, if costs come from the shipped profiles.

    Without profiles, costs come from those that are shipped under the name.
    """
    if profiles is None or tuple(profiles) == shipped_profiles(profile_name):
        return measured_networks(profile_name)
    return ()


def evaluator(
    graph: OperatorGraph, settings: Settings, networks: Sequence[MeasuredNetwork]
) -> Callable[[Configuration], EvaluatedRow | None]:
    """Return what says what a configuration takes by the final evaluation.

    Nothing of one that is made for a period: its operators start when its plan says, and a
    processor that took them as early as it can would keep another period.

    A network that was measured as a whole takes the times of its own rows, if nothing that ran on
    the board is folded away in the graph: then blocks add up to what was measured, and hand-overs
    between them count as the platform says.
    """
    default = settings.combinations[0]
    folded = any(single.folded for operator in graph.operators for single in operator.singles)
    converts = default.costs.precision != "model"  # the rows are of the model as it stands
    network = None if folded or converts else recognise(graph, networks)
    blocks = network.blocks_of(graph) if network else None
    as_run = priced_as_run(default.costs, graph, default.platform, network) if network else None

    @cache
    def costs_of(table: int) -> CostTable:
        here = settings.combinations[table]
        wholes = [here.platform.whole(p) for p in range(len(here.platform.processors))]
        return as_run_elsewhere(here.costs, default.costs, as_run, wholes) if as_run else here.costs

    def row(found: Configuration) -> EvaluatedRow | None:
        at = setting_of(found, settings)
        if found.mapping.period_s is not None:
            return None
        if found.split:
            contention = at.platform.contention
            made = evaluate(found.mapping, found.split.graph, at.costs, contention=contention)
            return EvaluatedRow.of(made, network=None)
        costs = costs_of(found.table)
        again = mapping_of(graph, at.platform, costs, assignment_of(found.mapping), blocks=blocks)
        again = again.taken_in_turn(found.mapping.replicated)
        made = evaluate(again, graph, costs, contention=at.platform.contention)
        return EvaluatedRow.of(made, network=network.network.name if network else None)

    return row
