"""Node data for Model Explorer: ids as its ONNX adapter gives them, values that add up."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto, helper

from parapipe.errors import ExportError
from parapipe.plan.schema import Plan
from parapipe.targets.model_explorer import COLOURS, export, model_nodes
from tests.cases.plan_cases import drawn_plan
from tests.cases.split_models import MODELS, random_plan, written


def node(kind, source, made, name="", **attributes):
    return helper.make_node(kind, [source], made.split(), name=name, **attributes)


def body(tag, names):
    nodes = [node("Relu", "x", f"{tag}0", names[0]), node("Neg", f"{tag}0", f"{tag}1", names[1])]
    value = helper.make_tensor_value_info(f"{tag}1", TensorProto.FLOAT, (1,))
    return helper.make_graph(nodes, tag, [], [value])


def test_nodes_without_a_name_of_their_own_get_the_adapters():
    """The ids are those that NameFixPass of onnx-ir 1.1.0 gave this graph."""
    branches = {
        "then_branch": body("t", ["", ""]), "else_branch": body("f", ["dup", "dup"])
    }  # fmt: skip
    nodes = [
        node("Relu", "x", "a"),
        node("Relu", "a", "b", "node"),
        node("Relu", "b", "c", "dup"),
        node("Relu", "c", "d", "dup"),
        node("If", "cond", "e", **branches),
        node("Relu", "e", "g"),
        node("Relu", "g", "i", "dup"),
        node("Relu", "i", "j", "node_3"),
        node("Split", "j", "k l", num_outputs=2),
    ]
    found = {
        node.outputs[0]: node.id for node in model_nodes(helper.make_graph(nodes, "m", [], []))
    }
    assert found == {
        "a": "node", "b": "node_1", "c": "dup", "d": "dup_1", "e": "node_2", "g": "node_4",
        "i": "dup_3", "j": "node_3", "k": "node_5",
    }  # fmt: skip


@pytest.fixture
def exported(tmp_path):
    """The plan of a model with batch-norms and scales to fold, what was written, the model."""
    path = written(MODELS["folded"](), tmp_path)
    plan = random_plan(path, 5, granularity="fused")
    done = export(plan, path, tmp_path / "out")
    data = {
        file.stem: json.loads(file.read_text()) for file in done.files if file.suffix == ".json"
    }
    return plan, done, data, onnx.load(path)


def test_there_is_a_file_for_each_kind_of_data(exported):
    _, done, data, _ = exported
    assert list(data) == ["stage", "processor", "time", "energy"]
    assert done.size_bytes == sum(file.stat().st_size for file in done.files)
    assert done.notes == ()


def ids_of(model):
    return {node.outputs[0]: node.id for node in model_nodes(model.graph)}


def test_every_node_that_is_run_or_folded_has_a_stage_and_a_processor(exported):
    plan, _, data, model = exported
    ids = ids_of(model)
    # Dropouts and an Identity vanish.
    run = {ids[name] for name in ("a", "b", "early", "c", "d", "f", "g", "h", "j", "k2")}
    assert set(data["stage"]["results"]) == set(data["processor"]["results"]) == run
    names = {processor.name for processor in plan.processors}
    assert {each["value"] for each in data["processor"]["results"].values()} == names
    for kind in ("stage", "processor"):
        found = {(r["value"], r["bgColor"]) for r in data[kind]["results"].values()}
        assert len(found) == len({value for value, _ in found})
        assert {colour for _, colour in found} <= set(COLOURS)


def test_times_and_energies_add_up_to_those_of_the_plan(exported):
    plan, _, data, _ = exported
    placed = [
        at for stage in plan.stages for processor in stage.processors for at in processor.operators
    ]
    for kind, total in (
        ("time", sum(at.end_s - at.start_s for at in placed)),
        ("energy", sum(at.energy_j for at in placed)),
    ):
        shown = data[kind]["results"].values()
        assert sum(each["value"] for each in shown) == pytest.approx(1e3 * total, rel=1e-5)
        assert [stop["stop"] for stop in data[kind]["gradient"]] == [0, 1]


def test_what_goes_into_an_operator_is_shown_where_that_runs(exported):
    _, _, data, model = exported
    ids = ids_of(model)
    stages, times = data["stage"]["results"], data["time"]["results"]
    for whole, part in (("a", "b"), ("a", "early"), ("j", "h")):
        assert stages[ids[whole]] == stages[ids[part]]
        assert ids[whole] in times
        assert ids[part] not in times
    assert ids["k2"] in times  # the Softmax, though its result goes by the name behind an Identity


def test_a_plan_without_energies_has_no_file_of_them(exported, tmp_path):
    plan, *_ = exported
    document = json.loads(plan.to_bytes())
    for stage in document["stages"]:
        for processor in stage["processors"]:
            for at in processor["operators"]:
                del at["energy_j"]
    older = Plan.model_validate_json(json.dumps(document))
    done = export(older, written(MODELS["folded"](), tmp_path), tmp_path / "older")
    assert [file.name for file in done.files] == [
        "stage.json", "processor.json", "time.json", "README.md",
    ]  # fmt: skip
    assert len(done.notes) == 1


def test_a_folder_has_to_be_named(tmp_path):
    with pytest.raises(ExportError, match="name it"):
        export(drawn_plan(), tmp_path / "any.onnx", None)
