"""Fits coefficients to measurements: of times, transfers and power."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import PlatformFile, checked
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from parapipe.cost.board_fits import LinkFit, PowerFit
    from parapipe.cost.co_run_fit import SlowdownFit
    from parapipe.cost.measured_source import FitRecord


@checked
def fit_times(path: FilePath, *, out: FilePath | None = None) -> FitRecord:
    """Fit times to a profile, and measure the errors for each network left out.

    The table of measured rows beside it (`NAME.rows.csv` beside `NAME.csv`) says which rows belong
    to which network and block. Without one, operators are left out.

    Parameters
    ----------
    path
        CSV file of measured times.
    out
        JSON file to write; a file `NAME.fit.json` beside a profile is named wherever its fits are
        used.

    Raises
    ------
    CostError
        The profile is wrong, or too small.
    OutputError
        The file cannot be written.
    """
    from parapipe.cost.measured_source import record_fit, text_of_record
    from parapipe.cost.profile import read_profile
    from parapipe.files.atomic import write_atomically

    record = record_fit(read_profile(path))
    if out is not None:
        write_atomically(Path(out), text_of_record(record).encode())
    return record


@checked
def fit_power(path: FilePath) -> tuple[PowerFit, ...]:
    """Fit equation (8)'s coefficients of each processor to a CSV file of power samples.

    Raises
    ------
    CostError
        The file is wrong, or its samples cannot separate static from dynamic power.
    """
    from parapipe.cost.board_fits import fit_power as fit
    from parapipe.cost.board_fits import read_power_samples

    return fit(read_power_samples(path))


@checked
def fit_transfers(path: FilePath) -> tuple[LinkFit, ...]:
    """Fit latency and bandwidth of each pair of processors to a CSV file of timed transfers.

    Raises
    ------
    CostError
        The file is wrong, or holds too little of a pair.
    """
    from parapipe.cost.board_fits import fit_transfers as fit
    from parapipe.cost.board_fits import read_transfer_samples

    return fit(read_transfer_samples(path))


@checked
def fit_slowdowns(path: FilePath, platform: PlatformFile) -> tuple[SlowdownFit, ...]:
    """Make the table of slowdowns of a platform of a CSV file of co-runs.

    Parameters
    ----------
    path
        What `measure.py` of a bundle wrote with `--co-runs` or `--under-load`.
    platform
        The board's; what its processors draw at most tells which operators are memory-bound.

    Raises
    ------
    CostError
        The file is wrong, or is of processors that the platform does not have.
    """
    from parapipe.api.load import load_platform
    from parapipe.cost.co_run_fit import fit_slowdowns as fit
    from parapipe.cost.co_run_fit import read_co_run_samples

    return fit(read_co_run_samples(path), load_platform(platform))
