"""Prices of a graph's operators on a platform, each in the type that a processor computes it in."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from parapipe.cost.clock import time_at_clock
from parapipe.cost.measured_source import MeasuredSource, Subject, subject_of
from parapipe.cost.precision import CHAINS, cast_operator, cast_time, type_there, types_of
from parapipe.cost.price import OperatorCost, PartCost, price, price_fused, without_launch
from parapipe.cost.profile import Profile
from parapipe.cost.signature import type_computed_in
from parapipe.cost.spread import nominal_spread
from parapipe.errors import CostError
from parapipe.files.mistakes import listed
from parapipe.graph.data_types import CONVERTIBLE_TYPES, convert_graph
from parapipe.graph.operator_graph import Operator, OperatorGraph, Tensor
from parapipe.graph.quantised import DEQUANTISES, QUANTISES
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.platform.processor import Processor
from parapipe.platform.support import Refusal

View = Literal["deployed", "as-measured"]
Row = tuple[OperatorCost | Refusal, ...]


def outer_type(tensor: Tensor, processor: Processor, precision: Precision) -> str:
    """Return the type of a graph input or output as a processor takes or gives it."""
    if tensor.dtype in processor.data_types:
        return tensor.dtype
    return type_there(tensor.dtype, next(iter(types_of(processor, precision)), None))


def folded_into(operator: Operator) -> tuple[Operator, ...]:
    """Return the operators that are folded into the constants of this one or of its parts."""
    holders = (operator, *operator.parts)
    return tuple({part.id: part for holder in holders for part in holder.folded}.values())


class Pricing:
    """Prices a graph's operators and collects those that have no price."""

    def __init__(
        self,
        graph: OperatorGraph,
        platform: Platform,
        profiles: tuple[Profile, ...],
        view: View,
        precision: Precision,
        *,
        measured: bool = True,
    ) -> None:
        self.measured = measured
        self.graph = graph
        self.platform = platform
        clocks_hz = {p.name: p.clock.default_frequency_hz for p in platform.processors}
        self.sources = tuple(MeasuredSource(profile, clocks_hz) for profile in profiles)
        self.view = view
        self.precision = precision
        self.graphs: dict[str | None, OperatorGraph] = {None: graph}
        self.singles: dict[tuple[object, ...], PartCost] = {}
        self.fused: dict[tuple[object, ...], PartCost | None] = {}
        self.rows: dict[object, tuple[tuple[str, ...], Row]] = {}
        self.missing: dict[tuple[str, str], list[str]] = {}
        self.nowhere: dict[tuple[str, str], list[str]] = {}
        self.able: set[str] = set()  # processors left out that run some of these

    def row(self, v: int) -> Row:
        """Return the operator's cost, or why there is none, for each processor."""
        operator = self.graph.operators[v]
        # a quantised operator is priced as one, or as its parts where it runs dequantised
        priced = (operator, *operator.parts, *folded_into(operator))
        names = tuple(each.name for each in priced)
        content = tuple(_content_of(each, self.graph) for each in priced)
        if content in self.rows:  # networks repeat their operators
            before, row = self.rows[content]
            row = _renamed(row, dict(zip(before, names, strict=True)))
        else:
            subjects: dict[str | None, Sequence[Subject]] = {}
            row = tuple(self._entry(v, p, subjects) for p in self.platform.processors)
            costs = [entry for entry in row if isinstance(entry, OperatorCost)]
            # what is said of casts and of missing prices names tensors and operators
            if not self.missing and all(cost.data_type is None for cost in costs):
                self.rows[content] = names, row
        if all(isinstance(entry, Refusal) for entry in row):
            reasons = ", ".join(dict.fromkeys(str(entry) for entry in row))
            self.nowhere.setdefault((operator.type, reasons), []).append(f"'{operator.name}'")
            self.able |= {
                p.name for p in self.platform.excluded if self.type_of(v, p, {})[1] is None
            }
        return row

    def _entry(
        self, v: int, processor: Processor, subjects: dict[str | None, Sequence[Subject]]
    ) -> OperatorCost | Refusal:
        """Return the cost in the first type in which the processor runs the operator."""
        if processor.divided_into:
            parts = listed(processor.divided_into)
            return Refusal(processor.name, f"{processor.name} is divided into {parts}")
        dtype, reason = self.type_of(v, processor, subjects)
        if reason is not None:
            return self._dequantised(self.graph.operators[v], processor) or reason
        casts = self._casts(self.graph.operators[v], processor, dtype) if dtype else []
        graph = self._converted_graph(dtype)
        folded = folded_into(graph.operators[v]) if self.view == "as-measured" else ()
        extra = [subject_of(part, graph) for part in folded]
        cost = self._cost(subjects[dtype], extra, processor, casts, dtype)
        return cost or Refusal(processor.name, "it has no price")

    def type_of(
        self, v: int, processor: Processor, subjects: dict[str | None, Sequence[Subject]]
    ) -> tuple[str | None, Refusal | None]:
        """Return the first type in which the processor runs an operator, or why it does in none.

        The type is None if it is the model's own. `subjects` keeps what was looked at, by type.
        """
        operator, refusal = self.graph.operators[v], None
        chain = types_of(processor, self.precision) if is_converted(operator, self.graph) else ()
        for dtype in chain or (None,):
            if dtype not in subjects:
                graph = self._converted_graph(dtype)
                subjects[dtype] = [subject_of(part, graph) for part in graph.operators[v].singles]
            reason = _refusal_of(subjects[dtype], processor, self.graph.tensors)
            if reason is None:
                return dtype, None
            refusal = refusal or reason
        return None, refusal

    def _dequantised(self, operator: Operator, processor: Processor) -> OperatorCost | None:
        """Return the cost of a quantised operator as its nodes stand, in floating point.

        Runtimes run it so on a processor that does not compute with integers. Only one made of
        DequantizeLinear and QuantizeLinear can run so; both are element-wise work.
        """
        borders = (DEQUANTISES, QUANTISES)
        inner = [part for part in operator.parts if part.type not in borders]
        if not operator.computes_in or len(inner) == len(operator.parts):
            return None
        within = [subject_of(part, self.graph) for part in inner]
        if _refusal_of(within, processor, self.graph.tensors):
            return None
        outside = [
            [subject_of(part, self.graph)] for part in operator.parts if part.type in borders
        ]
        costs = [self._cost(each, (), processor, (), None) for each in (*outside, within)]
        moved_bytes = sum(cost.moved_bytes for cost in costs if cost)
        parts = [part for cost in costs if cost for part in cost.parts]
        dequantised = tuple(
            replace(part, source=f"{part.source}; run dequantised") for part in parts
        )
        return OperatorCost(dequantised, moved_bytes) if all(costs) else None

    def _converted_graph(self, dtype: str | None) -> OperatorGraph:
        if dtype not in self.graphs:
            self.graphs[dtype] = convert_graph(self.graph, str(dtype))
        return self.graphs[dtype]

    def _casts(self, operator: Operator, processor: Processor, dtype: str) -> list[PartCost]:
        """Return what casting costs where an operator does not compute in what is there."""
        graph, own_type = self.graph, types_of(processor, self.precision)[0]
        changes: list[tuple[str, Tensor, str, str]] = []
        for name in graph.reads(operator):
            tensor = graph.tensors[name]
            outer = outer_type(tensor, processor, self.precision)
            there = outer if name in graph.inputs else own_type
            changes.append(("cast in", tensor, there, dtype))
        for name in filter(None, operator.outputs):
            tensor = graph.tensors[name]
            outer = outer_type(tensor, processor, self.precision)
            wanted = {outer} if name in graph.outputs else set()
            wanted |= {own_type} if graph.consumers.get(name) else set()
            changes += [("cast out", tensor, dtype, there) for there in sorted(wanted)]
        return [
            price_cast(operator, processor, direction, tensor, (before, after))
            for direction, tensor, before, after in changes
            if before != after and tensor.dtype in CONVERTIBLE_TYPES
        ]

    def check(self) -> None:
        """Raise if an operator has no price, or no processor."""
        name = self.platform.name
        if self.missing:
            raise CostError(
                f"there is no time of {_by_type(self.missing)}; state these numbers in platform "
                f"'{name}' or give a profile with such operators"
            )
        if self.nowhere:
            hints = "".join(f"; {hint}" for hint in conversions(self.graph, self.platform))
            if self.able:
                hints += f"; `exclude` leaves out {listed(sorted(self.able))}, which can run some"
            raise CostError(
                f"no processor of platform '{name}' supports {_by_type(self.nowhere)}{hints}; "
                "choose another platform, allow these types in its file, or change the model"
            )

    def _cost(
        self,
        parts: Sequence[Subject],
        extra: Sequence[Subject],
        processor: Processor,
        casts: Sequence[PartCost],
        dtype: str | None,
    ) -> OperatorCost | None:
        """Return the cost of parts that were measured at one go, or else of each by itself."""
        work_of_parts = [subject.operator.work for subject in parts]
        moved = sum(work.read_bytes + work.written_bytes for work in work_of_parts)
        at_one_go = self.measured and not extra and len(parts) > 1
        if at_one_go and (fused_cost := self._fused_cost(parts, processor)):
            return OperatorCost((fused_cost, *casts), moved, dtype)
        costs: list[PartCost] = []
        for subject in (*parts, *extra):
            try:
                costs.append(self._single_cost(subject, processor))
            except CostError as error:
                operator = subject.operator
                names = self.missing.setdefault((operator.type, str(error)), [])
                names.append(f"'{operator.name}'")
        complete = len(costs) == len(parts) + len(extra)
        return OperatorCost((*costs, *casts), moved, dtype) if complete else None

    def _single_cost(self, subject: Subject, processor: Processor) -> PartCost:
        """Return the cost of a single operator; networks repeat theirs."""
        key = (processor.name, subject.priced_by)
        if key not in self.singles:
            self.singles[key] = price(
                subject, processor, self.platform.name, self.sources, measured=self.measured
            )
        return self.singles[key].named(subject.operator.name)

    def _fused_cost(self, parts: Sequence[Subject], processor: Processor) -> PartCost | None:
        """Return the cost of parts that were measured at one go."""
        key = (processor.name, *(part.priced_by for part in parts))
        if key not in self.fused:
            self.fused[key] = price_fused(parts, processor, self.sources)
        fused_cost = self.fused[key]
        return fused_cost and fused_cost.named(parts[0].operator.name)


