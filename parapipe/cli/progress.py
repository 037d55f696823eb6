"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from parapipe.digits import plain

if TYPE_CHECKING:
    from parapipe import Progress

LINE_EVERY_S = 10.0
LEFT_AFTER_S = 1.0


@contextmanager
def progress_shown(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield the function that shows progress, or None if nothing is to be shown."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _show_bar() as show:
            yield show
    else:
        yield _show_lines()


_DOING = {
    "searching": "searching stages: {} places to cut",
    "trading": "trading time for energy: {} subgraphs",
    "interleaving": "interleaving frames: {} periods",
    "writing": "writing plans: {}",
    "measuring": "measuring operators: {}",
    "whole": "measuring the whole model: {} runs",
    "split": "measuring split plans: {} runs",
    "running": "running frames: {}",
    "sweeping": "mapping models on platforms: {}",
    "compiling": "compiling segments: {}",
    "building": "building the runtime, once: {} percent",
}


def _progress_text(progress: Progress) -> str:
    return f"{_work_text(progress)}{_left_text(progress)}{_best_text(progress)}"


def _left_text(progress: Progress) -> str:
    """Say how long the phase still takes if it goes on as it began."""
    done = progress.done - progress.cached
    if done <= 0 or progress.elapsed_s < LEFT_AFTER_S or progress.done >= progress.total:
        return ""
    left_s = progress.elapsed_s / done * (progress.total - progress.done)
    return f", about {left_s:.0f} s left"


def _best_text(progress: Progress) -> str:
    if not progress.best_period_s:
        return ""
    latency_ms, fps = progress.best_latency_s * 1e3, 1 / progress.best_period_s
    return f"; best so far {plain(latency_ms)} ms, {plain(fps)} frames/s"


def _work_text(progress: Progress) -> str:
    count = f"{progress.done} of {progress.total}"
    elapsed = f"{progress.elapsed_s:.0f} s"
    if progress.phase in _DOING:
        return f"{_DOING[progress.phase].format(count)}, {elapsed}"
    gap = f", largest gap {progress.largest_gap * 100:.1f} %" if progress.largest_gap else ""
    cached = f", {progress.cached} of them earlier" if progress.cached else ""
    return f"mapping subgraphs: {count} solved{cached}{gap}, {elapsed}"


def _show_lines() -> Callable[[Progress], None]:
    next_s, phase = LINE_EVERY_S, ""

    def show(progress: Progress) -> None:
        nonlocal next_s, phase
        if progress.phase != phase:
            next_s, phase = LINE_EVERY_S, progress.phase
        if progress.elapsed_s >= next_s:
            next_s = progress.elapsed_s + LINE_EVERY_S
            click.echo(_progress_text(progress), err=True)

    return show


@contextmanager
def _show_bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading the model and the platform", total=None)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                description=_progress_text(progress),
                completed=progress.done,
                total=progress.total,
            )

        yield show
