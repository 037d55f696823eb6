"""Two of ONNX Runtime's execution providers in one plan: its own kernels and OpenVINO's.

The package with OpenVINO takes the place of the plain one, so `make test-providers` makes an
environment of its own for this file; elsewhere it is left out.
"""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import parapipe
from parapipe.cost.profile import read_profile
from parapipe.profiling import measure
from parapipe.profiling.detect import MachineFigures, clusters_here, platform_text
from parapipe.profiling.figures import Figures
from parapipe.profiling.identical_figures import HandOver
from parapipe.runtime.folder import open_folder
from parapipe.runtime.sessions import open_sessions, pin_thread
from tests.cases.session_runs import assert_equal, session
from tests.cases.small_network import saved

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
LENT = sorted(os.sched_getaffinity(0))
FRAMES = 20
FIGURES = Figures({"float32": 2e10, "int32": 3e9}, 1e-6, 8e9, 2e-5)

pytestmark = pytest.mark.skipif(
    OPENVINO not in ort.get_available_providers() and "PARAPIPE_PROVIDERS" not in os.environ,
    reason="this ONNX Runtime has no OpenVINO: make test-providers",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("two-providers")


@pytest.fixture(scope="module")
def model(place):
    return saved(place)


def platform_file(path, options="{}"):
    """Two processors of one core, the second with OpenVINO; a core that is lacking is the first."""
    clusters = clusters_here(split=2)[:2]
    if len(clusters) < 2:
        (only,) = clusters
        clusters = (only, replace(only, name="cpu1"))
    pairs = dict.fromkeys([(0, 1), (1, 0)], HandOver(1e-5, 1e12, 0.1))
    text = platform_text("here", clusters, MachineFigures((FIGURES,) * 2, pairs, {}))
    first, second = text.split("- name: cpu1")
    second = second.replace("onnxruntime-cpu", f"onnxruntime-openvino\n  options: {options}", 1)
    path.write_text(f"{first}- name: cpu1{second}")
    return path


@pytest.fixture(scope="module")
def platform(place):
    return platform_file(place / "here.yaml")


def planned(model, platform, path):
    front = parapipe.map(model, str(platform), cache=False, jobs=1, note=lambda _note: None)
    plan = front["pipe-only"].plan()
    assert {each.name for each in plan.processors} == {"cpu0", "cpu1"}
    plan.save(path)
    return path


@pytest.fixture(scope="module")
def plan(model, platform, place):
    return planned(model, platform, place / "plan.json")


@pytest.fixture(scope="module")
def frames(place):
    path = place / "in.npz"
    np.savez(path, data=np.random.default_rng(3).random((FRAMES, 1, 3, 16, 16), np.float32))
    return path


def assert_results(model, frames, kept):
    opened = session(model)
    with np.load(frames) as given, np.load(kept) as results:
        assert results["prob"].shape == (FRAMES, 1, 10)
        for data, prob in zip(given["data"], results["prob"], strict=True):
            (expected,) = opened.run(["prob"], {"data": data})
            assert_equal({"prob": prob}, {"prob": expected})


def test_results_are_those_of_one_session_and_each_provider_ran_its_own_nodes(
    model, plan, frames, tmp_path
):
    kept = tmp_path / "out.npz"
    run = parapipe.run_plan(plan, input=frames, keep=kept, saturate=True)
    assert_results(model, frames, kept)
    one, other = run.to_json()["providers"]
    assert (one["processor"], one["provider"], one["substitute"]) == ("cpu0", CPU, None)
    assert (other["processor"], other["provider"], other["substitute"]) == ("cpu1", OPENVINO, None)
    assert set(one["nodes"]) == {CPU}
    assert set(other["nodes"]) == {OPENVINO}
    assert min(*one["nodes"].values(), *other["nodes"].values()) > 0
    assert other["options"]["device_type"] == "CPU"
    assert other["options"]["num_of_threads"] == "1"
    assert not any("cpu1" in note for note in run.notes if "core" not in note)


@pytest.fixture(scope="module")
def exported(plan, place):
    parapipe.export_plan(plan, "onnxruntime", place / "board")
    return place / "board"


def test_an_exported_folder_runs_with_both_without_parapipe(model, exported, frames, tmp_path):
    kept = tmp_path / "out.npz"
    done = subprocess.run(
        [sys.executable, str(exported / "run.py"), "--input", str(frames), "--json",
         "--saturate", "--keep", str(kept)],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert_results(model, frames, kept)
    used = {each["processor"]: each for each in json.loads(done.stdout)["providers"]}
    assert (used["cpu0"]["provider"], used["cpu1"]["provider"]) == (CPU, OPENVINO)
    assert set(used["cpu1"]["nodes"]) == {OPENVINO}


def test_what_the_run_says_of_providers_is_what_onnx_runtimes_profiler_saw(exported, tmp_path):
    folder = open_folder(exported)
    processors = {each.name: each for each in folder.processors}
    for segment in folder.segments:
        processor = processors[segment.processor]
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / segment.id)
        wanted = [(processor.provider, dict(processor.options))]
        opened = ort.InferenceSession(str(exported / segment.file), options, providers=wanted)
        opened.run(None, zeros(folder, segment))
        events = json.loads(Path(opened.end_profiling()).read_text())
        ran = {each.get("args", {}).get("provider") for each in events} - {None}
        assert ran == {processor.provider}


def zeros(folder, segment):
    return {name: np.zeros(folder.tensors[name].shape, np.float32) for name in segment.inputs}


def test_a_thread_stays_on_its_core_while_openvino_works_for_it(exported):
    folder = open_folder(exported)
    (segment,) = (each for each in folder.segments if each.processor == "cpu1")
    (processor,) = (each for each in folder.processors if each.name == "cpu1")
    opened, _ = open_sessions(folder)
    feeds = zeros(folder, segment)
    found = []

    def work():
        pin_thread(processor.cores)
        for _ in range(3):
            opened[segment.processor, segment.id].run(None, feeds)
            found.append(tuple(os.sched_getaffinity(0)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [processor.cores] * 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("{device_type: NPU}", "its library, its device or one of its options is not there"),
        ("{devise_type: CPU}", "Invalid OpenVINO EP option: devise_type"),
    ],
)
def test_a_provider_that_cannot_be_made_is_told_and_the_cpu_takes_over(
    model, frames, tmp_path, options, reason
):
    plan = planned(model, platform_file(tmp_path / "p.yaml", options), tmp_path / "plan.json")
    kept = tmp_path / "out.npz"
    run = parapipe.run_plan(plan, input=frames, keep=kept, saturate=True)
    assert_results(model, frames, kept)
    (note,) = (note for note in run.notes if OPENVINO in note)
    assert note.startswith(f"'cpu1' is run by {CPU}, since {OPENVINO} cannot be used: ")
    assert reason in note
    used = run.document.providers[1]
    assert (used.provider, used.options, set(used.nodes)) == (CPU, {}, {CPU})


@pytest.mark.usefixtures("short_rounds")
def test_a_profile_measures_each_processor_with_its_provider(
    model, platform, monkeypatch, tmp_path
):
    opened = measure.session
    seen = set()

    def watched(model, threads, provider, *others):
        found = opened(model, threads, provider, *others)
        seen.add((provider, found.get_providers()[0]))
        return found

    monkeypatch.setattr(measure, "session", watched)
    report = parapipe.profile(model, platform, out=tmp_path / "rows.csv")
    rows = read_profile(report.path).measurements
    assert report.measured == len(rows) == 12
    assert {row.processor for row in rows} == {"cpu0", "cpu1"}
    assert seen == {(CPU, CPU), (OPENVINO, OPENVINO)}
