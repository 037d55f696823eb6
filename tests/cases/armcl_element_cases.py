"""Cases of products, and of what is done element by element."""

import numpy as np

from tests.cases.armcl_case import Case, floats, one


def _products():
    w, b = floats(12, 6), floats(6, seed=2)
    yield one("gemm", "Gemm", (1, 12), constants={"w": w, "b": b})
    yield one("gemm-rows", "Gemm", (5, 12), constants={"w": w, "b": b})
    yield one("gemm-no-bias", "Gemm", (1, 12), constants={"w": w})
    yield one("gemm-transposed", "Gemm", (2, 12), constants={"w": w.T.copy(), "b": b}, transB=1)
    yield one("gemm-input-transposed", "Gemm", (12, 3), constants={"w": w, "b": b}, transA=1)
    yield one("gemm-alpha-beta", "Gemm", (2, 12), constants={"w": w, "b": b}, alpha=0.5, beta=2.0)
    yield one("gemm-scalar-bias", "Gemm", (2, 12), constants={"w": w, "b": floats(1, 1)})
    case = one("flatten-gemm-relu", "Flatten", (1, 4, 3, 3))
    case.constants = {"w": floats(36, 6), "b": b}
    case.nodes += [("Gemm", ("y", "w", "b"), ("z",), {}), ("Relu", ("z",), ("r",), {})]
    yield case
    case = one("flatten-matmul", "Flatten", (1, 4, 3, 3))
    case.constants = {"w": floats(36, 6)}
    case.nodes += [("MatMul", ("y", "w"), ("z",), {})]
    yield case
    yield one("matmul", "MatMul", (3, 12), constants={"w": w})
    yield one("matmul-3d", "MatMul", (2, 5, 12), constants={"w": w})
    yield one("matmul-4d", "MatMul", (1, 2, 5, 12), constants={"w": w})
    yield one("matmul-vector", "MatMul", (1, 5, 12), constants={"w": floats(12)})
    yield Case("matmul-left", [("MatMul", ("w", "x"), ("y",), {})], (2, 12, 5), {"w": w.T.copy()})
    case = one("matmul-bias-relu", "MatMul", (1, 5, 12), constants={"w": w})
    case.constants["b"] = b
    case.nodes += [("Add", ("y", "b"), ("z",), {}), ("Relu", ("z",), ("r",), {})]
    yield case


def _arithmetic():
    shape = (1, 4, 5, 6)
    for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"):
        name = kind.lower()
        shift = [("Add", ("x2", "two"), ("x3",), {})] if kind == "Div" else []
        second = "x3" if shift else "x2"
        yield Case(
            f"{name}-two",
            [*shift, (kind, ("x", second), ("y",), {})],
            shape,
            {"two": np.float32([2.5])} if shift else {},
            {"x2": shape},
        )
        yield one(f"{name}-channels", kind, shape, constants={"c": floats(4, 1, 1, low=0.3)})
        yield one(f"{name}-number", kind, shape, constants={"c": np.array(0.7, np.float32)})
    yield one("add-broadcast-both", "Add", (1, 4, 1, 6), inputs={"x2": (1, 1, 5, 1)})
    yield one("mul-broadcast-ranks", "Mul", (2, 5, 6), inputs={"x2": (6,)})
    yield one("mul-broadcast-channel", "Mul", shape, inputs={"x2": (1, 4, 1, 1)})
    yield Case("mul-itself", [("Mul", ("x", "x"), ("y",), {})], shape)
    yield Case("sub-from-number", [("Sub", ("c", "x"), ("y",), {})], shape, {"c": np.float32([1])})
    yield one("sum-three", "Sum", shape, inputs={"x2": shape, "x3": shape})
    yield one("max-three", "Max", shape, inputs={"x2": shape, "x3": shape})
    yield one("mean-three", "Mean", shape, inputs={"x2": shape, "x3": shape})
    yield Case(
        "add-relu",
        [("Add", ("x", "x2"), ("y",), {}), ("Relu", ("y",), ("z",), {})],
        shape,
        inputs={"x2": shape},
    )
    for exponent in (1.0, 2.0, 3.0):
        yield one(f"pow-{exponent:.0f}", "Pow", shape, constants={"c": np.float32(exponent)})
    positive = [("Abs", ("x",), ("a",), {}), ("Add", ("a", "c"), ("b",), {})]
    for kind in ("Sqrt", "Log", "Reciprocal"):
        yield Case(
            kind.lower(), [*positive, (kind, ("b",), ("y",), {})], shape, {"c": np.float32([0.5])}
        )
    yield Case(
        "pow-half",
        [*positive, ("Pow", ("b", "h"), ("y",), {})],
        shape,
        {"c": np.float32([0.5]), "h": np.float32(0.5)},
    )
    norm = {name: floats(4, seed=at, low=0.2) for at, name in enumerate(("g", "o", "m", "v"))}
    yield one("batch-norm", "BatchNormalization", constants=norm)
    yield one("batch-norm-matrix", "BatchNormalization", (3, 4), constants=norm, epsilon=0.01)
    yield one("batch-norm-line", "BatchNormalization", (2, 4, 7), constants=norm)
    yield one("prelu", "PRelu", constants={"s": floats(4, 1, 1, low=0)})
    yield one("prelu-number", "PRelu", constants={"s": floats(1, low=0)})


def _activations():
    plain = ("Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Exp", "Neg", "Softsign")
    for kind in plain:
        yield one(kind.lower(), kind)
    for kind, attributes in {
        "LeakyRelu": {"alpha": 0.3},
        "Elu": {"alpha": 0.7},
        "HardSigmoid": {},
        "Selu": {},
        "Celu": {"alpha": 0.6},
    }.items():
        yield one(kind.lower(), kind, **attributes)
    low, high = np.float32(-0.3), np.float32(0.4)
    yield one("clip", "Clip", constants={"low": low, "high": high})
    yield one("clip-low", "Clip", constants={"low": low})
    yield Case("clip-high", [("Clip", ("x", "", "high"), ("y",), {})], constants={"high": high})
    yield one("clip-zero-six", "Clip", opset=6, min=0.0, max=6.0)
    yield one("mish", "Mish", opset=18)
    yield one("gelu-tanh", "Gelu", opset=20, approximate="tanh")
    yield one("relu-matrix", "Relu", (3, 5))
    yield one("relu-5d", "Relu", (1, 2, 3, 4, 5))


def cases():
    """All cases of this page."""
    yield from _products()
    yield from _arithmetic()
    yield from _activations()
