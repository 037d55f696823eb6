"""How each number of a configuration follows from files: the plan's placements, priced anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose

from parapipe.cost.cost_table import CostTable, outer_bytes
from parapipe.cost.coverage import NoisyShare, coverage_of
from parapipe.cost.precision import Cast, tensor_move
from parapipe.cost.price import Provenance
from parapipe.documents.explanation_schema import (
    SCHEMA,
    CastRow,
    DerivationRow,
    ExplanationDocument,
    Figures,
    GivenRow,
    OperatorRow,
    PartRow,
    ProcessorExplained,
    ReasonRow,
    StageExplained,
    TimeSourceRow,
    TransferRow,
)
from parapipe.documents.figure_table import BY_FIELD, FIGURES, derive_figures
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.errors import FrontError
from parapipe.files.mistakes import KeyPath
from parapipe.front.critical_paths import busiest_resource, longest_path
from parapipe.front.limits import no_less_than_limits
from parapipe.front.memory_bound import memory_time, no_less, slowed
from parapipe.front.unchanged import ROUNDING, check_unchanged
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.launch_rules import graph_launches_s
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.platform.fields import (
    Expression,
    file_value,
    largest,
    named_value,
    total,
    travel_time,
)
from parapipe.platform.load import PlacedPlatform
from parapipe.version import __version__


def explain_configuration(
    row: ConfigurationRow,
    plan: Plan,
    *,
    graph: OperatorGraph,
    placed: PlacedPlatform,
    costs: CostTable,
    reasons: tuple[ReasonRow, ...] = (),
) -> ExplanationDocument:
    """Trace every number of a configuration to its source.

    Parameters
    ----------
    placed, costs
        The platform at the plan's operating points with the lines of its file, and the costs there.

    Raises
    ------
    FrontError
        If times have changed since the plan was written.
    """
    return _Tracer(row, plan, graph, placed, costs).document(reasons)


@dataclass(frozen=True, slots=True)
class _Tracer:
    row: ConfigurationRow
    plan: Plan
    graph: OperatorGraph
    placed: PlacedPlatform
    costs: CostTable

    def document(self, reasons: tuple[ReasonRow, ...]) -> ExplanationDocument:
        row, operators = self.row, tuple(self.operators())
        transfers, processors = tuple(self.transfers()), tuple(self.processors(operators))
        figures = self.figures(operators, processors)
        check_unchanged(row, self.plan, operators, transfers, figures)
        return ExplanationDocument.of(
            row,
            schema=SCHEMA,
            parapipe=__version__,
            model=self.plan.model.name,
            platform=self.plan.platform,
            platform_file=str(self.placed.file),
            reasons=reasons,
            doubt=(),
            what_if=None,
            figures=Figures(**{
                name: self.derivation_row(expression, unit, value=getattr(row, name))
                for name, (expression, unit) in figures.items()
            }, sustained_period_s=self.sustained(processors)),
            stages=tuple(self.stages()),
            processors=processors,
            operators=operators,
            transfers=transfers,
            evaluation=tuple(self.evaluation()),
            sources=self.sources(operators),
            noisy=self.noisy(operators),
        )  # fmt: skip

    @property
    def stage_of(self) -> Mapping[str, int]:
        """Number of each used processor's stage, from 1."""
        return {
            name: stage.index + 1
            for stage in self.plan.stages
            for p in stage.processors
            for name in (p.name, *(p.replicas or ()))
        }

    @property
    def replicas(self) -> Mapping[str, tuple[str, ...]]:
        """Processors that take turns on frames, by the name of each of them."""
        return {
            each: names for names in mapping_view(self.plan).replicas.values() for each in names
        }

    @property
    def interleaved(self) -> bool:
        """Whether times count from the start of a period, not from those of stages."""
        return mapping_view(self.plan).period_s is not None

    def key_path(self, p: int) -> KeyPath:
        """Return where a processor stands in the file, or what it is a part of."""
        return "processors", self.placed.platform.whole(p)

    def operators(self) -> Iterator[OperatorRow]:
        number = self.graph.producer  # operators are called as what they make
        begins = graph_launches_s(mapping_view(self.plan))
        for stage in self.plan.stages:
            entries = [(at, p.name) for p in stage.processors for at in p.operators]
            order = ((at.start_s, at.end_s, number[at.operator], name) for at, name in entries)
            for start_s, end_s, v, name in sorted(order):
                p = self.placed.platform.index(name)
                cost = self.costs.cost(v, p)
                if cost is None:
                    raise FrontError(
                        f"the platform has changed since {self.row.id} was written: {name} no "
                        f"longer runs '{self.graph.operators[v].id}'; map again"
                    )
                launch = None
                if self.graph.operators[v].id in begins:
                    processor = self.placed.platform.processors[p]
                    launch = file_value("graph launch", "s", processor, "launch", "graph_s")
                yield OperatorRow.of(
                    self.graph.operators[v],
                    stage=stage.index + 1,
                    processor=name,
                    start_s=start_s,
                    end_s=end_s,
                    time_s=cost.time_s + (launch.value if launch else 0.0),
                    energy_j=cost.energy_j,
                    launch=launch and self.derivation_row(launch, "s", self.key_path(p)),
                    data_type=cost.data_type,
                    parts=tuple(
                        PartRow.of(
                            part,
                            time=self.derivation_row(part.time, "s", self.key_path(p)),
                            energy=self.derivation_row(part.energy, "J", self.key_path(p)),
                        )
                        for part in cost.parts
                    ),
                )

    def transfers(self) -> Iterator[TransferRow]:
        platform = self.placed.platform
        for transfer in self.plan.transfers:
            pair = platform.index(transfer.source), platform.index(transfer.target)
            route = tensor_move(
                self.graph.tensors[transfer.tensor], platform, *pair, self.costs.working
            )
            yield TransferRow.of(
                transfer,
                stage=self.stage_of[transfer.target],
                time=self.derivation_row(route.time, "s", platform.link_path(*pair)),
                cast=self.cast(route.cast) if route.cast else None,
            )

    def cast(self, cast: Cast) -> CastRow:
        """Return a cast between two processors with its time."""
        return CastRow.of(
            cast,
            processor=self.placed.platform.names[cast.processor],
            time=self.derivation_row(cast.time, "s", self.key_path(cast.processor)),
        )

    def stages(self) -> Iterator[StageExplained]:
        for stage in self.plan.stages:
            plan = self.plan
            steps = busiest_resource(plan)[1] if self.interleaved else longest_path(plan, stage)
            time = total(
                named_value(
                    f"step {number}", step.time_s, "s", note=f"{step.kind} {step.name}".strip()
                )
                for number, step in enumerate(steps, start=1)
            )
            assert isclose(time.value, stage.time_s, rel_tol=1e-6), "the way has no gap"
            yield StageExplained(
                number=stage.index + 1,
                processors=tuple(
                    name for p in stage.processors for name in (p.name, *(p.replicas or ()))
                ),
                in_turn=any(p.replicas for p in stage.processors),
                time=self.derivation_row(time, "s", value=stage.time_s),
                steps=steps,
            )

    def processors(self, operators: Sequence[OperatorRow]) -> Iterator[ProcessorExplained]:
        for p, processor in enumerate(self.placed.platform.processors):
            if processor.name not in self.stage_of:
                continue
            turns = self.replicas.get(processor.name, (processor.name,))
            rows = [row for row in operators if row.processor == turns[0]]
            own = self.key_path(p)
            yield ProcessorExplained(
                name=processor.name,
                stage=self.stage_of[processor.name],
                operators=len(rows),
                busy_s=sum(row.time_s for row in rows) / len(turns),
                dynamic_energy_j=sum(row.energy_j for row in rows) / len(turns),
                frequency_hz=self.given_row(processor.frequency, own),
                voltage_v=self.given_row(processor.voltage, own),
                alpha_w_per_v2_hz=self.given_row(processor.alpha, own),
                static_power_w=self.derivation_row(processor.static_power, "W", own),
            )

    def figures(
        self, operators: Sequence[OperatorRow], processors: Sequence[ProcessorExplained]
    ) -> dict[str, tuple[Expression, str]]:
        """Return how the figures follow from stages, operators and each other, and their units."""
        platform, graph = self.placed.platform, self.graph
        stages = [named_value(f"stage {s.index + 1}", s.time_s, "s") for s in self.plan.stages]
        intervals = [
            time / named_value(f"processors in turn on stage {s.index + 1}", len(turns), "")
            if (turns := self.replicas.get(s.processors[0].name))
            else time
            for s, time in zip(self.plan.stages, stages, strict=True)
        ]
        memory = memory_time(self.plan, graph, platform, self.costs)
        period = named_value("period", self.row.period_s, "s")
        energy = named_value("energy", self.row.energy_j, "J")
        arrival_s = self.row.arrival_s
        frame = named_value("time between frames", arrival_s, "s") if arrival_s else period
        dynamic = [
            named_value(f"operators on {p.name}", p.dynamic_energy_j, "J") for p in processors
        ]
        static = [named_value(f"static {p.name}", p.static_power_w.value, "W") for p in processors]
        idle = file_value("idle power", "W", platform, "board", "idle_power_w")
        first, last = map(platform.whole, self.outer_processors(operators))
        precision, processors_of = self.costs.precision, platform.processors
        loaded = outer_bytes(graph, graph.loaded, processors_of[first], precision)
        read = outer_bytes(graph, graph.results, processors_of[last], precision)
        stated_figures = {
            each.field: named_value(each.name, getattr(self.row, each.field), each.si)
            for each in FIGURES
            if hasattr(self.row, each.field)
        }
        if arrival_s:
            stated_figures["arrival_s"] = frame
        derived_figures = derive_figures(stated_figures, Figures)
        repeats = self.interleaved
        latency = self.interleaved_latency(period) if repeats else no_less(total(stages), memory)
        return {
            "latency_s": (slowed(latency, self.plan, "latency_s"), "s"),
            "period_s": (no_less_than_limits(no_less(largest(*intervals), memory), self.plan), "s"),
            "energy_j": (total(dynamic) + frame * total(static), "J"),
            "board_energy_j": (energy + frame * idle, "J"),
            "input_s": (travel_time(platform, loaded, "processors", first, "input"), "s"),
            "output_s": (travel_time(platform, read, "processors", last, "output"), "s"),
            **{name: (rule, BY_FIELD[name].si) for name, rule in derived_figures.items()},
        }

    def interleaved_latency(self, period: Expression) -> Expression:
        """Return the latency of a frame among others: from its first start to its last end."""
        placed = [at for s in self.plan.stages for p in s.processors for at in p.operators]
        first = min(placed, key=lambda at: (at.lag, at.start_s))
        last = max(placed, key=lambda at: at.lag * period.value + at.end_s)
        lags = named_value("periods before the last operator", last.lag - first.lag)
        end, start = (
            named_value("its end", last.end_s, "s"),
            named_value("first start", first.start_s, "s"),
        )
        return lags * period + end - start

    def sustained(self, processors: Sequence[ProcessorExplained]) -> DerivationRow:
        """Return the bound that can be worked out by hand; the longest cycle cannot."""
        period_s = self.row.sustained_period_s
        memory = memory_time(self.plan, self.graph, self.placed.platform, self.costs)
        busy = (named_value(f"operators on {p.name}", p.busy_s, "s") for p in processors)
        bound = no_less(largest(*busy), memory)
        row = self.derivation_row(bound, "s", value=period_s)
        if isclose(bound.value, period_s, rel_tol=ROUNDING):
            return row
        prefixed = {"rule": f"at least {row.rule}", "numbers": f"at least {row.numbers}"}
        return row.model_copy(update=prefixed)

    def outer_processors(self, operators: Sequence[OperatorRow]) -> tuple[int, int]:
        """Return the processors that load the frame and hold the result."""
        graph, index = self.graph, self.placed.platform.index
        readers = {v for name in graph.inputs for v in graph.consumers.get(name, ())}
        loaders = {graph.operators[v].id for v in readers}
        last = graph.operators[graph.producer[graph.outputs[-1]]].id
        loader = next(row.processor for row in operators if row.id in loaders or not loaders)
        return index(loader), index(next(row.processor for row in operators if row.id == last))

    def evaluation(self) -> Iterator[GivenRow]:
        """Yield what the final evaluation goes by."""
        platform = self.placed.platform
        if platform.evaluation is not None:
            for key in ("hand_over_share", "contention"):
                yield self.given_row(file_value(key, "", platform, "evaluation", key))
            key = "bandwidth_bytes_per_s"
            yield self.given_row(file_value("memory bandwidth", "B/s", platform, "memory", key))

    def sources(self, operators: Iterable[OperatorRow]) -> tuple[TimeSourceRow, ...]:
        totals: dict[tuple[Provenance, str], tuple[int, float]] = {}
        for part in (part for row in operators for part in row.parts):
            files = (each.file for each in part.time.givens if each.file)
            key = part.provenance, next(files, str(self.placed.file))
            count, time_s = totals.get(key, (0, 0.0))
            totals[key] = count + 1, time_s + part.time.value
        return tuple(
            TimeSourceRow(provenance=provenance, source=source, operators=count, time_s=time_s)
            for (provenance, source), (count, time_s) in sorted(
                totals.items(), key=lambda item: -item[1][1]
            )
        )

    def noisy(self, operators: Iterable[OperatorRow]) -> NoisyShare:
        number, index = self.graph.producer, self.placed.platform.index
        costs = (self.costs.cost(number[row.id], index(row.processor)) for row in operators)
        parts = [part for cost in costs if cost is not None for part in cost.parts]
        noisy = coverage_of({"": parts}).noisy
        assert noisy is not None
        return noisy

    def derivation_row(
        self, expression: Expression, unit: str, own: KeyPath = (), *, value: float | None = None
    ) -> DerivationRow:
        """Return an expression of a section of the file, or `value` as it stands in the front."""
        return DerivationRow(
            value=expression.value if value is None else value,
            unit=unit,
            rule=expression.rule,
            numbers=expression.numbers,
            givens=tuple(self.given_row(each, own) for each in expression.givens),
        )

    def given_row(self, expression: Expression, own: KeyPath = ()) -> GivenRow:
        origin = expression.origin
        assert origin is not None, "it has a name"
        place = self.placed.place((*own, *origin.key)) if origin.key else None
        return GivenRow(
            name=origin.name,
            value=expression.value,
            unit=origin.unit,
            file=place.file if place else origin.file or None,
            line=place.line if place else origin.line or None,
            key=place.key if place else None,
            source=place.source if place else None,
            note=origin.note if isinstance(origin.note, str) else origin.note(),
        )
