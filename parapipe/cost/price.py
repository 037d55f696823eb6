"""What one operator costs on one processor, and where the number comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Literal, get_args

from parapipe.cost.clock import moved_time, time_at_point
from parapipe.cost.fit_record import FitRecord, record_path, stored_record
from parapipe.cost.fitted import FittedModel, KindFit
from parapipe.cost.left_out import fit_rows
from parapipe.cost.measured_rows import rows_behind, rows_path
from parapipe.cost.nominal import nominal_time, time_ratio
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.operator_graph import ITEM_BYTES, Operator, OperatorGraph
from parapipe.graph.work import OperatorClass, operator_class
from parapipe.platform.expression import Expression, known, largest
from parapipe.platform.processor import Processor

Provenance = Literal["measured", "fitted", "nominal"]
PROVENANCES: tuple[Provenance, ...] = get_args(Provenance)


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
        return self.power * known("time", self.time.value, "s")

    @property
    def energy_j(self) -> float:
        """Dynamic joules as a number."""
        return self.power.value * self.time.value


_BUT_NAME = attrgetter(*(each.name for each in fields(PartCost)[1:]))


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What an operator costs on one processor: its parts, one after the other, and casts.

    Parameters
    ----------
    data_type, moved_bytes
        Type that it computes in after conversion, and the bytes that it reads and writes in it;
        None if that is the model's own.
    time_s, energy_j
        Seconds and dynamic joules of all parts.
    """

    parts: tuple[PartCost, ...]
    data_type: str | None = None
    moved_bytes: int | None = None
    time_s: float = field(init=False)
    energy_j: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_s", sum(part.time_s for part in self.parts))
        object.__setattr__(self, "energy_j", sum(part.energy_j for part in self.parts))


@dataclass(frozen=True, slots=True)
class Subject:
    """A single operator, with all that prices depend on."""

    operator: Operator
    signature: Signature
    operator_class: OperatorClass

    @property
    def priced_by(self) -> tuple[object, ...]:
        """What its price depends on: subjects of which it is equal cost the same."""
        operator = self.operator
        return operator.type, operator.work, self.signature, self.operator_class


def subject_of(operator: Operator, graph: OperatorGraph) -> Subject:
    """Return what prices of a single operator depend on."""
    return Subject(operator, signature_of(operator, graph), operator_class(operator, graph))


@lru_cache(maxsize=8)  # tables at several operating points are made from the same measurements
def _fit(profile: Profile, path: str) -> FittedModel:
    """Fit the model to a profile and to the rows behind it, which stand beside its path."""
    assert profile.path == path
    return fit_rows(profile, rows_behind(profile))


class MeasuredSource:
    """A profile, and what is fitted to it once that is asked for.

    Parameters
    ----------
    clocks_hz
        Default frequency by processor. Fits are made at one frequency only, the measured one
        nearest to it, and scaled to others: fits at each would not be ordered as frequencies are.
    """

    def __init__(self, profile: Profile, clocks_hz: Mapping[str, float]) -> None:
        self.profile = profile
        self.clocks_hz = clocks_hz

    @cached_property
    def base(self) -> Profile:
        """What the fits are made of."""
        return self.profile.near(self.clocks_hz)

    @cached_property
    def model(self) -> FittedModel:
        """The model fitted to the profile."""
        return _fit(self.base, self.base.path)

    @cached_property
    def base_hz(self) -> Mapping[str, float]:
        """The frequency at which each processor's fits were made."""
        return {m.processor: m.frequency_hz for m in self.base.measurements}

    @cached_property
    def data_types(self) -> Mapping[str, tuple[str, ...]]:
        """Data types that were measured on each processor, in order of appearance."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for m in self.base.measurements:
            if m.signature.dtype in ITEM_BYTES:
                found[m.processor][m.signature.dtype] = None
        return {processor: tuple(dtypes) for processor, dtypes in found.items()}

    def launch_s(self, processor: str, dtype: str) -> float:
        """Return the seconds that nothing fitted in a data type stays below; 0 without a fit."""
        fits = self.model.fits
        return next((fits[key].launch_s for key in fits if key[:2] == (processor, dtype)), 0.0)

    @cached_property
    def record(self) -> FitRecord | None:
        """What is stored of the fit, if that is still the same."""
        return stored_record(self.profile)

    @cached_property
    def _lines(self) -> Mapping[tuple[Signature, str], list[int]]:
        """Lines of the rows behind each signature's measurement on a processor."""
        found: dict[tuple[Signature, str], list[int]] = defaultdict(list)
        for row in rows_behind(self.profile):
            for processor in row.times_s:
                found[row.signature, processor].append(row.line)
        return found

    def note(self, m: Measurement) -> str:
        """Return how something was measured, and on which lines the rows behind it stand."""
        lines = ", ".join(map(str, self._lines.get((m.signature, m.processor), ())))
        behind = f", lines {lines} of {rows_path(Path(self.profile.path)).name}" if lines else ""
        joint = f", with {m.then} behind it" if m.then else ""
        return f"{m.method} at {m.frequency_hz / 1e6:g} MHz, {_spread(m)}{behind}{joint}"

    def left_out(self, processor: str, digits: int = 0) -> str:
        """Return how far off the fit is for what it does not know; empty if that is not stored."""
        errors = self.record.error_of(processor) if self.record else None
        if self.record is None or errors is None:
            return ""
        by = f"with each {self.record.left_out} left out in turn"
        return f", median error {errors.median:.{digits}%} {by}"

    def fitted(self, fit: KindFit, subject: Subject) -> Expression:
        """Return the seconds of an operator by a fit, at the frequency that the fit was made at."""
        work, path = subject.operator.work, self.profile.path
        told = self.left_out(fit.processor, digits=1)
        note = f"fit {fit.kind} on {fit.processor} to {fit.signatures} signatures of {path}{told}"
        rates = str(record_path(Path(path))) if told else path
        moved = work.read_bytes + work.written_bytes
        return fit.time(subject.signature, work.macs, moved, rates=rates, measured=path, note=note)


