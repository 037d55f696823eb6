"""`python -m benchmarks.import_scaling [N ...]`: seconds to import and partition N operators.

A generated model, read from a file with its weights in an external one: blocks of four branches of
convolutions, a concatenation, and the shape arithmetic that exporters leave. Import
walks V nodes and E edges once, each with a shape inference of its own: O(V + E), and so is the
partition on such a graph. What is watched is the ratio of times to the ratio of sizes: 1 is linear.
Processor time of one process, the least of three runs, after one that warms up.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import onnx
from onnx import TensorProto, helper

from parapipe.graph.onnx_import import import_model
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse

SIZES = (1_000, 10_000, 50_000)
RUNS = 3
RESULT = Path(__file__).parent / "results" / "import_scaling.json"
_BLOCK = 20  # operators


def model(operators: int) -> onnx.ModelProto:
    """Return a model of about so many operators."""
    nodes: list[onnx.NodeProto] = []
    weights: list[TensorProto] = []
    last = "x"
    for block in range(max(1, operators // _BLOCK)):
        last = _block(f"b{block}", last, nodes, weights)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "scaling",
        [value("x", TensorProto.FLOAT, [1, 16, 8, 8])],
        [value(last, TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _block(name: str, last: str, nodes: list[onnx.NodeProto], weights: list[TensorProto]) -> str:
    ends = []
    for branch in range(4):
        at = last
        for step in range(2):
            weight = f"{name}/w{branch}{step}"
            width = 4 if step else 16
            shape = [4, 16 if step == 0 else 4, 1, 1] if width == 16 else [4, 4, 1, 1]
            tensor = TensorProto(name=weight, data_type=TensorProto.FLOAT, dims=shape)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights.bin")
            weights.append(tensor)
            conv, relu = f"{name}/c{branch}{step}", f"{name}/r{branch}{step}"
            nodes.append(helper.make_node("Conv", [at, weight], [conv], conv))
            nodes.append(helper.make_node("Relu", [conv], [relu], relu))
            at = relu
        ends.append(at)
    joined, extents, view = f"{name}/join", f"{name}/shape", f"{name}/view"
    nodes.append(helper.make_node("Concat", ends, [joined], joined, axis=1))
    nodes.append(helper.make_node("Shape", [joined], [extents], extents))
    nodes.append(helper.make_node("Reshape", [joined, extents], [view], view))
    nodes.append(
        helper.make_node(
            "MaxPool",
            [view],
            [f"{name}/pool"],
            f"{name}/pool",
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
        )
    )
    nodes.append(helper.make_node("Add", [f"{name}/pool", last], [f"{name}/add"], f"{name}/add"))
    nodes.append(
        helper.make_node("Softmax", [f"{name}/add"], [f"{name}/out"], f"{name}/out", axis=1)
    )
    return f"{name}/out"


def measure(operators: int) -> dict[str, float]:
    """Return the operators left, and the least seconds of import and of partition."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model(operators).SerializeToString())
        (Path(folder) / "weights.bin").write_bytes(b"")
        least = {"import_s": float("inf"), "fuse_s": float("inf"), "partition_s": float("inf")}
        for _ in range(RUNS):
            begin_s = process_time()
            graph = import_model(path, granularity="onnx")
            imported_s = process_time()
            fuse(graph)
            fused_s = process_time()
            partition(graph)
            end_s = process_time()
            taken = (imported_s - begin_s, fused_s - imported_s, end_s - fused_s)
            least = {name: min(least[name], s) for name, s in zip(least, taken, strict=True)}
    return {"operators": len(graph.operators), **least}


def main() -> None:
    """Measure the sizes that are named, print them, and keep the usual ones."""
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    measure(100)
    rows = [measure(size) for size in sizes]
    titles = ("operators", "import s", "fuse s", "partition s", "us each", "ratio")
    print("".join(f"{title:>12}" for title in titles))
    first = rows[0]
    for row in rows:
        total_s = row["import_s"] + row["fuse_s"] + row["partition_s"]
        per_operator_s = total_s / row["operators"]
        first_s = (first["import_s"] + first["fuse_s"] + first["partition_s"]) / first["operators"]
        row["ratio"] = per_operator_s / first_s
        print(
            f"{row['operators']:>12}{row['import_s']:>12.2f}{row['fuse_s']:>12.2f}"
            f"{row['partition_s']:>12.2f}{per_operator_s * 1e6:>12.0f}{row['ratio']:>12.2f}"
        )
    if sizes == list(SIZES):
        machine = {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "onnx": onnx.__version__,
        }
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps({"environment": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
