"""Modules of PyTorch are written by its own exporter; a stand-in takes PyTorch's place here."""

import sys
from types import ModuleType

import pytest

import parapipe
from parapipe.api.torch_export import is_torch_model
from parapipe.errors import ArgumentError, ModelError, OutputError
from tests.cases.recurrent import write_recurrent

OPTIONS = {
    "objectives": "latency-throughput", "draws": 0, "cache": False, "jobs": 1,
    "interleave": "none", "mapper": "heft_cpop", "exclude": ["gpu"], "note": lambda _: None,
}  # fmt: skip
Module = type("Module", (), {"__module__": "torch.nn.modules.module"})
ExportedProgram = type("ExportedProgram", (), {"__module__": "torch.export.exported_program"})


class Tracker(Module):
    """A module that somebody wrote."""


@pytest.fixture
def exports(monkeypatch):
    """Put a stand-in in PyTorch's place; return what its exporter was called with."""
    calls = []

    def export(model, args, path, **options):
        if "refuse" in args:
            raise RuntimeError("Unsupported: data-dependent branch\nmore lines")
        calls.append((type(model).__name__, args, path, options))
        write_recurrent(path)

    torch, torch.onnx = ModuleType("torch"), ModuleType("torch.onnx")
    torch.onnx.export = export
    monkeypatch.setitem(sys.modules, "torch", torch)
    return calls


def test_a_module_is_exported_to_a_file_that_plans_name(tmp_path, exports):
    file = tmp_path / "tracker.onnx"
    front = parapipe.map(
        Tracker(), "amlogic-a311d", example_inputs=("frame",), model_file=file, **OPTIONS
    )
    assert exports == [("Tracker", ("frame",), str(file), {"dynamo": True, "verbose": False})]
    assert front["sequential"].plan().model.name == str(file)
    assert front.document.model == str(file)


def test_a_program_needs_no_example_and_has_its_class_for_a_name(tmp_path, exports, monkeypatch):
    monkeypatch.chdir(tmp_path)
    front = parapipe.map(ExportedProgram(), "amlogic-a311d", **OPTIONS)
    assert exports[0][1:3] == ((), "ExportedProgram.onnx")
    assert front.document.model == "ExportedProgram.onnx"


def test_what_is_missing_or_cannot_be_written_is_said_before_the_search(tmp_path, exports):
    with pytest.raises(ArgumentError, match=r"give what Tracker is called with"):
        parapipe.map(Tracker(), "amlogic-a311d", **OPTIONS)
    with pytest.raises(OutputError, match="is no folder"):
        parapipe.map(
            Tracker(), "amlogic-a311d", example_inputs=(1,), model_file=tmp_path / "a" / "b.onnx"
        )
    with pytest.raises(ModelError, match=r"cannot export Tracker \(Unsupported: data-dependent"):
        parapipe.map(
            Tracker(), "amlogic-a311d", example_inputs=("refuse",), model_file=tmp_path / "c.onnx"
        )
    assert not exports


def test_example_inputs_go_with_a_module_only():
    assert is_torch_model(Tracker())
    assert not is_torch_model("model.onnx")
    with pytest.raises(ArgumentError, match="`example_inputs` goes with a module"):
        parapipe.map("zoo:googlenet", "amlogic-a311d", example_inputs=(1,))
    with pytest.raises(ArgumentError, match=r"a torch\.nn\.Module or an ExportedProgram"):
        parapipe.map(3, "amlogic-a311d")
