"""What one operator costs on one processor, and where the number comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Literal, get_args

from parapipe.cost.clock import nominal_time, time_at_clock, time_at_point, time_ratio
from parapipe.cost.measured_source import MeasuredSource, Subject, spread_text
from parapipe.cost.profile import COMPILED, SCALED, STATED, UNPRICED, Measurement
from parapipe.cost.spread import (
    CERTAIN,
    OTHER_STATE,
    Spread,
    fit_spread,
    measurement_spread,
    nominal_spread,
)
from parapipe.graph.operator_graph import ITEM_BYTES
from parapipe.platform.fields import Expression, file_value, largest, named_value
from parapipe.platform.processor import Processor

Provenance = Literal["measured", "stated", "compiled", "fitted", "nominal"]
PROVENANCES: tuple[Provenance, ...] = get_args(Provenance)
OF_THE_OPERATOR: frozenset[Provenance] = frozenset({"measured", "stated", "compiled"})
"""Times of an operator itself: by a clock, by the chip's maker, or by a compiler's cycles."""


@dataclass(frozen=True, slots=True)
class PartCost:
    """What a single operator costs on one processor.

    Parameters
    ----------
    operator, type
        Name and ONNX type.
    source
        Where the time comes from, for people.
    time, power
        Seconds, and the dynamic watts meanwhile.
    free_view
        Whether it costs nothing since it only says a tensor's shape anew.
    modelled
        False if the operator's multiply-accumulates are not known.
    ruled
        Whether a rules file gives them.
    extrapolated
        Whether it is fitted, and smaller or larger than all that the fit was made of.
    noisy_spread
        Of a time that was measured and is noisy: (longest − shortest row) / time; None of others.
    spread
        How far the time may be off.
    """

    operator: str
    type: str
    provenance: Provenance
    source: str
    time: Expression
    power: Expression
    free_view: bool = False
    modelled: bool = True
    ruled: bool = False
    extrapolated: bool = False
    noisy_spread: float | None = None
    spread: Spread = CERTAIN

    @property
    def time_s(self) -> float:
        """Seconds as a number."""
        return self.time.value

    def named(self, operator: str) -> PartCost:
        """Return the cost of an operator that costs the same."""
        return self if operator == self.operator else PartCost(operator, *_BUT_NAME(self))

    @property
    def energy(self) -> Expression:
        """Dynamic joules, equation (8)."""
        return self.power * named_value("time", self.time.value, "s")

    @property
    def energy_j(self) -> float:
        """Dynamic joules as a number."""
        return self.power.value * self.time.value


SHORTEST_S = 1e-9  # of an operator in a captured graph
_OF_METHOD: Mapping[str, Provenance] = {COMPILED: "compiled", STATED: "stated"}
_BUT_NAME = attrgetter(*(each.name for each in fields(PartCost)[1:]))


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What an operator costs on one processor: its parts, one after the other, and casts.

    Parameters
    ----------
    data_type
        Type that it computes in after conversion; None if that is the model's own.
    moved_bytes
        What it reads and writes for a frame, in that type.
    time_s, energy_j
        Seconds and dynamic joules of all parts.
    """

    parts: tuple[PartCost, ...]
    moved_bytes: int
    data_type: str | None = None
    time_s: float = field(init=False)
    energy_j: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_s", sum(part.time_s for part in self.parts))
        object.__setattr__(self, "energy_j", sum(part.energy_j for part in self.parts))


def price(
    subject: Subject,
    processor: Processor,
    platform: str,
    sources: Sequence[MeasuredSource],
    *,
    measured: bool = True,
) -> PartCost:
    """Return the cost of a single operator: measured or stated, else fitted, else nominal.

    Where its data type was not measured but another one was, the price in that one counts as fitted
    once it is scaled by the ratio of the nominal rates of both types. A view is free unless it was
    measured. An operator whose work is not known is not fitted but priced by its bytes. A part of a
    divided processor takes what its whole takes, scaled, unless it was measured or fitted itself.
    Where the processor captures graphs, the launch is left out: see `without_launch`.

    Parameters
    ----------
    platform
        Its name; it stands in the source of a nominal time.
    sources
        The first that has the signature, or else a fit, counts.
    measured
        Whether measurements of the signature itself count.

    Raises
    ------
    CostError
        If there is no measurement, no fit, and the platform lacks a number that is needed.
    """
    if measured and (part_cost := _measured_cost((subject,), processor, sources)):
        return without_launch(part_cost, processor)
    if processor.whole:
        if part_cost := _fitted_cost(subject, processor, sources):
            return without_launch(part_cost, processor)
        undivided = price(subject, processor.whole, platform, sources, measured=measured)
        return _cost_on_part(undivided, subject, processor)
    if subject.operator_class == "view":
        source = "a view, free unless measured"
        return _part_cost(subject, processor, "nominal", source, Expression(0), free_view=True)
    return without_launch(
        _fitted_cost(subject, processor, sources)
        or _cost_by_other_type(subject, processor, sources)
        or _nominal_cost(subject, processor, platform),
        processor,
    )


