"""The files of a folder for ARM Compute Library."""

import json
import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from pydantic import ValidationError

from parapipe.errors import ExportError
from parapipe.graph.onnx_import import import_model
from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from parapipe.plan.schema import Plan
from parapipe.profiling.single_models import distinct_units
from parapipe.targets.native.folder import export, write_library_folder
from parapipe.targets.native.library_plan import LibraryPlan, Operator, StageProcessor
from tests.cases.armcl_case import floats, one
from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import plan_for, taking_turns


def planned(model, folder, arrangement="sequential"):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return plan_for(path, arrangement), path


def document_of(model, folder):
    plan, path = planned(model, folder)
    return write_library_folder(plan, path, folder)


def test_the_same_plan_gives_the_same_bytes(tmp_path):
    plan, path = planned(inception(), tmp_path, "hybrid")
    for name in ("one", "two"):
        exported = export(plan, path, tmp_path / name)
    for name in ("plan.json", "weights.bin"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert [each.name for each in exported.files] == ["README.md", "plan.json", "weights.bin"]
    assert exported.size_bytes == sum(each.stat().st_size for each in exported.files)


def test_what_is_written_can_be_read_again(tmp_path):
    plan, path = planned(inception(), tmp_path)
    document = write_library_folder(plan, path, tmp_path)
    content = (tmp_path / "plan.json").read_text()
    assert LibraryPlan.model_validate_json(content) == document


def test_an_earlier_export_is_replaced_frames_beside_it_included(tmp_path):
    plan, path = planned(inception(), tmp_path)
    out = tmp_path / "out"
    export(plan, path, out)
    (out / "input.bin").write_bytes(b"")
    export(plan, path, out)
    assert sorted(each.name for each in out.iterdir()) == ["README.md", "plan.json", "weights.bin"]


def test_constants_are_aligned_and_those_that_operators_share_stand_there_once(tmp_path):
    case = one("c", "Conv", constants={"w": floats(4, 4, 1, 1)})
    case.nodes.append(("Conv", ("y", "w"), ("z",), {}))
    document = document_of(case.model(), tmp_path)
    assert [operator.inputs for operator in document.operators] == [("x", "w"), ("y", "w")]
    assert document.weights.size_bytes == 4 * 16
    (tmp_path / "weights.bin").unlink()
    document = document_of(inception(), tmp_path)
    assert all(tensor.offset % 64 == 0 for tensor in document.tensors.values() if tensor.offset)


def test_weights_of_two_products_are_transposed_once(tmp_path):
    case = one("c", "Gemm", (1, 6), constants={"w": floats(6, 6)})
    case.nodes.append(("Gemm", ("y", "w"), ("z",), {}))
    document = document_of(case.model(), tmp_path)
    assert {operator.inputs[1] for operator in document.operators} == {"w:transposed"}


def test_helpers_names_are_none_of_the_models(tmp_path):
    case = one("c", "Conv", (1, 4, 9), constants={"w": floats(4, 4, 3)})
    case.nodes = [("Relu", ("x",), ("z:0",), {}), ("Conv", ("z:0", "w"), ("z",), {})]
    case.nodes.append(("Add", ("z", "z"), ("z:1",), {}))
    document = document_of(case.model(), tmp_path)
    names = [operator.id for operator in document.operators]
    assert names == ["z:0", "z:2", "z:3", "z", "z:1"]
    assert [operator.source for operator in document.operators] == [None, "z", "z", None, None]


def test_only_one_weight_is_in_memory_at_a_time(tmp_path):
    count, size = 12, 512
    nodes = [
        helper.make_node("MatMul", [f"t{at}", f"w{at}"], [f"t{at + 1}"]) for at in range(count)
    ]
    weights = [
        numpy_helper.from_array(floats(size, size, seed=at), f"w{at}") for at in range(count)
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, (1, size))],
        [helper.make_tensor_value_info(f"t{count}", TensorProto.FLOAT, (1, size))],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    plan, path = planned(model, tmp_path)
    tracemalloc.start()
    try:
        document = write_library_folder(plan, path, tmp_path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert document.weights.size_bytes == count * size * size * 4
    assert peak_bytes < 5 * size * size * 4


def test_a_profile_row_says_what_profiling_the_same_operator_would(tmp_path):
    plan, path = planned(inception(), tmp_path)
    document = write_library_folder(plan, path, tmp_path)
    graph = import_model(path)
    assert document.profile is not None
    rows = {(row.type, row.kernel, row.inputs, row.output, row.then, row.operator_class, row.macs,
             row.size_bytes) for row in document.profile.values()}  # fmt: skip
    units = distinct_units(graph)
    assert rows == {
        (
            unit.signature.type,
            unit.signature.kernel,
            unit.signature.inputs,
            unit.signature.output,
            unit.then,
            unit.operator_class,
            unit.macs,
            unit.size_bytes,
        )
        for unit in units
    }
    assert document.profile.keys() <= {operator.id for operator in plan.operators}


def test_processors_have_a_thread_for_each_core_and_gpus_one(tmp_path):
    plan, path = planned(inception(), tmp_path, "hybrid-gpu")
    document = write_library_folder(plan, path, tmp_path)
    found = {p.name: (p.backend, p.cores, p.threads) for p in document.processors}
    assert found == {
        "big": ("neon", (0, 1), 2),
        "little": ("neon", (2, 3), 2),
        "gpu": ("opencl", (), 1),
    }


def test_frame_lags_are_those_of_the_plan_and_left_out_where_all_are_equal(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    plan = taking_turns(path, 3)
    document = write_library_folder(plan, path, tmp_path)
    source = {operator.id: operator.source or operator.id for operator in document.operators}
    lag = {
        at.operator: at.lag for stage in plan.stages for p in stage.processors for at in p.operators
    }
    (stage,) = document.stages
    for each in stage.processors:
        assert each.lags == tuple(lag[source[step]] for step in each.operators)
        assert len(set(each.lags)) > 1
    depths = {(t.tensor, t.target): t.queue_depth for t in plan.transfers}
    assert {(t.tensor, t.target): t.queue_depth for t in document.transfers} == depths
    assert max(depths.values()) > 2

    (tmp_path / "stages").mkdir()
    document = write_library_folder(plan_for(path, "hybrid"), path, tmp_path / "stages")
    assert all(each.lags is None for stage in document.stages for each in stage.processors)


def test_there_are_as_many_lags_as_operators():
    with pytest.raises(ValidationError, match="'big' has 1 lags for 2 operators"):
        StageProcessor(name="big", operators=("a", "b"), lags=(0,))


def test_more_frames_under_way_than_the_runner_takes_are_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    document = json.loads(taking_turns(path, 3).to_bytes())
    for stage in document["stages"]:
        for processor in stage["processors"]:
            for at in processor["operators"]:
                at["lag"] += 1024
    with pytest.raises(ExportError, match="and the runner takes 1024 at most"):
        write_library_folder(Plan.model_validate_json(json.dumps(document)), path, tmp_path)


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"type": "Cos"}, "is no operator of this format: 'Cos'"),
        ({"inputs": ("x", "w", "b")}, "'y' has 3 inputs"),
        ({"attributes": {}}, "'y' should have the attributes ['perm']"),
        ({"attributes": {"perm": 1}}, "'y': perm should be of the kind integers"),
        ({"activation": {"type": "Erf"}}, "'y' has an activation that is none"),
    ],
)
def test_an_incomplete_operator_is_no_operator(changes, mistake):
    fields = {
        "id": "y",
        "type": "Transpose",
        "inputs": ("x",),
        "outputs": ("y",),
        "attributes": {"perm": (1, 0)},
    }
    assert Operator.model_validate(fields).attributes == {"perm": (1, 0)}
    with pytest.raises(ValidationError) as error:
        Operator.model_validate(fields | changes)
    assert mistake in str(error.value)


