"""Models larger than protobuf and memory allow for."""

import json
import resource
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.onnx_import import import_model
from parapipe.plan.build import build_plan
from tests.cases.plan_cases import Costs, configured, platform_of
from tests.cases.session_runs import assert_equal, run_in_turn, run_whole

ROWS, COLUMNS = 530_000, 1024
TABLE_BYTES = 4 * ROWS * COLUMNS


def external(name, dims, offset):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    place = {"location": "weights.data", "offset": offset, "length": 4 * int(np.prod(dims))}
    for key, said in place.items():
        tensor.external_data.add(key=key, value=str(said))
    return tensor


def write_model(folder):
    """Write a table of 2.17 GB, nearly all of it a hole, and a layer behind it."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["row"]),
        helper.make_node("MatMul", ["row", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 8])],
        [external("table", [ROWS, COLUMNS], 0), external("w", [COLUMNS, 8], TABLE_BYTES)],
    )
    opset = [helper.make_opsetid("", 17)]
    (folder / "model.onnx").write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )
    rng = np.random.default_rng(0)
    with (folder / "weights.data").open("wb") as file:
        file.seek(4 * COLUMNS * (ROWS - 1))
        file.write(rng.uniform(-1, 1, COLUMNS).astype(np.float32).tobytes())
        file.write(rng.uniform(-1, 1, (COLUMNS, 8)).astype(np.float32).tobytes())
    return folder / "model.onnx"


def test_a_model_of_more_than_2_gb_is_split_without_being_read_whole(tmp_path) -> None:
    path = write_model(tmp_path)
    graph = import_model(path, digests=False)
    graph = replace(graph, source=replace(graph.source, sha256="0" * 64))
    costs = Costs([[1.0] * 3] * 2, {})
    plan = build_plan(graph, platform_of(2), costs, configured(graph, costs, [[(0, 0)], [(1, 1)]]))
    folder = tmp_path / "out"
    folder.mkdir()
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    write_session_folder(plan, path, folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 200_000
    table = folder / "00-big.bin"
    assert table.stat().st_size == TABLE_BYTES > 1 << 31
    assert table.stat().st_blocks * 512 < 20e6  # holes stay holes
    (segment, _) = json.loads((folder / "plan.json").read_text())["segments"]
    (held,) = onnx.load(folder / segment["file"], load_external_data=False).graph.initializer
    assert {entry.key: entry.value for entry in held.external_data}["location"] == table.name
    feeds = {"ids": np.array([ROWS - 1, 7])}
    found = run_in_turn(folder, feeds)
    assert_equal(found, run_whole(path, feeds, ["y"]))
    assert np.abs(found["y"][0]).max() > 1
