"""front.json written: an exploration as the document that everything else is drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

from parapipe.cost.cost_table import CostTable
from parapipe.cost.measured_network import MeasuredNetwork
from parapipe.cost.operating_points import Setting, Settings
from parapipe.errors import MappingError
from parapipe.files.listing import listed
from parapipe.formats.clocks import considered_points, defaults_hz, drawn_name, point_row
from parapipe.formats.coverage_row import coverage_row
from parapipe.formats.front_evaluation import FrontEvaluator
from parapipe.formats.front_schema import (
    SCHEMA,
    ConfigurationRow,
    EvaluatedRow,
    FrontDocument,
    Inputs,
    OperatorEntry,
    Options,
    PlatformProcessor,
    ProcessorRow,
    StageRow,
    SubgraphEntry,
)
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.explore import Exploration
from parapipe.pipeline.mapping import Mapping, Stage
from parapipe.pipeline.options import MapOptions
from parapipe.platform.platform import Platform
from parapipe.version import __version__


def check_energies(costs: CostTable) -> None:
    """Raise a MappingError if a configuration could take no energy at all: power is not known."""
    still = [p for p, static_w in enumerate(costs.static_power_w) if not static_w]
    free = [[p for p in still if costs.energy_j(v, p) == 0] for v in range(len(costs.entries))]
    if all(free):
        names = sorted({costs.processors[p] for where in free for p in where})
        raise MappingError(
            f"a frame would take no energy on {listed(names)}: the platform gives them no power; "
            "give alpha_w_per_v2_hz or beta_w_per_v, nominal ones if none were measured"
        )


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
    """
    platform = settings.combinations[0].platform
    rows = _Rows(graph, partition)
    evaluator = FrontEvaluator(graph, settings, networks) if platform.evaluation else None
    trades = exploration.energy_resolution is not None
    proves = {schedule.certificate.proves for schedule in exploration.schedules.values()}
    proves |= {
        point.claim.proves
        for found in exploration.traded.answers.values()
        for point in found.points
    }
    return FrontDocument(
        schema=SCHEMA,
        parapipe=__version__,
        model=graph.source.name,
        model_sha256=graph.source.sha256,
        platform=platform.name,
        processors=tuple(
            PlatformProcessor(
                name=processor.name,
                kind=processor.kind,
                backend=processor.backend,
                description=processor.description,
            )
            for processor in platform.processors
        ),
        command=command,
        inputs=inputs,
        options=Options(
            mapper=options.mapper,
            granularity=options.granularity,
            objectives=tuple(options.objectives.split("-")),
            schedules=_schedules(exploration.energy_resolution),
            proves=tuple(sorted(proves)),
            time_limit_s=options.time_limit_s,
            seed=options.seed,
            deterministic=options.deterministic,
            resolution=options.resolution,
            energy_resolution=_known(exploration.energy_resolution),
            energy_resolution_asked=options.energy_resolution if trades else None,
            energy_timed_out=exploration.energy_timed_out,
        ),
        operators=tuple(
            OperatorEntry(id=operator.id, name=operator.name, type=operator.type)
            for operator in (graph.operators[v] for v in partition.order)
        ),
        subgraphs=rows.subgraphs(),
        configurations=tuple(
            rows.configuration(
                configuration_id(index, len(exploration.found)),
                found,
                settings.combinations[found.table],
                evaluator.row(found) if evaluator else None,
            )
            for index, found in enumerate(exploration.found)
        ),
        absent=dict(exploration.absent),
        coverage=coverage_row(settings.coverage),
        dvfs=considered_points(settings),
    )


def _schedules(energy_resolution: float | None) -> str:
    shortest = "the shortest that the mapper finds"
    if energy_resolution is None:
        return f"one per subgraph, processors and homes: {shortest}"
    others = "others that take longer and less energy"
    return f"per subgraph, processors and homes {shortest}, and {others}"


def _known(resolution: float | None) -> float | None:
    return None if resolution is None or isinf(resolution) else resolution


def configuration_id(index: int, count: int) -> str:
    """Return the id of the configuration at `index`, counted from 0, of `count`."""
    return f"c{index + 1:0{max(2, len(str(count)))}d}"


