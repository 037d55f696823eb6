"""front.json: the configurations worth showing, as a document with a published schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from parapipe import __version__
from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import Provenance
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.pipeline.configuration import Configuration, Stage
from parapipe.pipeline.explore import Exploration, Found
from parapipe.platform.platform import Platform

SCHEMA: Literal["parapipe/front/1"] = "parapipe/front/1"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class OperatingPointRow(_Record):
    """Where a processor's clock and supply stand."""

    frequency_hz: float
    voltage_v: float


class ProcessorRow(_Record):
    """A processor of a stage."""

    name: str
    operating_point: OperatingPointRow


class StageRow(_Record):
    """A stage of a configuration."""

    processors: tuple[ProcessorRow, ...]
    first_operator: str
    """Id of its first operator in the stored order."""
    last_operator: str
    """Id of its last operator in the stored order."""
    subgraphs: tuple[int, ...]
    """Numbers, from 1, of the subgraphs it runs, wholly or in part."""
    time_s: float


class ConfigurationRow(_Record):
    """A configuration and what it gives."""

    id: str
    kind: Literal["sequential", "pipe-only", "para-only", "hybrid"]
    names: tuple[str, ...]
    pareto: bool
    """On the front of latency, throughput and energy."""
    pareto_latency_throughput: bool
    """On the paper's front, of latency and throughput."""
    stages: tuple[StageRow, ...]
    drawing: str
    """The stages in one line, as in `big+little[1-9] │ gpu[10-11]`: processors and subgraphs. A
    subgraph cut between stages shows as `big[1-3…] │ gpu[…3-11]`."""
    latency_s: float
    period_s: float
    sustained_period_s: float
    throughput_fps: float
    energy_j: float
    board_energy_j: float
    frames_per_joule: float
    board_frames_per_joule: float
    input_s: float
    """Loading a frame; in none of the figures but `latency_with_io_s`."""
    output_s: float
    """Reading the result; in none of the figures but `latency_with_io_s`."""
    latency_with_io_s: float
    proven: bool
    """Whether every schedule is proven optimal in what its mapper proves."""
    gap: float
    """The largest gap among its schedules."""


class SubgraphEntry(_Record):
    """A subgraph of the partition."""

    number: int
    first_operator: str
    last_operator: str
    parallelism: int


class OperatorEntry(_Record):
    """An operator in the stored order."""

    id: str
    name: str
    type: str


class Share(_Record):
    """A share of operators, and of time over all processors."""

    operators: float
    time: float


class ProcessorCoverageRow(_Record):
    """Shares of one processor's operators by where their times come from."""

    measured: float
    fitted: float
    nominal: float


class CoverageRow(_Record):
    """Where the operator times come from."""

    measured: Share
    fitted: Share
    nominal: Share
    processors: dict[str, ProcessorCoverageRow]
    """Shares of the operators of each processor."""
    unmodelled: tuple[str, ...]
    """Operator types of which no MACs are known."""


class Options(_Record):
    """What the front was made with."""

    mapper: str
    granularity: Literal["onnx", "fused"]
    objectives: tuple[str, ...]
    schedules: str
    """What kind of schedules the search chose from."""
    proves: tuple[str, ...]
    """What `proven` and `gap` speak of."""
    time_limit_s: float
    seed: int
    resolution: float
    """Configurations that another one matches to within this share in every objective are left
    out of the front, unless they have a name or are on the paper's front."""


class FrontDocument(_Record):
    """The whole of front.json."""

    schema_version: Literal["parapipe/front/1"] = Field(alias="schema")
    parapipe: str
    """Version that wrote it."""
    model: str
    model_sha256: str
    platform: str
    options: Options
    operators: tuple[OperatorEntry, ...]
    subgraphs: tuple[SubgraphEntry, ...]
    configurations: tuple[ConfigurationRow, ...]
    absent: dict[str, str]
    """Kinds of configuration that do not exist here, and why."""
    coverage: CoverageRow


