"""A fit written down: its rates, and how far off it is for what it does not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from parapipe.cost.fitted import FittedModel
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
from parapipe.cost.profile import Profile
from parapipe.errors import CostError
from parapipe.files.yaml_file import Strict
from parapipe.platform.fields import Many

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
    found = leave_networks_out(profile, rows) if networks > 1 else leave_operators_out(profile)
    errors = errors_of(list(found))
    if not errors:
        raise CostError(
            f"profile '{profile.path}' holds too little for a fit; measure at least five operators "
            "of one kind"
        )
    return FitRecord(
        schema="parapipe/fit/1",
        profile=profile.name,
        sha256=_hash(profile),
        left_out=left_out,
        errors=errors,
        kinds=tuple(_kinds(fit_rows(profile, rows))),
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
    return record if record.sha256 == _hash(profile) else None


def _hash(profile: Profile) -> str:
    files = (Path(profile.path), rows_path(Path(profile.path)))
    return sha256(b"".join(f.read_bytes() for f in files if f.is_file())).hexdigest()


def text_of_record(record: FitRecord) -> str:
    """Return the record as it is written to a file."""
    return json.dumps(record.to_json(), indent=1) + "\n"


def _kinds(model: FittedModel) -> Iterator[KindRecord]:
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
