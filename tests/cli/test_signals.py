"""A command that is asked to end: one line, its exit code, no traceback, nothing left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest

from tests.cases.hard_programmes import entangled

SENT = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
MAP = ("map", "zoo:googlenet", "--platform", "amlogic-a311d", "--no-cache", "--quiet")


def begin(
    folder: Path, *arguments: str, program: Sequence[str] = ("-m", "parapipe.cli.main")
) -> subprocess.Popen[str]:
    """Start the command, its temporary files in a folder; return when it minds signals."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = status.read_text().split("SigCgt:")[1].split()[0]
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            break
    return process


def ended_by(number: signal.Signals, process: subprocess.Popen[str], folder: Path) -> None:
    """Send the signal and check how the command ends."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, "", f"parapipe: {SENT[number]}\n")
    assert list((folder / "scratch").iterdir()) == []
    assert [path.name for path in folder.iterdir()] == ["scratch"]


@pytest.mark.parametrize("number", SENT)
def test_a_signal_at_the_very_beginning_is_answered_in_one_line(tmp_path, number) -> None:
    ended_by(number, begin(tmp_path, *MAP), tmp_path)


@pytest.mark.parametrize("number", SENT)
def test_a_signal_while_modules_are_imported_is_answered_in_one_line(tmp_path, number) -> None:
    rng = random.Random(number)
    for _ in range(3):
        process = begin(tmp_path, *MAP)
        time.sleep(rng.uniform(0.0, 0.8))
        ended_by(number, process, tmp_path)


@pytest.mark.parametrize("number", SENT)
def test_a_signal_while_subgraphs_are_solved_ends_solvers_and_removes_their_folders(
    tmp_path, number
) -> None:
    process = begin(tmp_path, *MAP, "--jobs", "2", "--mapper", "fine_milp")
    while not list((tmp_path / "scratch").glob(".parapipe-*")):
        assert process.poll() is None
        time.sleep(0.001)
    time.sleep(0.1)
    ended_by(number, process, tmp_path)
    for each in Path("/proc").glob("[0-9]*"):
        try:
            assert str(tmp_path).encode() not in (each / "environ").read_bytes()
        except OSError:
            continue


def test_an_ignored_interrupt_stays_ignored() -> None:
    # as a shell starts what it puts in the background
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "from parapipe.cli.signals import mind_signals; mind_signals(); "
        "signal.raise_signal(signal.SIGINT); print('on')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("on\n", "")


def test_a_signal_that_python_loses_in_a_finalizer_comes_again() -> None:
    script = """
import signal, sys, time
from parapipe.cli.signals import Stopped, leave, mind_signals

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0)

mind_signals()
try:
    Finalized()
    time.sleep(5)
    print("lost")
except Stopped as stopped:
    leave(stopped.number)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "parapipe: terminated\n")


def test_a_thread_that_goes_on_is_not_waited_for() -> None:
    script = """
import signal, time
from concurrent.futures import ThreadPoolExecutor
from parapipe.cli.signals import Stopped, leave, mind_signals
from parapipe.files.locked_folders import LockedFolder

mind_signals()
folder = LockedFolder()
print(folder.path, flush=True)
try:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(time.sleep, 600)
        signal.raise_signal(signal.SIGINT)
except Stopped as stopped:
    leave(stopped.number)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (130, "parapipe: interrupted\n")
    assert not Path(done.stdout.strip()).exists()


def test_ctrl_c_after_a_first_front_ends_with_it(tmp_path) -> None:
    # a line of progress at every step in place of every ten seconds
    hurry = "from parapipe.cli import main, progress; progress.LINE_EVERY_S = 0.0; main.main()"
    map_it = ("map", "zoo:densenet-121", "--platform", "amlogic-a311d", "--no-cache", "--jobs", "1")
    process = begin(tmp_path, *map_it, "--out", "front", program=("-c", hurry))
    assert process.stderr
    for line in process.stderr:
        if "best so far" in line:
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "unfinished: " in out
    assert "proven: no configuration takes less than" in out
    assert (tmp_path / "front" / "front.json").exists()


# says whenever the solver is about to look for what to make again in place of keeping it
TOLD = """
import sys
from parapipe.cli import main
from parapipe.solvers.memory import least_memory

def told(*given, build=least_memory._built):
    print("solving", file=sys.stderr, flush=True)
    return build(*given)

least_memory._built = told
main.main()
"""
AGAIN = ("--recompute", "--objectives", "latency-throughput-memory", "--interleave", "none")


def solving(folder: Path) -> subprocess.Popen[str]:
    """Start a command that solves for minutes; return while it is at its first hard problem."""
    model = folder / "scratch" / "entangled.onnx"
    model.parent.mkdir()
    onnx.save(entangled(), model)
    map_it = ("map", str(model), "--platform", "amlogic-a311d", "--no-cache", "--jobs", "1")
    process = begin(folder, *map_it, *AGAIN, "--out", "front", program=("-c", TOLD))
    assert process.stderr
    while process.stderr.readline() != "solving\n":
        assert process.poll() is None
    time.sleep(2)
    model.unlink()
    return process


@pytest.mark.nightly
def test_ctrl_c_in_a_long_solve_ends_with_the_front_so_far(tmp_path) -> None:
    process = solving(tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "unfinished: " in out
    front = json.loads((tmp_path / "front" / "front.json").read_text())
    assert front["unfinished"]
    assert front["configurations"]


def ended(script: str, folder: Path) -> tuple[int, str, str]:
    """Run a script; return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("number", SENT)
def test_a_signal_in_an_import_needs_nothing_that_is_imported_half_way(tmp_path, number) -> None:
    (tmp_path / "begun.py").write_text(f"import signal; signal.raise_signal({number})")
    script = """
import sys
from types import ModuleType
from parapipe.cli.signals import Stopped, leave, mind_signals

for name in {*sys.stdlib_module_names} - {*sys.modules}:
    sys.modules[name] = ModuleType(name)  # begun, and not yet executed
mind_signals()
import begun
"""
    assert ended(script, tmp_path) == (128 + number, "", f"parapipe: {SENT[number]}\n")


DONE = """
import atexit, os, signal, time
from threading import Thread
from parapipe.cli.signals import mind_signals, stop_minding
from parapipe.files.locked_folders import LockedFolder

mind_signals()
folder = LockedFolder()
"""


@pytest.mark.parametrize("number", SENT)
def test_a_signal_once_all_is_done_changes_nothing(tmp_path, number) -> None:
    at_once = f"stop_minding(); signal.raise_signal({number})"
    at_exit = f"atexit.register(signal.raise_signal, {number}); stop_minding()"
    at_last = f"""
class Last:  # goes when Python takes itself apart, and has put back its own handlers
    def __del__(self, kill=os.kill, process=os.getpid()):
        kill(process, {number})

last = Last()
stop_minding()
"""
    for ending in (at_once, at_exit, at_last):
        assert ended(DONE + ending, tmp_path) == (0, "", ""), ending
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", SENT)
def test_a_thread_that_keeps_python_from_ending_is_not_waited_for(tmp_path, number) -> None:
    script = DONE + "Thread(target=time.sleep, args=[600]).start(); stop_minding()\n"
    script += f"signal.raise_signal({number})"
    assert ended(script, tmp_path) == (128 + number, "", f"parapipe: {SENT[number]}\n")
    assert list(tmp_path.iterdir()) == []