def front_document(
    graph: OperatorGraph,
    partition: Partition,
    platform: Platform,
    costs: CostTable,
    exploration: Exploration,
    *,
    mapper: str,
    energy: bool,
    time_limit_s: float,
    seed: int,
    resolution: float,
) -> FrontDocument:
    """Write an exploration down. Configurations are numbered by ascending latency."""
    rows = _Rows(graph, partition, platform)
    proves = {schedule.certificate.proves for schedule in exploration.schedules.values()}
    return FrontDocument(
        schema=SCHEMA,
        parapipe=__version__,
        model=graph.source.name,
        model_sha256=graph.source.sha256,
        platform=platform.name,
        options=Options(
            mapper=mapper,
            granularity=graph.granularity,
            objectives=("latency", "throughput", "energy")[: 3 if energy else 2],
            schedules="one per subgraph, processors and homes: the shortest that the mapper finds",
            proves=tuple(sorted(proves)),
            time_limit_s=time_limit_s,
            seed=seed,
            resolution=resolution,
        ),
        operators=tuple(
            OperatorEntry(id=operator.id, name=operator.name, type=operator.type)
            for operator in (graph.operators[v] for v in partition.order)
        ),
        subgraphs=rows.subgraphs(),
        configurations=tuple(
            rows.configuration(configuration_id(index, len(exploration.found)), found)
            for index, found in enumerate(exploration.found)
        ),
        absent=dict(exploration.absent),
        coverage=_coverage(costs),
    )


def configuration_id(index: int, count: int) -> str:
    """Return the id of the configuration at `index`, counted from 0, of `count`."""
    return f"c{index + 1:0{max(2, len(str(count)))}d}"


def draw(stages: Sequence[StageRow]) -> str:
    """Return the stages in one line; see `ConfigurationRow.drawing`."""
    drawn = []
    for i, stage in enumerate(stages):
        first, last = stage.subgraphs[0], stage.subgraphs[-1]
        before = "…" if i > 0 and stages[i - 1].subgraphs[-1] == first else ""
        after = "…" if i + 1 < len(stages) and stages[i + 1].subgraphs[0] == last else ""
        run = f"{first}" if first == last else f"{first}-{last}"
        names = "+".join(processor.name for processor in stage.processors)
        drawn.append(f"{names}[{before}{run}{after}]")
    return " │ ".join(drawn)


class _Rows:
    """Makes the rows of one front."""

    def __init__(self, graph: OperatorGraph, partition: Partition, platform: Platform) -> None:
        self.graph = graph
        self.partition = partition
        self.platform = platform
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

    def configuration(self, name: str, found: Found) -> ConfigurationRow:
        made: Configuration = found.configuration
        stages = tuple(self.stage(stage) for stage in made.stages)
        return ConfigurationRow(
            id=name,
            kind=made.kind,
            names=found.names,
            pareto=found.pareto,
            pareto_latency_throughput=found.pareto_latency_throughput,
            stages=stages,
            drawing=draw(stages),
            latency_s=made.latency_s,
            period_s=made.period_s,
            sustained_period_s=made.sustained_period_s,
            throughput_fps=made.throughput_fps,
            energy_j=made.energy_j,
            board_energy_j=made.board_energy_j,
            frames_per_joule=made.frames_per_joule,
            board_frames_per_joule=1 / made.board_energy_j,
            input_s=made.input_s,
            output_s=made.output_s,
            latency_with_io_s=made.input_s + made.latency_s + made.output_s,
            proven=made.proven,
            gap=made.gap,
        )

    def stage(self, stage: Stage) -> StageRow:
        units = self.partition.units[stage.first_unit : stage.last_unit + 1]
        numbers = self.subgraph_of_unit[stage.first_unit : stage.last_unit + 1]
        processors = [self.platform.processors[p] for p in stage.processors]
        return StageRow(
            processors=tuple(
                ProcessorRow(
                    name=processor.name,
                    operating_point=OperatingPointRow(
                        frequency_hz=processor.point.frequency_hz,
                        voltage_v=processor.point.voltage_v,
                    ),
                )
                for processor in processors
            ),
            first_operator=self.graph.operators[units[0].operators[0]].id,
            last_operator=self.graph.operators[units[-1].operators[-1]].id,
            subgraphs=tuple(sorted(set(numbers))),
            time_s=stage.time_s,
        )


def _coverage(costs: CostTable) -> CoverageRow:
    found = costs.coverage()

    def share(provenance: Provenance) -> Share:
        return Share(
            operators=getattr(found.overall.operators, provenance),
            time=getattr(found.overall.time, provenance),
        )

    return CoverageRow(
        measured=share("measured"),
        fitted=share("fitted"),
        nominal=share("nominal"),
        unmodelled=found.unmodelled,
        processors={
            name: ProcessorCoverageRow(
                measured=each.operators.measured,
                fitted=each.operators.fitted,
                nominal=each.operators.nominal,
            )
            for name, each in found.processors.items()
        },
    )
