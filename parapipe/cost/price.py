"""What one operator costs on one processor, and where the number comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, get_args

from parapipe.cost.clock import moved_time_s, time_at_point
from parapipe.cost.fit_record import FitRecord, stored_record
from parapipe.cost.fitted import FittedModel, KindFit
from parapipe.cost.left_out import fit_rows
from parapipe.cost.measured_rows import rows_behind
from parapipe.cost.nominal import nominal_time_s
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.work import OperatorClass, operator_class
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
    time_s, energy_j
        Seconds, and dynamic joules.
    free_view
        Whether it costs nothing since it only says a tensor's shape anew.
    modelled
        False if the operator's multiply-accumulates are not known.
    ruled
        Whether a rules file gives them.
    extrapolated
        Whether it is fitted, and smaller or larger than all that the fit was made of.
    basis
        What the time was made of, if it is not nominal.
    subject
        The operator itself, of several that were measured at one go the first.
    """

    operator: str
    type: str
    provenance: Provenance
    source: str
    time_s: float
    energy_j: float
    free_view: bool = False
    modelled: bool = True
    ruled: bool = False
    extrapolated: bool = False
    basis: Basis | None = field(default=None, repr=False, compare=False)
    subject: Subject | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What an operator costs on one processor: its parts, one after the other."""

    parts: tuple[PartCost, ...]

    @property
    def time_s(self) -> float:
        """Seconds of all parts."""
        return sum(part.time_s for part in self.parts)

    @property
    def energy_j(self) -> float:
        """Dynamic joules of all parts."""
        return sum(part.energy_j for part in self.parts)


@dataclass(frozen=True, slots=True)
class Subject:
    """A single operator, with all that prices depend on."""

    operator: Operator
    signature: Signature
    operator_class: OperatorClass


def subject_of(operator: Operator, graph: OperatorGraph) -> Subject:
    """Return what prices of a single operator depend on."""
    return Subject(operator, signature_of(operator, graph), operator_class(operator, graph))


# Tables at several operating points are made from the same measurements.
_fit = lru_cache(maxsize=8)(fit_rows)


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
        return _fit(self.base, rows_behind(self.base))

    @cached_property
    def base_hz(self) -> Mapping[str, float]:
        """The frequency at which each processor's fits were made."""
        return {m.processor: m.frequency_hz for m in self.base.measurements}

    @cached_property
    def lines(self) -> Mapping[tuple[Signature, str], tuple[int, ...]]:
        """Lines of the rows behind each signature's measurement on a processor."""
        found: dict[tuple[Signature, str], tuple[int, ...]] = {}
        for row in rows_behind(self.profile):
            for processor in row.times_s:
                key = (row.signature, processor)
                found[key] = (*found.get(key, ()), row.line)
        return found

    @cached_property
    def record(self) -> FitRecord | None:
        """What is stored of the fit, if that is still the same."""
        return stored_record(self.profile)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a time that is not nominal was made of.

    Parameters
    ----------
    measured
        The measurement, or the two at the frequencies next to the processor's; none if fitted.
    fit
        The fit, if it was not measured.
    """

    source: MeasuredSource
    measured: tuple[Measurement, ...] = ()
    fit: KindFit | None = None


def price(
    subject: Subject, processor: Processor, platform: str, sources: Sequence[MeasuredSource]
) -> PartCost:
    """Return the cost of a single operator: measured, else fitted, else nominal.

    A view is free unless it was measured. An operator whose work is not known is not fitted but
    priced by its bytes.

    Parameters
    ----------
    platform
        Its name; it stands in the source of a nominal time.
    sources
        The first that has the signature, or else a fit, counts.

    Raises
    ------
    CostError
        If there is no measurement, no fit, and the platform lacks a number that is needed.
    """
    operator = subject.operator
    found = (
        _measured(subject, processor, sources)
        or _free(subject)
        or _fitted(subject, processor, sources)
        or _nominal(subject, processor, platform)
    )
    return PartCost(
        operator=operator.name,
        type=operator.type,
        provenance=found.provenance,
        source=found.source,
        time_s=found.time_s,
        energy_j=found.time_s * processor.dynamic_power_w(subject.operator_class),
        free_view=found.provenance == "nominal" and subject.operator_class == "view",
        modelled=operator.work.modelled,
        ruled=bool(operator.work.rule),
        extrapolated=found.extrapolated,
        basis=found.basis,
        subject=subject,
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
    first, *others = subjects
    then = " ".join(each.operator.type for each in others)
    found = _measured(first, processor, sources, then) if then else None
    if found is None:
        return None
    return PartCost(
        operator=first.operator.name,
        type=first.operator.type,
        provenance=found.provenance,
        source=found.source,
        time_s=found.time_s,
        energy_j=found.time_s * processor.dynamic_power_w(first.operator_class),
        modelled=all(each.operator.work.modelled for each in subjects),
        basis=found.basis,
        subject=first,
    )


@dataclass(frozen=True, slots=True)
class _Estimate:
    provenance: Provenance
    source: str
    time_s: float
    extrapolated: bool = False
    basis: Basis | None = None


def _measured(
    subject: Subject, processor: Processor, sources: Sequence[MeasuredSource], then: str = ""
) -> _Estimate | None:
    for source in sources:
        sweep = source.profile.sweep(subject.signature, processor.name, then)
        if sweep:
            m = sweep[-1]
            how = f"median of {m.rows}, spread {m.spread:.0%}" if m.rows > 1 else "one row"
            joint = f" with {then}" if then else ""
            noisy = ", noisy" if m.noisy else ""
            text = f"profile {source.profile.name}, {m.method}{joint}, {how}{noisy}"
            time_s, moved, used = time_at_point(sweep, subject.operator_class, processor)
            basis = Basis(source, used)
            if moved:
                return _Estimate("fitted", f"{text}, {moved}", time_s, basis=basis)
            return _Estimate("measured", text, time_s, basis=basis)
    return None


def _free(subject: Subject) -> _Estimate | None:
    if subject.operator_class != "view":
        return None
    return _Estimate("nominal", "a view, free unless measured", 0)


def _fitted(
    subject: Subject, processor: Processor, sources: Sequence[MeasuredSource]
) -> _Estimate | None:
    work = subject.operator.work
    if not work.modelled or subject.operator_class == "other":
        return None
    size_bytes = work.read_bytes + work.written_bytes
    for source in sources:
        fit = source.model.lookup(
            processor.name, subject.signature, subject.operator_class, work.macs
        )
        if fit:
            amount = (subject.signature, work.macs, size_bytes)
            beyond = fit.extrapolates(*amount)
            text = (
                f"fitted to {fit.signatures} signatures ({fit.kind}) of profile "
                f"{source.profile.name}, mean error {fit.mean_error:.0%}"
                f"{_left_out(source.record, processor.name)}"
                f"{', beyond their range' if beyond else ''}"
            )
            time_s, base_hz = fit.time_s(*amount), source.base_hz[processor.name]
            time_s = moved_time_s(time_s, base_hz, subject.operator_class, processor)
            basis = Basis(source, fit=fit)
            return _Estimate("fitted", text, time_s, extrapolated=beyond, basis=basis)
    return None


def _left_out(record: FitRecord | None, processor: str) -> str:
    errors = record.error_of(processor) if record else None
    if record is None or errors is None:
        return ""
    return f", median error {errors.median:.0%} with each {record.left_out} left out in turn"


def _nominal(subject: Subject, processor: Processor, platform: str) -> _Estimate:
    time_s = nominal_time_s(processor, subject.operator.work, subject.signature.dtype)
    default_hz = processor.clock.default_frequency_hz
    time_s = moved_time_s(time_s, default_hz, subject.operator_class, processor)
    work = subject.operator.work
    known = "" if work.modelled else ", by bytes alone: its work is not known"
    ruled = f", work by rules {work.rule}" if work.rule else ""
    return _Estimate("nominal", f"roofline of platform {platform}{known}{ruled}", time_s)
