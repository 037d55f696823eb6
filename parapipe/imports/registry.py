"""The formats of other tools' profiles, recognised by what stands in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from parapipe.cost.profile import COLUMNS
from parapipe.errors import ProfilingError
from parapipe.imports import ncnn, onnx_runtime, openvino, rknn, table, tensorrt, tflite, trace
from parapipe.imports.layers import ToolFile, ToolProfile

Read = Callable[[ToolFile], ToolProfile | None]
FORMATS: Mapping[str, tuple[str, Read]] = {
    **{
        each.NAME: (each.TITLE, each.read)
        for each in (onnx_runtime, openvino, tensorrt, tflite, rknn, ncnn)
    },
    ncnn.WHOLE_NAME: (ncnn.WHOLE_TITLE, ncnn.read_whole),
    trace.NAME: (trace.TITLE, trace.read),
    table.NAME: (table.TITLE, table.read),
}
"""By name: what people call it, and what reads it, in the order in which they are tried."""


def title_of(path: Path) -> str | None:
    """Return what people call the format of a tool's file; None if it is of no known one."""
    profile = _read(ToolFile(path))
    return None if profile is None else profile.title


def read_tool_profile(path: Path) -> ToolProfile:
    """Return the layers in a file of one of the formats.

    Raises
    ------
    ProfilingError
        If it is of none, or tells no time.
    CostError
        If lines of a table are wrong.
    """
    file = ToolFile(path)
    profile = _read(file)
    if profile is None:
        own = set((file.lines or [""])[0].split(",")).issuperset(COLUMNS)
        titles = "; ".join(title for title, _ in FORMATS.values())
        raise ProfilingError(
            f"profile '{path}' is parapipe's own, and is imported without a model"
            if own
            else f"profile '{path}' is of no known format; give one of these: {titles}"
        )
    if not any(layer.time_s for layer in profile.layers):
        raise ProfilingError(f"profile '{path}' ({profile.title}) tells no time of any layer")
    return profile


def _read(file: ToolFile) -> ToolProfile | None:
    return next((profile for _, read in FORMATS.values() if (profile := read(file))), None)
