"""Cases of windows that slide: convolutions, what is folded into them, pools."""

import numpy as np

from tests.cases.armcl_case import floats, one


def _conv(name, weights, shape=(1, 4, 9, 11), *, bias=True, kind="Conv", then=None, **attributes):
    group = attributes.get("group", 1)
    count = weights[0] if kind == "Conv" else weights[1] * group
    constants = {"w": floats(*weights)} | ({"b": floats(count, seed=2)} if bias else {})
    case = one(name, kind, shape, constants=constants, **attributes)
    if then:
        case.nodes.append((then[0], ("y", *then[2:]), ("z",), then[1]))
    return case


def _convolutions():
    yield _conv("conv-1x1", (6, 4, 1, 1))
    yield _conv("conv-1x1-stride", (6, 4, 1, 1), strides=[2, 2])
    yield _conv("conv-3x3", (6, 4, 3, 3))
    yield _conv("conv-3x3-pad", (6, 4, 3, 3), pads=[1, 1, 1, 1])
    yield _conv("conv-3x3-pad-no-bias", (6, 4, 3, 3), pads=[1, 1, 1, 1], bias=False)
    yield _conv("conv-3x3-stride", (6, 4, 3, 3), strides=[2, 2])
    yield _conv("conv-3x3-stride-pad", (6, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    yield _conv("conv-3x3-strides-differ", (6, 4, 3, 3), strides=[2, 1], pads=[1, 1, 1, 1])
    yield _conv("conv-3x3-pads-differ", (6, 4, 3, 3), strides=[2, 2], pads=[0, 0, 1, 1])
    yield _conv("conv-3x3-dilated", (6, 4, 3, 3), dilations=[2, 2])
    yield _conv("conv-3x3-dilated-pad", (6, 4, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2])
    yield _conv("conv-5x5-pad", (6, 4, 5, 5), pads=[2, 2, 2, 2])
    yield _conv(
        "conv-7x7-stride-pad", (8, 3, 7, 7), (1, 3, 32, 32), strides=[2, 2], pads=[3, 3, 3, 3]
    )
    yield _conv("conv-1x7", (6, 4, 1, 7), pads=[0, 3, 0, 3])
    yield _conv("conv-7x1", (6, 4, 7, 1), pads=[3, 0, 3, 0])
    yield _conv(
        "conv-same-upper", (6, 4, 3, 3), (1, 4, 8, 8), strides=[2, 2], auto_pad="SAME_UPPER"
    )
    yield _conv(
        "conv-same-lower", (6, 4, 3, 3), (1, 4, 8, 8), strides=[2, 2], auto_pad="SAME_LOWER"
    )
    yield _conv("conv-valid", (6, 4, 3, 3), auto_pad="VALID")
    yield _conv("conv-batch", (6, 4, 3, 3), (2, 4, 7, 7), pads=[1, 1, 1, 1])
    yield _conv("conv-winograd", (32, 32, 3, 3), (1, 32, 16, 16), pads=[1, 1, 1, 1])
    yield _conv("conv-line", (6, 4, 3), (1, 4, 15), pads=[1, 1], strides=[2])
    yield _conv("conv-groups", (6, 2, 3, 3), group=2, pads=[1, 1, 1, 1])
    yield _conv("conv-groups-relu", (8, 1, 3, 3), (1, 2, 9, 9), group=2, then=("Relu", {}))
    yield _conv("conv-groups-stride", (8, 2, 3, 3), (1, 8, 9, 9), group=4, strides=[2, 2])
    yield _conv("depthwise-3x3", (4, 1, 3, 3), group=4)
    yield _conv("depthwise-3x3-pad", (4, 1, 3, 3), group=4, pads=[1, 1, 1, 1])
    yield _conv(
        "depthwise-3x3-stride-pad", (4, 1, 3, 3), group=4, strides=[2, 2], pads=[1, 1, 1, 1]
    )
    yield _conv("depthwise-3x3-dilated", (4, 1, 3, 3), group=4, dilations=[2, 2], pads=[2, 2, 2, 2])
    yield _conv("depthwise-5x5-pad", (4, 1, 5, 5), group=4, pads=[2, 2, 2, 2])
    yield _conv("depthwise-multiplier", (8, 1, 3, 3), group=4, pads=[1, 1, 1, 1])
    case = _conv("depthwise-clip", (4, 1, 3, 3), group=4, then=("Clip", {}, "low", "high"))
    case.constants |= {"low": np.float32(-0.2), "high": np.float32(0.5)}
    yield case
    for kind in ("Relu", "Sigmoid", "Tanh"):
        yield _conv(f"conv-{kind.lower()}", (6, 4, 3, 3), then=(kind, {}))
    yield _conv("conv-leaky-relu", (6, 4, 3, 3), then=("LeakyRelu", {"alpha": 0.2}))
    yield _conv("conv-hard-sigmoid", (6, 4, 3, 3), then=("HardSigmoid", {"alpha": 0.25}))


def _folds():
    norm = {name: floats(6, seed=at, low=0.2) for at, name in enumerate(("g", "o", "m", "v"))}
    case = _conv("conv-batch-norm", (6, 4, 3, 3), then=("BatchNormalization", {}, *norm))
    case.constants |= norm
    yield case
    case = _conv(
        "conv-groups-batch-norm-relu",
        (6, 2, 3, 3),
        bias=False,
        group=2,
        then=("BatchNormalization", {"epsilon": 0.01}, *norm),
    )
    case.constants |= norm
    case.nodes.append(("Relu", ("z",), ("r",), {}))
    yield case
    case = _conv("conv-scale-shift", (6, 4, 3, 3), bias=False, then=("Mul", {}, "scale"))
    case.constants |= {"scale": floats(6, 1, 1, seed=5), "shift": floats(1, 6, 1, 1, seed=6)}
    case.nodes.append(("Add", ("z", "shift"), ("r",), {}))
    yield case
    case = _conv(
        "conv-transpose-batch-norm",
        (4, 6, 3, 3),
        kind="ConvTranspose",
        then=("BatchNormalization", {}, *norm),
    )
    case.constants |= norm
    yield case
    case = one("gemm-scale", "Gemm", (1, 12), constants={"w": floats(12, 6)})
    case.nodes.append(("Mul", ("y", "scale"), ("z",), {}))
    case.constants["scale"] = floats(6, seed=5)
    yield case


def _transposed_convolutions():
    def deconv(name, weights=(4, 6, 3, 3), **attributes):
        return _conv(
            f"conv-transpose-{name}", weights, (1, 4, 5, 6), kind="ConvTranspose", **attributes
        )

    yield deconv("3x3")
    yield deconv("3x3-no-bias", bias=False)
    yield deconv("3x3-pad", pads=[1, 1, 1, 1])
    yield deconv("2x2-stride", (4, 6, 2, 2), strides=[2, 2])
    yield deconv("4x4-stride-pad", (4, 6, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1])
    yield deconv("output-padding", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    yield deconv("pads-differ", strides=[2, 2], pads=[0, 1, 1, 0])
    yield deconv("same-upper", strides=[2, 2], auto_pad="SAME_UPPER")
    yield deconv("2x3", (4, 6, 2, 3), strides=[2, 1], pads=[1, 1, 0, 2])
    yield _conv("conv-transpose-line", (4, 6, 3), (1, 4, 7), kind="ConvTranspose", strides=[2])
    yield deconv("dilated", dilations=[2, 2], pads=[1, 1, 1, 1])
    yield deconv("groups", (4, 3, 3, 3), group=2, strides=[2, 2])


def _pools():
    for kind in ("MaxPool", "AveragePool"):
        name = kind.replace("Pool", "-pool").lower()

        def pool(what, kernel=(3, 3), shape=(1, 4, 9, 11), kind=kind, name=name, **attributes):
            return one(f"{name}-{what}", kind, shape, kernel_shape=list(kernel), **attributes)

        yield pool("2x2-stride", (2, 2), strides=[2, 2])
        yield pool("3x3", strides=[1, 1])
        yield pool("3x3-pad", strides=[1, 1], pads=[1, 1, 1, 1])
        yield pool("3x3-stride-pad", strides=[2, 2], pads=[1, 1, 1, 1])
        yield pool("3x3-ceil", shape=(1, 4, 8, 10), strides=[2, 2], ceil_mode=1)
        yield pool(
            "3x3-stride-3-ceil-pad",
            shape=(1, 4, 9, 12),
            strides=[3, 3],
            ceil_mode=1,
            pads=[1, 1, 1, 1],
        )
        yield pool("5x5-pad", (5, 5), strides=[1, 1], pads=[2, 2, 2, 2])
        yield pool("same-upper", shape=(1, 4, 8, 8), strides=[2, 2], auto_pad="SAME_UPPER")
        yield pool("1x3", (1, 3), strides=[1, 2])
        yield pool("whole", (9, 11))
        yield pool("line", (3,), (1, 4, 15), strides=[2], pads=[1, 1])
        yield one(f"global-{name}", f"Global{kind}")
        yield one(f"global-{name}-line", f"Global{kind}", (1, 4, 15))
    yield one(
        "average-pool-counting",
        "AveragePool",
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        count_include_pad=1,
    )


def cases():
    """All cases of this page."""
    yield from _convolutions()
    yield from _folds()
    yield from _transposed_convolutions()
    yield from _pools()