def price_fused(
    subjects: Sequence[Subject], processor: Processor, sources: Sequence[MeasuredSource]
) -> PartCost | None:
    """Return the cost of operators that were measured at one go, as that of the first; else None.

    Parameters
    ----------
    subjects
        The parts of a fused operator, in order.
    sources
        The first that has it counts.
    """
    if len(subjects) == 1:
        return None
    fused = _measured_cost(subjects, processor, sources)
    measured_itself = any(processor.name in each.profile.processors for each in sources)
    if fused or processor.whole is None or measured_itself:
        return fused and without_launch(fused, processor)
    undivided = _measured_cost(subjects, processor.whole, sources)
    if undivided is None:
        return None
    return _cost_on_part(without_launch(undivided, processor.whole), subjects[0], processor)


def without_launch(cost: PartCost, processor: Processor, slowdown: float = 1.0) -> PartCost:
    """Return what an operator costs in a captured graph, where it has no launch of its own.

    That is its time without the processor's launch of an operator, but at least a nanosecond, so
    that only what was free before takes no time. What a compiler prices holds no launch. The same
    cost is returned if the processor captures no graphs.

    Parameters
    ----------
    slowdown
        By which the launch in the time is longer than stated.
    """
    if processor.launch.graph_s is None or cost.provenance == "compiled" or not cost.time.value:
        return cost
    launch = file_value("launch", "s", processor, "launch", "overhead_s")
    if slowdown != 1:
        launch = launch * named_value("slowdown", slowdown)
    least = named_value("least", SHORTEST_S, "s", note="no operator takes less")
    return replace(
        cost,
        time=largest(least, cost.time - launch),
        source=f"{cost.source}; in a captured graph, without a launch of its own",
    )


def _cost_on_part(undivided: PartCost, subject: Subject, processor: Processor) -> PartCost:
    """Return the cost on a part of a divided processor, by that on the whole."""
    assert processor.whole is not None
    cores, name = len(processor.whole.cores), processor.whole.name
    how = f"scaled from {cores} to {len(processor.cores)} cores of {name}"
    cause = f"share of {name}'s cores"
    if processor.at_once > 1:
        how, cause = f"on one of {processor.at_once} streams of {name}", f"streams of {name}"
    return replace(
        undivided,
        provenance="fitted" if undivided.provenance in OF_THE_OPERATOR else undivided.provenance,
        source=f"{undivided.source}; {how}",
        time=undivided.time * processor.part_slowdown(subject.operator_class),
        power=processor.dynamic_power(subject.operator_class),
        noisy_spread=None,
        spread=undivided.spread.moved(cause),
    )


def _part_cost(
    subject: Subject,
    processor: Processor,
    provenance: Provenance,
    source: str,
    time: Expression,
    *,
    spread: Spread = CERTAIN,
    **flags: bool,
) -> PartCost:
    operator = subject.operator
    return PartCost(
        operator=operator.name,
        type=operator.type,
        provenance=provenance,
        source=source,
        time=time,
        power=processor.dynamic_power(subject.operator_class),
        modelled=operator.work.modelled,
        ruled=bool(operator.work.rule),
        spread=spread,
        **flags,
    )


