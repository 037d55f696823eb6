"""Cases of reductions, of views and permutations, of pieces of tensors, and of other sizes."""

import numpy as np

from tests.cases.armcl_case import Case, floats, ints, one


def _reductions():
    yield one("softmax", "Softmax", (1, 10), axis=1)
    yield one("softmax-rows", "Softmax", (3, 4, 10), axis=-1)
    yield one("softmax-channels", "Softmax", (1, 4, 5, 6), axis=1)
    yield one("softmax-height", "Softmax", (2, 4, 5, 6), axis=2)
    yield one("softmax-channels-of-one", "Softmax", (1, 10, 1, 1), axis=1)
    yield one("softmax-opset-11", "Softmax", (2, 4, 5), opset=11, axis=1)
    yield one("log-softmax", "LogSoftmax", (2, 10), axis=-1)
    yield one("lrn", "LRN", (1, 8, 5, 6), size=5, alpha=0.1, beta=0.75, bias=1.0)
    yield one("lrn-3", "LRN", (1, 8, 5, 6), size=3, alpha=0.2, beta=0.5, bias=2.0)
    yield one("mean-image", "ReduceMean", axes=[2, 3], keepdims=1)
    yield one("mean-image-dropped", "ReduceMean", axes=[2, 3], keepdims=0)
    yield one("mean-last", "ReduceMean", (2, 5, 12), axes=[-1], keepdims=1)
    yield one("mean-last-dropped", "ReduceMean", (2, 5, 12), axes=[-1], keepdims=0)
    yield one("mean-all", "ReduceMean", keepdims=0)
    yield one("mean-channels", "ReduceMean", axes=[1], keepdims=1)
    yield one("mean-opset-18", "ReduceMean", constants={"axes": ints(2, 3)}, opset=18)
    yield one("sum-last", "ReduceSum", (2, 5, 12), constants={"axes": ints(2)})
    yield one("max-image", "ReduceMax", axes=[2, 3])
    yield one(
        "layer-norm",
        "LayerNormalization",
        (1, 5, 12),
        constants={"s": floats(12), "b": floats(12, seed=2)},
    )
    yield one(
        "layer-norm-plain",
        "LayerNormalization",
        (1, 5, 12),
        constants={"s": floats(12)},
        epsilon=1e-3,
    )
    yield one(
        "instance-norm",
        "InstanceNormalization",
        constants={"s": floats(4), "b": floats(4, seed=2)},
    )


def _layouts():
    yield one("reshape", "Reshape", constants={"s": ints(1, 4, -1)})
    yield one("reshape-matrix", "Reshape", (1, 4, 3, 3), constants={"s": ints(2, 18)})
    yield one("flatten", "Flatten", axis=1)
    yield one("squeeze", "Squeeze", (1, 4, 1, 6), constants={"a": ints(2)})
    yield one("unsqueeze", "Unsqueeze", (4, 6), constants={"a": ints(0, 2)})
    yield one("identity", "Identity")
    yield one("dropout", "Dropout")
    yield one("expand-same", "Expand", (4, 6), constants={"s": ints(1, 4, 6)})
    for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0), (0, 1, 3, 2)):
        yield one(
            f"transpose-{''.join(map(str, perm))}", "Transpose", (2, 3, 4, 5), perm=list(perm)
        )
    yield one("transpose-matrix", "Transpose", (4, 7), perm=[1, 0])
    yield one("transpose-3d", "Transpose", (2, 4, 7), perm=[0, 2, 1])
    case = one("transpose-5d", "Reshape", (1, 12, 5, 6), constants={"s": ints(1, 3, 4, 5, 6)})
    case.nodes.append(("Transpose", ("y",), ("z",), {"perm": [0, 1, 3, 4, 2]}))
    case.nodes.append(("Reshape", ("z", "t"), ("r",), {}))
    case.constants["t"] = ints(1, 90, 4)
    yield case
    yield one("transpose-6d", "Transpose", (2, 3, 2, 3, 2, 3), perm=[5, 3, 1, 4, 2, 0])
    yield one("space-to-depth", "SpaceToDepth", (1, 3, 4, 6), blocksize=2)
    yield one("depth-to-space", "DepthToSpace", (1, 8, 3, 4), blocksize=2)
    yield one("depth-to-space-crd", "DepthToSpace", (1, 8, 3, 4), blocksize=2, mode="CRD")


