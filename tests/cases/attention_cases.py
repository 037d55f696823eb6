"""Operators that only back ends with loops of the runner's own take: those of attention, mainly."""

import numpy as np

from tests.cases.armcl_case import Case, floats, ints, one


def attention_cases():
    """All cases, each with a name of its own."""
    return [
        one("two-matrices", "MatMul", (2, 3, 5, 4), inputs={"z": (2, 3, 4, 6)}),
        one("two-matrices-broadcast", "MatMul", (2, 3, 5, 4), inputs={"z": (4, 6)}),
        one("several-constant-matrices", "MatMul", (3, 5, 4), constants={"w": floats(3, 4, 6)}),
        one("repeat", "Expand", (2, 1, 3, 1), constants={"s": ints(2, 4, 3, 5)}),
        one("repeat-in-front", "Expand", (3, 1), constants={"s": ints(2, 2, 3, 4)}),
        one("repeat-heads", "Expand", (1, 2, 1, 3, 4), constants={"s": ints(1, 2, 5, 3, 4)}),
        one("repeat-nothing", "Expand", (3, 4), constants={"s": ints(3, 1)}),
        one("erf", "Erf", (2, 7, 33)),
        one("atan", "Atan", (2, 7, 3)),
        one("sample", "GridSample", (2, 3, 5, 6), inputs={"z": (2, 4, 7, 2)}),
        one("sample-corners", "GridSample", inputs={"z": (1, 4, 7, 2)}, align_corners=1),
        *(
            one(f"einsum-{equation}", "Einsum", shape, inputs={"z": other}, equation=equation)
            for equation, shape, other in (
                ("qc,hcd->hqd", (9, 6), (4, 6, 5)),
                ("kc,hcd->hdk", (9, 6), (4, 6, 5)),
                ("hqd,hdc->qc", (4, 9, 5), (4, 5, 6)),
                ("yxc,hcd->hdyx", (3, 2, 6), (4, 6, 5)),
                ("qc,chpt->hqpt", (9, 6), (6, 4, 3, 2)),
                ("hdqp,hqp->hdq", (4, 5, 9, 3), (4, 9, 3)),
            )
        ),
        Case(
            "choice",
            [
                ("Less", ("x", "z"), ("l",), {}),
                ("Where", ("l", "x", "c"), ("y",), {}),
            ],
            (2, 5),
            {"c": np.array(0.25, np.float32)},
            {"z": (2, 5)},
        ),
        Case(
            "picked-channels",
            [
                ("Conv", ("x", "w"), ("m",), {}),
                ("Gather", ("m", "i"), ("g",), {"axis": 1}),
                ("Relu", ("g",), ("y",), {}),
            ],
            (1, 4, 5, 6),
            {"w": floats(7, 4, 1, 1), "i": ints(6, 0, 0, 3)},
        ),
        one("join-a-constant", "Concat", (1, 5, 8), constants={"c": floats(1, 2, 8)}, axis=1),
        Case(
            "table",
            [("Gather", ("t", "i"), ("g",), {"axis": 0}), ("Add", ("x", "g"), ("y",), {})],
            (1, 4, 8),
            {"t": floats(9, 8), "i": ints([[8, 0, -1, 3]])},
        ),
        Case(
            "gelu",
            [
                ("Mul", ("x", "r"), ("a",), {}),
                ("Erf", ("a",), ("b",), {}),
                ("Add", ("b", "o"), ("c",), {}),
                ("Mul", ("x", "c"), ("d",), {}),
                ("Mul", ("d", "h"), ("y",), {}),
            ],
            (4, 19),
            {
                name: np.array(value, np.float32)
                for name, value in (("r", 0.5**0.5), ("o", 1), ("h", 0.5))
            },
        ),
        Case(
            "grouped",
            [("Conv", ("x", "w", "b"), ("y",), {"group": 2, "pads": [1, 1, 1, 1]})],
            (1, 8, 9, 11),
            {"w": floats(12, 4, 3, 3), "b": floats(12)},
        ),
    ]
