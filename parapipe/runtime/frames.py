"""Frames to run: random ones, or those of a file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .document import State, Tensor, type_text
from .folder import RunError

Frame = Mapping[str, Any]  # arrays by the names of graph inputs
DISTINCT = 16
MOST_DIMENSIONS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  # NumPy's


class GraphInputs(Protocol):
    """What is run, such as a `SessionPlan`: its inputs and states, and their tensors."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph inputs."""

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Tensors by name."""

    @property
    def states(self) -> tuple[State, ...]:
        """Those that are handed on from frame to frame."""


def random_frames(folder: GraphInputs, count: int, seed: int = 0) -> Iterator[Frame]:
    """Yield frames of seeded random numbers; after sixteen distinct ones they come again.

    Floating-point numbers are uniform in [0, 1), integers and booleans 0 or 1, which the indices
    and masks of most networks may be.

    Raises
    ------
    RunError
        If a tensor has more dimensions than arrays may have.
    """
    _check_dimensions(folder)
    generator = np.random.default_rng(seed)
    samples = [
        {name: _random_array(folder.tensors[name], generator) for name in folder.inputs}
        | zero_states(folder)
        for _ in range(min(count, DISTINCT))
    ]
    return (samples[index % DISTINCT] for index in range(count))


def zero_states(folder: GraphInputs) -> dict[str, Any]:
    """Return the states before the first step of a sequence: zeros. Tokens are none."""
    return {
        each.input: np.zeros(tensor.shape, tensor.dtype)
        for each in folder.states
        for tensor in [folder.tensors[each.input]]
        if each.kind == "state"
    }


def _check_dimensions(folder: GraphInputs) -> None:
    odd = [n for n, each in folder.tensors.items() if len(each.shape) > MOST_DIMENSIONS]
    if odd:
        count = len(folder.tensors[odd[0]].shape)
        raise RunError(
            f"tensor '{odd[0]}' has {count} dimensions, and NumPy's arrays have at most "
            f"{MOST_DIMENSIONS}: join dimensions in the model, and map it again"
        )


def _random_array(tensor: Tensor, generator: np.random.Generator) -> Any:  # noqa: ANN401 - any dtype
    kind = np.dtype(tensor.dtype)
    if kind.kind == "f":
        return generator.random(tensor.shape, np.float32).astype(kind)
    return generator.integers(0, 2, tensor.shape).astype(kind)


def frames_in(path: Path, folder: GraphInputs) -> tuple[Frame, ...]:
    """Read frames: an array for each graph input, of its shape or with one more axis of frames.

    Parameters
    ----------
    path
        An `.npz` file, its arrays named as the graph inputs are. An input of its own shape is the
        same in all frames. States may be left out: they are zeros before the first step.

    Raises
    ------
    RunError
        If it cannot be read, or names, shapes, types or numbers of frames don't fit; or as
        `random_frames`.
    """
    _check_dimensions(folder)
    written = arrays_in(path)
    zeros = zero_states(folder)
    arrays = zeros | written
    if not set(folder.inputs) <= set(arrays):
        wanted = f"{sorted({*folder.inputs} - {*zeros})}"
        if zeros:
            wanted += f" beside states, which may be left out ('{next(iter(zeros))}', ...)"
        raise RunError(
            f"{path}: holds arrays {sorted(written)}, and the model's inputs are {wanted}: name "
            "them so in numpy.savez"
        )
    counts = {name: _frame_count(path, name, arrays[name], folder) for name in folder.inputs}
    many = {number for number in counts.values() if number is not None} or {1}
    if len(many) > 1:
        raise RunError(f"{path}: inputs have different numbers of frames: {counts}")
    if many == {0}:
        raise RunError(f"{path}: holds no frames: the first axis of its arrays is 0")
    return tuple(
        {name: arrays[name] if one is None else arrays[name][index] for name, one in counts.items()}
        for index in range(many.pop())
    )


def arrays_in(path: Path) -> dict[str, Any]:
    """Read the arrays of an `.npz` file.

    Raises
    ------
    RunError
        If it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: is no file; write one by numpy.savez")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(f"{path}: is no .npz file; write it by numpy.savez") from error


def _frame_count(path: Path, name: str, array: Any, folder: GraphInputs) -> int | None:  # noqa: ANN401
    """Return an array's number of frames; None if it is one for all."""
    wanted = folder.tensors[name]
    if array.dtype == wanted.dtype and array.shape == wanted.shape:
        return None
    if array.dtype == wanted.dtype and array.shape[1:] == wanted.shape and array.shape[:1]:
        return int(array.shape[0])
    raise RunError(
        f"{path}: input '{name}' is {type_text(array.dtype, array.shape)} and should be {wanted}, "
        "or have one more axis in front for the frames"
    )


def cycle_frames(frames: tuple[Frame, ...], count: int) -> Iterator[Frame]:
    """Yield so many frames, from the first again when all have been."""
    return (frames[index % len(frames)] for index in range(count))


def check_frame(frame: Frame, index: int, folder: GraphInputs, zeros: Frame) -> Frame:
    """Return a frame as contiguous arrays.

    Parameters
    ----------
    zeros
        Stand in for states that are left out.

    Raises
    ------
    RunError
        If an input lacks, or is of another shape or type than the plan says.
    """
    if zeros:
        frame = {**zeros, **frame}
    wrong = [f"has no input '{name}'" for name in folder.inputs if name not in frame]
    arrays = {name: np.asarray(frame[name], order="C") for name in folder.inputs if name in frame}
    for name, array in arrays.items():
        wanted = folder.tensors[name]
        if array.dtype != wanted.dtype or array.shape != wanted.shape:
            actual = type_text(array.dtype, array.shape)
            wrong.append(f"input '{name}' is {actual} and should be {wanted}")
    if wrong:
        raise RunError(f"frame {index}: {'; '.join(wrong)}")
    return arrays
