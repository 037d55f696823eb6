"""An evaluation: what `parapipe evaluate --json` prints; published as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from parapipe.cost.block_points import BlockCosts, block_runs_of, read_points
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.coverage import CoverageRow, coverage_of
from parapipe.cost.measured_network import costs_as_run, measured_networks, recognise
from parapipe.cost.price import PartCost
from parapipe.cost.pricing import View
from parapipe.cost.profile import Profile
from parapipe.documents.co_run_rows import CoRunCostRow
from parapipe.documents.doubt import IntervalsRow, MediansRow, intervals, medians
from parapipe.errors import AssignmentError
from parapipe.files.record import Row, without_none
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import assignment_of_file, assignment_of_order, load_assignment
from parapipe.mappings.evaluate import EvaluatedStage, evaluate, priced_parts
from parapipe.platform.divided import variant_with
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.search.options import DRAWS
from parapipe.uncertainty.causes import Draws
from parapipe.uncertainty.samples import figures_in_draws, front_of_samples
from parapipe.version import __version__

SCHEMA: Literal["parapipe/evaluation/1"] = "parapipe/evaluation/1"


class EvaluatedStageRow(Row):
    """A stage of the mapping."""

    processors: tuple[str, ...]
    """Names of those that run at least one operator, in the platform's order."""
    time_s: float
    """One frame through it, what it fetches from earlier stages included, loading it not."""
    work_s: float
    """Time of its operators, added up over its processors."""
    contended_time_s: float
    """The time while all other stages use the shared memory too."""
    dynamic_energy_j: float
    """Joules of its operators, without the static part."""
    operators: int
    """How many operators it runs."""
    first_operator: str
    """Id of the operator that starts first."""
    last_operator: str
    """Id of the operator that starts last."""
    blocks: tuple[int, ...]
    """First and last block of the measured network; empty for other models."""
    shared_processor: bool
    """Whether another stage runs on one of its processors too."""


class SequentialRow(Row):
    """One frame at a time, processors switched in turn."""

    energy_j: float
    """Joules of the processors: those of a stage while it runs."""
    board_energy_j: float
    """The same with the board's idle power."""


class SourceRow(Row):
    """Where some of the operators' times come from."""

    source: str
    """In words."""
    operators: int
    """How many single operators."""
    time_s: float
    """Their seconds."""


