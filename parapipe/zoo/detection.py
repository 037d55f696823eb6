"""PETR and BEVFormer, whose attention blocks have heads as an axis of the weights.

A projection makes one matrix per head at once (`qc,hcd->hqd`), and the projection behind attention
sums over heads (`hqd,hdc->qc`): what a framework writes with Reshape and Transpose around products,
in as many operators as Para-Pipe counts. As in Vaswani et al., "Attention Is All You Need", 2017,
section 3.2.2, projections have no bias.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import onnx
from onnx import TensorProto

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.residual import backbone
from parapipe.zoo.transformer import layer_norm, product, project, reshape, transpose, with_scalar

WIDTH = 256
HEADS = 8
HEAD = WIDTH // HEADS


class Memory(NamedTuple):
    """Rows to attend to, where they are, and what is added to their scores (`mask`)."""

    rows: str
    places: str
    mask: str


def heads(net: Emitter, x: str, name: str) -> str:
    """Project rows `[q, c]` to `[h, q, d]`."""
    return project(net, "qc,hcd->hqd", x, name, (HEADS, WIDTH, HEAD))


def keys(net: Emitter, x: str, name: str) -> str:
    """Project rows `[k, c]` to `[h, d, k]`, transposed for the product with queries."""
    return project(net, "kc,hcd->hdk", x, name, (HEADS, WIDTH, HEAD))


def attend(net: Emitter, scores: str, values: str, name: str) -> str:
    """Weigh values `[h, k, d]` by scores `[h, q, k]` and join the heads to rows `[q, c]`."""
    shares = net.softmax(scores, f"{name}/shares")
    mixed = product(net, shares, values, f"{name}/mixed")
    return project(net, "hqd,hdc->qc", mixed, f"{name}/joined", (HEADS, HEAD, WIDTH))


def attention(
    net: Emitter,
    x: str,
    places: str,
    name: str,
    *,
    memory: Memory | None = None,
    scaled: bool = False,
) -> str:
    """Let rows attend to each other or to a memory; places are not part of the values.

    Parameters
    ----------
    scaled
        Whether an operator of its own divides the scores by the root of a head's width.
    """
    placed = net.add(x, places, f"{name}/placed")
    query = heads(net, placed, f"{name}/query")
    if memory:
        placed = net.add(memory.rows, memory.places, f"{name}/memory")
    key = keys(net, placed, f"{name}/key")
    value = heads(net, memory.rows if memory else x, f"{name}/value")
    scores = product(net, query, key, f"{name}/scores")
    if memory:
        scores = net.add(scores, memory.mask, f"{name}/masked")
    if scaled:
        scores = with_scalar(net, "Div", scores, f"{name}/scaled", sqrt(HEAD))
    return add_and_norm(net, x, attend(net, scores, value, name), name)


def add_and_norm(net: Emitter, x: str, change: str, name: str) -> str:
    """Add what a block makes to its input, and normalise."""
    return layer_norm(net, net.add(x, change, f"{name}/add"), f"{name}/norm")


def feed_forward(net: Emitter, x: str, name: str, hidden: int) -> str:
    """Two fully connected layers on each row, added to it and normalised."""
    inner = net.relu(net.gemm(x, f"{name}/inner", hidden), f"{name}/relu")
    return add_and_norm(net, x, net.gemm(inner, f"{name}/outer", WIDTH), name)


_CAMERAS = 6
_STRIDE = 32  # of the backbone's last features
_DEPTHS = 64  # places along each pixel's ray
_SINES = 384  # of a pixel's camera, row and column, or of a query's place, 128 each
_PETR_HIDDEN = 2048
_CLASSES = 10
_CODE = (2, 2, 1, 5)  # of a box: x and y, width and length, z, and height, sine, cosine, velocity
_EPSILON = 1e-5
_REACH_XY_M = 61.2  # of nuScenes' boxes, from the car to either side
_REACH_Z_M = 10.0


def petr(
    *,
    weightless: bool = False,
    height: int = 512,
    width: int = 1408,
    queries: int = 900,
    layers: int = 6,
) -> onnx.ModelProto:
    """PETR with ResNet-50: six cameras, 900 object queries, as the Para-Pipe paper maps it.

    Source: Liu et al., "PETR: Position Embedding Transformation for Multi-View 3D Object
    Detection", 2022, and its configuration `petr_r50dcn_gridmask_c5` (megvii-research/PETR), with
    plain convolutions in place of deformable ones. Para-Pipe, tables I and III, gives 337
    operators, 24 subgraphs, the largest of 169 operators, and parallelism 16; this is a
    reconstruction that agrees.

    What depends on cameras only, or is learnt, is an input: places along the pixels' rays, sines of
    pixel positions, padded pixels, contents and places of the queries (PETR's contents are zeros).
    Attention's scale is part of the weights of its queries.

    For images `[6, 3, height, width]`, whose sides are multiples of 32.
    """
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
    memory = _camera_memory(net, pixels)
    places = _embed(net, "query_sines", "query_embedding", WIDTH)
    x = "query_contents"
    for number in range(layers):
        layer = f"decoder/{number}"
        x = attention(net, x, places, f"{layer}/self")
        x = attention(net, x, places, f"{layer}/cross", memory=memory)
        x = feed_forward(net, x, f"{layer}/ffn", _PETR_HIDDEN)
    x = layer_norm(net, x, "decoder/norm")
    classes = _class_head(net, x)
    return net.model([classes, _to_metres(net, _refine_boxes(net, _box_head(net, x)))])


def _camera_memory(net: Emitter, pixels: int) -> Memory:
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


def _refine_boxes(net: Emitter, code: str) -> str:
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


def _to_metres(net: Emitter, boxes: str) -> str:
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
    parts = [xy, z, *extents, _add_angle(net, sine, cosine), velocity]
    return net.concat(parts, "boxes")


def _add_angle(net: Emitter, sine: str, cosine: str) -> str:
    """Angle of a direction: its slope's, and half a turn more where the cosine is negative."""
    slope = net.operator("Div", [sine, cosine], "angle/slope")
    half = net.operator("Atan", [slope], "angle/atan")
    zero, turn = (net.scalar(f"angle/{x:g}", x) for x in (0, pi))
    behind = net.operator("Less", [cosine, zero], "angle/behind")
    more = net.operator("Where", [behind, turn, zero], "angle/more")
    return net.add(half, more, "angle")


_BEVFORMER_HIDDEN = 512
_TEMPORAL_POINTS = 8  # four in the previous view and four in the present one
_SPATIAL_POINTS = 8 * _CAMERAS


def bevformer(
    *, weightless: bool = False, side: int = 50, rows: int = 15, columns: int = 25, layers: int = 6
) -> onnx.ModelProto:
    """BEVFormer's encoder with a head: a bird's-eye view of 50x50 cells from six cameras' features.

    Source: Li et al., "BEVFormer: Learning Bird's-Eye-View Representation from Multi-Camera Images
    via Spatiotemporal Transformers", 2022, section 3, and the sizes of its configuration
    `bevformer_tiny` (fundamentalvision/BEVFormer), but six layers. Para-Pipe, tables I and III,
    gives 257 operators, 25 subgraphs and parallelism 4; this is a reconstruction that agrees. To
    get there each layer has, as Para-Pipe's has, a dense self-attention between the spatial
    cross-attention and the feed-forward block.

    Deformable attention samples with GridSample. The previous view stands above the present one in
    one image of 100x50 cells, and the six cameras' features above each other in one of 90x25; all
    points of a query share one Softmax. Where a camera does not see a query, its places lie outside
    of the image and sample zero.

    For a view of `side` squared cells and features `[6 * rows, columns, 256]`.
    """
    cells = side * side
    inputs = {
        "view": (cells, WIDTH),
        "previous_view": (cells, WIDTH),
        "positions": (cells, WIDTH),
        "features": (_CAMERAS * rows, columns, WIDTH),
        "view_places": (cells, _TEMPORAL_POINTS, 2),
        "camera_places": (cells, _SPATIAL_POINTS, 2),
        "seen": (cells, _CAMERAS),
    }
    net = Emitter("bevformer", inputs, weightless=weightless)
    x = "view"
    for number in range(layers):
        layer = f"encoder/{number}"
        x = _temporal_attention(net, x, f"{layer}/temporal", side)
        x = _spatial_attention(net, x, f"{layer}/spatial")
        x = attention(net, x, "positions", f"{layer}/self", scaled=True)
        x = feed_forward(net, x, f"{layer}/ffn", _BEVFORMER_HIDDEN)
    x = net.relu(layer_norm(net, net.gemm(x, "class/0", WIDTH), "class/0/norm"), "class/0/relu")
    x = net.gemm(x, "class/logits", _CLASSES)
    return net.model([net.operator("Sigmoid", [x], "class")])


def _temporal_attention(net: Emitter, x: str, name: str, side: int) -> str:
    placed = net.add(x, "positions", f"{name}/placed")
    both = net.concat(["previous_view", x], f"{name}/both", axis=0)
    image = reshape(net, both, f"{name}/image", (2 * side, side, WIDTH))
    query = net.concat(["previous_view", placed], f"{name}/query")
    mixed = _sample_image(net, image, query, "view_places", name)
    return add_and_norm(net, x, _join_heads(net, mixed, name), name)


def _spatial_attention(net: Emitter, x: str, name: str) -> str:
    mixed = _sample_image(net, "features", x, "camera_places", name)
    last = net.integers(f"{name}/axes", [1])
    count = net.operator("ReduceSum", ["seen", last], f"{name}/count", keepdims=0)
    mean = net.operator("Div", [mixed, count], f"{name}/mean")
    return add_and_norm(net, x, _join_heads(net, mean, name), name)


def _sample_image(net: Emitter, image: str, query: str, places: str, name: str) -> str:
    """Weighted sums `[h, d, q]` of an image `[y, x, c]` at a few places for each query and head.

    The places `[q, p, 2]` are shifted, and the weights chosen, by what the query `[q, ...]` holds.
    """
    points = net.shape(places)[1]
    width = net.shape(query)[-1]
    value = project(net, "yxc,hcd->hdyx", image, f"{name}/value", (HEADS, WIDTH, HEAD))
    shift = project(net, "qc,chpt->hqpt", query, f"{name}/shift", (width, HEADS, points, 2))
    grid = net.add(shift, places, f"{name}/grid")
    scores = project(net, "qc,chp->hqp", query, f"{name}/scores", (width, HEADS, points))
    shares = net.softmax(scores, f"{name}/shares")
    sampled = net.operator(
        "GridSample",
        [value, grid],
        f"{name}/samples",
        align_corners=0,
        mode="bilinear",
        padding_mode="zeros",
    )
    equation = "hdqp,hqp->hdq"
    return net.operator("Einsum", [sampled, shares], f"{name}/mixed", equation=equation)


def _join_heads(net: Emitter, mixed: str, name: str) -> str:
    return project(net, "hdq,hdc->qc", mixed, f"{name}/joined", (HEADS, HEAD, WIDTH))
