"""`parapipe run --runtime`: what is refused before anything is built or run."""

import pytest

from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import plan_for


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    plan_for(path, "pipe-only").save(tmp_path / "plan.json")
    return tmp_path / "plan.json"


def test_an_unknown_runtime_is_refused(parapipe, plan):
    complaint = parapipe("run", plan, "--runtime", "natif").complaint
    assert "there is no runtime 'natif': choose from onnxruntime, native" in complaint


def test_what_only_onnx_runtimes_executor_has_is_refused(parapipe, plan):
    complaint = parapipe("run", plan, "--runtime", "native", "--in-step", "--queue", 3).complaint
    assert "the runtime 'native' takes no --queue, --in-step" in complaint


def test_a_missing_compiler_is_one_line_with_the_packages(parapipe, plan, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr("shutil.which", lambda name: None if "compiler" in name else f"/bin/{name}")
    complaint = parapipe("run", plan, "--runtime", "native").complaint
    assert "'no-such-compiler' is missing: install cmake g++ make nlohmann-json3-dev" in complaint
    assert "pip install onednn-devel-cpu-gomp" in complaint


@pytest.mark.parametrize("strategy", ["barriers", "parapipe.strategies.steal:Steal"])
def test_a_strategy_that_the_runner_has_not_is_refused(parapipe, plan, strategy):
    complaint = parapipe("run", plan, "--runtime", "native", "--strategy", strategy).complaint
    assert f"the native runner has no strategy '{strategy}': choose from plan, ready" in complaint
