"""Parts in one pool against one core and against barriers, for `benchmarks.strategies_here`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

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
from parapipe.zoo.registry import write

PARTS = (1, 2, 4, 8)
FRAMES = 24
RULES = {"bert-base": "tokens"}  # others along rows
HEAD = (
    *("network", "parts", "sessions", "session, ms", "one core, ms", "latency, ms", "period, ms"),
    *("gain over session", "gain", "p_e", "with barriers"),
)


def pool_rows(
    networks: Sequence[str], parts: Sequence[int], platform: Path, place: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the first table."""
    yield HEAD
    for network in networks:
        model = place / f"{network}.onnx"
        write(network, model)
        session = whole(model, CORES[:1])
        for count in parts:
            yield _row(network, model, count, platform, place, rounds, session)


def _row(  # noqa: PLR0917 - of a table
    network: str, model: Path, parts: int, platform: Path, place: Path, rounds: int, session: object
) -> Sequence[object]:
    rule = RULES.get(network, "rows")
    folder = folder_of_parts(model, rule, parts, platform, place / f"{network}-{parts}")
    both, one = on_cores(folder, CORES[:2]), on_cores(folder, CORES[:1])
    pool = Measured.of("ready-pool", executor_of(both, "ready-pool"), FRAMES)
    alone = Measured.of("one core", executor_of(one, "ready-pool"), FRAMES)
    barriers = Measured.of("barriers", executor_of(both, "barriers"), FRAMES)
    sessions_s = []
    for _ in range(rounds):
        sessions_s.append(session().latency_s)  # type: ignore[operator] # what `whole` returns
        pool.measure()
        alone.measure(period=False)
        barriers.measure(period=False)
    session_s = sorted(sessions_s)[len(sessions_s) // 2]
    best_s = min(pool.latency_s, pool.period_s)
    gain = alone.latency_s / best_s
    click.echo(f"{network}, {parts} parts: {pool.latency_s * 1e3:.1f} ms, gain {gain:.2f}")
    return (
        network,
        parts,
        len(folder.segments),
        f"{session_s * 1e3:.1f}",
        f"{alone.latency_s * 1e3:.1f}",
        f"{pool.latency_s * 1e3:.1f}",
        f"{pool.period_s * 1e3:.1f}",
        f"{session_s / best_s:.2f}",
        f"{gain:.2f}",
        f"{parallel_fraction(gain, 2):.3f}",
        f"{barriers.latency_s / pool.latency_s - 1:+.0%}",
    )
