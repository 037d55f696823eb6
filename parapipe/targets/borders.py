"""Tensors at the borders of segments, in files: those of all samples may not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

from parapipe.compilers.samples import MOST_SAMPLES, read_samples, sample_files
from parapipe.errors import ExportError
from parapipe.graph.data_types import element_type
from parapipe.profiling.providers import onnx_runtime
from parapipe.runtime.document import SessionPlan
from parapipe.runtime.frames import random_frames

Arrays = Mapping[str, Any]


class Borders:
    """Arrays by sample and name of a tensor, a file each.

    Parameters
    ----------
    folder
        Where they go; it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[str, int] = {}
        folder.mkdir()

    def write(self, sample: int, arrays: Arrays) -> None:
        """Keep arrays of a sample."""
        for name, array in arrays.items():
            np.save(self._path(sample, name), array, allow_pickle=False)

    def read(self, sample: int, names: Sequence[str]) -> dict[str, Any]:
        """Return arrays of a sample."""
        return {name: np.load(self._path(sample, name), allow_pickle=False) for name in names}

    def drop(self, samples: int, names: Sequence[str]) -> None:
        """Delete tensors that nobody reads any more."""
        for name in names:
            for sample in range(samples):
                self._path(sample, name).unlink(missing_ok=True)

    def _path(self, sample: int, name: str) -> Path:
        number = self._numbers.setdefault(name, len(self._numbers))
        return self._folder / f"{number}-{sample}.npy"


def samples_of(calibration: Path, document: SessionPlan) -> Iterator[Arrays]:
    """Yield samples of the model's inputs, at most 200; those of one file are in memory at a time.

    Parameters
    ----------
    calibration
        A file `.npz` as `run --input` takes it: an array for each input, of its shape or with one
        more axis for samples; or a folder of such files.

    Raises
    ------
    ArgumentError
        If there are none, or one does not fit the model.
    """
    values = [
        helper.make_tensor_value_info(name, element_type(tensor.dtype) or 0, tensor.shape)
        for name in document.inputs
        for tensor in [document.tensors[name]]
    ]
    inputs = helper.make_model(helper.make_graph([], "inputs", values, []))
    files = iter(sample_files(calibration))
    samples = (each for path in files for each in read_samples(path, inputs, "the model"))
    return islice(samples, MOST_SAMPLES)


def random_sample(document: SessionPlan) -> Arrays:
    """Return a sample of seeded random numbers, as `run.py` makes them."""
    return next(random_frames(document, 1))


class FloatSegment:
    """A segment in the model's own types, run by ONNX Runtime's CPU kernels.

    Raises
    ------
    ExportError
        If ONNX Runtime does not take it.
    RuntimeMissingError
        If it is not installed.
    """

    def __init__(self, path: Path, outputs: Sequence[str]) -> None:
        ort = onnx_runtime()
        options = ort.SessionOptions()
        options.log_severity_level = 4
        self._outputs = list(outputs)
        try:
            self._session = ort.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime raises many kinds
            raise ExportError(
                f"{path.name}: ONNX Runtime does not take it ({' '.join(str(error).split())})"
            ) from error

    def run(self, inputs: Arrays) -> dict[str, Any]:
        """Return the outputs of a sample by name."""
        return dict(zip(self._outputs, self._session.run(self._outputs, inputs), strict=True))
