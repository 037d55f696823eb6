"""Where each number of a configuration comes from: the plan's placements, priced once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isclose

from parapipe.cost.cost_table import CostTable
from parapipe.cost.derivation import (
    Derivation,
    Given,
    dynamic_coefficient,
    energy_of,
    operating_point,
    port_of,
    static_power_of,
    time_of,
    transfer_of,
)
from parapipe.cost.price import OperatorCost
from parapipe.errors import FrontError
from parapipe.files.listing import listed
from parapipe.formats.explanation_schema import (
    SCHEMA,
    DerivationRow,
    ExplanationDocument,
    Figures,
    GivenRow,
    OperatorRow,
    PartRow,
    ProcessorExplained,
    ReasonRow,
    StageExplained,
    StepRow,
    TimeSourceRow,
    TransferRow,
)
from parapipe.formats.front_schema import ConfigurationRow
from parapipe.front.longest_way import longest_way
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.schema import Plan
from parapipe.platform.places import PlacedPlatform
from parapipe.version import __version__

_ROUNDING = 1e-9


def explanation(
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
    row, plan
        The configuration in the front, and its plan.
    placed, costs
        The platform at the plan's operating points with the lines of its file, and the costs there.
    reasons
        Why it is what it is.

    Raises
    ------
    FrontError
        If times have changed since the plan was written.
    """
    return _Explainer(row, plan, graph, placed, costs, reasons).document()


def only(document: ExplanationDocument, wanted: Sequence[str]) -> ExplanationDocument:
    """Return an explanation with some of the operators only.

    Parameters
    ----------
    wanted
        Ids, or names of ONNX nodes, those of fused ones included.

    Raises
    ------
    FrontError
        If there are no such operators; all of them are named.
    """
    called = {
        row.id: {row.id, row.name, *(part.operator for part in row.parts)}
        for row in document.operators
    }
    unknown = [f"'{name}'" for name in wanted if not any(name in own for own in called.values())]
    if unknown:
        raise FrontError(
            f"{document.id} has no operator {', '.join(unknown)}; --sources lists them all"
        )
    kept = tuple(row for row in document.operators if called[row.id].intersection(wanted))
    return document.model_copy(update={"operators": kept})