def _content_of(operator: Operator, graph: OperatorGraph) -> tuple[object, ...]:
    """Return all of an operator that its prices may depend on: everything but names."""
    shapes = [
        (type(tensor), tensor.shape, tensor.dtype)
        if (tensor := graph.tensors.get(name) or graph.constants.get(name))
        else None
        for name in (*operator.inputs, "", *operator.outputs)
    ]
    attributes = tuple(operator.attributes.items())
    kind = (operator.domain, operator.type, operator.computes_in)
    return (*kind, attributes, operator.work, *shapes)


def _renamed(row: Row, new_name: Mapping[str, str]) -> Row:
    """Return a row of costs of operators that differ in their names only."""
    return tuple(
        replace(entry, parts=tuple(part.named(new_name[part.operator]) for part in entry.parts))
        if isinstance(entry, OperatorCost)
        else replace(entry, operator=new_name.get(entry.operator, ""))
        for entry in row
    )


def price_cast(
    operator: Operator, processor: Processor, direction: str, tensor: Tensor, types: tuple[str, str]
) -> PartCost:
    """Return the cost of casting what an operator reads or makes ("cast in", "cast out").

    Parameters
    ----------
    types
        From which type and to which.

    Raises
    ------
    CostError
        If the processor runs at another clock and says nothing of how times follow it.
    """
    before, after = types
    time = cast_time(processor, tensor, before, after)
    default_hz = processor.clock.default_frequency_hz
    cost = PartCost(
        operator=operator.name,
        type=cast_operator(before, after),
        provenance="nominal",
        source=f"{direction} of '{tensor.name}' from {before} to {after}, by its bytes",
        time=time_at_clock(time, default_hz, "elementwise", processor),
        power=processor.dynamic_power("elementwise"),
        spread=nominal_spread("casts"),
    )
    return without_launch(cost, processor, processor.part_slowdown("elementwise").value)


