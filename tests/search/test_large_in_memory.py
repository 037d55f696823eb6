"""Large graphs stay small in memory: a decoder whose 64 experts are operators each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import sleep

import onnx
import pytest

import parapipe
from tests.cases.separate_experts import separate_experts

LIMIT_BYTES = 1_000_000_000


def memory_bytes(process: int) -> int:
    """Return what a process and all that it started have in memory; what they share counts once."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        tasks = [*Path(f"/proc/{process}/task").iterdir()]
        children = [each for task in tasks for each in (task / "children").read_text().split()]
    except OSError:  # it has just ended
        return 0
    pss = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(pss.split()[1]) * 1024 + sum(memory_bytes(int(each)) for each in children)


def mapped(model, folder, *words):
    """Map a model in processes of its own; return front.json, and the most memory they had."""
    board = folder / "board.yaml"
    parapipe.new_platform(chip="rk3588").write(board)
    command = [sys.executable, "-m", "parapipe.cli.main", "map", str(model)]
    command += ["--platform", str(board), "--no-cache", "--quiet", "--out", str(folder / "out")]
    most = 0
    with subprocess.Popen([*command, *words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, memory_bytes(process.pid))
            sleep(0.1)
    assert process.returncode == 0
    return json.loads((folder / "out" / "front.json").read_text()), most


@pytest.mark.parametrize(("layers", "experts", "operators"), [(2, 4, 186), (9, 64, 5129)])
def test_a_decoder_has_operators_for_each_expert(layers, experts, operators, tmp_path):
    model = tmp_path / "experts.onnx"
    onnx.save(separate_experts(layers, experts), model)
    assert len(parapipe.load_model(model).operators) == operators


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [[], ["--budget", "120s"]])
def test_a_decoder_of_5000_operators_is_mapped_within_its_limit(budget, tmp_path):
    model = tmp_path / "experts.onnx"
    onnx.save(separate_experts(9, 64), model)
    front, most = mapped(
        model, tmp_path, "--precision", "float16", "--time-limit", "5",
        "--memory-limit", f"{LIMIT_BYTES}B", *budget,
    )  # fmt: skip
    assert len(front["operators"]) == 5129
    assert most < LIMIT_BYTES
    undone = front["unfinished"]
    for figure in ("latency_s", "period_s", "energy_j"):
        assert min(row[figure] for row in front["configurations"]) >= undone[figure] * (1 - 1e-9)
