"""Parts in one pool against one core and against barriers, for `benchmarks.strategies_here`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click

from benchmarks.run_cases import whole
from benchmarks.strategy_runs import (
    CORES,
    Measured,
    executor_of,
    folder_of_parts,
    on_cores,
    parallel_fraction,
)
from parapipe.runtime.folder import Folder, open_folder
from parapipe.strategies.cut import Cut, chains, part_runs
from parapipe.zoo.registry import write

PARTS = (1, 2, 4, 8)
FRAMES = 24
PATIENCE_S = 600.0  # until another process has opened its folder
RULES = {"bert-base": "tokens"}  # others along rows
HEAD = (
    *("network", "parts", "sessions", "session, ms", "one core, ms", "latency, ms", "period, ms"),
    *("gain over session", "gain", "p_e", "p_e of two programs", "with barriers"),
)
OPERATORS_HEAD = ("network", "parts", "sessions", "latency, ms", "with barriers, ms", "longer")


def pool_rows(
    networks: Sequence[str], parts: Sequence[int], platform: Path, place: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the table of pieces."""
    yield HEAD
    for network, model, count in _cases(networks, parts, place):
        cut = part_runs if count > 1 else chains
        yield _row(network, count, _folder(network, model, count, platform, cut), model, rounds)


def barrier_rows(
    networks: Sequence[str], parts: Sequence[int], platform: Path, place: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the table of operators, each a session."""
    yield OPERATORS_HEAD
    for network, model, count in _cases(networks, parts, place):
        folder = _folder(network, model, count, platform, None)
        pool, barriers = (
            Measured.of(each, executor_of(on_cores(folder, CORES[:2]), each), FRAMES)
            for each in ("ready-pool", "barriers")
        )
        for _ in range(rounds):
            pool.measure(period=False)
            barriers.measure(period=False)
        longer = barriers.latency_s / pool.latency_s - 1
        click.echo(f"{network}, {count} parts, barriers after every operator: {longer:+.0%}")
        both_s = (pool.latency_s, barriers.latency_s)
        yield (
            network,
            count,
            len(folder.segments),
            *(f"{s * 1e3:.1f}" for s in both_s),
            f"{longer:+.0%}",
        )


def _cases(
    networks: Sequence[str], parts: Sequence[int], place: Path
) -> Iterator[tuple[str, Path, int]]:
    for network in networks:
        model = place / f"{network}.onnx"
        if not model.exists():
            write(network, model)
        yield from ((network, model, count) for count in parts)


def _folder(network: str, model: Path, parts: int, platform: Path, cut: Cut | None) -> Folder:
    place = model.with_name(f"{network}-{parts}-{'pieces' if cut else 'operators'}")
    return folder_of_parts(model, RULES.get(network, "rows"), parts, platform, place, cut=cut)


def _row(network: str, parts: int, folder: Folder, model: Path, rounds: int) -> Sequence[object]:
    both, one = on_cores(folder, CORES[:2]), on_cores(folder, CORES[:1])
    pool = Measured.of("ready-pool", executor_of(both, "ready-pool"), FRAMES)
    alone = Measured.of("one core", executor_of(one, "ready-pool"), FRAMES)
    barriers = Measured.of("barriers", executor_of(both, "barriers"), FRAMES)
    session = whole(model, CORES[:1])
    sessions_s, programs_s = [], []
    with _TwoPrograms(folder.path) as programs:
        for _ in range(rounds):
            sessions_s.append(session().latency_s)
            pool.measure()
            alone.measure()
            barriers.measure(period=False)
            programs_s.append(programs.period_s())
    alone_s = min(alone.latency_s, alone.period_s)
    best_s = min(pool.latency_s, pool.period_s)
    gains = [alone_s / best_s, alone_s / median(programs_s)]
    click.echo(f"{network}, {parts} parts: {pool.latency_s * 1e3:.1f} ms, gain {gains[0]:.2f}")
    return (
        network,
        parts,
        len(folder.segments),
        *(f"{s * 1e3:.1f}" for s in (median(sessions_s), alone_s, pool.latency_s, pool.period_s)),
        f"{median(sessions_s) / best_s:.2f}",
        f"{gains[0]:.2f}",
        *(f"{parallel_fraction(gain, 2):.3f}" for gain in gains),
        f"{barriers.latency_s / pool.latency_s - 1:+.0%}",
    )


class _TwoPrograms:
    """Two processes, each with the same folder on a core of its own, that run at the same time."""

    def __init__(self, place: Path) -> None:
        context = get_context("spawn")
        self._barrier = context.Barrier(1 + len(CORES[:2]), timeout=PATIENCE_S)
        self._found = context.SimpleQueue()
        self._processes = [
            context.Process(
                target=_program, args=(place, core, self._barrier, self._found), daemon=True
            )
            for core in CORES[:2]
        ]

    def __enter__(self) -> _TwoPrograms:
        for each in self._processes:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._processes:
            each.kill()

    def period_s(self) -> float:
        """Return the time between frames of both programs together."""
        self._barrier.wait()
        return fmean(self._found.get() for _ in self._processes) / len(self._processes)


def _program(place: Path, core: int, barrier: Any, found: Any) -> None:  # noqa: ANN401
    folder = on_cores(open_folder(place), (core,))
    alone = Measured.of("one core", executor_of(folder, "ready-pool"), FRAMES)
    while True:
        barrier.wait()
        alone.measure(latency=False)
        found.put(alone.periods_s[-1])
