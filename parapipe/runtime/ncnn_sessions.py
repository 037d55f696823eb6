"""Segments that pnnx has converted, run by ncnn on the CPU's cores or on a GPU by Vulkan.

The package `ncnn` is imported when the first of them is opened. A segment is a `.param` with a
`.bin` beside it; its inputs are called in0, in1, ..., its outputs out0, out1, ... ncnn knows no
axis of samples: the `.param` says the sizes that each input has without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from .document import Processor, Segment, Tensor, type_text

PROVIDER: Final = "ncnn"
VULKAN: Final = "vulkan"
"""Option of a processor: number of the GPU; on the CPU without it."""
FLOAT16: Final = "float16"
"""Option of a processor: "1" where it may keep tensors in float16, and compute in it."""
THREADS: Final = "num_threads"
SIZES: Final = ("0", "1", "11", "2")
"""Keys of the layer Input for width, height, depth and channels: the innermost axis first."""
_HALF = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic")
_BRAIN = ("use_bf16_packed", "use_bf16_storage")


class NcnnError(Exception):
    """ncnn does not take a segment, or does not run it: one sentence says why."""


class NcnnSession:
    """A converted segment, loaded; it is run as a session of ONNX Runtime is.

    Parameters
    ----------
    ncnn
        The package.
    net
        A net that is loaded.
    shapes
        Those of its inputs in0, in1, ..., as ncnn has them.
    segment
        Names its inputs and outputs, in the order of the file.
    tensors
        Types and shapes by name.
    """

    def __init__(
        self,
        ncnn: Any,  # noqa: ANN401 - untyped
        net: Any,  # noqa: ANN401
        shapes: Mapping[str, tuple[int, ...]],
        segment: Segment,
        tensors: Mapping[str, Tensor],
    ) -> None:
        self._ncnn, self._net, self._segment, self._tensors = ncnn, net, segment, tensors
        self._shapes = shapes

    def run(
        self,
        outputs: Sequence[str],
        inputs: Mapping[str, Any],
        options: Any = None,  # noqa: ANN401 - as ONNX Runtime's sessions have it
    ) -> list[Any]:
        """Run a frame; return the outputs of these names.

        Raises
        ------
        NcnnError
            If ncnn does not run it, or makes other shapes than the plan says.
        """
        extractor = self._net.create_extractor()
        for number, name in enumerate(self._segment.inputs):
            blob = f"in{number}"
            array = _as_taken(inputs[name]).reshape(self._shapes[blob])
            # A Mat of an array borrows its memory, and layers write over what they borrow.
            if extractor.input(blob, self._ncnn.Mat(array).clone()) != 0:
                raise NcnnError(f"ncnn does not take its input '{name}'; export the plan again")
        numbers = {name: number for number, name in enumerate(self._segment.outputs)}
        return [self._extract(extractor, name, numbers[name]) for name in outputs]

    def _extract(self, extractor: Any, name: str, number: int) -> Any:  # noqa: ANN401
        code, mat = extractor.extract(f"out{number}")
        if code != 0:
            raise NcnnError(f"ncnn's extract of '{name}' has returned {code}; is memory left?")
        array, wanted = np.array(mat), self._tensors[name]
        if array.size != int(np.prod(wanted.shape)):
            raise NcnnError(
                f"output '{name}' is {type_text(array.dtype, array.shape)} and should be {wanted}; "
                "export the plan again"
            )
        return np.ascontiguousarray(array, dtype=wanted.dtype).reshape(wanted.shape)


def open_ncnn_session(
    folder: Path, segment: Segment, processor: Processor, tensors: Mapping[str, Tensor]
) -> NcnnSession:
    """Load a converted segment for a processor.

    Raises
    ------
    NcnnError
        If ncnn is not installed, or does not take the segment.
    """
    ncnn = _import_ncnn()
    net = ncnn.Net()
    net.opt.num_threads = processor.threads
    for name in (*_HALF, *_BRAIN):
        if hasattr(net.opt, name):
            setattr(net.opt, name, name in _HALF and processor.options.get(FLOAT16) == "1")
    net.opt.use_vulkan_compute = VULKAN in processor.options
    if net.opt.use_vulkan_compute:
        net.set_vulkan_device(int(processor.options[VULKAN]))
    path = folder / segment.file
    for read, file in ((net.load_param, path), (net.load_model, path.with_suffix(".bin"))):
        if read(str(file)) != 0:
            raise NcnnError(
                f"ncnn does not take {file.name}; is the file whole, and the package ncnn as new "
                "as requirements.txt says?"
            )
    return NcnnSession(ncnn, net, _input_shapes(path), segment, tensors)


def missing_device(processor: Processor) -> str:
    """Return why the CPU has to run what a GPU should; nothing if it need not.

    Raises
    ------
    NcnnError
        If ncnn is not installed.
    """
    if VULKAN not in processor.options:
        return ""
    count = _import_ncnn().get_gpu_count()
    if int(processor.options[VULKAN]) < count:
        return ""
    return f"ncnn finds {f'only {count}' if count else 'no'} Vulkan device{'s' * (count > 1)} here"


def _import_ncnn() -> Any:  # noqa: ANN401 - untyped
    try:
        import ncnn
    except ImportError as error:
        raise NcnnError(
            f"ncnn cannot be imported ({error}): install the package ncnn, as requirements.txt says"
        ) from error
    return ncnn


def _input_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each input, the outermost axis first, as the layers Input say them."""
    shapes: dict[str, tuple[int, ...]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[:1] == ["Input"]:
            sizes = dict(word.split("=") for word in words[5:])
            shapes[words[4]] = tuple(int(sizes[key]) for key in reversed(SIZES) if key in sizes)
    return shapes


def _as_taken(array: Any) -> Any:  # noqa: ANN401 - arrays
    """Return an array in a type that ncnn knows: numbers of 32 bits."""
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, np.int32)
    return np.ascontiguousarray(array, np.float32)
