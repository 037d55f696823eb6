"""Measured times and the fits to them, with their errors, as one source of times."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from parapipe.cost.fitted import FittedModel, KindFit
from parapipe.cost.left_out import (
    DIGITS,
    Error,
    ProcessorErrors,
    errors_of,
    fit_rows,
    leave_networks_out,
    leave_operators_out,
)
from parapipe.cost.measured_rows import rows_behind, rows_path
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import Signature, signature_of
from parapipe.errors import CostError
from parapipe.files.yaml_file import Strict
from parapipe.graph.operator_graph import ITEM_BYTES, Operator, OperatorGraph
from parapipe.graph.work import OperatorClass, input_channels, operator_class
from parapipe.platform.fields import Expression, Many

_RATES = ("operator", "step", "byte", "column", "output", "depth", "spilled_step")
LeftOut = Literal["network", "tenth of the operators"]


class KindRecord(Strict):
    """Seconds per unit of each amount for one kind of operator, and in-sample errors."""

    processor: str
    dtype: str
    kind: str
    per_operator_s: Error
    per_step_s: Error
    per_byte_s: Error
    per_column_s: Error
    per_output_s: Error
    per_depth_s: Error
    per_spilled_step_s: Error
    launch_s: Error
    signatures: int
    neighbours: bool
    mean_error: Error
    largest_error: Error


class FitRecord(Strict):
    """A fit to a profile.

    Parameters
    ----------
    format
        `schema` in the file: the version of the format.
    profile, sha256
        Name of the profile, and the hash of its file and of the rows behind it.
    left_out
        What was left out in turn for `errors`.
    """

    format: Literal["parapipe/fit/1"] = Field(alias="schema")
    profile: str
    sha256: str
    left_out: LeftOut
    errors: Many[ProcessorErrors]
    kinds: Many[KindRecord]

    def error_of(self, processor: str) -> ProcessorErrors | None:
        """Return the errors of a processor, if it was predicted."""
        return next((e for e in self.errors if e.processor == processor), None)

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return self.model_dump(by_alias=True)


def record_path(profile: Path) -> Path:
    """Return where the record of the fit to a profile stands, if there is one."""
    return profile.with_suffix(".fit.json")


def record_fit(profile: Profile) -> FitRecord:
    """Fit a profile that was read from a file, and measure the fit by leaving out networks.

    Raises
    ------
    CostError
        If there are rows beside the profile that are wrong, or the profile holds too little for a
        fit to predict any of it.
    """
    rows = rows_behind(profile)
    networks = len({row.network for row in rows})
    left_out: LeftOut = "network" if networks > 1 else "tenth of the operators"
    predictions = (
        leave_networks_out(profile, rows) if networks > 1 else leave_operators_out(profile)
    )
    errors = errors_of(list(predictions))
    if not errors:
        raise CostError(
            f"profile '{profile.path}' holds too little for a fit; measure at least five operators "
            "of one kind"
        )
    return FitRecord(
        schema="parapipe/fit/1",
        profile=profile.name,
        sha256=_hash_of_files(profile),
        left_out=left_out,
        errors=errors,
        kinds=tuple(_kind_records(fit_rows(profile, rows))),
    )


def stored_record(profile: Profile) -> FitRecord | None:
    """Return the record beside a profile if it was made from this profile and these rows.

    Raises
    ------
    CostError
        If the file is no record of a fit.
    """
    path = record_path(Path(profile.path)) if profile.path else None
    if path is None or not path.is_file():
        return None
    try:
        record = FitRecord.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        what = " ".join(str(error).split())
        raise CostError(
            f"record of a fit '{path}' cannot be read: {what}; make it again: parapipe fit times"
        ) from None
    return record if record.sha256 == _hash_of_files(profile) else None


def _hash_of_files(profile: Profile) -> str:
    files = (Path(profile.path), rows_path(Path(profile.path)))
    return sha256(b"".join(f.read_bytes() for f in files if f.is_file())).hexdigest()


def text_of_record(record: FitRecord) -> str:
    """Return the record as it is written to a file."""
    return json.dumps(record.to_json(), indent=1) + "\n"


def _kind_records(model: FittedModel) -> Iterator[KindRecord]:
    for fit in model.fits.values():
        yield KindRecord(
            processor=fit.processor,
            dtype=fit.dtype,
            kind=fit.kind,
            **{
                f"per_{name}_s": _six_digits(c)
                for name, c in zip(_RATES, fit.coefficients, strict=True)
            },
            launch_s=_six_digits(fit.launch_s),
            signatures=fit.signatures,
            neighbours=fit.neighbours is not None,
            mean_error=round(fit.mean_error, DIGITS),
            largest_error=round(fit.largest_error, DIGITS),
        )


def _six_digits(seconds: float) -> float:
    return float(f"{seconds:.5e}")


@dataclass(frozen=True, slots=True)
class Subject:
    """A single operator, with all that prices depend on.

    Parameters
    ----------
    input_channels
        Channels that each filter of a convolution reads; 0 of anything else, and of depthwise ones.
    """

    operator: Operator
    signature: Signature
    operator_class: OperatorClass
    input_channels: int

    @property
    def priced_by(self) -> tuple[object, ...]:
        """What its price depends on: subjects of which it is equal cost the same."""
        operator = self.operator
        return (
            operator.type,
            operator.work,
            self.signature,
            self.operator_class,
            self.input_channels,
        )


def subject_of(operator: Operator, graph: OperatorGraph) -> Subject:
    """Return what prices of a single operator depend on."""
    return Subject(
        operator,
        signature_of(operator, graph),
        operator_class(operator, graph),
        input_channels(operator, graph),
    )


@lru_cache(maxsize=8)  # tables at several operating points are made from the same measurements
def _cached_fit(profile: Profile, path: str) -> FittedModel:
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
        return _cached_fit(self.base, self.base.path)

    @cached_property
    def base_hz(self) -> Mapping[str, float]:
        """The frequency at which each processor's fits were made."""
        return {m.processor: m.frequency_hz for m in self.base.measurements}

    @cached_property
    def data_types(self) -> Mapping[str, tuple[str, ...]]:
        """Data types that were measured on each processor, in order of appearance."""
        types_of: dict[str, dict[str, None]] = defaultdict(dict)
        for m in self.base.measurements:
            if m.signature.dtype in ITEM_BYTES:
                types_of[m.processor][m.signature.dtype] = None
        return {processor: tuple(dtypes) for processor, dtypes in types_of.items()}

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
        lines: dict[tuple[Signature, str], list[int]] = defaultdict(list)
        for row in rows_behind(self.profile):
            for processor in row.times_s:
                lines[row.signature, processor].append(row.line)
        return lines

    def note(self, m: Measurement) -> str:
        """Return how something was measured, and on which lines the rows behind it stand."""
        lines = ", ".join(map(str, self._lines.get((m.signature, m.processor), ())))
        behind = f", lines {lines} of {rows_path(Path(self.profile.path)).name}" if lines else ""
        joint = f", with {m.then} behind it" if m.then else ""
        return f"{m.method} at {m.frequency_hz / 1e6:g} MHz, {spread_text(m)}{behind}{joint}"

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
        error = self.left_out(fit.processor, digits=1)
        note = f"fit {fit.kind} on {fit.processor} to {fit.signatures} signatures of {path}{error}"
        rates = str(record_path(Path(path))) if error else path
        moved = work.read_bytes + work.written_bytes
        return fit.time(subject.signature, work.macs, moved, rates=rates, measured=path, note=note)


def spread_text(m: Measurement, of: str = " rows") -> str:
    """Say of how many rows a measured time is the median, and how far they are apart."""
    return f"median of {m.rows}{of}, spread {m.spread:.0%}" if m.rows > 1 else "one row"
