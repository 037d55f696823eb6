"""One core disturbed while the native runner has both, for `benchmarks.native_here`.

In each round, strategies run in turn, each undisturbed and right after that disturbed, in short
bursts; the load of a round is drawn from the same seed for all. What counts of the undisturbed
bursts is the median of their mean periods, since now and then another program is in the way. Of the
disturbed ones it is the mean of all, since what disturbs them is drawn at random.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median

import click

import parapipe
from benchmarks.native_runs import (
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
BURSTS = 2  # of frames in a run: the load comes and goes several times
REPEATS = 5  # of a round: the load is another one each time
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
    periods_s = {strategy: (list[float](), list[float]()) for strategy in STRATEGIES}
    with ordinary_priority():
        for seed in range(rounds * REPEATS):
            for strategy, (quiet, disturbed) in periods_s.items():
                quiet.append(fmean(native_times(plan, file, frames, strategy)[1]))
                with load(seed):
                    disturbed.append(fmean(native_times(plan, file, frames, strategy)[1]))
    for strategy, (quiet, disturbed) in periods_s.items():
        quiet_s, disturbed_s = median(quiet), fmean(disturbed)
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