def _pieces():
    for axis in (0, 1, 2, 3):
        yield one(f"concat-{axis}", "Concat", (2, 3, 4, 5), inputs={"x2": (2, 3, 4, 5)}, axis=axis)
    yield one(
        "concat-three",
        "Concat",
        (1, 3, 4, 5),
        inputs={"x2": (1, 2, 4, 5), "x3": (1, 7, 4, 5)},
        axis=1,
    )
    yield one("concat-matrices", "Concat", (3, 5), inputs={"x2": (3, 2)}, axis=-1)
    bounds = {"s": ints(1, -6), "e": ints(3, 9999), "a": ints(1, 3)}
    yield one("slice", "Slice", constants=bounds)
    yield one("slice-steps", "Slice", constants=bounds | {"t": ints(1, 2)})
    yield Case(
        "split",
        [("Split", ("x", "n"), ("p", "q"), {"axis": 1}), ("Relu", ("q",), ("z",), {})],
        constants={"n": ints(1, 3)},
        outputs=("p", "z"),
    )
    yield Case(
        "split-one-unread",
        [("Split", ("x",), ("p", "q"), {"axis": 1}), ("Relu", ("q",), ("z",), {})],
    )
    yield one("gather-one", "Gather", (1, 5, 12), constants={"i": np.array(2, np.int64)}, axis=1)
    yield one("gather-even", "Gather", (1, 5, 12), constants={"i": ints(0, 2, 4)}, axis=1)
    pads = {"p": ints(0, 0, 1, 2, 0, 0, 3, 1)}
    yield one("pad", "Pad", constants=pads)
    yield one("pad-value", "Pad", constants=pads | {"v": np.float32(0.5)})
    yield one("pad-reflect", "Pad", constants=pads, mode="reflect")
    yield one("pad-channels", "Pad", constants={"p": ints(0, 1, 0, 0, 0, 2, 0, 0)})
    yield one("pad-negative", "Pad", constants={"p": ints(0, 0, -1, 2, 0, 0, 1, -3)})


def _resizes():
    def resize(name, scale=None, size=None, shape=(1, 3, 4, 6), **attributes):
        constants = {"roi": np.float32([])}
        if scale is not None:
            constants["scales"] = np.float32([1, 1, *scale])
            reads = ("x", "roi", "scales")
        else:
            constants["sizes"] = ints(*shape[:2], *size)
            reads = ("x", "", "", "sizes")
        del constants["roi"]
        reads = ("x", "", *reads[2:])
        return Case(f"resize-{name}", [("Resize", reads, ("y",), attributes)], shape, constants)

    plain = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    yield resize("nearest-2", (2, 2), mode="nearest", **plain)
    yield resize("nearest-half-pixel", (2, 3), mode="nearest")
    yield resize("nearest-size", size=(8, 18), mode="nearest", **plain)
    yield resize("nearest-down", (0.5, 0.5), mode="nearest", **plain)
    yield resize("linear-half-pixel", (2, 2), mode="linear")
    yield resize(
        "linear-asymmetric", (2, 2), mode="linear", coordinate_transformation_mode="asymmetric"
    )
    yield resize(
        "linear-corners",
        size=(7, 11),
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )
    yield resize(
        "linear-pytorch", (3, 2), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    )
    yield resize("linear-size", size=(9, 8), mode="linear")
    yield one(
        "upsample",
        "Upsample",
        (1, 3, 4, 6),
        constants={"s": np.float32([1, 1, 2, 2])},
        opset=9,
        mode="nearest",
    )


def cases():
    """All cases of this page."""
    yield from _reductions()
    yield from _layouts()
    yield from _pieces()
    yield from _resizes()