def test_a_folded_batch_norm_is_in_the_weights(tmp_path):
    case = one("c", "Conv", (1, 1, 2, 2), constants={"w": np.full((1, 1, 1, 1), 3, np.float32)})
    case.nodes.append(("BatchNormalization", ("y", "g", "o", "m", "v"), ("z",), {"epsilon": 0.0}))
    case.constants |= {
        "g": np.float32([2]), "o": np.float32([5]), "m": np.float32([1]), "v": np.float32([4]),
    }  # fmt: skip
    document = document_of(case.model(), tmp_path)
    content = np.frombuffer((tmp_path / "weights.bin").read_bytes(), "<f4")
    assert [operator.type for operator in document.operators] == ["Conv"]
    offsets = [document.tensors[name].offset // 4 for name in document.operators[0].inputs[1:]]
    assert content[offsets].tolist() == [3 * 2 / 2, 5 - 1 * 2 / 2]


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose", "Gemm"])
def test_parts_of_an_operator_have_one_copy_of_what_is_folded_into_it(tmp_path, kind):
    weights = floats(4, 4) if kind == "Gemm" else floats(4, 4, 1, 1)
    shape = (6, 4) if kind == "Gemm" else (1, 4, 6, 6)
    rule = "*:batch=2" if kind == "Gemm" else "*:rows=2"
    case = one("c", kind, shape, constants={"w": weights, "b": floats(4, seed=2)})
    case.nodes.append(("BatchNormalization", ("y", "g", "o", "m", "v"), ("z",), {}))
    case.constants |= {name: floats(4, seed=3, low=0.5) for name in "gomv"}
    parts, _ = split_proto(case.model(), "case", [read_rule(rule)])
    whole = document_of(case.model(), tmp_path)
    (tmp_path / "weights.bin").unlink()
    document = document_of(parts, tmp_path)
    assert sum(each.type == kind for each in document.operators) == 2
    assert document.weights.size_bytes == whole.weights.size_bytes


def test_operators_with_other_batch_norms_behind_them_share_nothing(tmp_path):
    case = one("c", "Conv", constants={"w": floats(4, 4, 1, 1)})
    case.constants |= {name: floats(4, seed=3, low=0.5) for name in "gomvG"}
    case.nodes += [
        ("BatchNormalization", ("y", "g", "o", "m", "v"), ("p",), {}),
        ("Conv", ("p", "w"), ("q",), {}),
        ("BatchNormalization", ("q", "G", "o", "m", "v"), ("r",), {}),
        ("Conv", ("r", "w"), ("s",), {}),
        ("BatchNormalization", ("s", "g", "o", "m", "v"), ("t",), {"epsilon": 0.5}),
    ]
    document = document_of(case.model(), tmp_path)
    assert len({each.inputs[1:] for each in document.operators}) == 3


def test_weights_in_another_file_give_the_same_folder(tmp_path):
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
    model = inception()
    plan, path = planned(model, tmp_path / "inside")
    write_library_folder(plan, path, tmp_path / "inside")
    outside = tmp_path / "outside" / "model.onnx"
    onnx.save(model, outside, save_as_external_data=True, location="w.bin", size_threshold=0)
    write_library_folder(plan_for(outside), outside, tmp_path / "outside")
    files = [tmp_path / name / "weights.bin" for name in ("inside", "outside")]
    assert files[0].read_bytes() == files[1].read_bytes()
