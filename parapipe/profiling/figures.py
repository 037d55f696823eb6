"""What a platform file says in numbers, measured on this machine by short tests."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from statistics import median
from time import perf_counter, sleep, thread_time

import numpy as np
import onnx

from parapipe.profiling.providers import CPU_PROVIDER, onnx_runtime

EXTENT = 768  # of the matrices that are multiplied
SMALL_EXTENT = 256  # for the types that have no quick kernels
CHAIN = 64
COPIED_BYTES = 64 << 20
SHORTEST_TESTS = 7  # of which the best counts
LONGER_TESTS = 20
LEAST_S = 1e-3
ROUND_TRIPS = 50
SWEPT_BYTES = 16 << 20  # more than caches of one core hold
CUT, CHANNELS, EXTENTS = 4, 256, (14, 56)  # convolutions in a row, and what they work on
PAUSE_S = 2e-3  # between them: who waits in a pipeline has waited for milliseconds, and sleeps
_PRODUCTS: Mapping[str, int] = {
    "float32": EXTENT,
    **dict.fromkeys(("float64", "int64", "int32", "int8", "uint8"), SMALL_EXTENT),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one processor.

    Parameters
    ----------
    peak_macs_per_s
        Multiply-accumulates a second in a matrix product, by data type.
    launch_s
        Seconds that one more operator on one number adds to a session.
    bandwidth_bytes_per_s
        Bytes read and written a second when memory is copied, by one core.
    run_s
        Seconds of a whole run of a session with one operator on one number.
    """

    peak_macs_per_s: Mapping[str, float]
    launch_s: float
    bandwidth_bytes_per_s: float
    run_s: float


@dataclass(frozen=True, slots=True)
class HandOver:
    """What was measured of handing something from one CPU processor to another.

    Parameters
    ----------
    time_s
        Seconds until a segment on the receiver has begun.
    receiver_s
        Seconds of them in which the receiving thread has work to do; the rest it waits to wake up.
    bandwidth_bytes_per_s
        Bytes of a tensor a second that leave one session and enter another one, beyond that.
    """

    time_s: float
    receiver_s: float
    bandwidth_bytes_per_s: float

    @property
    def is_work(self) -> bool:
        """Whether it is the receiver's work rather than a delay, by what most of it is."""
        return 2 * self.receiver_s >= self.time_s


def cpu_figures(cores: Sequence[int]) -> Figures:
    """Measure a CPU processor, pinned to its cores, one thread each; the best of some runs counts.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    """
    onnx_runtime()
    from parapipe.profiling.measure import thread_state_kept

    with thread_state_kept():
        os.sched_setaffinity(0, cores)
        return _figures(CPU_PROVIDER, len(cores), _copied())


def accelerator_figures(
    provider: str, options: Mapping[str, str], bandwidth_bytes_per_s: float
) -> Figures:
    """Measure what a provider runs on; its memory is taken to be that of the CPU.

    Raises
    ------
    RuntimeError
        If the provider does not run, as ONNX Runtime raises it.
    """
    return _figures(provider, 0, bandwidth_bytes_per_s, options)


def hand_overs(processors: Sequence[Sequence[int]]) -> dict[tuple[int, int], HandOver]:
    """Measure what a segment on q takes to begin with what a thread on p hands to it.

    Half a round trip between two threads of this process that sleep, whose caches hold other data,
    and that run a session of one operator on one number; the median of many. How it grows with the
    size is what convolutions in sessions of their own take longer than in one session: between
    them, ONNX Runtime keeps tensors in blocks of channels, and puts them in order where a session
    begins and ends.
    """
    bandwidths = [_between_sessions(cores) for cores in processors]
    return {
        (p, q): _hand_over(processors[p], processors[q], min(bandwidths[p], bandwidths[q]))
        for p, q in permutations(range(len(processors)), 2)
    }


