"""Segments that Rockchip's compiler has compiled, run by `rknnlite` on the board's NPU.

`rknnlite` (the package rknn-toolkit-lite2) is imported when the first of them is opened. Each
segment is a context of its own on the NPU core that the folder's plan names.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from .document import Processor, Segment, Tensor, type_text

PROVIDER: Final = "rknnlite"
CORE_MASK: Final = "core_mask"
"""Option of a processor: name of a constant of RKNNLite; left out on chips with one core."""
_IMAGE_AXES = 4


class RknnError(Exception):
    """The board's library does not take a segment, or does not run it: one sentence says why."""


class RknnSession:
    """A compiled segment, loaded; it is run as a session of ONNX Runtime is.

    Parameters
    ----------
    lite
        An `RKNNLite` that is ready.
    segment
        Names its inputs and outputs, in the order of the file.
    tensors
        Types and shapes by name.
    """

    def __init__(self, lite: Any, segment: Segment, tensors: Mapping[str, Tensor]) -> None:  # noqa: ANN401 - untyped
        self._lite, self._segment = lite, segment
        self._tensors = tensors
        self._formats = [
            "nchw" if len(tensors[name].shape) == _IMAGE_AXES else "nhwc" for name in segment.inputs
        ]
        weakref.finalize(self, lite.release)

    def run(
        self,
        outputs: Sequence[str],
        inputs: Mapping[str, Any],
        options: Any = None,  # noqa: ANN401 - as ONNX Runtime's sessions have it
    ) -> list[Any]:
        """Run a frame; return the outputs of these names, in the types that the plan says.

        Raises
        ------
        RknnError
            If the library returns nothing, or other shapes than the plan says.
        """
        given = [np.ascontiguousarray(inputs[name]) for name in self._segment.inputs]
        results = self._lite.inference(inputs=given, data_format=self._formats)
        expected = self._segment.outputs
        if results is None:
            raise RknnError("rknnlite's inference has returned nothing; see the NPU's messages")
        if len(results) != len(expected):
            raise RknnError(
                f"rknnlite's inference has returned {len(results)} arrays, and the segment has "
                f"{len(expected)} outputs; export the plan again"
            )
        arrays = {
            name: _as_planned(name, array, self._tensors[name])
            for name, array in zip(expected, results, strict=True)
        }
        return [arrays[name] for name in outputs]


def open_rknn_session(
    folder: Path, segment: Segment, processor: Processor, tensors: Mapping[str, Tensor]
) -> RknnSession:
    """Load a compiled segment onto the core of a processor.

    Raises
    ------
    RknnError
        If `rknnlite` is not installed, or one of its calls fails.
    """
    lite = _new_lite()
    try:
        _check("load_rknn", lite.load_rknn(str(folder / segment.file)), "is the file whole?")
        mask = processor.options.get(CORE_MASK)
        core = {} if mask is None else {CORE_MASK: getattr(lite, mask)}
        _check(
            "init_runtime",
            lite.init_runtime(**core),
            "is this the chip that it was compiled for, and are the NPU's driver and librknnrt.so "
            "as new as the compiler?",
        )
    except BaseException:
        lite.release()
        raise
    return RknnSession(lite, segment, tensors)


def _new_lite() -> Any:  # noqa: ANN401 - untyped
    try:
        from rknnlite.api import RKNNLite
    except ImportError as error:
        raise RknnError(
            f"rknnlite cannot be imported ({error}): install the package rknn-toolkit-lite2 on the "
            "board, as requirements.txt says"
        ) from error
    return RKNNLite()


def _check(call: str, code: int, question: str) -> None:
    if code != 0:
        raise RknnError(f"rknnlite's {call} has returned {code}; {question}")


def _as_planned(name: str, array: Any, tensor: Tensor) -> Any:  # noqa: ANN401 - arrays
    """Return an output in the plan's type; the library gives numbers in float32."""
    if _without_ones(array.shape) != _without_ones(tensor.shape):
        raise RknnError(
            f"output '{name}' is {type_text(array.dtype, array.shape)} and should be {tensor}; "
            "export the plan again"
        )
    return np.asarray(array, dtype=tensor.dtype).reshape(tensor.shape)


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
