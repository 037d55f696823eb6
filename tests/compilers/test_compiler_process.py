"""A compiler that hangs, crashes, is killed or writes garbage costs only its segment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from parapipe.compilers import results
from parapipe.compilers.compile import compile_segment, simulate_segment
from parapipe.compilers.contract import CompileError, CompileJob
from parapipe.errors import ArgumentError
from tests.cases.compiler_models import frame_for, left_to_the_cpu
from tests.cases.full_disk import files_of_at_most
from tests.cases.stand_in_compiler import VARIABLE, StandIn, ends

FAULTS = {
    "hang": ("timeout", r"took more than 0\.5 s and was ended"),
    "crash": ("crashed", "error code 3: KeyError: 'epsilon'"),
    "kill": ("killed", "killed by SIGKILL"),
    "garbage": ("crashed", "ended without a result"),
    "silent": ("crashed", "without a table of its rows"),
    "disk": ("crashed", "No space left on device"),
}


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch, "left_to_the_cpu")


def compiled(path: Path, limit_s: float = 600.0):
    return compile_segment("rknn", CompileJob(path, "rk3588", time_limit_s=limit_s))


def unfinished() -> list[str]:
    return [each.name for each in results.result_folder().iterdir() if "part" in each.name]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_its_segment_and_leaves_no_process_and_no_file(tool, fault) -> None:
    cause, words = FAULTS[fault]
    with pytest.raises(CompileError, match=words) as raised:
        compiled(tool.segment(fault), 0.5 if fault == "hang" else 600.0)
    assert raised.value.cause == cause
    assert tool.none_is_left()
    assert [*results.result_folder().iterdir()] == []
    segment = compiled(tool.segment())
    assert segment.artefact.read_bytes() == b"for the device"
    assert unfinished() == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_not_kept(tool, fault) -> None:
    for _ in range(2):
        with pytest.raises(CompileError):
            compiled(tool.segment(fault), 0.5 if fault == "hang" else 600.0)
    assert len(tool.processes) == (4 if fault == "hang" else 2)


def test_a_simulator_that_hangs_is_ended_as_well(tool) -> None:
    job = CompileJob(tool.segment("hang"), "rk3588", time_limit_s=0.5)
    with pytest.raises(CompileError, match="was ended"):
        simulate_segment("rknn", job, frame_for(left_to_the_cpu()))
    assert tool.none_is_left()


def test_a_disk_without_room_costs_the_segment(tool) -> None:
    path = tool.segment()
    compiled(tool.segment("other"))  # the version is known now
    with (
        files_of_at_most(100),
        pytest.raises(CompileError, match="make room there, or name") as raised,
    ):
        compiled(path)
    assert raised.value.cause == "disk"
    assert unfinished() == []
    assert compiled(path).rows


def test_a_cache_that_is_a_file_is_named(tool, tmp_path, monkeypatch) -> None:
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(Exception, match="PARAPIPE_CACHE"):
        compiled(tool.segment())


def test_an_interruption_ends_the_compiler(tool) -> None:
    """What a signal raises goes through, and takes the compiler and its children with it."""

    def interrupt() -> None:
        while not (tool.folder / "hangs").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        compiled(tool.segment("hang"))
    assert tool.none_is_left()
    assert unfinished() == []


WORKER = """
import subprocess, sys, time
from pathlib import Path

child = subprocess.Popen(["sleep", "1000"])
Path("processes").write_text(str(child.pid))
print("begins", flush=True)
time.sleep(1000)
"""
PARENT = """
import sys
from pathlib import Path
from parapipe.compilers.contract import Environment
from parapipe.compilers.process import run_tool

folder = Path(sys.argv[1])
run_tool("rknn", folder / "worker.py", Environment(Path(sys.executable)), folder, 1000)
"""


def test_a_compiler_ends_with_a_process_that_is_killed(tmp_path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    log = tmp_path / "log.txt"
    while not log.exists() or b"begins" not in log.read_bytes():
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    assert ends(int((tmp_path / "processes").read_text()))


def test_a_python_that_is_not_there_is_missing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "python"))
    path = tmp_path / "any.onnx"
    with pytest.raises(CompileError, match="compilers use rknn --python PATH") as raised:
        compiled(path)
    assert raised.value.cause == "missing"


def test_a_python_without_the_compiler_is_missing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, sys.executable)
    with pytest.raises(CompileError, match="has no rknn-toolkit2") as raised:
        compiled(tmp_path / "any.onnx")
    assert raised.value.cause == "missing"


def test_a_program_that_is_no_python_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, "/bin/false")
    with pytest.raises(CompileError, match="ended with the error code 1"):
        compiled(tmp_path / "any.onnx")


def test_a_target_that_the_compiler_does_not_know_is_refused(tool) -> None:
    job = CompileJob(tool.segment(), "rk3855")
    with pytest.raises(ArgumentError, match=r"choose from rk3562, .*; did you mean"):
        compile_segment("rknn", job)
