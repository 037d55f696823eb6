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

import parapipe
from tests.cases.full_disk import tree

SENT = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
PLATFORM = ("--platform", "amlogic-a311d")
PROFILE = Path(__file__).parents[2] / "profiles" / "amlogic-a311d" / "armcl-f32.csv"
COMMANDS = {
    "compare": ("compare", "{predicted}", "{measured}", "--figure", "out.png"),
    "diff": ("diff", "{front}", "{front}"),
    "evaluate": ("evaluate", "{model}", *PLATFORM, "--assignment", "{assignment}"),
    "explain": ("explain", "{front}"),
    **{
        f"export {target}": ("export", "--to", target, "{plan}", "out")
        for target in sorted({*parapipe.export_targets()} - {"arm-co-up", "genai", "rknn"})
    },
    "fit power": ("fit", "power", "{power}"),
    "fit times": ("fit", "times", str(PROFILE), "--out", "out"),
    "fit transfers": ("fit", "transfers", "{transfers}"),
    "inspect": ("inspect", "{model}", "--svg", "out"),
    "map": ("map", "{model}", *PLATFORM, "--no-cache", "--quiet", "--out", "out"),
    "pick": ("pick", "{front}"),
    "platforms new": ("platforms", "new", "--chip", "rk3588", "--out", "out"),
    "platforms show": ("platforms", "show", "amlogic-a311d"),
    "report": ("report", "{front}", "--out", "out"),
    "run": ("run", "{run_plan}", "--frames", "20", "--quiet", "--trace", "out"),
    "simulate": ("simulate", "{plan}", "--frames", "1000", "--trace", "out"),
    "split": ("split", "{model}", "--parts", "Conv:rows=2", "--out", "out"),
    "sweep": ("sweep", "{sweep}", "--no-cache", "--quiet", "--jobs", "2", "--out", "out"),
    "verify": ("verify", "{plan}"),
    "zoo build": ("zoo", "build", "squeezenet", "--out", "out"),
}  # fmt: skip
OFTEN = ("report", "split", "export segments", "explain", "fit times")


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
    model = Path(branchy_front.document.model)
    return {
        "front": branchy_folder, "plan": plan, "model": model, "run_plan": run_plan,
        "assignment": assignment, **samples(folder, model),
    }  # fmt: skip


def samples(folder: Path, model: Path) -> dict[str, Path]:
    """Files that fit and compare are given, of some thousands of lines, and one for sweep."""
    rng = random.Random(0)
    clocks = [(1e9 + 1e8 * n, 0.8 + 0.02 * n) for n in range(10)]
    power = [
        f"npu,{hz:g},{v},{(2 + 1e-9 * v * v * hz + 0.25 * v) * rng.uniform(0.9, 1.1)},2"
        for hz, v in clocks * 300
    ]
    moved = [
        f"{one},{other},{size},{(1e-4 + size * 1e-9) * rng.uniform(0.9, 1.1)}"
        for one, other in (("big", "gpu"), ("gpu", "big"), ("big", "npu"))
        for size in range(1000, 2_000_000, 1000)
    ]
    runs = [f"zoo:googlenet,{'G' * 11},{0.1 * rng.uniform(0.5, 2)}" for _ in range(500)]
    predicted = parapipe.evaluate("zoo:googlenet", "amlogic-a311d", order="G" * 11)
    texts = {
        "power": "\n".join(["processor,frequency_hz,voltage_v,power_w,idle_power_w", *power]),
        "transfers": "\n".join(["from,to,size_bytes,time_s", *moved]),
        "measured": "\n".join(["model,order,latency_s", *runs]),
        "predicted": predicted.model_dump_json(by_alias=True),
        "sweep": json.dumps(
            {
                "schema": "parapipe/sweep/1", "models": [str(model)],
                "platforms": ["amlogic-a311d"],
                "options": {"stages": {"interleave": "none"}, "turns": {"draws": 0}},
            }
        ),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text + "\n")
    return {name: folder / name for name in texts}


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
                assert is_whole(set(left(place)), set(whole)), share
            else:  # all was done, or Ctrl-C made map end with the front that it had
                assert lines == []
                assert at_top(left(place)) == at_top(whole)


def is_whole(names: set[str], all_names: set[str]) -> bool:
    """Tell whether nothing is left, or all; of a sweep also some fronts, each of them whole."""
    if names in ({"scratch"}, all_names):
        return True
    fronts = {name for name in names if name.startswith("out/results/")}
    done = {Path(name).parts[2] for name in fronts}
    expected = {
        name
        for name in all_names
        if name.startswith("out/results/") and Path(name).parts[2] in done
    }
    return bool(done) and fronts == expected and names - fronts == {"scratch", "out", "out/results"}


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