def price(
    subject: Subject,
    processor: Processor,
    platform: str,
    sources: Sequence[MeasuredSource],
    *,
    measured: bool = True,
) -> PartCost:
    """Return the cost of a single operator: measured, else fitted, else nominal.

    Where its data type was not measured but another one was, the price in that one counts as fitted
    once it is scaled by the ratio of the nominal rates of both types. A view is free unless it was
    measured. An operator whose work is not known is not fitted but priced by its bytes.

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
    if measured and (found := _measured((subject,), processor, sources)):
        return found
    if subject.operator_class == "view":
        told = "a view, free unless measured"
        return _cost(subject, processor, "nominal", told, Expression(0), free_view=True)
    return (
        _fitted(subject, processor, sources)
        or _of_another_type(subject, processor, sources)
        or _nominal(subject, processor, platform)
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
    return _measured(subjects, processor, sources) if len(subjects) > 1 else None


def _cost(
    subject: Subject,
    processor: Processor,
    provenance: Provenance,
    source: str,
    time: Expression,
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
        **flags,
    )


def _measured(
    subjects: Sequence[Subject], processor: Processor, sources: Sequence[MeasuredSource]
) -> PartCost | None:
    first, *others = subjects
    then = " ".join(each.operator.type for each in others)
    for source in sources:
        profile = source.profile
        if sweep := profile.sweep(first.signature, processor.name, then):
            m = sweep[-1]
            joint, noisy = f" with {then}" if then else "", ", noisy" if m.noisy else ""
            text = f"profile {profile.name}, {m.method}{joint}, {_spread(m, of='')}{noisy}"
            time, moved = time_at_point(
                sweep, first.operator_class, processor, profile.path, source.note
            )
            known_how: Provenance = "fitted" if moved else "measured"
            cost = _cost(first, processor, known_how, f"{text}, {moved}" if moved else text, time)
            modelled = all(each.operator.work.modelled for each in subjects)
            spread = m.spread if m.noisy and not moved else None
            ruled = cost.ruled and not others
            return replace(cost, modelled=modelled, ruled=ruled, noisy_spread=spread)
    return None


def _spread(m: Measurement, of: str = " rows") -> str:
    return f"median of {m.rows}{of}, spread {m.spread:.0%}" if m.rows > 1 else "one row"


def _fitted(
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
            time = moved_time(time, base_hz, subject.operator_class, processor)
            return _cost(subject, processor, "fitted", text, time, extrapolated=beyond)
    return None


def _of_another_type(
    subject: Subject, processor: Processor, sources: Sequence[MeasuredSource]
) -> PartCost | None:
    """Return the cost by what was measured in another data type, scaled by nominal rates."""
    own, products = subject.signature.dtype, bool(subject.operator.work.macs)
    for source in sources:
        for dtype in source.data_types.get(processor.name, ()):
            ratio = time_ratio(processor, own, dtype, products=products)
            if dtype == own or ratio is None:
                continue
            other, only = _in_type(subject, dtype), (source,)
            found = _measured((other,), processor, only) or _fitted(other, processor, only)
            if found:
                launch_s = source.launch_s(processor.name, dtype)
                launch = known("launch", launch_s, "s", note="no operator takes less")
                by = "peaks" if products else "bytes of an element"
                return replace(
                    found,
                    provenance="fitted",
                    source=f"{found.source}; measured in {dtype}, scaled to {own} by nominal {by}",
                    time=largest(launch, found.time * ratio),
                )
    return None


def _in_type(subject: Subject, dtype: str) -> Subject:
    """Return the same operator in another data type."""
    work, ratio = subject.operator.work, ITEM_BYTES[dtype] / ITEM_BYTES[subject.signature.dtype]
    read, written = int(work.read_bytes * ratio), int(work.written_bytes * ratio)
    changed = replace(work, read_bytes=read, written_bytes=written)
    return replace(
        subject,
        operator=replace(subject.operator, work=changed),
        signature=replace(subject.signature, dtype=dtype),
    )


def _nominal(subject: Subject, processor: Processor, platform: str) -> PartCost:
    work = subject.operator.work
    time = nominal_time(processor, work, subject.signature.dtype)
    default_hz = processor.clock.default_frequency_hz
    time = moved_time(time, default_hz, subject.operator_class, processor)
    unknown = "" if work.modelled else ", by bytes alone: its work is not known"
    ruled = f", work by rules {work.rule}" if work.rule else ""
    text = f"roofline of platform {platform}{unknown}{ruled}"
    return _cost(subject, processor, "nominal", text, time)