def conversions(graph: OperatorGraph, platform: Platform) -> Iterator[str]:
    """Yield, for each processor without the model's type, what it could run after a conversion."""
    concerned = [v for v, each in enumerate(graph.operators) if is_converted(each, graph)]
    singles = (single for v in concerned for single in graph.operators[v].singles)
    needed = {type_computed_in(single, graph) for single in singles}
    if needed.isdisjoint(CONVERTIBLE_TYPES):
        return

    def runnable(processor: Processor, precision: Precision) -> int:
        """Return how many operators a processor runs in a precision; 0 if it lacks its type."""
        if not processor.computing_type(precision):
            return 0
        pricing = Pricing(graph, platform, (), "deployed", precision)
        return [pricing.type_of(v, processor, {})[1] for v in concerned].count(None)

    lacking = [p for p in platform.processors if needed.isdisjoint(p.data_types)]
    while lacking:
        first, runs = lacking[0], (lacking[0].data_types, lacking[0].operators)
        equal = [p for p in lacking if (p.data_types, p.operators) == runs]
        lacking = [p for p in lacking if p not in equal]
        counts = {precision: runnable(first, precision) for precision in CHAINS}
        total = f"{len(graph.operators)} operators"
        could = " or ".join(
            f"{n} of {total} with --precision {each}" for each, n in counts.items() if n
        )
        if could:
            each, computes = ("it", "computes") if len(equal) == 1 else ("each", "compute")
            yield (
                f"{', '.join(p.name for p in equal)} {computes} in {', '.join(first.data_types)}, "
                f"not in {' or '.join(sorted(needed))}: {each} could run {could}, if accuracy "
                "allows"
            )


def is_converted(operator: Operator, graph: OperatorGraph) -> bool:
    """Tell whether a conversion concerns an operator: it reads or makes floating point.

    A quantised operator stays as it is.
    """
    if operator.computes_in:
        return False
    names = (*operator.inputs, *operator.outputs)
    return any(n in graph.tensors and graph.tensors[n].dtype in CONVERTIBLE_TYPES for n in names)


def _by_type(groups: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Say of each reason how many operators of which types have it, and name the first."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for (kind, reason), names in groups.items():
        by_reason.setdefault(reason, {})[kind] = list(dict.fromkeys(names))
    return "; ".join(
        f"{listed([f'{len(names)} {kind}' for kind, names in types.items()])} "
        f"({listed([name for names in types.values() for name in names])}: {reason})"
        for reason, types in by_reason.items()
    )


def _refusal_of(
    parts: Sequence[Subject], processor: Processor, tensors: Container[str]
) -> Refusal | None:
    for part in parts:
        operator, dtype = part.operator, part.signature.dtype
        activations = {i for i, name in enumerate(operator.inputs) if name in tensors}
        refusal = processor.supports(operator.type, dtype, operator.attributes, activations)
        if refusal and (processor.whole or processor).name not in operator.work.runs_on:
            return replace(refusal, operator=operator.name)
    return None
