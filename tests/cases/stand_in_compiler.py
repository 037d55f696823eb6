"""A stand-in for the Python that has Rockchip's compiler: it does what the segment's name says.

What it prints when all is well is what the compiler has printed for the model `left_to_the_cpu`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import onnx
import pytest

from tests.cases.compiler_models import left_to_the_cpu

LOGS = Path(__file__).parents[1] / "compilers" / "logs"
LOOKS = 6000
VARIABLE = "PARAPIPE_COMPILER_RKNN"
SCRIPT = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

calls, log = Path(sys.argv[1]), Path(sys.argv[2])
job = json.loads(Path("job.json").read_text())
result = {"version": "0.0", "refused": None, "words": ""}
if job["action"] == "version":
    Path("result.json").write_text(json.dumps(result))
    sys.exit()
content = Path("segment.onnx").read_bytes()
fault = next((each for each in ("hang", "crash", "kill", "garbage", "silent", "disk")
              if f"fault-{each}".encode() in content), "")
with calls.open("a") as file:
    file.write(f"{os.getpid()} ")
if fault == "hang":
    child = subprocess.Popen(["sleep", "1000"])
    with calls.open("a") as file:
        file.write(f"{child.pid} ")
    calls.with_name("hangs").touch()
    time.sleep(1000)
if fault == "crash":
    print("KeyError: 'epsilon'")
    sys.exit(3)
if fault == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if fault == "disk":
    print("OSError: [Errno 28] No space left on device")
    sys.exit(1)
if fault == "garbage":
    sys.stdout.buffer.write(bytes(range(256)) * 100)
    Path("result.json").write_bytes(b"\\xff{")
    sys.exit()
if fault != "silent":
    print(log.read_text())
    Path("segment.rknn").write_bytes(b"for the device")
Path("result.json").write_text(json.dumps(result))
"""


class StandIn:
    """The stand-in in a folder; `calls` lists the processes that it was."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, name: str) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.calls.touch()
        (folder / "tool.py").write_text(SCRIPT)
        python = folder / "python"
        python.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" "{folder}/tool.py" "{self.calls}" '
            f'"{LOGS}/{name}.txt"\n'
        )
        python.chmod(0o755)
        patch.setenv(VARIABLE, str(python))

    @property
    def processes(self) -> list[int]:
        return [int(each) for each in self.calls.read_text().split()]

    def segment(self, fault: str = "") -> Path:
        """Write a segment with which the stand-in does something wrong."""
        network = left_to_the_cpu()
        network.graph.name = f"fault-{fault}"
        path = self.folder / f"{fault or 'segment'}.onnx"
        onnx.save(network, path)
        return path

    def none_is_left(self) -> bool:
        """Tell whether all processes end that it was or started."""
        return all(map(ends, self.processes))


def ends(process: int) -> bool:
    """Tell whether a process ends, which takes a moment after it was killed."""
    for _ in range(LOOKS):
        if not _is_alive(process):
            return True
        time.sleep(0.01)
    return False


def _is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
