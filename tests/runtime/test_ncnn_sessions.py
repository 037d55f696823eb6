"""Segments of ncnn in the runner, with a stand-in for the package; a run against saved results."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from parapipe.runtime.command import main
from parapipe.runtime.document import Processor, Segment, Tensor
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import RunError
from parapipe.runtime.ncnn_sessions import NcnnError, missing_device, open_ncnn_session
from parapipe.runtime.sessions import ProviderUse
from tests.cases.hand_made import hybrid

TENSORS = {
    "x": Tensor("float32", (1, 2, 3), 24),
    "ids": Tensor("int64", (4,), 32),
    "y": Tensor("float32", (1, 6), 24),
}
SEGMENT = Segment(
    id="00-big", file="00-big.param", processor="big", stage=0, lag=0, position=0,
    inputs=("x", "ids"), outputs=("y",), operators=(), start_s=0.0, end_s=1.0, time_s=1.0,
)  # fmt: skip
PARAM = """7767517
3 3
Input in1 0 1 in1 0=4
Input in0 0 1 in0 0=3 1=2
Concat cat 2 1 in0 in1 out0 0=0
"""


def processor(**changes):
    return replace(
        Processor(name="gpu", kind="gpu", cores=(), threads=3, provider="ncnn", frequency_hz=1.0),
        **changes,
    )


class Mat(np.ndarray):
    def __new__(cls, array):
        return np.asarray(array).view(cls)

    def clone(self):
        return self.copy()


class Extractor:
    def __init__(self, net):
        self.net = net

    def input(self, blob, mat):
        self.net.given[blob] = mat
        return self.net.input_code

    def extract(self, blob):
        return self.net.extract_code, self.net.results[blob]


class Net:
    load_code = input_code = extract_code = 0

    def __init__(self):
        self.opt = SimpleNamespace(
            num_threads=0, use_vulkan_compute=None, use_fp16_packed=True, use_fp16_storage=True,
            use_fp16_arithmetic=True, use_bf16_storage=True,
        )  # fmt: skip
        self.given, self.device = {}, None
        self.results = {"out0": Mat(np.arange(6, dtype=np.float32))}
        package.nets.append(self)

    def set_vulkan_device(self, number):
        self.device = number

    def load_param(self, path):
        return self.load_code if path.endswith(".param") else -1

    def load_model(self, path):
        return 0 if path.endswith("00-big.bin") else -1

    def create_extractor(self):
        return Extractor(self)


package = SimpleNamespace(Net=Net, Mat=Mat, get_gpu_count=lambda: 1, nets=[])


@pytest.fixture(autouse=True)
def stands_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "ncnn", package)
    package.nets.clear()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / SEGMENT.file).write_text(PARAM)
    return tmp_path


def frame():
    return {"x": np.ones((1, 2, 3), np.float32), "ids": np.arange(4)}


def test_inputs_have_the_sizes_of_the_file_and_outputs_those_of_the_plan(folder):
    session = open_ncnn_session(folder, SEGMENT, processor(), TENSORS)
    (y,) = session.run(["y"], frame())
    assert (y.shape, y.dtype) == ((1, 6), np.float32)
    assert y.reshape(-1).tolist() == [0, 1, 2, 3, 4, 5]
    (net,) = package.nets
    assert net.given["in0"].shape == (2, 3)
    assert (net.given["in1"].shape, net.given["in1"].dtype) == ((4,), np.int32)


def test_a_frame_is_copied_since_layers_write_over_what_they_read(folder):
    given = frame()
    open_ncnn_session(folder, SEGMENT, processor(), TENSORS).run(["y"], given)
    assert not np.shares_memory(package.nets[0].given["in0"], given["x"])


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("vulkan", [False, True])
def test_options_of_a_processor_are_those_of_its_nets(folder, half, vulkan):
    options = {**({"float16": "1"} if half else {}), **({"vulkan": "2"} if vulkan else {})}
    open_ncnn_session(folder, SEGMENT, processor(options=options), TENSORS)
    (net,) = package.nets
    assert net.opt.num_threads == 3
    assert net.opt.use_fp16_packed is net.opt.use_fp16_storage is half
    assert net.opt.use_fp16_arithmetic is half
    assert net.opt.use_bf16_storage is False
    assert net.opt.use_vulkan_compute is vulkan
    assert net.device == (2 if vulkan else None)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("load_code", "does not take 00-big.param; is the file whole"),
        ("input_code", "does not take its input 'x'"),
        ("extract_code", "extract of 'y' has returned -100; is memory left"),
    ],
)
def test_a_fault_of_ncnn_is_one_sentence(folder, monkeypatch, code, words):
    monkeypatch.setattr(Net, code, -100)
    with pytest.raises(NcnnError, match=words):
        open_ncnn_session(folder, SEGMENT, processor(), TENSORS).run(["y"], frame())


def test_an_output_of_another_size_is_told(folder):
    session = open_ncnn_session(folder, SEGMENT, processor(), TENSORS)
    package.nets[0].results["out0"] = Mat(np.zeros(5, np.float32))
    with pytest.raises(NcnnError, match=r"is float32\[5\] and should be float32\[1,6\]"):
        session.run(["y"], frame())


def test_without_the_package_it_is_said_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ncnn", None)
    with pytest.raises(NcnnError, match="install the package ncnn"):
        open_ncnn_session(folder, SEGMENT, processor(), TENSORS)


@pytest.mark.parametrize(
    ("device", "count", "why"),
    [
        ("0", 1, ""),
        ("0", 0, "ncnn finds no Vulkan device here"),
        ("1", 1, "ncnn finds only 1 Vulkan device here"),
        ("2", 2, "ncnn finds only 2 Vulkan devices here"),
    ],
)
def test_a_gpu_that_is_not_there_is_told(monkeypatch, device, count, why):
    monkeypatch.setattr(package, "get_gpu_count", lambda: count)
    assert missing_device(processor(options={"vulkan": device})) == why
    assert missing_device(processor()) == ""


def test_the_cpu_that_stands_in_for_a_gpu_is_told():
    use = ProviderUse("gpu", "ncnn", {}, None, "ncnn finds no Vulkan device here", {})
    (sentence,) = use.sentences()
    assert sentence == "'gpu' is run by ncnn on the CPU, since ncnn finds no Vulkan device here"


def test_a_gpu_that_is_given_cores_stays_with_ncnn_and_leaves_vulkan(tmp_path):
    plan = hybrid(tmp_path)
    gpu = replace(
        plan.processors[1], kind="gpu", provider="ncnn", options={"vulkan": "0", "float16": "1"}
    )
    plan = replace(plan, processors=(plan.processors[0], gpu, *plan.processors[2:]))
    moved = plan.on_cores({gpu.name: [0]}).processors[1]
    assert (moved.provider, dict(moved.options)) == ("ncnn", {"float16": "1"})
    assert (moved.cores, moved.threads, moved.threads_option) == ((0,), 1, "num_threads")


def saved(path, factor=1.0, half=False):
    """A folder with two frames and their results, which a factor makes wrong."""
    plan = hybrid(path, cores={})
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    y = np.stack([each["y"] for each in Executor(plan).run([{"x": frame} for frame in x])])
    np.savez(path / "sample.npz", x=x)
    np.savez(path / "expected.npz", y=y / np.float32(factor))
    if half:
        document = json.loads((path / "plan.json").read_text())
        document["processors"][0]["options"] = {"float16": "1"}
        (path / "plan.json").write_text(json.dumps(document))
    return plan


@pytest.mark.parametrize(
    ("factor", "half", "code"), [(1.0, False, 0), (1.0009, False, 0), (1.0011, False, 1),
                                 (1.04, True, 0), (1.06, True, 1)]
)  # fmt: skip
def test_results_are_compared_with_those_that_are_saved(tmp_path, capsys, factor, half, code):
    saved(tmp_path, factor, half)
    assert main([str(tmp_path), "--check", "--frames", "4", "--saturate"]) == code
    told = capsys.readouterr().err
    assert "results differ from expected.npz by" in told
    assert ("is allowed" in told) == (code == 1)


def test_numbers_that_are_none_are_no_agreement(tmp_path, capsys):
    saved(tmp_path, np.nan)
    assert main([str(tmp_path), "--check", "--saturate"]) == 1
    assert "differ from expected.npz by nan" in capsys.readouterr().err


def test_a_folder_without_saved_results_cannot_be_checked(tmp_path, capsys):
    hybrid(tmp_path, cores={})
    assert main([str(tmp_path), "--check"]) == 1
    assert "has no sample.npz and no expected.npz to check with" in capsys.readouterr().err


def test_a_check_takes_no_other_frames(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--check", "--input", "random.npz"])
    assert "--check runs the frames that are saved" in capsys.readouterr().err


def test_onnx_runtime_is_asked_for_only_where_it_runs_something(tmp_path, monkeypatch):
    from parapipe.runtime import sessions

    plan = hybrid(tmp_path, cores={})
    sessions._prepare_onnx_runtime.cache_clear()
    monkeypatch.setattr(sessions, "ort", None)
    with pytest.raises(RunError, match="this Python has no onnxruntime: install what is needed"):
        sessions.open_sessions(plan)
    monkeypatch.setattr(sessions, "_open_elsewhere", lambda *_: "opened")
    on_ncnn = tuple(replace(each, provider="ncnn") for each in plan.processors)
    opened, used = sessions.open_sessions(replace(plan, processors=on_ncnn))
    assert set(opened.values()) == {"opened"}
    assert {each.provider for each in used} == {"ncnn"}
