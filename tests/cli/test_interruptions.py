"""Commands that a signal meets at any moment: one line and its exit code, or all of the work."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cases.full_disk import tree

SENT = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
PLATFORM = ("--platform", "amlogic-a311d")
COMMANDS = {
    "diff": ("diff", "{front}", "{front}"),
    "evaluate": ("evaluate", "{model}", *PLATFORM, "--assignment", "{assignment}"),
    "explain": ("explain", "{front}"),
    **{
        f"export {target}": ("export", "--to", target, "{plan}", "out")
        for target in ("armcl", "model-explorer", "onnxruntime", "perfetto", "segments")
    },
    "inspect": ("inspect", "{model}", "--svg", "out"),
    "map": ("map", "{model}", *PLATFORM, "--no-cache", "--quiet", "--out", "out"),
    "pick": ("pick", "{front}"),
    "platforms new": ("platforms", "new", "--chip", "rk3588", "--out", "out"),
    "platforms show": ("platforms", "show", "amlogic-a311d"),
    "report": ("report", "{front}", "--out", "out"),
    "run": ("run", "{run_plan}", "--frames", "20", "--quiet", "--trace", "out"),
    "simulate": ("simulate", "{plan}", "--frames", "1000", "--trace", "out"),
    "split": ("split", "{model}", "--parts", "Conv:rows=2", "--out", "out"),
    "verify": ("verify", "{plan}"),
    "zoo build": ("zoo", "build", "squeezenet", "--out", "out"),
}  # fmt: skip
OFTEN = ("report", "split", "export segments", "explain")


@pytest.fixture(scope="module")
def places(branchy_folder, branchy_front, tmp_path_factory) -> dict[str, Path]:
    """Files that commands are given."""
    folder = tmp_path_factory.mktemp("given")
    plan = branchy_folder / "plans" / "c01.json"
    document = json.loads(plan.read_text())
    for processor in document["processors"]:
        processor["cores"] = []
    run_plan, assignment = folder / "run_plan.json", folder / "assignment.json"
    run_plan.write_text(json.dumps(document))
    names = {operator["id"]: "big" for operator in document["operators"]}
    assignment.write_text(json.dumps({"schema": "parapipe/assignment/1", "operators": names}))
    return {
        "front": branchy_folder, "plan": plan, "model": Path(branchy_front.document.model),
        "run_plan": run_plan, "assignment": assignment,
    }  # fmt: skip


def begin(folder: Path, words: list[str]) -> subprocess.Popen[str]:
    """Start a command in a folder; return when it minds signals."""
    (folder / "scratch").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "parapipe.cli.main", *words],
        cwd=folder,
        env={
            **os.environ, "TMPDIR": str(folder / "scratch"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = status.read_text().split("SigCgt:")[1].split()[0]
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            break
    return process


def check_moments(words: list[str], folder: Path, shares: list[float]) -> None:
    """Send each signal at some shares of the time that a command takes."""
    began_s = time.perf_counter()
    process = begin(folder / "whole", words)
    _, told = process.communicate(timeout=300)
    lasted_s = time.perf_counter() - began_s
    assert process.returncode == 0, told
    whole = left(folder / "whole")
    for number, word in SENT.items():
        for share in shares:
            place = folder / f"{word}-{share}"
            process = begin(place, words)
            time.sleep(share * lasted_s)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
            lines = [line for line in err.splitlines() if ": note: " not in line]
            if process.returncode:
                assert (process.returncode, lines) == (128 + number, [f"parapipe: {word}"]), err
                assert set(left(place)) in ({"scratch"}, set(whole)), share
            else:  # all was done, or Ctrl-C made map end with the front that it had
                assert lines == []
                assert at_top(left(place)) == at_top(whole)


def left(folder: Path) -> dict[str, bytes | None]:
    """What is left in a folder, but for what ONNX Runtime leaves."""
    return {name: content for name, content in tree(folder).items() if name != "scratch/.ses"}


def at_top(names: dict[str, bytes | None]) -> set[str]:
    return {name for name in names if "/" not in name}


@pytest.mark.parametrize("command", OFTEN)
def test_a_signal_at_a_few_moments_is_answered_in_one_line(command, places, tmp_path) -> None:
    rng = random.Random(command)
    words = [word.format(**places) for word in COMMANDS[command]]
    check_moments(words, tmp_path, [rng.random()])


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_at_many_moments_is_answered_in_one_line(command, places, tmp_path) -> None:
    rng = random.Random(command)
    words = [word.format(**places) for word in COMMANDS[command]]
    check_moments(words, tmp_path, [rng.uniform(0, 1.05) for _ in range(20)])
