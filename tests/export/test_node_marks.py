"""Nodes are marked with processor and stage, in files that ONNX's checker and ONNX Runtime take."""

import json
from pathlib import Path

import onnx
import onnxruntime
import pytest

from parapipe.export.onnxruntime.folder import write_session_folder
from tests.cases.split_models import MODELS, random_plan, written


@pytest.fixture
def exported(tmp_path: Path):
    """A plan of several stages and processors, and its folder."""

    def write(name, seed=5):
        path = written(MODELS[name](), tmp_path)
        shapes = {"unused": (3, 7)} if name == "many_inputs" else None
        plan = random_plan(path, seed, granularity="onnx", shapes=shapes)
        folder = tmp_path / "out"
        folder.mkdir()
        return plan, folder, write_session_folder(plan, path, folder)

    return write


def layer(node):
    return {entry.key: entry.value for entry in node.metadata_props}["layer_ann"]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_file_passes_the_checker_of_onnx(exported, name) -> None:
    _, folder, document = exported(name)
    for file in (*(segment.file for segment in document.segments), document.whole.file):
        # ONNX's shape inference knows no sparse initializers.
        onnx.checker.check_model(folder / file, full_check=name != "sparse")


def test_segments_are_of_ir_version_10_and_name_their_processor(exported) -> None:
    plan, folder, document = exported("folded")
    assert len(plan.stages) > 1
    for segment in document.segments:
        model = onnx.load(folder / segment.file)
        assert model.ir_version == 10
        assert {layer(node) for node in model.graph.node} == {segment.processor}
        about = onnxruntime.InferenceSession(folder / segment.file).get_modelmeta()
        assert about.custom_metadata_map == {
            "parapipe.segment": segment.id,
            "parapipe.processor": segment.processor,
            "parapipe.stage": str(segment.stage),
        }


def test_the_whole_network_says_stage_and_device_of_each_node(exported) -> None:
    plan, folder, document = exported("folded")
    network = onnx.load(folder / "network.onnx")
    assert network.ir_version == 11
    (configuration,) = network.configuration
    names = [processor.name for processor in plan.processors]
    assert (configuration.name, configuration.num_devices) == (
        document.whole.configuration,
        len(names),
    )
    assert list(configuration.device) == names
    placed = {
        name: (at.stage, at.processor)
        for at in document.segments
        for node in onnx.load(folder / at.file).graph.node
        for name in node.output
    }
    seen = set()
    for node in network.graph.node:
        (at,) = node.device_configurations
        assert at.configuration_id == configuration.name
        for spec in at.sharding_spec:
            assert (at.pipeline_stage, names[spec.device[0]]) == placed[spec.tensor_name]
            assert layer(node) == names[spec.device[0]]
            seen.add(spec.tensor_name)
    assert seen == placed.keys()


def test_onnx_runtime_takes_the_layer_assignment(exported) -> None:
    _, folder, document = exported("folded")
    options = onnxruntime.SessionOptions()
    assert document.whole.layer_assignment.startswith("cpu(=")
    options.add_session_config_entry(
        "session.layer_assignment_settings", document.whole.layer_assignment
    )
    onnxruntime.InferenceSession(
        folder / "network.onnx", options, providers=["CPUExecutionProvider"]
    )


def test_weights_stand_once_with_their_segment_or_among_the_shared(tmp_path) -> None:
    path = written(MODELS["shared"](), tmp_path)
    plan = random_plan(path, 1, granularity="onnx")
    folder = tmp_path / "out"
    folder.mkdir()
    write_session_folder(plan, path, folder)
    readers = {"w": set(), "v": set()}
    for segment in json.loads((folder / "plan.json").read_text())["segments"]:
        for tensor in onnx.load(
            folder / segment["file"], load_external_data=False
        ).graph.initializer:
            readers[tensor.name].add(segment["id"])
            location = {entry.key: entry.value for entry in tensor.external_data}["location"]
            assert location in ("shared.bin", f"{segment['id']}.bin")
    sizes = {p.name: p.stat().st_size for p in folder.glob("*.bin")}
    alone = {next(iter(ids)) for ids in readers.values() if len(ids) == 1}
    several = sum(len(ids) > 1 for ids in readers.values())
    assert several
    expected = {f"{each}.bin" for each in alone} | {"shared.bin"}
    assert sizes.keys() == expected
