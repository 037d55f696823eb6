"""`parapipe map` killed at random moments, and twice at once: the same front, nothing lost."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

KILLS = 10
OPTIONS = (
    "--platform", "amlogic-a311d", "--seed", "1", "--deterministic", "--jobs", "2", "--quiet",
    "--resolution", "0.1",
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four blocks of four branches of convolutions, each joined by a Concat."""
    nodes, weights, last = [], [], "data"

    def conv(name: str, source: str, kernel: int, channels: tuple[int, int]) -> str:
        weights.append(
            numpy_helper.from_array(np.zeros((*channels, kernel, kernel), np.float32), f"{name}.w")
        )
        pads = [kernel // 2] * 4
        nodes.append(
            helper.make_node(
                "Conv", [source, f"{name}.w"], [name], name=name,
                kernel_shape=[kernel] * 2, pads=pads,
            )
        )  # fmt: skip
        return name

    for block in range(4):
        ends = []
        for branch in range(4):
            inner = conv(f"{block}.{branch}.0", last, 1, (8 + 4 * branch, 64))
            ends.append(conv(f"{block}.{branch}.1", inner, 3 + 2 * (branch % 2),
                             (16, 8 + 4 * branch)))  # fmt: skip
        last = f"{block}.joined"
        nodes.append(helper.make_node("Concat", ends, [last], name=last, axis=1))
    shape = (1, 64, 56, 56)
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)],
        weights,
    )
    path = tmp_path_factory.mktemp("model") / "blocks.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def begin(model: Path, folder: Path, *, out: str = "out") -> subprocess.Popen[bytes]:
    """Start a run whose cache, results and temporary files are all below a folder."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "parapipe.cli.main", "map", str(model), *OPTIONS,
         "--out", str(folder / out), "--cache", str(folder / "cache")],
        env={**os.environ, "TMPDIR": str(folder / "tmp"), "MPLBACKEND": "Agg",
             "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def ended(run: subprocess.Popen[bytes], moment_s: float | None) -> tuple[float, int]:
    """Seconds that a run took, and its exit code; it is killed at that moment."""
    began_s = time.perf_counter()
    try:
        run.wait(moment_s)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
    code = run.wait()
    return time.perf_counter() - began_s, code


def front(out: Path) -> dict[str, bytes]:
    """All that a run writes, but wall times."""
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "solve_log.json"}


def solved(folder: Path) -> int:
    """How many problems the cache holds."""
    files = list((folder / "cache").glob("*.sqlite"))
    if not files:
        return 0
    with sqlite3.connect(files[0], timeout=60) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            return 0
        (count,) = connection.execute("SELECT count(*) FROM schedules").fetchone()
    return int(count)


def log(out: Path) -> list[dict]:
    return json.loads((out / "solve_log.json").read_text())


@pytest.mark.nightly
def test_a_run_killed_at_ten_random_moments_ends_with_the_same_front_and_solves_nothing_twice(
    model, tmp_path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    lasted_s, code = ended(begin(model, whole), None)
    assert code == 0
    expected = front(whole / "out")
    # an answer may hold both the shortest schedule and those that take less energy
    assert sum(each["problems"] for each in log(whole / "out")) >= solved(whole) > 40

    rng, kept = random.Random(1), 0
    shares = [(n + rng.random()) / KILLS for n in range(KILLS)]
    rng.shuffle(shares)
    while shares:
        took_s, code = ended(begin(model, killed), shares[-1] * lasted_s)
        if code == 0:  # what earlier runs have solved makes a run shorter
            lasted_s = min(lasted_s, took_s)
            shares[-1] = rng.random()
        else:
            assert code == -signal.SIGKILL
            shares.pop()
        for name, content in front(killed / "out").items():
            if ".part" not in name:  # whole, or not there
                assert content == expected[name]
        assert solved(killed) >= kept
        kept = solved(killed)

    assert begin(model, killed).wait() == 0
    assert front(killed / "out") == expected
    assert sum(each["problems"] for each in log(killed / "out") if each["cached"]) >= kept
    assert solved(killed) == solved(whole)
    assert list((killed / "tmp").iterdir()) == []


@pytest.mark.nightly
def test_two_runs_at_once_on_one_cache_end_with_the_same_front(model, tmp_path) -> None:
    runs = [begin(model, tmp_path, out=out) for out in ("one", "two")]
    assert [run.wait() for run in runs] == [0, 0]
    assert front(tmp_path / "one") == front(tmp_path / "two")
    kept = solved(tmp_path)
    assert begin(model, tmp_path, out="three").wait() == 0
    assert all(entry["cached"] for entry in log(tmp_path / "three"))
    assert solved(tmp_path) == kept
    assert list((tmp_path / "tmp").iterdir()) == []
