"""Builds front.json from an exploration; tables, pictures and pages are made of it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, TypeVar

from parapipe.cost.cost_table import CostTable
from parapipe.cost.measured_network import (
    MeasuredNetwork,
    costs_as_run,
    costs_as_run_elsewhere,
    measured_networks,
    recognise,
)
from parapipe.cost.operating_points import Setting, Settings
from parapipe.cost.profile import Profile, shipped_profiles
from parapipe.documents.co_run_rows import CoRunCostRow, FreeBoundsRow
from parapipe.documents.doubt import DrawnFigureRow, doubt_fields
from parapipe.documents.drawing import growth_row, render_configuration, several_row
from parapipe.documents.figure_table import derive_figures
from parapipe.documents.front_records import (
    DvfsRow,
    GrowthRow,
    Inputs,
    LeastRow,
    MemoryRow,
    MemorySystemRow,
    Options,
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
from parapipe.documents.stage_rows import point_row, stage_rows
from parapipe.documents.state_rows import StateRow
from parapipe.documents.token_rows import TokensRow, token_figures, tokens_of
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.configuration import Configuration, stated_figure
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.memory import PeakMemory, peaks_of
from parapipe.mappings.segments import counts_of
from parapipe.platform.divided import divisions_used
from parapipe.profiling.runtimes import exports_of
from parapipe.search.exploration_result import Exploration, UnfinishedRow
from parapipe.search.options import MapOptions
from parapipe.uncertainty.robust import RobustRow
from parapipe.uncertainty.samples import SampledFront
from parapipe.version import __version__

if TYPE_CHECKING:
    from parapipe.several_models.patterns import Demand, LeastPeriods

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
    drawn: SampledFront | None = None,
    robust: RobustRow | None = None,
    several: tuple[Sequence[Demand], LeastPeriods] | None = None,
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
    tokens = tokens_of(graph, costs)
    evaluated = evaluator(graph, settings, networks) if platform.evaluation else lambda _: None
    peak_of = peaks_of(graph, lambda each: settings.combinations[each.table].costs)
    peaks = list(map(peak_of, exploration.found))
    objectives = tuple(options.objectives.split("-"))
    sampled: Iterable[dict[str, DrawnFigureRow]] = repeat({})
    if drawn:
        sizes = [peak.total.size_bytes for peak in peaks]
        quantile = robust.quantile if robust else None
        sampled = doubt_fields(exploration.found, drawn, objectives, sizes, quantile)
    limited = options.max_segments is not None or platform.segment_rules.sections
    counts = counts_of(exploration.found, graph) if limited and not several else repeat({})
    width = max(2, len(str(len(exploration.found))))
    energy_share = exploration.energy_resolution
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
            exclude=tuple(options.exclude) or None,
            pins=dict(options.pins or {}) or None,
            objectives=objectives,
            schedules=_describe_schedules(exploration.energy_resolution),
            proves=tuple(sorted(proves)),
            energy_resolution=None if energy_share == inf else energy_share,
            energy_resolution_asked=None if energy_share is None else options.energy_resolution,
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
            _configuration_row(
                f"c{number:0{width}d}",
                configuration,
                at,
                graph,
                stages=tuple(stage_rows(configuration, at, graph, partition, segments)),
                evaluated=evaluated(configuration),
                memory=peak,
                several=growth_row(configuration, several[0]) if several else None,
                tokens=tokens,
                **doubt,
                **at.platform.segment_rules.figures(segments),
            )
            for number, (configuration, peak, segments, doubt) in enumerate(
                zip(exploration.found, peaks, counts, sampled, strict=False), start=1
            )
            for at in [setting_of(configuration, settings)]
        ),
        conversion=_describe_conversion(costs),
        absent=dict(exploration.absent),
        notes=graph.notes,
        states=StateRow.of_graph(graph),
        co_run=FreeBoundsRow.of_exploration(exploration),
        tokens=tokens,
        unfinished=_round_bounds(exploration.unfinished) if exploration.unfinished else None,
        coverage=settings.coverage,
        memory=MemorySystemRow.of_system(platform.memory_system),
        dvfs=_dvfs_rows(settings),
        robust=robust,
        several=several_row(
            graph, *several, exploration.found[0].evaluated.period_s, platform.names
        )
        if several
        else None,
    )


def setting_of(configuration: Configuration, settings: Settings) -> Setting:
    """Return the platform and the costs that a configuration rests on."""
    at = settings.combinations[configuration.table]
    return replace(at, costs=configuration.split.costs) if configuration.split else at


def _describe_conversion(costs: CostTable) -> str | None:
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


def _describe_schedules(energy_resolution: float | None) -> str:
    shortest = "the shortest that the mapper finds"
    if energy_resolution is None:
        return f"one per subgraph, processors and locations: {shortest}"
    others = "others that take longer and less energy"
    return f"per subgraph, processors and locations {shortest}, and {others}"


def _dvfs_rows(settings: Settings) -> dict[str, DvfsRow] | None:
    """Return the operating points of each processor, None if each has a single one."""
    if all(len(points) == 1 for points in settings.points):
        return None
    processors = settings.combinations[0].platform.processors
    return {
        processor.name: DvfsRow(
            operating_points=tuple(map(point_row, points)),
            listed=len(processor.operating_points),
            switching_up_s=getattr(processor.clock.switching, "up_s", None),
            switching_down_s=getattr(processor.clock.switching, "down_s", None),
        )
        for processor, points in zip(processors, settings.points, strict=True)
    }


def _configuration_row(
    name: str,
    configuration: Configuration,
    at: Setting,
    graph: OperatorGraph,
    *,
    stages: tuple[StageRow, ...],
    evaluated: EvaluatedRow | None,
    memory: PeakMemory,
    several: GrowthRow | None,
    tokens: TokensRow | None = None,
    **figures: DrawnFigureRow | float | None,
) -> ConfigurationRow:
    predicted = configuration.evaluated
    latency_s, period_s, energy_j = configuration.objectives
    board_energy_j = stated_figure(predicted.board_energy_j)
    used = [each.name for stage in stages for each in stage.processors]
    stated_figures = {"latency_s": latency_s, "period_s": period_s, "energy_j": energy_j}
    with_io_s = predicted.input_s + latency_s + predicted.output_s
    of_tokens = token_figures(
        tokens, latency_with_io_s=with_io_s, period_s=period_s, energy_j=energy_j
    )
    return ConfigurationRow.of(
        configuration,
        predicted,
        **{**stated_figures, **derive_figures(stated_figures, ConfigurationRow)},
        id=name,
        kind=configuration.mapping.kind,
        stages=stages,
        drawing=render_configuration(configuration, stages, at, graph),
        split=configuration.split.rules if configuration.split else (),
        exports=exports_of(at.platform.processors, used, at.costs.precision),
        divided=divisions_used(at.platform, used),
        sustained_period_s=stated_figure(predicted.sustained_period_s),
        board_energy_j=board_energy_j,
        board_frames_per_joule=1 / board_energy_j,
        arrival_s=at.costs.arrival_s or None,
        latency_with_io_s=with_io_s,
        **of_tokens,
        evaluated=evaluated,
        least=_round_bounds(LeastRow.of(configuration.least)) if configuration.least else None,
        peak_memory_bytes=memory.total.size_bytes,
        memories=tuple(map(MemoryRow.of_peak, memory.memories)),
        several=several,
        co_run=CoRunCostRow.of_evaluated(predicted),
        **{"intervals": None, "medians": None, "chances": None, "quantiles": None, **figures},
    )


def _round_bounds(row: Bounds) -> Bounds:
    """Return bounds in as many digits as figures have, so that none is above what it bounds."""
    figures = {
        key: stated_figure(each) for key, each in dict(row).items() if isinstance(each, float)
    }
    return row.model_copy(update=figures)


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
    as_run = costs_as_run(default.costs, graph, default.platform, network) if network else None

    @cache
    def costs_of(table: int) -> CostTable:
        setting = settings.combinations[table]
        if as_run is None:
            return setting.costs
        undivided = [setting.platform.whole(p) for p in range(len(setting.platform.processors))]
        return costs_as_run_elsewhere(setting.costs, default.costs, as_run, undivided)

    def evaluated_row(configuration: Configuration) -> EvaluatedRow | None:
        at = setting_of(configuration, settings)
        if configuration.mapping.period_s is not None:
            return None
        if configuration.split:
            evaluated = evaluate(configuration.mapping, configuration.split.graph, at.costs)
            return EvaluatedRow.of(evaluated, network=None)
        costs = costs_of(configuration.table)
        assignment = assignment_of(configuration.mapping)
        mapping = mapping_of(graph, at.platform, costs, assignment, blocks=blocks)
        mapping = mapping.with_replicas(configuration.mapping.replicated)
        evaluated = evaluate(mapping, graph, costs)
        return EvaluatedRow.of(evaluated, network=network.network.name if network else None)

    return evaluated_row
