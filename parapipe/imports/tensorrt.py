"""TensorRT's `trtexec --exportProfile=FILE`: a JSON list.

Its first entry counts the inferences; each other one has the name of a layer and its mean time in
milliseconds, `averageMs`; the median stands there since TensorRT 8. (NVIDIA/TensorRT,
samples/common/sampleReporting.cpp)
"""

from __future__ import annotations

from parapipe.imports.layers import Layer, ToolFile, ToolProfile

NAME, TITLE = "tensorrt", "JSON of trtexec --exportProfile"
_INSERTED = ("Reformatting CopyNode", "reformatted input", "copied input")


def read(file: ToolFile) -> ToolProfile | None:
    """Return the layers of a file; None if it is of another format.

    The means count, for they add up to the whole.
    """
    if not isinstance(file.document, list):
        return None
    rows = [row for row in file.document if isinstance(row, dict) and "averageMs" in row]
    if not rows:
        return None
    layers = (_layer(file, str(row.get("name", "")), row["averageMs"]) for row in rows)
    return ToolProfile(NAME, TITLE, tuple(layers))


def _layer(file: ToolFile, name: str, mean_ms: object) -> Layer:
    return Layer(
        name=name,
        time_s=file.number(mean_ms, f"averageMs of '{name}'") / 1e3,
        inserted=any(word in name for word in _INSERTED),
    )
