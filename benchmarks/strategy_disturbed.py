"""One core disturbed at random, for `benchmarks.strategies_here`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

import parapipe
from benchmarks.strategy_runs import CORES, Measured, executor_of, on_cores
from parapipe.api.load import locate_model
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.runtime.folder import open_folder
from parapipe.strategies.cut import pieces_of, stretches

STRATEGIES = ("plan", "steal", "ready-pool")
CUTS = {"segments": None, "stretches": stretches(4), "operators": None}
FRAMES = 240
QUEUE = 4  # slots, so that a processor may be ahead of another one
MEAN_S = 0.1  # of a stretch of load, and of one without
LOAD = f"""
import os, random, sys, time
os.sched_setaffinity(0, {{{CORES[1] if len(CORES) > 1 else CORES[0]}}})
draw = random.Random(int(sys.argv[1]))
while True:
    end = time.perf_counter() + draw.expovariate(1 / {MEAN_S})
    while time.perf_counter() < end:
        pass
    time.sleep(draw.expovariate(1 / {MEAN_S}))
"""


def disturbed_rows(
    network: str, platform: Path, folder: Path, place: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the fifth table."""
    yield "strategy", "tasks", "undisturbed, fps", "disturbed, fps", "kept"
    profile = folder / f"{network}.csv"
    if not profile.exists():
        parapipe.profile(f"zoo:{network}", platform, out=profile)
    front = parapipe.map(
        f"zoo:{network}", platform, profiles=[profile], interleave="none",
        objectives="latency-throughput", note=lambda _: None,
    )  # fmt: skip
    plan = front["pipe-only"].plan()  # of which one core waits for the other
    cases: dict[str, tuple[Measured, Measured]] = {}
    with locate_model(plan) as model:
        for what, cut in CUTS.items():
            at = place / f"disturbed-{what}"
            at.mkdir()
            single = what == "operators"
            write_session_folder(plan, model, at, single=single, pieces=pieces_of(plan, cut))
            opened = on_cores(open_folder(at), CORES[:2])
            tasks = f"{len(opened.segments)} {what}"
            for name in STRATEGIES:
                executor = executor_of(opened, name, queue=QUEUE)
                pair = [Measured.of(tasks, executor, FRAMES) for _ in range(2)]
                cases[f"{name}, {tasks}"] = pair[0], pair[1]
    for seed in range(rounds):
        for quiet, disturbed in cases.values():
            quiet.measure(latency=False)
            with load(seed):
                disturbed.measure(latency=False)
    for name, (quiet, disturbed) in cases.items():
        kept = quiet.period_s / disturbed.period_s
        click.echo(f"{name}: keeps {kept:.0%}")
        yield (
            name.partition(",")[0], quiet.name, f"{1 / quiet.period_s:.2f}",
            f"{1 / disturbed.period_s:.2f}", f"{kept:.0%}",
        )  # fmt: skip


@contextmanager
def load(seed: int) -> Iterator[None]:
    """Let another program take the second core half of the time, at random."""
    process = subprocess.Popen([sys.executable, "-c", LOAD, str(seed)])
    try:
        yield
    finally:
        process.kill()
        process.wait()
