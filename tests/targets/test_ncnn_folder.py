"""What the target ncnn refuses before it looks for its tools, and what it says without them."""

import json

import pytest

import parapipe
from parapipe.errors import ArgumentError, ExportError
from parapipe.plan.schema import Plan
from parapipe.targets.ncnn import tools
from parapipe.targets.ncnn.folder import export
from tests.cases.split_models import MODELS, placed_plan, written


def three_stages(folder, **changes):
    """A plan of the model `folded` on big, little and gpu; processors get the changes by name."""
    path = written(MODELS["folded"](), folder)
    plan = placed_plan(path, lambda v, count: (3 * v // count,) * 2)
    document = json.loads(plan.to_bytes())
    for each in document["processors"]:
        each.update(changes.get(each["name"], {}))
    return Plan.model_validate_json(json.dumps(document)), path


def refusal(plan, path, folder):
    with pytest.raises(ExportError) as raised:
        parapipe.export_plan(plan, "ncnn", folder / "board", model=path)
    assert not (folder / "board").exists()
    return str(raised.value)


def test_a_plan_with_an_npu_is_refused_with_what_to_leave_out(tmp_path):
    plan, path = three_stages(tmp_path, gpu={"kind": "npu"})
    told = refusal(plan, path, tmp_path)
    assert told.startswith("the plan uses gpu (npu), and ncnn runs on CPUs and GPUs: map with ")
    assert "`--exclude gpu`" in told


def test_a_plan_in_int8_is_refused(tmp_path):
    plan, path = three_stages(tmp_path)
    plan = plan.model_copy(update={"precision": "int8"})
    with pytest.raises(ExportError, match="for int8, and the target ncnn computes in float32 or f"):
        export(plan, path, tmp_path / "board")


@pytest.mark.parametrize("missing", [("pnnx",), ("ncnn",), ("pnnx", "ncnn")])
def test_tools_that_are_not_installed_are_named_with_their_installation(
    tmp_path, monkeypatch, missing
):
    def version(name):
        if name in missing:
            raise tools.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(tools, "version", version)
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    program = None if "pnnx" in missing else "/usr/bin/pnnx"
    monkeypatch.setattr(tools.shutil, "which", lambda name: program)
    told = refusal(*three_stages(tmp_path), tmp_path)
    are = "are" if len(missing) > 1 else "is"
    assert told.startswith(f"{' and '.join(missing)} {are} not installed, and the target ncnn")
    assert told.endswith("pip install --no-deps pnnx && pip install ncnn")


def test_sequences_between_segments_are_refused_by_name(tmp_path, monkeypatch):
    path = written(MODELS["sequences"](), tmp_path)
    plan = placed_plan(path, lambda v, count: (3 * v // count,) * 2)
    there = tools.Tools(tmp_path / "pnnx", "1.0")
    monkeypatch.setattr("parapipe.targets.ncnn.folder.find_tools", lambda: there)
    told = refusal(plan, path, tmp_path)
    assert "s, b, c hand on what is no tensor, and ncnn knows nothing else" in told


def test_it_takes_no_samples(tmp_path):
    plan, path = three_stages(tmp_path)
    with pytest.raises(ArgumentError, match="the target 'ncnn' takes no `check`"):
        parapipe.export_plan(plan, "ncnn", tmp_path / "out", model=path, check=True)
