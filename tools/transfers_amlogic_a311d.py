"""Derive links, input and output of amlogic-a311d.yaml.

    python -m tools.transfers_amlogic_a311d DATA_DIR

DATA_DIR holds a311d/ (blocks.csv, ops.csv, end_to_end_calibration.csv) and rk3399pro/
(transfer_fit.csv, transfer_vs_frequency.csv); SOURCES.md says what they are.

Input and output were measured on the A311D. Transfers were not: they are the RK3399Pro's at its
lowest frequencies, scaled by how much faster the same pair gets at its highest. Where only one
side's frequency was raised the other stayed low, so those ratios are upper bounds; gpu to little
was not varied at all and takes the largest ratio. As a check, whole-network runs that switch
processors are compared with the sum of their blocks, with and without these transfers.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np

Pair = tuple[str, str]
PROCESSORS = ("big", "little", "gpu")
LETTERS = {"B": "big", "L": "little", "G": "gpu"}


def read(path: Path) -> list[Mapping[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def size_bytes(shape: str) -> int:
    """Return the bytes of a float32 tensor written as 3x224x224."""
    return 4 * prod(map(int, shape.split("x")))


def links(folder: Path) -> dict[Pair, tuple[float, float]]:
    """Return latency in seconds and bandwidth in bytes per second of each ordered pair."""
    times: dict[Pair, list[float]] = defaultdict(list)
    for r in read(folder / "rk3399pro/transfer_vs_frequency.csv"):
        times[r["src"], r["dest"]].append(float(r["transfer_time_ms"]))
    ratios = {pair: ms[-1] / ms[0] for pair, ms in times.items()}
    found = {}
    for r in read(folder / "rk3399pro/transfer_fit.csv"):
        pair = (r["src"], r["dest"])
        ratio = ratios.get(pair, max(ratios.values()))
        latency_s = float(r["latency_ms"]) / 1e3 * ratio
        bandwidth = float(r["bandwidth_mb_per_s"]) * 1e6 / ratio
        found[pair] = (latency_s, bandwidth)
        known = "" if pair in ratios else " (not measured: the largest)"
        print(f"{pair[0]:6s} to {pair[1]:6s} ratio {ratio:.3f}{known}: latency_s {latency_s:.3g}, "
              f"bandwidth_bytes_per_s {bandwidth:.4g}")  # fmt: skip
    return found


def report_input_and_output(folder: Path) -> None:
    """Print latency and bandwidth of loading a frame, and the median time of reading a result."""
    size = {
        r["model"]: size_bytes(r["input0_shape_chw"])
        for r in read(folder / "a311d/ops.csv")
        if r["op_index"] == "0"
    }
    rows = [r for r in read(folder / "a311d/blocks.csv") if r["repeat"] == "1"]
    for p in PROCESSORS:
        loads = [(size[r["model"]], float(r["time_ms"]) / 1e3)
                 for r in rows if r["processor"] == p and r["metric"] == "in"]  # fmt: skip
        x, t = np.array(loads).T
        slope, latency_s = np.linalg.lstsq(np.c_[x / t, 1 / t], np.ones(len(t)), rcond=None)[0]
        through_origin = float((x / t).sum() / ((x / t) ** 2).sum())
        missed = max(abs(through_origin * x / t - 1))
        reads = [float(r["time_ms"]) for r in rows if r["processor"] == p and r["metric"] == "out"]
        print(f"{p:6s} input: free fit {1e3 * latency_s:.2f} ms + {1e-6 / slope:.1f} MB/s; with "
              f"latency 0: bandwidth_bytes_per_s {1 / through_origin:.4g} (misses {missed:.1%} at "
              f"worst); output: {min(reads):.2f} to {max(reads):.2f} ms, "
              f"median {np.median(reads):.3f} ms")  # fmt: skip


def report_end_to_end(folder: Path, found: Mapping[Pair, tuple[float, float]]) -> None:
    """Print how sums of block times, without and with transfers, miss whole-network runs."""
    block_ms = {
        (r["model"], int(r["block"]), r["processor"]): float(r["time_ms"])
        for r in read(folder / "a311d/blocks.csv")
        if r["metric"] == "task" and r["repeat"] == "1"
    }
    leaves = {
        (r["model"], int(r["block"])): size_bytes(r["output_shape_chw"])
        for r in read(folder / "a311d/ops.csv")
    }
    misses: list[tuple[float, float]] = []
    for run in read(folder / "a311d/end_to_end_calibration.csv"):
        model, order = run["model"], [LETTERS[c] for c in run["order(block->processor)"]]
        task_ms = float(run["task_ms"])
        plain_ms = sum(block_ms[model, i, p] for i, p in enumerate(order))
        moved_ms = 0.0
        for i, pair in enumerate(pairwise(order)):
            if pair in found:
                latency_s, bandwidth = found[pair]
                moved_ms += 1e3 * (latency_s + leaves[model, i] / bandwidth)
        if moved_ms:
            miss = (plain_ms / task_ms - 1, (plain_ms + moved_ms) / task_ms - 1)
            misses.append(miss)
            moves = f"with transfers of {moved_ms:.2f} ms {miss[1]:+.1%}"
            label = f"{model:13s} {run['order(block->processor)']:15s}"
            print(f"{label} {task_ms:6.1f} ms: sum {miss[0]:+.1%}, {moves}")
    mean = np.abs(misses).mean(axis=0)
    print(f"mean miss of {len(misses)} switching runs: {mean[0]:.1%} without, {mean[1]:.1%} with")


def main() -> None:
    """Derive and print."""
    parser = argparse.ArgumentParser(description="Derive transfer times of the A311D.")
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    data = parser.parse_args().data
    found = links(data)
    report_input_and_output(data)
    report_end_to_end(data, found)


if __name__ == "__main__":
    main()
