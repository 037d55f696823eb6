"""A hybrid of two stages in which a frame can make ONNX Runtime fail, or never end."""

import numpy as np
from onnx import TensorProto, helper

from tests.cases.hand_made import Piece, folder_of, node, scalar

ENDLESS = 2**62


def faulty(path, **options):
    """y = 3 (x + 1) + 4 (x + 1 + trips), rows picked as the frame says.

    a: t = x[rows_a] + 1; b: u = t + trips, by a loop; c: v = 3 t[rows_c]; b: w = 4u; c: y = v + w
    """
    ints = TensorProto.INT64
    pieces = [
        Piece(
            "00-a", "a",
            [node("Gather", "x", "rows_a", "g"), node("Add", "g", "one", "t")],
            ["x", "rows_a"], ["t"], 0, None, [scalar("one", 1.0)],
        ),
        Piece(
            "01-b", "b",
            [helper.make_node("Loop", ["trips", "", "t"], ["u"], body=_counting())],
            ["trips", "t"], ["u"], 1,
        ),
        Piece(
            "02-c", "c",
            [node("Gather", "t", "rows_c", "h"), node("Mul", "h", "three", "v")],
            ["t", "rows_c"], ["v"], 1, None, [scalar("three", 3.0)],
        ),
        Piece("03-b", "b", [node("Mul", "u", "four", "w")], ["u"], ["w"], 1, None,
              [scalar("four", 4.0)]),
        Piece("04-c", "c", [node("Add", "v", "w", "y")], ["v", "w"], ["y"], 1),
    ]  # fmt: skip
    shapes = {name: [2, 3] for name in "xtuvwy"} | {"rows_a": [2], "rows_c": [2], "trips": []}
    return folder_of(
        path,
        pieces,
        inputs=["x", "rows_a", "rows_c", "trips"],
        outputs=["y"],
        shapes=shapes,
        types=dict.fromkeys(("rows_a", "rows_c", "trips"), ints),
        **options,
    )


def frame(number, *, rows_a=(0, 1), rows_c=(0, 1), trips=2):
    return {
        "x": np.full((2, 3), number, np.float32),
        "rows_a": np.array(rows_a),
        "rows_c": np.array(rows_c),
        "trips": np.array(trips),
    }


def result(number):
    """Any number of the result of a frame in which nothing is wrong."""
    return 7 * number + 15


def _counting():
    """Return the body of a loop that adds one to what it carries."""
    value = helper.make_tensor_value_info
    return helper.make_graph(
        [node("Identity", "more", "still"), node("Add", "old", "one", "new")],
        "counting",
        [
            value("trip", TensorProto.INT64, []),
            value("more", TensorProto.BOOL, []),
            value("old", TensorProto.FLOAT, [2, 3]),
        ],
        [value("still", TensorProto.BOOL, []), value("new", TensorProto.FLOAT, [2, 3])],
        [scalar("one", 1.0)],
    )
