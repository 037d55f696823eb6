"""One model mapped on one board for `benchmarks.scaling`, in a process of its own.

    python -m benchmarks.scaling_run MODEL PLATFORM OUT LIMIT

Ends with exit code 3 after LIMIT seconds of processor time. Prints a line of JSON each time the
best known latency or period gets less, and one at the end: seconds of processor time since the
process began, those of its workers included, and the best latency and period so far, in seconds.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from time import process_time
from types import FrameType

import parapipe
from parapipe.cli.main import OBJECTS_BETWEEN_COLLECTIONS

TICKS = os.sysconf("SC_CLK_TCK")
OVER = 3  # exit code
LOOK_EVERY_S = 0.5


def processor_time_s() -> float:
    """Return what this process and all that it has started have taken."""
    done = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + done.ru_utime + done.ru_stime + sum(map(_running_s, _children()))


def _children() -> list[int]:
    listed = Path("/proc/self/task").glob("*/children")
    return [int(child) for each in listed for child in each.read_text().split()]


def _running_s(process: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS  # its own and that of its ended children
    return 0.0


def main() -> None:
    """Map, and say when what was known."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)  # as the command does
    model, platform, out, limit = sys.argv[1:]
    known = (0.0, 0.0)

    def look(_signal: int, _frame: FrameType | None) -> None:
        if processor_time_s() > float(limit):
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.exit(OVER)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK_EVERY_S, LOOK_EVERY_S)

    def told(progress: parapipe.Progress) -> None:
        nonlocal known
        best = (progress.best_latency_s, progress.best_period_s)
        if best not in {known, (0.0, 0.0)}:
            known = best
            _say(*best)

    front = parapipe.map(model, platform, jobs=1, cache=False, progress=told, note=_ignore)
    front.write(out)
    signal.setitimer(signal.ITIMER_REAL, 0)
    rows = front.document.configurations
    _say(min(row.latency_s for row in rows), 1 / max(row.throughput_fps for row in rows))


def _say(latency_s: float, period_s: float) -> None:
    print(json.dumps([processor_time_s(), latency_s, period_s]), flush=True)


def _ignore(_note: str) -> None:
    pass


if __name__ == "__main__":
    main()
