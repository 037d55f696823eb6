"""Measures how many times as long operators take while other processors are busy.

As `measure`, this file needs onnxruntime and numpy, nothing of parapipe, so that a bundle can put
it on a board. In each round, an operator is run for some milliseconds alone, then beside each set
of busy others, in another order each time. Each other processor runs its work again and again in a
thread of its own, bound to its cores. The factor is the median over rounds of the time beside over
the time alone in the same round, so that what changes slowly, a clock or the load of other
programs, is in both.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from math import exp, log
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from .measure import CHUNK_BYTES, Run, preserve_thread_state

COLUMNS = (
    "name", "processor", "busy", "class", "busy_class",
    "moved_bytes", "alone_s", "factor", "spread", "rounds",
)  # fmt: skip
CLASSES = ("compute", "memory")
ROUNDS = 7
WINDOW_S = 0.04
SETTLE_S = 0.005  # until those that are busy are at work
FEW = 2  # others, of which all sets are measured; of more, each alone and all together
NORMAL = 0.6745  # median absolute deviation of a normal distribution, in standard deviations

Row = dict[str, str]
Tell = Callable[[int, int], None]
Failed = Callable[[str], None]


def busy_sets(others: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of other processors that are measured: all of a few, else each and all."""
    sizes = range(1, len(others) + 1) if len(others) <= FEW else (1, len(others))
    return [names for size in sizes for names in combinations(others, size)]


def kernel_rows(
    tasks: Mapping[str, Any], folder: Path, tell: Tell, failed: Failed
) -> Iterator[list[Row]]:
    """Measure kernels of stated intensity on each processor beside such on others.

    Parameters
    ----------
    tasks
        `processors` as for `rows_measured`, and `kernels`: for each class its model's file and
        `moved_bytes`.
    folder
        Where the models' files are.
    tell
        Called with the numbers of kernels measured and of all.
    failed
        Called with a sentence for each processor that does not run the kernels.
    """
    with preserve_thread_state():
        kernels: dict[str, dict[str, Run]] = {}
        for processor in tasks["processors"]:
            name = processor["name"]
            try:
                kernels[name] = {
                    kind: Run(folder, tasks["kernels"][kind], processor) for kind in CLASSES
                }
            except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
                failed(f"kernels on {name}: {' '.join(str(error).split())[:200]}")
        work = [(name, kind) for name in kernels for kind in CLASSES]
        for done, (name, kind) in enumerate(work, 1):
            others = [each for each in kernels if each != name]
            conditions = {
                (busy, beside): [[kernels[other][beside]] for other in busy]
                for busy in busy_sets(others)
                for beside in CLASSES
            }
            moved = str(tasks["kernels"][kind]["moved_bytes"])
            row = {"name": kind, "processor": name, "class": kind, "moved_bytes": moved}
            yield _rows_of(kernels[name][kind], conditions, row)
            tell(done, len(work))


def operator_rows(
    tasks: Mapping[str, Any], folder: Path, tell: Tell, failed: Failed
) -> Iterator[list[Row]]:
    """Measure operators while other processors run the model's operators in turn.

    Parameters are those of `kernel_rows`; `tasks` holds `operators` as for `rows_measured`.
    """
    with preserve_thread_state():
        loads: dict[str, list[Run]] = {}
        for processor in tasks["processors"]:
            loads[processor["name"]] = _load_of(tasks, folder, processor)
        names = [name for name, load in loads.items() if load]
        work = [
            (operator, processor)
            for processor in tasks["processors"]
            for operator in tasks["operators"]
            if processor["name"] in operator["processors"] and processor["name"] in names
        ]
        for done, (operator, processor) in enumerate(work, 1):
            name = processor["name"]
            others = [each for each in names if each != name]
            conditions = {(busy, ""): [loads[o] for o in busy] for busy in busy_sets(others)}
            moved = str(operator["cells"]["size_bytes"])
            row = {"name": operator["name"], "processor": name, "class": "", "moved_bytes": moved}
            try:
                yield _rows_of(Run(folder, operator, processor), conditions, row)
            except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
                failed(f"{operator['name']} on {name}: {' '.join(str(error).split())[:200]}")
            tell(done, len(work))


def _load_of(tasks: Mapping[str, Any], folder: Path, processor: Mapping[str, Any]) -> list[Run]:
    """Return the operators that a busy processor runs in turn, as many as memory is meant for."""
    runs: list[Run] = []
    size_bytes = 0
    for operator in tasks["operators"]:
        size_bytes += (folder / operator["file"]).stat().st_size
        if processor["name"] in operator["processors"] and (not runs or size_bytes < CHUNK_BYTES):
            try:
                runs.append(Run(folder, operator, processor))
            except Exception:  # noqa: BLE001 - it is told where the operator is measured
                continue
    return runs


Conditions = Mapping[tuple[tuple[str, ...], str], Sequence[Sequence[Run]]]


def _rows_of(run: Run, conditions: Conditions, row: Row) -> list[Row]:
    """Measure in rounds; return a row for each set of busy others and class of what they run."""
    alone_s: list[float] = []
    logarithms: dict[Any, list[float]] = {each: [] for each in conditions}
    shuffle = random.Random(0)
    for _ in range(ROUNDS):
        alone_s.append(_window_s(run))
        for each in shuffle.sample([*conditions], len(conditions)):
            with _busy(conditions[each]):
                logarithms[each].append(log(_window_s(run) / alone_s[-1]))
    return [
        {
            **row,
            "busy": " ".join(busy),
            "busy_class": beside,
            "alone_s": f"{median(alone_s):.9f}",
            "factor": f"{exp(median(values)):.4f}",
            "spread": f"{_spread(values):.4f}",
            "rounds": str(len(values)),
        }
        for (busy, beside), values in logarithms.items()
    ]


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation by the median of absolute deviations."""
    middle = median(values)
    return median(abs(value - middle) for value in values) / NORMAL


def _window_s(run: Run) -> float:
    """Return the mean seconds of a run in a window, without batches that were disturbed."""
    run.pin()
    batches: list[tuple[float, bool]] = []
    end_s = monotonic() + WINDOW_S
    while not batches or monotonic() < end_s:
        batches.append(run.time_batch(run.batch))
    good = [time_s for time_s, disturbed in batches if not disturbed]
    times_s = good or [time_s for time_s, _ in batches]
    return sum(times_s) / len(times_s)


@contextmanager
def _busy(loads: Sequence[Sequence[Run]]) -> Iterator[None]:
    """Keep processors busy, each with a list of operators in turn."""
    stop, ready = threading.Event(), threading.Barrier(len(loads) + 1)

    def work(load: Sequence[Run]) -> None:
        load[0].pin()
        load[0].run()
        ready.wait()
        while True:
            for run in load:
                if stop.is_set():
                    return
                run.run()

    threads = [threading.Thread(target=work, args=(load,)) for load in loads]
    for thread in threads:
        thread.start()
    ready.wait()
    sleep(SETTLE_S)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
