"""What a platform file says in numbers, measured here, and how far a processor's state moves it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import sqrt
from statistics import NormalDist, fmean
from time import monotonic, perf_counter, sleep, thread_time

import numpy as np
import numpy.typing as npt
import onnx

from parapipe.profiling.providers import CPU_PROVIDER, onnx_runtime

EXTENT = 768  # of the matrices that are multiplied
SMALL_EXTENT = 256  # for the types that have no quick kernels
CHAIN = 64
COPIED_BYTES = 64 << 20
SHORTEST_TESTS = 7  # of which the best counts
LEAST_S = 1e-3
CHANNELS = 256  # of convolutions
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


def cpu_figures(cores: Sequence[int]) -> Figures:
    """Measure a CPU processor, pinned to its cores, one thread each; the best of some runs counts.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    """
    onnx_runtime()
    from parapipe.profiling.measure import preserve_thread_state

    with preserve_thread_state():
        os.sched_setaffinity(0, cores)
        return _provider_figures(CPU_PROVIDER, len(cores), copied_bytes_per_s())


def accelerator_figures(
    provider: str, options: Mapping[str, str], bandwidth_bytes_per_s: float
) -> Figures:
    """Measure what a provider runs on; its memory is taken to be that of the CPU.

    Raises
    ------
    RuntimeError
        If the provider does not run, as ONNX Runtime raises it.
    """
    return _provider_figures(provider, 0, bandwidth_bytes_per_s, options)


def _provider_figures(
    provider: str,
    threads: int,
    bandwidth_bytes_per_s: float,
    options: Mapping[str, str] | None = None,
) -> Figures:
    """Measure a provider; with no threads of its own it is something else than the CPU."""
    own = options or {}
    peaks = {
        dtype: extent**3 / _shortest_s(_matrix_product(dtype, extent), threads, provider, own)
        for dtype, extent in _PRODUCTS.items()
        if dtype == "float32" or provider == CPU_PROVIDER
    }
    one_s, many_s = (_shortest_s(_sigmoids(n), threads, provider, own) for n in (1, 1 + CHAIN))
    launch_s = max(many_s - one_s, 0.0) / CHAIN
    return Figures(peaks, launch_s, bandwidth_bytes_per_s, one_s)


def _shortest_s(
    model: onnx.ModelProto, threads: int, provider: str, options: Mapping[str, str]
) -> float:
    """Return the seconds of a run in the quickest of some tests of a millisecond or more."""
    from parapipe.profiling.measure import bind_tensors, session

    opened = session(model.SerializeToString(), threads, provider, options)
    run = partial(opened.run_with_iobinding, bind_tensors(opened))
    count = 1
    while (took_s := time_s(run, count, threads)) < LEAST_S:
        count *= 2
    others_s = (time_s(run, count, threads) for _ in range(SHORTEST_TESTS - 1))
    return min(took_s, *others_s) / count


def time_s(work: Callable[[], object], count: int, threads: int) -> float:
    """Return seconds of so many runs; by its own clock of one thread."""
    clock = thread_time if threads == 1 else perf_counter
    begin_s = clock()
    for _ in range(count):
        work()
    return clock() - begin_s


def copied_bytes_per_s() -> float:
    """Measure how many bytes a second one thread reads and writes when it copies."""
    source = np.ones(COPIED_BYTES, np.uint8)
    target = np.zeros_like(source)
    times_s = [time_s(lambda: np.copyto(target, source), 1, 1) for _ in range(SHORTEST_TESTS)]
    return 2 * COPIED_BYTES / min(times_s)


def _matrix_product(dtype: str, extent: int) -> onnx.ModelProto:
    kind = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    operator, result = ("MatMulInteger", "int32") if dtype.endswith("int8") else ("MatMul", kind)
    shape = f"[{extent},{extent}]"
    model = model_of(f"({kind}{shape} x) => ({result}{shape} y) {{ y = {operator}(x, w) }}")
    weights = np.ones((extent, extent), dtype)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


def _sigmoids(count: int) -> onnx.ModelProto:
    """Return operators on one number, one after the other, that no optimiser joins."""
    nodes = " ".join(f"t{i + 1} = Sigmoid(t{i})" for i in range(count))
    return model_of(f"(float[1] t0) => (float[1] t{count}) {{ {nodes} }}")


def convolutions(count: int, extent: int) -> onnx.ModelProto:
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


SAMPLES = 20
BURST_S = 0.1
LEAST_RUNS = 5
COUNT, STATE_EXTENT = 4, 28  # convolutions in a row, and what they work on


@dataclass(frozen=True, slots=True)
class StateSpread:
    """Standard deviations of the logarithm of the ratio of times between two moments.

    Parameters
    ----------
    state
        On a processor.
    common
        What of it all processors share.
    """

    state: float
    common: float


STEADY = StateSpread(0.0, 0.0)


def watch_states(processors: Sequence[Sequence[int]], watch_s: float) -> StateSpread:
    """Watch CPU processors for a while; return how far times move between two moments.

    At each of some moments, each processor opens a session of some convolutions anew and runs it
    for a tenth of a second; the median run counts, by its own clock where the processor is one
    core.
    """
    times_of: list[list[float]] = [[] for _ in processors]
    begin_s = monotonic()
    for number in range(SAMPLES):
        sleep(max(begin_s + number * watch_s / SAMPLES - monotonic(), 0.0))
        for times_s, cores in zip(times_of, processors, strict=True):
            times_s.append(burst_s(cores))
    return state_spread(times_of)


def state_spread(times_s: Sequence[Sequence[float]]) -> StateSpread:
    """Return how far times move between two moments.

    Variances are those of medians of absolute deviations, as a disturbed moment says nothing of all
    others; covariances come from variances of sums and differences (Gnanadesikan and Kettenring,
    1972).

    Parameters
    ----------
    times_s
        Of each processor at each moment.
    """
    logarithms = np.log(times_s)
    state = sqrt(2 * fmean(_variance(each) for each in logarithms))
    pairs = [
        (_variance(one + other) - _variance(one - other)) / 4
        for one, other in combinations(logarithms, 2)
    ]
    common = sqrt(2 * max(fmean(pairs), 0.0)) if pairs else 0.0
    return StateSpread(state, min(common, state))


def _variance(values: npt.NDArray[np.float64]) -> float:
    deviation = np.median(np.abs(values - np.median(values)))
    return float((deviation / NormalDist().inv_cdf(0.75)) ** 2)


def burst_s(cores: Sequence[int], *, own: bool = True) -> float:
    """Return the median seconds of some convolutions, in a new session on some cores.

    Parameters
    ----------
    own
        Whether a single core counts only what its thread works, not what it waits for others.
    """
    from parapipe.profiling.measure import bind_tensors, preserve_thread_state, session

    with preserve_thread_state():
        os.sched_setaffinity(0, cores)
        text = convolutions(COUNT, STATE_EXTENT).SerializeToString()
        opened = session(text, len(cores), CPU_PROVIDER, {})
        binding, end_s = bind_tensors(opened), monotonic() + BURST_S
        times_s: list[float] = []
        while len(times_s) < LEAST_RUNS or monotonic() < end_s:
            threads = len(cores) if own else 0
            times_s.append(time_s(lambda: opened.run_with_iobinding(binding), 1, threads))
    return float(np.median(times_s))
