"""Batches split and merged, for `benchmarks.strategies_here`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import click
import numpy as np

import parapipe
from benchmarks.open_batch import BATCH, write_open
from benchmarks.strategy_runs import Measured, batch_executor
from parapipe.plan.schema import Plan
from parapipe.strategies import strategy_executor
from parapipe.strategies.micro_batches import MicroBatches
from parapipe.strategies.state import State
from parapipe.strategies.work import Job

BATCHES = (1, 2, 4, 8, 16)
FRAMES, LEAST_S = 10, 0.3
"""A measurement takes so many batches, or those of so many seconds if that is more."""
TURNS = 4
"""In each round: what is compared takes turns that are short, so that the machine is the same."""


class Always(MicroBatches):
    """Splits every batch in halves."""

    def schedule(self, state: State) -> None:
        """Split, and go on as it does."""
        for frame in tuple(state.waiting):
            if self._splits:
                state.split(self._splits[0], frame)
        super().schedule(state)


class Never(MicroBatches):
    """Splits none."""

    def schedule(self, state: State) -> None:
        """Let be, and go on as it does."""
        state.waiting.clear()
        super().schedule(state)


class Merging(MicroBatches):
    """Halves of every second task, both together of the others."""

    def schedule(self, state: State) -> None:
        """Split, and give what is ready in the order of frames and tasks."""
        for frame in tuple(state.waiting):
            state.split(self._splits[0], frame)
        for processor in state.free:
            for job in sorted(state.ready(), key=lambda job: (job.frame, job.task)):
                both = [Job(job.task, job.frame, micro) for micro in range(2)]
                if job.task % 2:
                    state.execute(job, on=processor)
                    break
                if state.ready_by.keys() >= set(both):
                    state.execute(both, on=processor)
                    break


def batch_rows(
    networks: Sequence[str], sizes: Sequence[int], platform: Path, place: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the third table."""
    yield (
        *("network", "batch", "frames", "never, ms", "always, ms", "micro-batches, ms"),
        *("loss of always", "loss of deciding"),
    )
    for network in networks:
        for size in sizes:
            plan, model = plan_of_batches(network, size, platform, place)
            frames = max(FRAMES, round(LEAST_S / plan.predicted.latency_s))
            cases = [
                Measured.of(
                    each.__name__,
                    batch_executor(plan, model, each, place / f"{network}-{size}-{each.__name__}"),
                    frames,
                )
                for each in (Never, Always, MicroBatches)
            ]
            for turn in range(TURNS * rounds):
                first = turn % len(cases)
                for case in cases[first:] + cases[:first]:
                    case.measure()
            click.echo(f"{network}, batch {size}")
            yield _batch_row(network, size, "alone", [case.latencies_s for case in cases])
            yield _batch_row(network, size, "saturated", [case.periods_s for case in cases])


def _batch_row(
    network: str, size: int, how: str, found_s: Sequence[Sequence[float]]
) -> Sequence[object]:
    never_s, always_s, _ = found_s
    better_s = min(never_s, always_s, key=median)
    losses = [median(a / b for a, b in zip(each, better_s, strict=True)) for each in found_s[1:]]
    told_ms = (f"{median(each) * 1e3:.2f}" for each in found_s)
    return network, size, how, *told_ms, *(f"{each - 1:+.1%}" for each in losses)


def merging_rows(
    networks: Sequence[str], size: int, platform: Path, place: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the fourth table."""
    yield "network", "batch", "without copies, ms", "with copies, ms", "gain"
    for network in networks:
        plan, model = plan_of_batches(network, size, platform, place)
        executor = batch_executor(plan, model, Merging, place / f"{network}-merging", single=True)
        without = Measured.of("without", executor, FRAMES)
        copying = Measured.of("with", executor, FRAMES)
        for _ in range(rounds):
            without.measure(latency=False)
            with copies():
                copying.measure(latency=False)
        gain = copying.period_s / without.period_s
        click.echo(f"{network}, merging: {gain:.2f}")
        ms = (f"{each.period_s * 1e3:.2f}" for each in (without, copying))
        yield network, size, *ms, f"{gain:.2f}"


@contextmanager
def copies() -> Iterator[None]:
    """Let pieces of micro-batches make tensors of their own, which are copied into the buffers."""

    def run_and_copy(
        session: Any,  # noqa: ANN401 - onnxruntime is untyped
        outputs: Sequence[str],
        inputs: dict[str, Any],
        into: dict[str, Any],
        options: Any,  # noqa: ANN401
    ) -> list[Any]:
        own = {name: np.array(array) for name, array in inputs.items()}
        made = session.run(outputs, own, options)
        for name, array in zip(outputs, made, strict=True):
            if name in into:
                into[name][...] = array
        return [into.get(name, array) for name, array in zip(outputs, made, strict=True)]

    with patch.object(strategy_executor, "run_into", run_and_copy):
        yield


def plan_of_batches(network: str, size: int, platform: Path, place: Path) -> tuple[Plan, Path]:
    """Return a plan of batches with the network on one core, and the model."""
    model = place / f"{network}-open.onnx"
    if not model.exists():
        write_open(network, model)
    front = parapipe.map(
        model, platform, dims={BATCH: size}, interleave="none", mapper="heft_cpop",
        objectives="latency-throughput", note=lambda _: None,
    )  # fmt: skip
    return front.best("period").plan(), model
