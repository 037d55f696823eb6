"""Measures on this machine how much processors slow each other down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from parapipe.cost.co_run_fit import CoRunSample, co_run_sample
from parapipe.errors import ProfilingError
from parapipe.files.atomic import write_folder
from parapipe.files.csv_table import Cells
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Progress, Tell
from parapipe.platform.processor import Processor
from parapipe.profiling.co_run_kernels import KERNEL_BYTES
from parapipe.profiling.providers import onnx_runtime
from parapipe.profiling.tasks import Tasks, kernel_tasks

Rows = Callable[..., Iterator[Sequence[Mapping[str, str]]]]
Measured = tuple[tuple[CoRunSample, ...], tuple[str, ...]]


def measure_kernels(
    processors: Sequence[Processor], size_bytes: int = KERNEL_BYTES, progress: Tell | None = None
) -> Measured:
    """Measure each processor with a compute-bound and a memory-bound kernel beside the others.

    Parameters
    ----------
    size_bytes
        Bytes that the memory-bound kernel moves.

    Returns
    -------
    tuple
        The samples, and a sentence for each processor that does not run the kernels.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    """
    onnx_runtime()
    from parapipe.profiling.under_load import kernel_rows

    document, models = kernel_tasks(processors, size_bytes)
    return _samples(kernel_rows, document, models, progress)


def measure_operators(tasks: Tasks, progress: Tell | None = None) -> Measured:
    """Measure a model's operators while the other processors run them in turn, too.

    Returns
    -------
    tuple
        The samples, and a sentence for what is left out.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    ProfilingError
        If fewer than two processors run operators of the model.
    """
    onnx_runtime()
    from parapipe.profiling.under_load import operator_rows

    samples, notes = _samples(operator_rows, tasks.document, tasks.files(), progress)
    if not samples:
        raise ProfilingError(
            "fewer than two processors of the platform run operators of the model in ONNX Runtime "
            "here, so none works under load; `platforms detect --split 2` divides a cluster"
        )
    return samples, (*tasks.left_out, *tasks.notes, *notes)


def _samples(
    rows_of: Rows,
    document: Mapping[str, Any],
    models: Mapping[Path, bytes],
    progress: Tell | None,
) -> Measured:
    begin_s, notes = monotonic(), list[str]()
    samples: list[CoRunSample] = []

    def tell(done: int, total: int) -> None:
        if progress:
            progress(Progress(done, total, 0.0, monotonic() - begin_s, phase="measuring"))

    clear_abandoned_scratch()
    with LockedFolder() as scratch:
        write_folder(scratch.path, models)
        for rows in rows_of(document, scratch.path, tell, notes.append):
            samples += (co_run_sample(Cells(0, dict(row))) for row in rows)
    return tuple(samples), tuple(notes)
