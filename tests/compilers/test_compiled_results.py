"""What compilers have made is kept by content."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from parapipe.compilers import results
from parapipe.compilers.compile import compile_segment
from parapipe.compilers.contract import CompileError, CompileJob
from parapipe.compilers.results import clear_results, keep_refusal, read_result, result_key
from parapipe.errors import ArgumentError
from tests.cases.compiler_models import IMAGE, left_to_the_cpu, saved
from tests.cases.full_disk import tree
from tests.cases.stand_in_compiler import StandIn


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch, "left_to_the_cpu")


@pytest.fixture
def job(tool) -> CompileJob:
    return CompileJob(tool.segment(), "rk3588")


def test_a_segment_is_compiled_once(tool, job) -> None:
    first = compile_segment("rknn", job)
    assert compile_segment("rknn", job) == first
    assert len(tool.processes) == 1
    assert [row.nodes for row in first.rows] == [("conv",), ("lrn",), ("erf",)]
    assert [(each.node, each.operator_type) for each in first.on_cpu] == [
        ("lrn", "LRN"), ("erf", "Erf"),
    ]  # fmt: skip
    assert first.log is not None
    assert "Network Layer Information Table" in first.log.read_text()


def test_a_name_of_a_file_belongs_to_no_key(tool, job) -> None:
    shutil.copy(job.model, job.model.with_name("copy.onnx"))
    copy = replace(job, model=job.model.with_name("copy.onnx"))
    assert compile_segment("rknn", copy) == compile_segment("rknn", job)


def test_what_changes_the_result_changes_the_key(tmp_path) -> None:
    np.savez(tmp_path / "one.npz", x=np.zeros(IMAGE, np.float32))
    np.savez(tmp_path / "two.npz", x=np.ones(IMAGE, np.float32))
    job = CompileJob(saved(left_to_the_cpu(), tmp_path), "rk3588")
    weights_changed = left_to_the_cpu()
    weights_changed.graph.initializer[0].float_data[:] = []
    weights_changed.graph.initializer[0].raw_data = b"\0" * 2304
    jobs = [
        job,
        replace(job, target="rk3566"),
        replace(job, precision="int8"),
        replace(job, calibration=tmp_path / "one.npz"),
        replace(job, calibration=tmp_path / "two.npz"),
        replace(job, model=saved(weights_changed, tmp_path, "other")),
    ]
    keys = {result_key(each, "rknn", "2.5.0") for each in jobs}
    assert len(keys) == len(jobs)
    assert result_key(job, "rknn", "2.5.1") not in keys
    assert result_key(replace(job, time_limit_s=1.0), "rknn", "2.5.0") in keys


def test_weights_in_another_file_belong_to_the_key(tmp_path) -> None:
    options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    job = CompileJob(saved(left_to_the_cpu(), tmp_path, **options), "rk3588")
    key = result_key(job, "rknn", "2.5.0")
    content = bytearray((tmp_path / "w.bin").read_bytes())
    content[0] ^= 1
    (tmp_path / "w.bin").write_bytes(content)
    assert result_key(job, "rknn", "2.5.0") != key


def test_samples_that_are_not_there_are_named_before_anything_is_compiled(tool, job) -> None:
    with pytest.raises(ArgumentError, match="is not there"):
        compile_segment("rknn", replace(job, calibration=tool.folder / "no.npz"))
    assert tool.processes == []


def test_a_refusal_is_kept_and_names_the_segment_that_is_asked_for(tmp_path) -> None:
    error = CompileError("one.onnx: the compiler 'rknn' refuses it", "refused")
    keep_refusal("0" * 64, "one.onnx", error)
    with pytest.raises(CompileError, match=r"^two\.onnx: the compiler 'rknn' refuses it$"):
        read_result("0" * 64, "two.onnx")


@pytest.mark.parametrize("file", ["result.json", "segment.rknn"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"segment": {}}', None])
def test_a_damaged_result_is_made_again(tool, job, file, content) -> None:
    path = compile_segment("rknn", job).artefact.with_name(file)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert compile_segment("rknn", job).artefact.read_bytes() == b"for the device"
    assert len(tool.processes) == 2


def test_many_at_once_make_one_whole_result(tool, job) -> None:
    start = threading.Barrier(4)

    def compiled(_: int) -> object:
        start.wait()
        return compile_segment("rknn", job)

    with ThreadPoolExecutor(4) as pool:
        segments = [*pool.map(compiled, range(4))]
    assert all(each == segments[0] for each in segments)
    names = sorted(tree(results.result_folder()))
    key = segments[0].artefact.parent.name
    assert names == sorted(
        [key, *(f"{key}/{each}" for each in ("log.txt", "result.json", "segment.rknn"))]
    )


@pytest.mark.parametrize(("most", "kept"), [(10**9, 3), (1, 1)])
def test_the_oldest_results_go_if_all_are_too_large(tool, monkeypatch, most, kept) -> None:
    monkeypatch.setattr(results, "MOST_BYTES", most)
    for number in range(3):
        network = left_to_the_cpu()
        network.graph.name = f"number-{number}"
        path = tool.folder / f"{number}.onnx"
        onnx.save(network, path)
        latest = compile_segment("rknn", CompileJob(path, "rk3588"))
    places = [*results.result_folder().iterdir()]
    assert len(places) == kept
    assert latest.artefact.parent in places


def test_clear_deletes_results_and_nothing_that_is_in_the_making(tool, job) -> None:
    compile_segment("rknn", job)
    unfinished = results.result_folder() / "unfinished"
    unfinished.mkdir()
    assert clear_results() == 1
    assert [*results.result_folder().iterdir()] == [unfinished]
    assert clear_results() == 0


def test_no_machines_path_is_kept_in_a_result(tool, job) -> None:
    segment = compile_segment("rknn", job)
    content = json.loads(segment.artefact.with_name("result.json").read_text())["segment"]
    assert (content["artefact"], content["log"]) == ("segment.rknn", "log.txt")