@dataclass(frozen=True, slots=True)
class _Explainer:
    row: ConfigurationRow
    plan: Plan
    graph: OperatorGraph
    placed: PlacedPlatform
    costs: CostTable
    reasons: tuple[ReasonRow, ...]

    def document(self) -> ExplanationDocument:
        operators = tuple(self.operators())
        stages = tuple(self.stages())
        processors = tuple(self.processors(operators))
        document = ExplanationDocument(
            schema=SCHEMA,
            parapipe=__version__,
            model=self.plan.model.name,
            platform=self.plan.platform,
            platform_file=str(self.placed.file),
            id=self.row.id,
            names=self.row.names,
            drawing=self.row.drawing,
            reasons=self.reasons,
            what_if=None,
            figures=self.figures(stages, processors, operators),
            stages=stages,
            processors=processors,
            operators=operators,
            transfers=tuple(self.transfers()),
            evaluated=self.row.evaluated,
            evaluation=tuple(self.evaluation()),
            sources=self.sources(operators),
        )
        self.check(document)
        return document

    def check(self, document: ExplanationDocument) -> None:
        """Raise if the numbers are no longer those of the front and the plan."""
        figures, row = document.figures, self.row
        power_w = sum(p.static_power_w.value for p in document.processors)
        energy_j = sum(o.energy_j for o in document.operators) + row.period_s * power_w
        now = [
            *((f"'{o.id}' on {o.processor}", o.end_s - o.start_s, o.time_s)
              for o in document.operators),
            *((f"'{t.tensor}' to {t.target}", planned.time_s, t.time.value)
              for t, planned in zip(document.transfers, self.plan.transfers, strict=True)),
            ("loading a frame", row.input_s, figures.input_s.value),
            ("reading the result", row.output_s, figures.output_s.value),
            ("energy_j", row.energy_j, energy_j),
            ("board_energy_j", row.board_energy_j,
             energy_j + row.period_s * self.costs.idle_power_w),
        ]  # fmt: skip
        changed = [
            f"{name} was {_milli(name, before)} and is {_milli(name, after)}"
            for name, before, after in now
            if not isclose(before, after, rel_tol=1e-6, abs_tol=_ROUNDING)
        ]
        if changed:
            raise FrontError(
                f"the platform or a profile has changed since {row.id} was written: "
                f"{listed(changed)}; map again"
            )

    def index(self, name: str) -> int:
        return self.placed.platform.index(name)

    def operators(self) -> Iterator[OperatorRow]:
        numbers = {operator.id: v for v, operator in enumerate(self.graph.operators)}
        for stage in self.plan.stages:
            entries = [(at, p.name) for p in stage.processors for at in p.operators]
            order = ((at.start_s, at.end_s, numbers[at.operator], name) for at, name in entries)
            for start_s, end_s, v, name in sorted(order):
                p = self.index(name)
                cost = self.costs.cost(v, p)
                if cost is None:
                    raise FrontError(
                        f"the platform has changed since {self.row.id} was written: {name} no "
                        f"longer runs '{self.graph.operators[v].id}'; map again"
                    )
                yield OperatorRow(
                    id=self.graph.operators[v].id,
                    name=self.graph.operators[v].name,
                    type=self.graph.operators[v].type,
                    stage=stage.index + 1,
                    processor=name,
                    start_s=start_s,
                    end_s=end_s,
                    time_s=cost.time_s,
                    energy_j=cost.energy_j,
                    parts=tuple(self.parts(cost, p)),
                )

    def parts(self, cost: OperatorCost, p: int) -> Iterator[PartRow]:
        processor = self.placed.platform.processors[p]
        for part in cost.parts:
            yield PartRow(
                operator=part.operator,
                type=part.type,
                provenance=part.provenance,
                source=part.source,
                time=self.derived(time_of(part, processor, p)),
                energy=self.derived(energy_of(part, processor, p)),
            )

    def transfers(self) -> Iterator[TransferRow]:
        stage_of = {p.name: stage.index + 1 for stage in self.plan.stages for p in stage.processors}
        for transfer in self.plan.transfers:
            p, q = self.index(transfer.source), self.index(transfer.target)
            found = transfer_of(self.placed.platform, transfer.size_bytes, p, q)
            yield TransferRow.model_validate(
                {
                    "tensor": transfer.tensor,
                    "from": transfer.source,
                    "to": transfer.target,
                    "stage": stage_of[transfer.target],
                    "size_bytes": transfer.size_bytes,
                    "time": self.derived(found),
                }
            )

    def stages(self) -> Iterator[StageExplained]:
        for stage in self.plan.stages:
            steps = longest_way(self.plan, stage)
            times_s = [step.time_s for step in steps]
            terms = [
                Given(f"step {number}", step.time_s, "s", note=f"{step.kind} {step.name}".strip())
                for number, step in enumerate(steps, start=1)
            ]
            assert isclose(sum(times_s), stage.time_s, rel_tol=1e-6), "the way has no gap"
            yield StageExplained(
                number=stage.index + 1,
                processors=tuple(p.name for p in stage.processors),
                time=self.derived(_sum(stage.time_s, "s", terms)),
                steps=tuple(
                    StepRow(kind=s.kind, name=s.name, processor=s.processor, time_s=s.time_s)
                    for s in steps
                ),
            )

    def processors(self, operators: Sequence[OperatorRow]) -> Iterator[ProcessorExplained]:
        used = {p.name: stage.index + 1 for stage in self.plan.stages for p in stage.processors}
        for p, processor in enumerate(self.placed.platform.processors):
            if processor.name not in used:
                continue
            own = [row for row in operators if row.processor == processor.name]
            voltage, frequency = operating_point(processor, p)
            yield ProcessorExplained(
                name=processor.name,
                stage=used[processor.name],
                operators=len(own),
                busy_s=sum(row.time_s for row in own),
                dynamic_energy_j=sum(row.energy_j for row in own),
                frequency_hz=self.given(frequency),
                voltage_v=self.given(voltage),
                alpha_w_per_v2_hz=self.given(dynamic_coefficient(processor, p)),
                static_power_w=self.derived(static_power_of(processor, p)),
            )

    def figures(
        self,
        stages: Sequence[StageExplained],
        processors: Sequence[ProcessorExplained],
        operators: Sequence[OperatorRow],
    ) -> Figures:
        row = self.row
        each = [Given(f"stage {stage.number}", stage.time.value, "s") for stage in stages]
        period = Given("period", row.period_s, "s")
        idle = Given("idle power", self.costs.idle_power_w, "W", ("board", "idle_power_w"))
        energy = Given("energy", row.energy_j, "J")
        dynamic = [Given(f"operators on {p.name}", p.dynamic_energy_j, "J") for p in processors]
        static = [Given(f"static {p.name}", p.static_power_w.value, "W") for p in processors]
        joules = " + ".join(f"{{{given.name}}}" for given in dynamic)
        watts = " + ".join(f"{{{given.name}}}" for given in static)
        derivations = {
            "latency_s": _sum(row.latency_s, "s", each),
            "period_s": Derivation(row.period_s, "s", _largest(each), tuple(each)),
            "sustained_period_s": _sustained(row, processors),
            "throughput_fps": Derivation(row.throughput_fps, "1/s", "1 / {period}", (period,)),
            "energy_j": Derivation(
                row.energy_j, "J", f"{joules} + {{period}} * ({watts})", (*dynamic, period, *static)
            ),
            "board_energy_j": Derivation(
                row.board_energy_j, "J", "{energy} + {period} * {idle power}",
                (energy, period, idle),
            ),
            **self.ports(operators),
        }  # fmt: skip
        return Figures(**{name: self.derived(found) for name, found in derivations.items()})

    def ports(self, operators: Sequence[OperatorRow]) -> dict[str, Derivation]:
        """Return how loading a frame follows, and how reading the result."""
        graph, processors = self.graph, self.placed.platform.processors
        readers = {v for name in graph.inputs for v in graph.consumers.get(name, ())}
        loaders = {graph.operators[v].id for v in readers}
        last = graph.operators[graph.producer[graph.outputs[-1]]].id
        first = next(row for row in operators if row.id in loaders or not loaders)
        p = self.index(first.processor)
        q = self.index(next(row.processor for row in operators if row.id == last))
        loaded = sum(graph.tensors[name].size_bytes for name in graph.inputs)
        read = sum(graph.tensors[name].size_bytes for name in graph.outputs)
        return {
            "input_s": port_of(processors[p].input, loaded, ("processors", p, "input")),
            "output_s": port_of(processors[q].output, read, ("processors", q, "output")),
        }

    def evaluation(self) -> Iterator[GivenRow]:
        """Yield what the final evaluation goes by."""
        platform = self.placed.platform
        known = platform.evaluation
        if known is None:
            return
        for name, value, unit in (
            ("hand_over_share", known.hand_over_share, ""),
            ("contention", known.contention, ""),
        ):
            yield self.given(Given(name, value, unit, ("evaluation", name)))
        bandwidth = platform.memory.bandwidth_bytes_per_s
        key = ("memory", "bandwidth_bytes_per_s")
        yield self.given(Given("memory bandwidth", bandwidth, "B/s", key))

    def sources(self, operators: Iterable[OperatorRow]) -> tuple[TimeSourceRow, ...]:
        found: dict[tuple[str, str], tuple[int, float]] = {}
        for row in operators:
            for part in row.parts:
                key = (part.provenance, self.file_of(part))
                count, time_s = found.get(key, (0, 0.0))
                found[key] = (count + 1, time_s + part.time.value)
        return tuple(
            TimeSourceRow.model_validate(
                {"provenance": key[0], "source": key[1], "operators": count, "time_s": time_s}
            )
            for key, (count, time_s) in sorted(found.items(), key=lambda item: -item[1][1])
        )

    def file_of(self, part: PartRow) -> str:
        files = [given.file for given in part.time.givens if given.file]
        return files[0] if files else str(self.placed.file)

    def derived(self, found: Derivation) -> DerivationRow:
        return DerivationRow(
            value=found.value,
            unit=found.unit,
            rule=found.rule,
            numbers=found.numbers,
            givens=tuple(map(self.given, found.givens)),
        )

    def given(self, given: Given) -> GivenRow:
        place = self.placed.place(given.key) if given.key else None
        return GivenRow(
            name=given.name,
            value=given.value,
            unit=given.unit,
            file=place.file if place else given.file or None,
            line=place.line if place else given.line or None,
            key=place.key if place else None,
            source=place.source if place else None,
            note=given.note,
        )


def _milli(name: str, value: float) -> str:
    return f"{value * 1e3:.6g} {'mJ' if name.endswith('energy_j') else 'ms'}"


def _sum(value: float, unit: str, terms: Sequence[Given]) -> Derivation:
    return Derivation(value, unit, " + ".join(f"{{{term.name}}}" for term in terms), tuple(terms))


def _sustained(row: ConfigurationRow, processors: Sequence[ProcessorExplained]) -> Derivation:
    """Return the bound that can be redone by hand; the longest cycle cannot."""
    busy = tuple(Given(f"operators on {p.name}", p.busy_s, "s") for p in processors)
    exact = isclose(max(p.busy_s for p in processors), row.sustained_period_s, rel_tol=_ROUNDING)
    template = _largest(busy) if exact else f"at least {_largest(busy)}"
    return Derivation(row.sustained_period_s, "s", template, busy)


def _largest(terms: Sequence[Given]) -> str:
    named = ", ".join(f"{{{term.name}}}" for term in terms)
    return named if len(terms) == 1 else f"max({named})"