class EvaluationDocument(Row):
    """A mapping and what it takes."""

    schema_: Literal["parapipe/evaluation/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that made it."""
    model: str
    """Path or zoo name, as given."""
    platform: str
    """Name of the platform."""
    network: str | None
    """The measured network that the model is, if it is one."""
    order: str | None
    """Letters of the blocks, if they were given."""
    points: str | None = None
    """Megahertz of each block, if they were given."""
    view: Literal["deployed", "as-measured"]
    """Whether operators that a runtime folds into others are free, or cost what they did."""
    precision: Precision
    """What the model is priced in: as it stands, or as after conversion to this type."""
    latency_s: float
    """One frame, processors switched in turn: the sum of the stages."""
    input_s: float
    """Loading the frame, not in the latency."""
    output_s: float
    """Reading the result, not in the latency."""
    stages: tuple[EvaluatedStageRow, ...]
    """First to last."""
    longest_stage_s: float
    """The longest stage: the period as the paper has it."""
    period_s: float
    """Time between frames that can be kept up: the longest stage, or the time that a processor
    which several stages share works for a frame."""
    sustained_period_s: float
    """What an executor with one thread per processor and two slots per channel reaches, if stages
    do not contend for the memory: the maximum cycle ratio of the event graph."""
    throughput_fps: float
    """Reciprocal of the period."""
    shared_processor: tuple[str, ...]
    """Processors that several stages share."""
    energy_j: float
    """Joules of the processors per frame at that period."""
    board_energy_j: float
    """The same with the board's idle power."""
    sequential: SequentialRow
    """Energy of one frame at a time."""
    co_run: CoRunCostRow | None = None
    """What it would take if its processors did not slow each other down; none if the platform does
    not say how much they do."""
    intervals: IntervalsRow | None = None
    """In which figures lie in nine of ten draws of the costs; none in older documents."""
    medians: MediansRow | None = None
    """Figures in the middle of these draws; none in older documents."""
    coverage: CoverageRow
    """Where the operator times come from, by number and by time."""
    sources: tuple[SourceRow, ...]
    """The same in words, one source after the other."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what co-runs cost where nothing is known of them."""
        return without_none(write(self), "co_run")


def evaluate_assignment(
    graph: OperatorGraph,
    platform: Platform,
    *,
    assignment: Path | None,
    order: str | None,
    points: str | None = None,
    view: View | None = None,
    profiles: Sequence[Profile] | None = None,
    precision: Precision | None = None,
) -> EvaluationDocument:
    """Price an assignment file, or an order of a measured network's blocks.

    Parameters
    ----------
    points
        With an order: an operating point for each block, as for `read_points`.
    profiles
        In place of all that was measured on the platform.
    precision
        As for `build_cost_table`.

    Raises
    ------
    AssignmentError
        If it does not fit, or the order is of a network that was not measured.
    CostError
        As for `build_cost_table`.
    """
    file = None if assignment is None else load_assignment(assignment)
    if file is not None:
        platform = variant_with(platform, file.processors)
    measured = platform.profile_name if points is None else block_runs_of(platform).blocks_of
    networks = () if profiles else measured_networks(measured)
    network = recognise(graph, networks)
    pricing: View = view or ("as-measured" if network and points is None else "deployed")
    costs = build_cost_table(graph, platform, profiles=profiles, view=pricing, precision=precision)
    # Rows are the network's own times only where all that ran on the board is there as it ran.
    whole = pricing == "as-measured" and costs.precision == "model" and points is None
    as_run = network if whole else None
    if as_run:
        costs = costs_as_run(costs, graph, platform, as_run)
    blocks = network.blocks_of(graph) if network else None
    if file is not None:
        placement = assignment_of_file(
            file, str(assignment), graph=graph, partition=partition(graph), names=costs.processors
        )
    elif blocks is not None:
        placement = assignment_of_order(
            order or "", graph=graph, blocks=blocks, names=platform.names
        )
    else:
        measured_names = ", ".join(each.name for each in networks)
        choice = f"known are {measured_names}" if networks else "none was"
        raise AssignmentError(
            f"'{graph.source.name}' has no blocks that were measured on '{platform.name}' "
            f"({choice}); give `assignment` in place of `order`"
        )
    if points is not None and blocks is not None:
        on = dict(zip(blocks, placement.processors, strict=True))
        chosen = read_points(points, [on[block] for block in range(1 + max(blocks))], platform)
        costs = BlockCosts(graph, platform, blocks, view=pricing, precision=precision).at(chosen)
    mapping = mapping_of(graph, platform, costs, placement, blocks=blocks if as_run else None)
    evaluated = evaluate(mapping, graph, costs)
    parts = priced_parts(mapping, costs)
    names = [operator.id for operator in graph.operators]
    samples = front_of_samples(
        [figures_in_draws(mapping, evaluated, costs, names, Draws(DRAWS, seed=0))]
    )
    return EvaluationDocument.of(
        evaluated,
        schema=SCHEMA,
        parapipe=__version__,
        model=graph.source.name,
        platform=platform.name,
        network=network.network.name if network else None,
        order=order,
        points=points,
        view=pricing,
        precision=costs.precision,
        stages=tuple(_stage_row(stage, graph, platform, blocks) for stage in evaluated.stages),
        shared_processor=tuple(
            platform.names[p] for p, lags in mapping.lags.items() if len(lags) > 1
        ),
        sequential=SequentialRow(
            energy_j=evaluated.sequential_energy_j,
            board_energy_j=evaluated.sequential_board_energy_j,
        ),
        co_run=CoRunCostRow.of_evaluated(evaluated),
        intervals=intervals(samples)[0],
        medians=medians(samples)[0],
        coverage=coverage_of(parts),
        sources=_source_rows(part for some in parts.values() for part in some),
    )


def _stage_row(
    stage: EvaluatedStage, graph: OperatorGraph, platform: Platform, blocks: Sequence[int] | None
) -> EvaluatedStageRow:
    stage_blocks = [blocks[v] for v in stage.operators] if blocks else []
    return EvaluatedStageRow.of(
        stage,
        processors=tuple(platform.names[p] for p in stage.processors),
        operators=len(stage.operators),
        first_operator=graph.operators[stage.operators[0]].id,
        last_operator=graph.operators[stage.operators[-1]].id,
        blocks=(min(stage_blocks), max(stage_blocks)) if stage_blocks else (),
    )


def _source_rows(parts: Iterable[PartCost]) -> tuple[SourceRow, ...]:
    """Return operators (parts counted singly) and seconds by source of the price."""
    totals: dict[str, tuple[int, float]] = {}
    for part in parts:
        count, time_s = totals.get(part.source, (0, 0.0))
        totals[part.source] = (count + 1, time_s + part.time_s)
    return tuple(
        SourceRow(source=source, operators=count, time_s=time_s)
        for source, (count, time_s) in sorted(totals.items())
    )
