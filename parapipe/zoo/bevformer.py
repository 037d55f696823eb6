"""A BEVFormer encoder with a head: a bird's-eye view of 50x50 cells from six cameras' features.

Source: Li et al., "BEVFormer: Learning Bird's-Eye-View Representation from Multi-Camera Images via
Spatiotemporal Transformers", 2022, section 3, and the sizes of its configuration `bevformer_tiny`
(fundamentalvision/BEVFormer), but six layers. Para-Pipe, tables I and III, gives 257 operators, 25
subgraphs and parallelism 4; this is a reconstruction that agrees. To get there each layer has, as
Para-Pipe's has, a dense self-attention between the spatial cross-attention and the feed-forward
block.

Deformable attention samples with GridSample. The previous view stands above the present one in one
image of 100x50 cells, and the six cameras' features above each other in one of 90x25; all points of
a query share one Softmax. Where a camera does not see a query, its places lie outside of the image
and sample zero.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.detection_transformer import (
    HEAD,
    HEADS,
    WIDTH,
    add_and_norm,
    attention,
    feed_forward,
)
from parapipe.zoo.emitter import Emitter
from parapipe.zoo.transformer import layer_norm, project, reshape

_CAMERAS = 6
_HIDDEN = 512
_CLASSES = 10
_TEMPORAL_POINTS = 8  # four in the previous view and four in the present one
_SPATIAL_POINTS = 8 * _CAMERAS


def build(
    *, weightless: bool = False, side: int = 50, rows: int = 15, columns: int = 25, layers: int = 6
) -> onnx.ModelProto:
    """Build it for a view of `side` squared cells and features `[6 * rows, columns, 256]`."""
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
        x = feed_forward(net, x, f"{layer}/ffn", _HIDDEN)
    x = net.relu(layer_norm(net, net.gemm(x, "class/0", WIDTH), "class/0/norm"), "class/0/relu")
    x = net.gemm(x, "class/logits", _CLASSES)
    return net.model([net.operator("Sigmoid", [x], "class")])


def _temporal_attention(net: Emitter, x: str, name: str, side: int) -> str:
    placed = net.add(x, "positions", f"{name}/placed")
    both = net.concat(["previous_view", x], f"{name}/both", axis=0)
    image = reshape(net, both, f"{name}/image", (2 * side, side, WIDTH))
    query = net.concat(["previous_view", placed], f"{name}/query")
    mixed = _sampled(net, image, query, "view_places", name)
    return add_and_norm(net, x, _joined(net, mixed, name), name)


def _spatial_attention(net: Emitter, x: str, name: str) -> str:
    mixed = _sampled(net, "features", x, "camera_places", name)
    last = net.integers(f"{name}/axes", [1])
    count = net.operator("ReduceSum", ["seen", last], f"{name}/count", keepdims=0)
    mean = net.operator("Div", [mixed, count], f"{name}/mean")
    return add_and_norm(net, x, _joined(net, mean, name), name)


def _sampled(net: Emitter, image: str, query: str, places: str, name: str) -> str:
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


def _joined(net: Emitter, mixed: str, name: str) -> str:
    return project(net, "hdq,hdc->qc", mixed, f"{name}/joined", (HEADS, HEAD, WIDTH))
