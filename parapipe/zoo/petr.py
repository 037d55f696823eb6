"""A PETR with ResNet-50: six cameras, 900 object queries, as the Para-Pipe paper maps it.

Source: Liu et al., "PETR: Position Embedding Transformation for Multi-View 3D Object Detection",
2022, and its configuration `petr_r50dcn_gridmask_c5` (megvii-research/PETR), with plain
convolutions in place of deformable ones. Para-Pipe, tables I and III, gives 337 operators, 24
subgraphs, the largest of 169 operators, and parallelism 16; this is a reconstruction that agrees.

What depends on cameras only, or is learnt, is an input: places along the pixels' rays, sines of
pixel positions, padded pixels, contents and places of the queries (PETR's contents are zeros).
Attention's scale is part of the weights of its queries.
"""

from __future__ import annotations

from math import pi

import onnx
from onnx import TensorProto

from parapipe.zoo.detection_transformer import WIDTH, Memory, attention, feed_forward
from parapipe.zoo.emitter import Emitter
from parapipe.zoo.resnet_50 import backbone
from parapipe.zoo.transformer import layer_norm, reshape, transpose, with_scalar

_CAMERAS = 6
_STRIDE = 32  # of the backbone's last features
_DEPTHS = 64  # places along each pixel's ray
_SINES = 384  # of a pixel's camera, row and column, or of a query's place, 128 each
_HIDDEN = 2048
_CLASSES = 10
_CODE = (2, 2, 1, 5)  # of a box: x and y, width and length, z, and height, sine, cosine, velocity
_EPSILON = 1e-5
_REACH_XY_M = 61.2  # of nuScenes' boxes, from the car to either side
_REACH_Z_M = 10.0


def build(
    *,
    weightless: bool = False,
    height: int = 512,
    width: int = 1408,
    queries: int = 900,
    layers: int = 6,
) -> onnx.ModelProto:
    """Build it for images `[6, 3, height, width]`, whose sides are multiples of 32."""
    pixels = _CAMERAS * (height // _STRIDE) * (width // _STRIDE)
    inputs = {
        "images": (_CAMERAS, 3, height, width),
        "ray_places": (pixels, 3 * _DEPTHS),
        "pixel_sines": (pixels, _SINES),
        "padded": (pixels,),
        "query_contents": (queries, WIDTH),
        "query_sines": (queries, _SINES),
        "query_places": (queries, 3),
    }
    types = {"padded": int(TensorProto.BOOL)}
    net = Emitter("petr", inputs, element_types=types, weightless=weightless)
    memory = _memory(net, pixels)
    places = _embed(net, "query_sines", "query_embedding", WIDTH)
    x = "query_contents"
    for number in range(layers):
        layer = f"decoder/{number}"
        x = attention(net, x, places, f"{layer}/self")
        x = attention(net, x, places, f"{layer}/cross", memory=memory)
        x = feed_forward(net, x, f"{layer}/ffn", _HIDDEN)
    x = layer_norm(net, x, "decoder/norm")
    classes = _class_head(net, x)
    return net.model([classes, _metric(net, _refined(net, _box_head(net, x)))])


def _memory(net: Emitter, pixels: int) -> Memory:
    """Return a row for each pixel of each camera."""
    x = net.conv(backbone(net, "images", stride_first=True), "projection", WIDTH, 1)
    x = transpose(net, x, "memory/transpose", (0, 2, 3, 1))
    x = reshape(net, x, "memory", (pixels, WIDTH))
    positions = net.add(
        _embed(net, "ray_places", "ray_embedding", 4 * WIDTH),
        _embed(net, "pixel_sines", "sine_embedding", 4 * WIDTH),
        "positions",
    )
    mask = net.operator("Cast", ["padded"], "mask/cast", to=int(TensorProto.FLOAT))
    return Memory(x, positions, with_scalar(net, "Mul", mask, "mask", -1e9))


def _embed(net: Emitter, x: str, name: str, hidden: int) -> str:
    inner = net.relu(net.gemm(x, f"{name}/inner", hidden), f"{name}/relu")
    return net.gemm(inner, name, WIDTH)


def _class_head(net: Emitter, x: str) -> str:
    for number in range(2):
        name = f"class/{number}"
        x = layer_norm(net, net.gemm(x, name, WIDTH), f"{name}/norm")
        x = net.relu(x, f"{name}/relu")
    x = net.gemm(x, "class/logits", _CLASSES)
    return net.operator("Sigmoid", [x], "class")


def _box_head(net: Emitter, x: str) -> str:
    for number in range(2):
        x = net.relu(net.gemm(x, f"box/{number}", WIDTH), f"box/{number}/relu")
    return net.gemm(x, "box/code", sum(_CODE))


def _refined(net: Emitter, code: str) -> str:
    """Shift the places of the queries, between 0 and 1, by what the head says, before a sigmoid."""
    inside = net.clip("query_places", "places/inside", 0, 1)
    over = with_scalar(net, "Max", inside, "places/over", _EPSILON)
    one = net.scalar("places/one", 1)
    rest = net.operator("Sub", [one, inside], "places/rest")
    under = with_scalar(net, "Max", rest, "places/under", _EPSILON)
    odds = net.operator("Div", [over, under], "places/odds")
    logits = net.operator("Log", [odds], "places/logits")
    place_xy, place_z = net.split(logits, "places/split", (2, 1), axis=1)
    xy, size, z, rest = net.split(code, "box/split", _CODE, axis=1)
    moved = [
        net.operator("Sigmoid", [net.add(part, place, f"{name}/moved")], name)
        for part, place, name in ((xy, place_xy, "box/xy"), (z, place_z, "box/z"))
    ]
    return net.concat([moved[0], size, moved[1], rest], "box/refined")


def _metric(net: Emitter, boxes: str) -> str:
    """Boxes in metres and radians: x, y, z, width, length, height, angle, velocity."""
    xy, width, length, z, height, sine, cosine, velocity = net.split(
        boxes, "metric/split", (2, 1, 1, 1, 1, 1, 1, 2), axis=1
    )
    xy, z = (
        with_scalar(net, "Add", with_scalar(net, "Mul", x, f"{name}/span", 2 * reach), name, -reach)
        for x, name, reach in ((xy, "metric/xy", _REACH_XY_M), (z, "metric/z", _REACH_Z_M))
    )
    extents = [
        net.operator("Exp", [x], f"metric/{name}")
        for x, name in ((width, "width"), (length, "length"), (height, "height"))
    ]
    parts = [xy, z, *extents, _angle(net, sine, cosine), velocity]
    return net.concat(parts, "boxes")


def _angle(net: Emitter, sine: str, cosine: str) -> str:
    """Angle of a direction: its slope's, and half a turn more where the cosine is negative."""
    slope = net.operator("Div", [sine, cosine], "angle/slope")
    half = net.operator("Atan", [slope], "angle/atan")
    zero, turn = (net.scalar(f"angle/{x:g}", x) for x in (0, pi))
    behind = net.operator("Less", [cosine, zero], "angle/behind")
    more = net.operator("Where", [behind, turn, zero], "angle/more")
    return net.add(half, more, "angle")