def draw(stages: Sequence[StageRow], defaults_hz: dict[str, float]) -> str:
    """Return the stages in one line; see `ConfigurationRow.drawing`."""
    drawn = []
    for i, stage in enumerate(stages):
        first, last = stage.subgraphs[0], stage.subgraphs[-1]
        before = "…" if i > 0 and stages[i - 1].subgraphs[-1] == first else ""
        after = "…" if i + 1 < len(stages) and stages[i + 1].subgraphs[0] == last else ""
        run = f"{first}" if first == last else f"{first}-{last}"
        names = "+".join(drawn_name(processor, defaults_hz) for processor in stage.processors)
        drawn.append(f"{names}[{before}{run}{after}]")
    return " │ ".join(drawn)


class _Rows:
    """Makes the rows of one front."""

    def __init__(self, graph: OperatorGraph, partition: Partition) -> None:
        self.graph = graph
        self.partition = partition
        self.unit_of = {v: i for i, unit in enumerate(partition.units) for v in unit.operators}
        self.subgraph_of_unit = [
            number
            for number, subgraph in enumerate(partition.subgraphs, start=1)
            for _ in subgraph.units
        ]

    def subgraphs(self) -> tuple[SubgraphEntry, ...]:
        return tuple(
            SubgraphEntry(
                number=number,
                first_operator=self.graph.operators[subgraph.operators[0]].id,
                last_operator=self.graph.operators[subgraph.operators[-1]].id,
                parallelism=subgraph.parallelism,
            )
            for number, subgraph in enumerate(self.partition.subgraphs, start=1)
        )

    def configuration(
        self, name: str, found: Configuration, at: Setting, evaluated: EvaluatedRow | None
    ) -> ConfigurationRow:
        made = found.evaluated
        work = _Work(found.mapping, at.costs)
        stages = tuple(self.stage(stage, at.platform, work) for stage in found.mapping.stages)
        return ConfigurationRow(
            id=name,
            kind=found.mapping.kind,
            names=found.names,
            pareto=found.pareto,
            pareto_latency_throughput=found.pareto_latency_throughput,
            stages=stages,
            drawing=draw(stages, defaults_hz(at.platform)),
            latency_s=made.latency_s,
            period_s=made.period_s,
            sustained_period_s=made.sustained_period_s,
            throughput_fps=1 / made.period_s,
            energy_j=made.energy_j,
            board_energy_j=made.board_energy_j,
            frames_per_joule=1 / made.energy_j,
            board_frames_per_joule=1 / made.board_energy_j,
            input_s=made.input_s,
            output_s=made.output_s,
            latency_with_io_s=made.input_s + made.latency_s + made.output_s,
            evaluated=evaluated,
            proven=found.proven,
            gap=found.gap,
        )

    def stage(self, stage: Stage, platform: Platform, work: _Work) -> StageRow:
        inside = sorted({self.unit_of[at.operator] for at in stage.placements})
        first, last = self.partition.units[inside[0]], self.partition.units[inside[-1]]
        return StageRow(
            processors=tuple(
                ProcessorRow(
                    name=platform.processors[p].name,
                    operating_point=point_row(platform.processors[p].point),
                    busy_s=work.busy_s[p],
                    transfer_s=work.transfer_s[p],
                    dynamic_energy_j=work.dynamic_energy_j[p],
                    static_power_w=work.costs.static_power_w[p],
                )
                for p in stage.processors
            ),
            first_operator=self.graph.operators[first.operators[0]].id,
            last_operator=self.graph.operators[last.operators[-1]].id,
            subgraphs=tuple(sorted({self.subgraph_of_unit[unit] for unit in inside})),
            time_s=stage.time_s,
        )


class _Work:
    """What each processor of a platform does for a frame, by its index."""

    def __init__(self, mapping: Mapping, costs: CostTable) -> None:
        self.costs = costs
        self.busy_s = [0.0] * len(costs.processors)
        self.transfer_s = [0.0] * len(costs.processors)
        self.dynamic_energy_j = [0.0] * len(costs.processors)
        for stage in mapping.stages:
            for at in stage.placements:
                self.busy_s[at.processor] += at.end_s - at.start_s
                self.dynamic_energy_j[at.processor] += costs.energy_j(at.operator, at.processor)
            for moved in stage.transfers:
                # else a pure delay, or a link that several share
                if moved.resource is not None and moved.resource < len(costs.processors):
                    self.transfer_s[moved.resource] += moved.end_s - moved.start_s
