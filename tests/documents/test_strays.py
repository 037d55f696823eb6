"""Where operators were planned, and where they ran."""

import json
from types import SimpleNamespace

import pytest

import parapipe
from parapipe.profiling.detect import MachineFigures, clusters_here, platform_text
from parapipe.profiling.figures import Figures
from parapipe.profiling.identical_figures import HandOver
from parapipe.runtime import sessions
from tests.cases.small_network import saved

FIGURES = Figures({"float32": 2e10, "int32": 3e9}, 1e-6, 8e9, 2e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A plan on two processors, of which this ONNX Runtime has no provider for the second."""
    place = tmp_path_factory.mktemp("strays")
    first, *others = clusters_here(split=2)[:2]
    second = others[0] if others else SimpleNamespace(**{**vars_of(first), "name": "cpu1"})
    pairs = dict.fromkeys([(0, 1), (1, 0)], HandOver(1e-5, 1e12, 0.1))
    text = platform_text("here", (first, second), MachineFigures((FIGURES,) * 2, pairs, {}))
    head, tail = text.split("- name: cpu1")
    platform = place / "here.yaml"
    tail = tail.replace("onnxruntime-cpu", "onnxruntime-openvino", 1)
    platform.write_text(f"{head}- name: cpu1{tail}")
    options = {"cache": False, "jobs": 1, "draws": 0, "note": lambda _note: None}
    front = parapipe.map(saved(place), str(platform), **options)
    return parapipe.run_plan(front["pipe-only"].plan(), frames=8)


def vars_of(record):
    return {name: getattr(record, name) for name in type(record).__dataclass_fields__}


def test_a_run_says_which_operators_ran_elsewhere_and_what_that_takes(run):
    (stray,) = run.document.strays
    own = [task for task in run.document.tasks if task.resource == "cpu1" and task.operators]
    assert (stray.processor, stray.backend) == ("cpu1", "onnxruntime-openvino")
    assert stray.provider == "CPUExecutionProvider"
    assert "does not offer OpenVINOExecutionProvider" in stray.why
    assert set(stray.operators) == {name for task in own for name in task.operators}
    assert sum(stray.types.values()) == len(stray.operators)
    observed_s = sum(task.observed_s for task in own)
    assert stray.lost_s == max(0, observed_s - sum(task.predicted_s for task in own))
    assert stray.sentence() in run.notes


def test_compare_says_it_too(run, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run.to_json()))
    (stray,) = run.document.strays
    assert any(stray.sentence() in note for note in parapipe.compare(path).notes)


def test_nodes_that_a_provider_leaves_are_told_by_name():
    def part(provider, *names):
        nodes = [SimpleNamespace(name=name) for name in names]
        return SimpleNamespace(ep_name=provider, get_nodes=lambda: nodes)

    parts = [part("QNN", "conv"), part("CPU", "lrn", "softmax")]
    opened = {"one": SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)}
    (segment,) = [SimpleNamespace(id="one", on_cpu=())]
    strays = sessions._stray_nodes(opened, "QNN", [segment])
    assert strays == {"one": {"lrn": "CPU", "softmax": "CPU"}}
    assert sessions._stray_nodes(opened, "CPU", [segment]) == {"one": {"conv": "QNN"}}
