"""Random models of one operator that is hard to cut: windows, transposed windows, Resize, views."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


def model(kind, shape, arrays=(), *, opset=OPSET, **attributes):
    """One operator on an input `x`; `arrays` are its other inputs, None where omitted."""
    inputs = ["x"]
    stored = []
    for position, array in enumerate(arrays, start=1):
        inputs.append("" if array is None else f"c{position}")
        if array is not None:
            stored.append(numpy_helper.from_array(np.asarray(array), f"c{position}"))
    node = helper.make_node(kind, inputs, ["y"], "node", **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name="y")],
        stored,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)


def floats(rng, *shape):
    return np.array([rng.uniform(-1, 1) for _ in range(int(np.prod(shape)))], np.float32).reshape(
        shape
    )


def _window(rng, rank, *, dilated=True):
    kernel = [rng.randint(1, 4) for _ in range(rank)]
    said = {
        "kernel_shape": kernel,
        "strides": [rng.randint(1, 3) for _ in kernel],
        "dilations": [rng.randint(1, 2) if dilated else 1 for _ in kernel],
    }
    mode = rng.choice(["pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if mode == "pads":
        most = [(k - 1) * d for k, d in zip(kernel, said["dilations"], strict=True)]
        most = [min(m, k - 1) for m, k in zip(most, kernel, strict=True)]
        said["pads"] = [rng.randint(0, m) for m in most + most]
    else:
        said["auto_pad"] = mode
    return said


def _image(rng, channels, rank):
    return [rng.randint(1, 2), channels, *(rng.randint(8, 14) for _ in range(rank))]


def conv(rng):
    rank = rng.choice([1, 2, 2, 3])
    said = _window(rng, rank)
    groups = rng.choice([1, 1, 2, 3, 4])
    read, made = rng.randint(1, 2), rng.randint(1, 3)
    weights = floats(rng, groups * made, read, *said["kernel_shape"])
    arrays = [weights, floats(rng, groups * made)][: rng.randint(1, 2)]
    return model("Conv", _image(rng, groups * read, rank), arrays, group=groups, **said)


def pool(rng):
    kind = rng.choice(["MaxPool", "AveragePool", "LpPool"])
    said = _window(rng, rng.choice([1, 2, 2]), dilated=kind != "LpPool")
    if "auto_pad" in said:
        said.pop("dilations")  # ONNX Runtime leaves them out when it pads a pool by itself
    if kind == "AveragePool":
        said["count_include_pad"] = rng.randint(0, 1)
        said.pop("dilations", None)
        if "pads" in said:
            most = [k - 1 for k in said["kernel_shape"]]
            said["pads"] = [min(p, m) for p, m in zip(said["pads"], most + most, strict=True)]
    if "pads" in said and kind != "LpPool":
        said["ceil_mode"] = rng.randint(0, 1)
    return model(kind, _image(rng, 3, len(said["kernel_shape"])), **said)


def conv_transpose(rng):
    rank = rng.choice([1, 2])
    said = _window(rng, rank)
    groups = rng.choice([1, 1, 2, 3])
    read, made = rng.randint(1, 2), rng.randint(1, 3)
    if rng.random() < 0.4:
        said["output_padding"] = [rng.randint(0, s - 1) for s in said["strides"]]
    weights = floats(rng, groups * read, made, *said["kernel_shape"])
    arrays = [weights, floats(rng, groups * made)][: rng.randint(1, 2)]
    return model("ConvTranspose", _image(rng, groups * read, rank), arrays, group=groups, **said)


def resize(rng):
    mode = rng.choice(["nearest", "linear", "cubic"])
    place = rng.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
    )
    shape = [1, 2, rng.choice([6, 8, 12]), rng.choice([6, 8, 9])]
    ratio = [rng.choice([(2, 1), (3, 1), (1, 2), (3, 2), (1, 1), (4, 3)]) for _ in range(2)]
    sizes = [n * up // down for n, (up, down) in zip(shape[2:], ratio, strict=True)]
    said = {"mode": mode, "coordinate_transformation_mode": place}
    if mode == "nearest":
        said["nearest_mode"] = rng.choice(
            ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
        )
    if rng.random() < 0.5:
        return model("Resize", shape, [None, None, np.array([1, 2, *sizes], np.int64)],
                     opset=19, **said)  # fmt: skip
    scales = [1.0, 1.0, *(up / down for up, down in ratio)]
    return model("Resize", shape, [None, np.array(scales, np.float32)], opset=19, **said)


def view(rng):
    sizes = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(2, 4))]
    left = int(np.prod(sizes))
    target = []
    while left > 1 and len(target) < 4:
        factor = rng.choice([n for n in range(1, left + 1) if left % n == 0])
        target.append(factor)
        left //= factor
    target.append(left)
    return model("Reshape", sizes, [np.array(target, np.int64)])


def slice_(rng):
    shape = [2, rng.randint(6, 9), rng.randint(6, 9)]
    at = rng.randint(1, 2)
    step = rng.choice([1, 2, 3, -1, -2])
    begin, end = (rng.randint(0, 2), rng.randint(5, 99)) if step > 0 else (-1, -(2**40))
    return model("Slice", shape, [np.array([n], np.int64) for n in (begin, end, at, step)])


def pad(rng):
    pads = [0, rng.randint(0, 2), rng.randint(-1, 2), 0, rng.randint(0, 2), rng.randint(0, 2)]
    mode = rng.choice(["constant", "edge", "reflect"])
    return model("Pad", [2, 5, 6], [np.array(pads, np.int64)], mode=mode)


def product(rng):
    left = [rng.choice([1, 3]), 4, 5][rng.randint(0, 1) :]
    right = [5, 6] if rng.random() < 0.5 else [3, 5, 6]
    return model("MatMul", left, [floats(rng, *right)])


def gemm(rng):
    swapped = [rng.randint(0, 1), rng.randint(0, 1)]
    left = [4, 5][:: -1 if swapped[0] else 1]
    right = [5, 6][:: -1 if swapped[1] else 1]
    beside = rng.choice([None, (6,), (1, 6), (4, 1), (4, 6), (1,)])
    arrays = [floats(rng, *right), *([floats(rng, *beside)] if beside else [])]
    return model("Gemm", left, arrays, transA=swapped[0], transB=swapped[1], alpha=0.5, beta=2.0)


def local_response(rng):
    return model("LRN", [1, rng.randint(4, 9), 3, 3], size=rng.choice([1, 2, 3, 4, 5]), alpha=0.5)


FAMILIES = {
    each.__name__.strip("_"): each
    for each in (
        conv, pool, conv_transpose, resize, view, slice_, pad, product, gemm, local_response,
    )
}  # fmt: skip
