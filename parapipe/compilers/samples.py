"""Reads the samples with which a compiler chooses scales for integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from onnx import ModelProto, helper

from parapipe.compilers.prepare import float_types, model_inputs
from parapipe.errors import ArgumentError

MOST_SAMPLES = 200
RANDOM_SAMPLES = 2


def sample_files(calibration: Path | None) -> list[Path]:
    """Return the files of samples, sorted by name.

    Raises
    ------
    ArgumentError
        If there are none.
    """
    if calibration is None:
        return []
    if calibration.is_dir():
        files = sorted(calibration.glob("*.npz"))
        if not files:
            raise ArgumentError(f"{calibration}: holds no file `.npz` with samples; write some")
        return files
    if not calibration.is_file():
        raise ArgumentError(
            f"{calibration}: is not there; name a file `.npz` with samples, or a folder of them"
        )
    return [calibration]


def read_samples(calibration: Path, model: ModelProto, file: str) -> list[dict[str, Any]]:
    """Return at most `MOST_SAMPLES` samples: of each, arrays by the names of the model's inputs.

    Parameters
    ----------
    calibration
        A file `.npz`, or a folder of them. Its arrays have the shapes of the inputs, or one more
        leading axis that counts samples.
    file
        Name of the model, for messages.

    Raises
    ------
    ArgumentError
        If a file cannot be read, lacks an input, or has an array of another shape or type.
    """
    samples: list[dict[str, Any]] = []
    for path in sample_files(calibration):
        samples += _samples_of(path, model, file)
        if len(samples) >= MOST_SAMPLES:
            break
    return samples[:MOST_SAMPLES]


def _samples_of(path: Path, model: ModelProto, file: str) -> list[dict[str, Any]]:
    inputs = dict(model_inputs(model))
    arrays, there = _read_arrays(path, inputs)
    missing = [name for name in inputs if name not in arrays]
    if missing:
        raise ArgumentError(
            f"{path}: has no array '{missing[0]}', an input of {file}; it has {', '.join(there)}"
        )
    stacks = {name: _stack(path, name, arrays[name], kind) for name, kind in inputs.items()}
    counts = {len(each) for each in stacks.values()}
    if len(counts) > 1:
        raise ArgumentError(f"{path}: its arrays hold different numbers of samples: {counts}")
    return [
        {name: stack[number] for name, stack in stacks.items()} for number in range(max(counts))
    ]


def _read_arrays(path: Path, names: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the arrays of a file that have some names, and the names of all."""
    try:
        with np.load(path, allow_pickle=False) as content:
            there = [*content.files]
            return {name: content[name] for name in names if name in there}, there
    except (OSError, EOFError, BadZipFile, ValueError, TypeError, AttributeError) as error:
        raise ArgumentError(f"{path}: cannot be read as `.npz` ({error}); write it anew") from error


def _stack(path: Path, name: str, array: Any, kind: Any) -> Any:  # noqa: ANN401 - numpy, protobuf
    """Return an array with a leading axis of samples, in the type of the input."""
    shape = tuple(each.dim_value for each in kind.shape.dim)
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if array.shape == shape:
        array = array[None]
    if array.shape[1:] != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ArgumentError(
            f"{path}: the array '{name}' is {array.dtype} {list(array.shape)}, and the input is "
            f"{dtype} {list(shape)}; give it this shape, or one more leading axis of samples"
        )
    return array.astype(dtype)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write a file `.npz` of arrays by any names; NumPy's own function refuses some, as "file"."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def random_samples(model: ModelProto) -> Sequence[dict[str, Any]]:
    """Return samples of normal numbers, the same each time; zeros where an input is of integers."""
    random = np.random.default_rng(0)
    return [
        {name: _random_array(kind, random) for name, kind in model_inputs(model)}
        for _ in range(RANDOM_SAMPLES)
    ]


def _random_array(kind: Any, random: np.random.Generator) -> Any:  # noqa: ANN401 - of protobuf
    shape = [each.dim_value for each in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if kind.elem_type in float_types():
        return random.standard_normal(shape).astype(dtype)
    return np.zeros(shape, dtype)
