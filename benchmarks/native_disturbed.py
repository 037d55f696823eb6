"""One core disturbed while the native runner has both, for `benchmarks.native_here`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import click

import parapipe
from benchmarks.native_runs import (
    Times,
    frames_for,
    milliseconds,
    model_file,
    native_times,
    profile_of,
)
from benchmarks.split_here import cut_plan
from benchmarks.strategy_disturbed import load
from parapipe.api.load import load_model, split_file
from parapipe.api.plan import Plan

NETWORK = "resnet-50"
STRATEGIES = ("plan", "steal", "ready-pool")
BURSTS = 3  # of frames in a run: the load comes and goes several times
HEAD = ("plan", "tasks", "strategy", "undisturbed, ms", "disturbed, ms", "kept")


def disturbed_rows(
    network: str, platform: Path, folder: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the rows of the table: whole operators in two stages, and halves of operators."""
    file = model_file(network, folder)
    front = parapipe.map(
        file, platform, profiles=[profile_of(file, platform)], interleave="none",
        objectives="latency-throughput", note=lambda _: None,
    )  # fmt: skip
    yield from _rows_of("stages", front["pipe-only"].plan(), file, rounds)
    rules = ["*:rows=2"]
    with split_file(file, f"zoo:{network}", rules, "fused", external=False) as cut_file:
        halves = cut_plan(load_model(cut_file, note=lambda _: None), platform, None, 2)
        yield from _rows_of("halves", halves, cut_file, rounds)


def _rows_of(name: str, plan: Plan, file: Path, rounds: int) -> Iterator[Sequence[object]]:
    frames = BURSTS * frames_for(plan.predicted.latency_s)
    times = {strategy: (Times(), Times()) for strategy in STRATEGIES}
    with ordinary_priority():
        for seed in range(rounds):
            for strategy, (quiet, disturbed) in times.items():
                quiet.frames_s += native_times(plan, file, frames, strategy)[1]
                with load(seed):
                    disturbed.frames_s += native_times(plan, file, frames, strategy)[1]
    for strategy, pair in times.items():
        # The mean: half of the frames are disturbed, so the median says little.
        quiet_s, disturbed_s = (fmean(each.frames_s) for each in pair)
        click.echo(f"{name}, {strategy}: keeps {quiet_s / disturbed_s:.0%}")
        both = milliseconds(quiet_s), milliseconds(disturbed_s)
        yield name, len(plan.operators), strategy, *both, f"{quiet_s / disturbed_s:.0%}"


@contextmanager
def ordinary_priority() -> Iterator[None]:
    """Let programs that this one starts share cores, also under `chrt -f`, where nobody does."""
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, priority)
