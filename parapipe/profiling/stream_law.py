"""How much operators that a processor runs at once slow each other down, measured here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from math import fsum
from pathlib import Path
from queue import SimpleQueue
from statistics import mean, median
from time import monotonic, perf_counter
from typing import Any

from parapipe.errors import ProfilingError
from parapipe.files.atomic import write_folder
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.progress import Progress, Tell
from parapipe.platform.from_part import four_digits
from parapipe.profiling.detect import BUSY
from parapipe.profiling.figures import copied_bytes_per_s
from parapipe.profiling.providers import onnx_runtime
from parapipe.profiling.tasks import Tasks

ROUNDS = 5
TRIPS = 200
WINDOW_S = 5e-3  # in which streams run an operator again and again, once at least


@dataclass(frozen=True, slots=True)
class StreamLaw:
    """What was measured of a processor's streams.

    Parameters
    ----------
    slowdown
        The time of an operator when 1, 2, … run at once, over its time by itself.
    operators
        Distinct operators that it was measured with; their times are added up.
    hand_over_s, bandwidth_bytes_per_s
        To hand a tensor from a stream to another one.
    """

    processor: str
    slowdown: tuple[float, ...]
    operators: int
    hand_over_s: float
    bandwidth_bytes_per_s: float

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def stream_laws(
    tasks: Tasks, streams: int, progress: Tell | None = None
) -> tuple[tuple[StreamLaw, ...], tuple[str, ...]]:
    """Measure each processor with 1, 2, … streams; identical ones once.

    Every operator runs on all streams at once, each with a session of its own. Streams of a CPU
    share its cores, as in runs of plans: each has an equal share of threads, at least one.

    Parameters
    ----------
    streams
        How many at most, two at least.

    Returns
    -------
    tuple
        The laws, and a sentence for each operator that is left out.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    ProfilingError
        If no operator of a processor runs.
    """
    onnx_runtime()
    from parapipe.profiling.measure import preserve_thread_state

    processors = [p for p in tasks.document["processors"] if p["same_as"] == p["name"]]
    notes, laws, begin_s = [*tasks.left_out, *tasks.notes], list[StreamLaw](), monotonic()
    if (load := os.getloadavg()[0]) > BUSY:
        notes.append(
            f"other programs were at work (load {load:.1f}): operators by themselves look slower "
            "than they are; measure again when the machine is at rest"
        )
    everything = ((p, _operators_on(p["name"], tasks.document)) for p in processors)
    pending = [(p, operators) for p, operators in everything if operators]
    total, done = sum(len(operators) for _, operators in pending), 0
    clear_abandoned_scratch()
    with LockedFolder() as scratch, preserve_thread_state():
        write_folder(scratch.path, tasks.files())
        for processor, operators in pending:
            times_s: list[list[float]] = []
            for operator in operators:
                try:
                    times_s.append(_times_s(scratch.path / operator["file"], processor, streams))
                except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
                    reason = " ".join(str(error).split())[:200]
                    notes.append(f"operator '{operator['name']}' on {processor['name']}: {reason}")
                done += 1
                if progress:
                    event = Progress(done, total, 0.0, monotonic() - begin_s, phase="measuring")
                    progress(event)
            laws.append(_law_of(processor, times_s))
    return tuple(laws), tuple(notes)


def _operators_on(name: str, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in document["operators"] if name in each["processors"]]


def _law_of(processor: Mapping[str, Any], times_s: Sequence[Sequence[float]]) -> StreamLaw:
    if not times_s:
        raise ProfilingError(
            f"no operator of the model runs on '{processor['name']}' in ONNX Runtime here: choose "
            "another model, or leave that processor out of the platform"
        )
    alone_s, *more_s = (fsum(column) for column in zip(*times_s, strict=True))
    # More at once make none quicker: what is less than before is noise.
    rising = accumulate((1.0, *(time_s / alone_s for time_s in more_s)), max)
    cores = processor["cores"] or sorted(os.sched_getaffinity(0))
    return StreamLaw(
        processor["name"],
        tuple(four_digits(factor) for factor in rising),
        len(times_s),
        _hand_over_s(cores),
        copied_bytes_per_s(),
    )


def _hand_over_s(cores: Sequence[int]) -> float:
    """Return half the median round trip between two sleeping threads on these cores, seconds."""
    there: SimpleQueue[bool] = SimpleQueue()
    back: SimpleQueue[bool] = SimpleQueue()

    def echo() -> None:
        os.sched_setaffinity(0, cores)
        while there.get():
            back.put(True)

    def trip_s() -> float:
        begin_s = perf_counter()
        there.put(True)
        back.get()
        return perf_counter() - begin_s

    thread = threading.Thread(target=echo)
    thread.start()
    times_s = [trip_s() for _ in range(TRIPS)]
    there.put(False)
    thread.join()
    return median(times_s) / 2


def _times_s(model: Path, processor: Mapping[str, Any], streams: int) -> list[float]:
    """Return the median seconds of an operator when 1, 2, … run at once."""
    if processor["cores"]:
        os.sched_setaffinity(0, processor["cores"])
    sessions = [_open_sessions(model, processor, count) for count in range(1, streams + 1)]
    rounds = [[_at_once_s(runs) for runs in sessions] for _ in range(1 + ROUNDS)]
    return [median(column) for column in zip(*rounds[1:], strict=True)]


def _open_sessions(
    model: Path, processor: Mapping[str, Any], count: int
) -> Sequence[Callable[[], object]]:
    """Open so many sessions of an operator; return what runs each."""
    from parapipe.profiling.measure import bind_tensors, session

    def open_session() -> Callable[[], object]:
        own = session(
            model,
            max(1, len(processor["cores"]) // count),
            processor["provider"],
            processor["options"],
            processor["threads_option"],
        )
        return partial(own.run_with_iobinding, bind_tensors(own))

    return [open_session() for _ in range(count)]


def _at_once_s(runs: Sequence[Callable[[], object]]) -> float:
    """Return the mean seconds of a run if all are run at once, each by a thread of its own."""
    start = threading.Barrier(len(runs))

    def took_s(run: Callable[[], object]) -> float:
        start.wait()
        count, begin_s = 0, perf_counter()
        while (so_far_s := perf_counter() - begin_s) < WINDOW_S or not count:
            run()
            count += 1
        return so_far_s / count

    with ThreadPoolExecutor(len(runs)) as threads:
        return mean(threads.map(took_s, runs))
