"""Images in another size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from parapipe.export.armcl.steps import Rule, Steps, integer, integers, require, text
from parapipe.plan.schema import Operator

_PLANAR = 4
_LINEAR = {
    "half_pixel": "half_pixel",
    "pytorch_half_pixel": "half_pixel",
    "asymmetric": "asymmetric",
    "align_corners": "align_corners",
}


def resize(operator: Operator, into: Steps) -> None:
    """Add an image in another size, by the nearest elements or by the mean of neighbours."""
    source, output = operator.inputs[0], operator.outputs[0]
    read, written = into.shape(source), into.shape(output)
    require(len(read) == _PLANAR and read[:2] == written[:2], "it is not of height and width only")
    require(not integer(operator, "antialias", 0), "it smooths (antialias)")
    scales = _scales(operator, into)
    mode = text(operator, "mode", "nearest").replace("bilinear", "linear")  # as Upsample called it
    default = "asymmetric" if _is_old(operator) else "half_pixel"
    coordinates = text(operator, "coordinate_transformation_mode", default)
    require(mode in ("nearest", "linear"), f"its mode is '{mode}'")
    if mode == "nearest":
        same = all(
            _nearest(size, out, scale, coordinates, _rounding(operator, scale))
            == [at * size // out for at in range(out)]
            for size, out, scale in zip(read[2:], written[2:], scales[2:], strict=True)
        )
        require(
            same,
            "it picks other elements than ⌊i · size / new size⌋, and the library knows these only",
        )
        coordinates = "asymmetric"
    else:
        require(coordinates in _LINEAR, f"its coordinates are '{coordinates}'")
        whole = all(
            math.isclose(size * scale, out)
            for size, out, scale in zip(read, written, scales, strict=True)
        )
        require(whole or coordinates == "align_corners", "its scale gives no whole size")
        edge = coordinates == "pytorch_half_pixel" and 1 in written[2:]
        require(not edge, "its coordinates differ where the new size is 1")
        coordinates = _LINEAR[coordinates]
    into.add("Resize", (source,), written, output=output, mode=mode, coordinates=coordinates)


def _rounding(operator: Operator, scale: float) -> str:
    if _is_old(operator):
        return "ceil" if scale < 1 else "floor"
    return text(operator, "nearest_mode", "round_prefer_floor")


def _is_old(operator: Operator) -> bool:
    """Whether it is of opset 10 or older, when ONNX did not yet say which elements it picks."""
    return operator.type == "Upsample" or len(operator.inputs) == 2


def _scales(operator: Operator, into: Steps) -> tuple[float, ...]:
    constant = all(into.is_constant(name) for name in operator.inputs[1:] if name)
    require(constant, "its size is not constant")
    read, written = (into.shape(name) for name in (operator.inputs[0], operator.outputs[0]))
    given = operator.attributes.get("scales")
    axes = integers(operator, "axes", range(len(read)))
    scales = [out / size for size, out in zip(read, written, strict=True)]
    if isinstance(given, tuple):
        for axis, scale in zip(axes, map(float, given), strict=True):
            scales[axis] = scale
    policy = text(operator, "keep_aspect_ratio_policy", "stretch")
    require(policy == "stretch", "it keeps the aspect ratio")
    return tuple(scales)


def _nearest(size: int, out: int, scale: float, coordinates: str, rounding: str) -> list[int]:
    """Return which elements an axis of ONNX's Resize picks; empty if its words are unknown."""
    if rounding not in _ROUNDINGS:
        return []
    places = [_place(at, (size, out), scale, coordinates) for at in range(out)]
    nearest = [_ROUNDINGS[rounding](place) for place in places if place is not None]
    return [min(max(element, 0), size - 1) for element in nearest]


def _place(at: int, extents: tuple[int, int], scale: float, coordinates: str) -> float | None:
    """Return where an element of the output lies in the input; the equations are ONNX's."""
    size, out = extents
    if coordinates == "asymmetric":
        return at / scale
    if coordinates == "half_pixel" or (coordinates == "pytorch_half_pixel" and out > 1):
        return (at + 0.5) / scale - 0.5
    if coordinates == "align_corners" and out > 1:
        return at * (size - 1) / (out - 1)
    return 0.0 if coordinates in ("align_corners", "pytorch_half_pixel") else None


_ROUNDINGS: Mapping[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda place: math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: math.floor(place + 0.5),
}
_CONDITION = (
    "height and width only, constant size; nearest: the elements ⌊i · size / new size⌋; linear: a "
    "scale that gives whole sizes"
)
RULES: Mapping[str, Rule] = {
    "Resize": Rule(resize, "Resize", _CONDITION),
    "Upsample": Rule(resize, "Resize", _CONDITION),
}