def _measured_cost(
    subjects: Sequence[Subject], processor: Processor, sources: Sequence[MeasuredSource]
) -> PartCost | None:
    first, *others = subjects
    then = " ".join(each.operator.type for each in others)
    for source in sources:
        profile = source.profile
        if sweep := profile.sweep(first.signature, processor.name, then):
            m = sweep[-1]
            joint, noisy = f" with {then}" if then else "", ", noisy" if m.noisy else ""
            text = f"profile {profile.name}, {m.method}{joint}, {spread_text(m, of='')}{noisy}"
            time, moved = time_at_point(
                sweep, first.operator_class, processor, profile.path, source.note
            )
            scaled = m.method == SCALED
            provenance = _provenance(m, moved=bool(moved) or scaled)
            text = f"{text}, {moved}" if moved else text
            spread = measurement_spread(m)
            if moved or scaled:
                spread = spread.moved("other clocks" if moved else OTHER_STATE)
            cost = _part_cost(first, processor, provenance, text, time, spread=spread)
            modelled = all(each.operator.work.modelled for each in subjects)
            noisy_spread = m.spread if m.noisy and provenance == "measured" else None
            ruled = cost.ruled and not others
            return replace(cost, modelled=modelled, ruled=ruled, noisy_spread=noisy_spread)
    return None


def _provenance(m: Measurement, *, moved: bool) -> Provenance:
    """Return that of a row of a profile, perhaps moved to another clock or state of the board."""
    if m.method == UNPRICED or (moved and m.method != COMPILED):
        return "fitted"
    return _OF_METHOD.get(m.method, "measured")


def _fitted_cost(
    subject: Subject, processor: Processor, sources: Sequence[MeasuredSource]
) -> PartCost | None:
    work, signature = subject.operator.work, subject.signature
    if not work.modelled or subject.operator_class == "other":
        return None
    for source in sources:
        fit = source.model.lookup(processor.name, signature, subject.operator_class, work.macs)
        if fit:
            beyond = fit.extrapolates(signature, work.macs, work.read_bytes + work.written_bytes)
            text = (
                f"fitted to {fit.signatures} signatures ({fit.kind}) of profile "
                f"{source.profile.name}, mean error {fit.mean_error:.0%}"
                f"{source.left_out(processor.name)}"
                f"{', beyond their range' if beyond else ''}"
            )
            time, base_hz = source.fitted(fit, subject), source.base_hz[processor.name]
            time = time_at_clock(time, base_hz, subject.operator_class, processor)
            off = fit_spread(fit, source.record)
            return _part_cost(
                subject, processor, "fitted", text, time, spread=off, extrapolated=beyond
            )
    return None


def _cost_by_other_type(
    subject: Subject, processor: Processor, sources: Sequence[MeasuredSource]
) -> PartCost | None:
    """Return the cost by what was measured in another data type, scaled by nominal rates."""
    own, products = subject.signature.dtype, bool(subject.operator.work.macs)
    for source in sources:
        for dtype in source.data_types.get(processor.name, ()):
            ratio = time_ratio(processor, own, dtype, products=products)
            if dtype == own or ratio is None:
                continue
            other, only = _converted_subject(subject, dtype), (source,)
            cost = _measured_cost((other,), processor, only)
            if cost := cost or _fitted_cost(other, processor, only):
                launch_s = source.launch_s(processor.name, dtype)
                launch = named_value("launch", launch_s, "s", note="no operator takes less")
                by = "peaks" if products else "bytes of an element"
                return replace(
                    cost,
                    provenance="fitted",
                    source=f"{cost.source}; measured in {dtype}, scaled to {own} by nominal {by}",
                    time=largest(launch, cost.time * ratio),
                    spread=nominal_spread(subject.operator_class),
                )
    return None


def _converted_subject(subject: Subject, dtype: str) -> Subject:
    """Return the same operator in another data type."""
    work, ratio = subject.operator.work, ITEM_BYTES[dtype] / ITEM_BYTES[subject.signature.dtype]
    read, written = int(work.read_bytes * ratio), int(work.written_bytes * ratio)
    changed = replace(work, read_bytes=read, written_bytes=written)
    return replace(
        subject,
        operator=replace(subject.operator, work=changed),
        signature=replace(subject.signature, dtype=dtype),
    )


def _nominal_cost(subject: Subject, processor: Processor, platform: str) -> PartCost:
    work = subject.operator.work
    time = nominal_time(
        processor,
        work,
        subject.signature.dtype,
        subject.operator_class,
        subject.input_channels,
    )
    default_hz = processor.clock.default_frequency_hz
    time = time_at_clock(time, default_hz, subject.operator_class, processor)
    unknown = "" if work.modelled else ", by bytes alone: its work is not known"
    ruled = f", work by rules {work.rule}" if work.rule else ""
    text = f"roofline of platform {platform}{unknown}{ruled}"
    off = nominal_spread(subject.operator_class)
    return _part_cost(subject, processor, "nominal", text, time, spread=off)