def _between_sessions(cores: Sequence[int]) -> float:
    """Return the bytes a second of tensors between sessions that share an arena, on some cores."""
    import onnxruntime as ort

    from parapipe.profiling.measure import thread_state_kept

    kind = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR  # as sessions of plans do
    arena = ort.OrtMemoryInfo("Cpu", kind, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(arena, None)
    with thread_state_kept():
        os.sched_setaffinity(0, cores)
        small_s, large_s = (
            (_in_a_row_s([1] * CUT, extent, len(cores)) - _in_a_row_s([CUT], extent, len(cores)))
            / (CUT - 1)
            for extent in EXTENTS
        )
        small, large = (4 * CHANNELS * extent**2 for extent in EXTENTS)
        least_s = (large - small) / _copied()  # no noise makes it quicker than a copy
        return (large - small) / max(large_s - small_s, least_s)


def _in_a_row_s(counts: Sequence[int], extent: int, threads: int) -> float:
    """Return the seconds of so many convolutions in each of some sessions, one after the other."""
    from parapipe.profiling.measure import session

    row = [
        session(_convolutions(count, extent).SerializeToString(), threads, CPU_PROVIDER, {})
        for count in counts
    ]
    frame = np.ones((1, CHANNELS, extent, extent), np.float32)

    def run() -> None:
        tensor = frame
        for opened in row:
            (tensor,) = opened.run(None, {"t0": tensor})

    return min(_time_s(run, 1, threads) for _ in range(LONGER_TESTS))


def _figures(
    provider: str,
    threads: int,
    bandwidth_bytes_per_s: float,
    options: Mapping[str, str] | None = None,
) -> Figures:
    """Measure a provider; with no threads of its own it is something else than the CPU."""
    given = options or {}
    peaks = {
        dtype: extent**3 / _best_s(_product(dtype, extent), threads, provider, given)
        for dtype, extent in _PRODUCTS.items()
        if dtype == "float32" or provider == CPU_PROVIDER
    }
    one_s, many_s = (_best_s(_chain(count), threads, provider, given) for count in (1, 1 + CHAIN))
    launch_s = max(many_s - one_s, 0.0) / CHAIN
    return Figures(peaks, launch_s, bandwidth_bytes_per_s, one_s)


def _best_s(
    model: onnx.ModelProto, threads: int, provider: str, options: Mapping[str, str]
) -> float:
    """Return the seconds of a run in the quickest of some tests of a millisecond or more."""
    from parapipe.profiling.measure import bound, session

    opened = session(model.SerializeToString(), threads, provider, options)
    run = partial(opened.run_with_iobinding, bound(opened))
    count = 1
    while (time_s := _time_s(run, count, threads)) < LEAST_S:
        count *= 2
    others_s = (_time_s(run, count, threads) for _ in range(SHORTEST_TESTS - 1))
    return min(time_s, *others_s) / count


def _time_s(work: Callable[[], object], count: int, threads: int) -> float:
    """Return seconds of so many runs; by its own clock of one thread."""
    clock = thread_time if threads == 1 else perf_counter
    begin_s = clock()
    for _ in range(count):
        work()
    return clock() - begin_s


def _copied() -> float:
    source = np.ones(COPIED_BYTES, np.uint8)
    target = np.zeros_like(source)
    times_s = [_time_s(lambda: np.copyto(target, source), 1, 1) for _ in range(SHORTEST_TESTS)]
    return 2 * COPIED_BYTES / min(times_s)


def _product(dtype: str, extent: int) -> onnx.ModelProto:
    kind = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    operator, made = ("MatMulInteger", "int32") if dtype.endswith("int8") else ("MatMul", kind)
    shape = f"[{extent},{extent}]"
    model = model_of(f"({kind}{shape} x) => ({made}{shape} y) {{ y = {operator}(x, w) }}")
    weights = np.ones((extent, extent), dtype)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


def _chain(count: int) -> onnx.ModelProto:
    """Return operators on one number, one after the other, that no optimiser joins."""
    nodes = " ".join(f"t{i + 1} = Sigmoid(t{i})" for i in range(count))
    return model_of(f"(float[1] t0) => (float[1] t{count}) {{ {nodes} }}")


def _convolutions(count: int, extent: int) -> onnx.ModelProto:
    """Return convolutions of one pixel, one after the other."""
    shape = f"float[1,{CHANNELS},{extent},{extent}]"
    nodes = " ".join(f"t{i + 1} = Conv(t{i}, w{i})" for i in range(count))
    model = model_of(f"({shape} t0) => ({shape} t{count}) {{ {nodes} }}")
    weights = np.full((CHANNELS, CHANNELS, 1, 1), 1 / CHANNELS, np.float32)
    for i in range(count):
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, f"w{i}"))
    return model


def model_of(graph: str) -> onnx.ModelProto:
    """Return a model from the text of its graph: inputs, outputs and operators."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 14]> test {graph}')


def _hand_over(one: Sequence[int], other: Sequence[int], bandwidth_bytes_per_s: float) -> HandOver:
    there: queue.SimpleQueue[object] = queue.SimpleQueue()
    back: queue.SimpleQueue[object] = queue.SimpleQueue()
    times_s: list[float] = []
    works_s: list[float] = []
    frame = {"t0": np.ones(1, np.float32)}

    def pinned(cores: Sequence[int]) -> tuple[Callable[[], object], Callable[[], None]]:
        """Return what runs a segment on these cores, and what fills their caches."""
        from parapipe.profiling.measure import session

        os.sched_setaffinity(0, cores)
        opened = session(_chain(1).SerializeToString(), len(cores), CPU_PROVIDER, {})
        source, target = np.ones((2, SWEPT_BYTES), np.uint8)
        return partial(opened.run, ["t1"], frame), partial(np.copyto, target, source)

    def answer() -> None:
        run, sweep = pinned(other)
        sweep()
        begin_s = thread_time()  # which stands still while the thread waits
        while there.get() is not None:
            run()
            works_s.append(thread_time() - begin_s)
            back.put(True)
            sweep()
            begin_s = thread_time()

    def ask() -> None:
        run, sweep = pinned(one)
        for _ in range(ROUND_TRIPS):
            sleep(PAUSE_S)
            sweep()
            begin_s = perf_counter()
            there.put(True)
            back.get()
            run()
            times_s.append(perf_counter() - begin_s)
        there.put(None)

    threads = [threading.Thread(target=work, daemon=True) for work in (answer, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time_s = median(times_s) / 2
    return HandOver(time_s, min(time_s, median(works_s)), bandwidth_bytes_per_s)
