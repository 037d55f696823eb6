"""Each segment is a plain ONNX model, and all of them, one after the other, are the whole one."""

import hashlib
import json

import onnx
import pytest

import parapipe
from parapipe.errors import OutputError
from parapipe.export import segment_files
from parapipe.export.segment_files import write_segments
from parapipe.export.targets import target
from tests.cases.session_runs import assert_equal, frame, run_whole, session
from tests.cases.split_models import MODELS, placed_plan, random_plan, written


def segments_of(folder):
    document = json.loads((folder / "manifest.json").read_text())
    assert document["schema"] == "parapipe/segments/1"
    return document


def run_in_turn(folder, feeds):
    """Run the models in the manifest's order, each fed by those that it names."""
    document = segments_of(folder)
    made = {(None, name): array for name, array in feeds.items()}
    for segment in document["segments"]:
        path = folder / segment["file"]
        sparse = onnx.load(path, load_external_data=False).graph.sparse_initializer
        onnx.checker.check_model(path, full_check=not sparse)  # ONNX infers no shapes from these
        opened = session(path)
        assert [each.name for each in opened.get_inputs()] == names(segment["inputs"])
        given = {each["name"]: made[each.get("from"), each["name"]] for each in segment["inputs"]}
        outputs = names(segment["outputs"])
        for value, array in zip(segment["outputs"], opened.run(outputs, given), strict=True):
            if not isinstance(array, list):
                assert (str(array.dtype), list(array.shape)) == (value["dtype"], value["shape"])
            made[segment["id"], value["name"]] = array
    return {each["name"]: made[each["from"], each["name"]] for each in document["outputs"]}


def names(values):
    return [each["name"] for each in values]


def feeds_of(document):
    tensors = {each["name"]: each for each in document["inputs"]}
    return frame({"inputs": list(tensors), "tensors": tensors})


def exported(place, *, name="folded", external=False):
    path = written(MODELS[name](), place, external=external)
    plan = placed_plan(path, lambda v, count: (3 * v // count,) * 2)
    folder = place / "out"
    return plan, path, target("segments")(plan, path, folder), folder


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_all_segments_one_after_the_other_give_what_the_whole_gives(
    name, external, seed, tmp_path
) -> None:
    path = written(MODELS[name](), tmp_path, external=external)
    shapes = {"unused": (3, 7)} if name == "many_inputs" else None
    plan = random_plan(path, seed, granularity=("fused", "onnx")[seed % 2], shapes=shapes)
    (tmp_path / "out").mkdir()
    write_segments(plan, path, tmp_path / "out")
    feeds = feeds_of(segments_of(tmp_path / "out"))
    found = run_in_turn(tmp_path / "out", feeds)
    assert_equal(found, run_whole(path, feeds, list(found)))


def test_the_manifest_says_what_the_plan_and_the_files_say(tmp_path) -> None:
    plan, _, made, folder = exported(tmp_path)
    document = segments_of(folder)
    files = {path.relative_to(folder).as_posix() for path in made.files}
    assert files == {"README.md", "manifest.json", *(each["file"] for each in document["segments"])}
    held = [name for each in document["segments"] for name in each["operators"]]
    assert sorted(held) == sorted(each.id for each in plan.operators)
    for number, segment in enumerate(document["segments"]):
        assert segment["file"] == f"segments/{number:03d}-{segment['processor']}.onnx"
        content = (folder / segment["file"]).read_bytes()
        assert segment["sha256"] == hashlib.sha256(content).hexdigest()
        assert "weights" not in segment
    times_s = {
        at.operator: at.end_s - at.start_s
        for stage in plan.stages for processor in stage.processors for at in processor.operators
    }  # fmt: skip
    for segment in document["segments"]:
        assert segment["time_s"] == pytest.approx(sum(times_s[v] for v in segment["operators"]))
    assert len(document["transfers"]) == len(plan.transfers)
    assert names(document["processors"]) == [each.name for each in plan.processors]


def test_a_segment_holds_nothing_but_the_network(tmp_path) -> None:
    path = written(MODELS["folded"](), tmp_path)
    model = onnx.load(path)
    model.metadata_props.add(key="author", value="somebody")
    for node in model.graph.node:
        node.metadata_props.add(key="layer_ann", value="elsewhere")
        node.doc_string = "of a framework"
    onnx.save(model, path)
    plan = placed_plan(path, lambda v, _: (0, v % 2))
    target("segments")(plan, path, tmp_path / "out")
    for segment in segments_of(tmp_path / "out")["segments"]:
        found = onnx.load(tmp_path / "out" / segment["file"])
        assert not found.metadata_props
        assert not found.functions
        assert all(not node.metadata_props and not node.doc_string for node in found.graph.node)
        assert {each.domain: each.version for each in found.opset_import} == {
            each.domain: each.version for each in model.opset_import
        }
        for value in (*found.graph.input, *found.graph.output):
            extents = value.type.tensor_type.shape.dim
            assert all(each.HasField("dim_value") for each in extents)


def test_the_same_plan_gives_the_same_bytes(tmp_path) -> None:
    plan, path, made, folder = exported(tmp_path)
    again = target("segments")(plan, path, tmp_path / "again")
    assert len(made.files) == len(again.files) > 2
    for one, other in zip(made.files, again.files, strict=True):
        assert one.relative_to(folder) == other.relative_to(tmp_path / "again")
        assert one.read_bytes() == other.read_bytes()


def test_weights_that_do_not_fit_into_a_model_stand_beside_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(segment_files, "MOST_BYTES", segment_files.MARGIN_BYTES + 2000)
    plan, path, _, folder = exported(tmp_path)
    document = segments_of(folder)
    beside = [each["weights"] for each in document["segments"] if "weights" in each]
    assert 0 < len(beside) < len(document["segments"])
    for each in beside:
        content = (folder / each["file"]).read_bytes()
        assert each["sha256"] == hashlib.sha256(content).hexdigest()
    feeds = feeds_of(document)
    found = run_in_turn(folder, feeds)
    assert_equal(found, run_whole(path, feeds, list(found)))
    assert target("segments")(plan, path, folder).files


def test_its_own_export_is_replaced_and_nothing_else(tmp_path) -> None:
    plan, path, _, folder = exported(tmp_path)
    stale = folder / segments_of(folder)["segments"][0]["file"]
    stale.write_bytes(b"")
    target("segments")(plan, path, folder)
    assert stale.stat().st_size > 0
    own = folder / "segments" / "notes.txt"
    own.write_text("mine")
    with pytest.raises(OutputError, match=r"holds 'segments/notes.txt', which no export"):
        target("segments")(plan, path, folder)
    own.unlink()
    (folder / "manifest.json").write_text('{"schema": "parapipe/segments/1", "segments": [7]}')
    with pytest.raises(OutputError, match=r"holds 'segments', which no export has written"):
        target("segments")(plan, path, folder)


def test_a_plan_of_a_front_is_exported_by_the_command_of_its_target(branchy_front, tmp_path):
    plan = branchy_front["hybrid-T"].plan()
    made = parapipe.export_plan(plan, "segments", tmp_path / "out")
    document = segments_of(tmp_path / "out")
    assert made.summary[0].startswith(f"segments    {len(document['segments'])}: ")
    assert document["predicted"]["period_s"] == plan.predicted.period_s
