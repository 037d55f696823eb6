"""What the engine takes for a segment of a millisecond, for `benchmarks.strategies_here`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time, thread_time
from unittest.mock import patch

import click
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.run_overhead import chain
from benchmarks.strategy_runs import executor_of
from parapipe.profiling.measure import session
from parapipe.runtime.document import Tensor
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import Folder, open_folder

SEGMENTS, FRAMES, WIDTH = 16, 60, 192
PIECE_S = 1e-3
MICRO = 1e6
CHAINS = {
    "1": (1, 1, False),
    "2, a stage each": (2, SEGMENTS // 2, False),
    "2, segments in turn, frames interleaved": (2, 1, True),
    "2, segments in turn, frame after frame": (2, 1, False),
}
"""Processors, how many segments in a row each has, and whether frames are interleaved."""
STRATEGIES = ("ready-pool", "steal", "barriers")


def overhead_rows(place: Path, rounds: int) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the second table."""
    yield (
        *("what decides", "processors", "segment, µs", "engine, µs", "share of a millisecond"),
        "frames in and out, µs",
    )
    products = _products(place)
    for number, (told, (processors, stage, interleaved)) in enumerate(CHAINS.items()):
        where = place / f"chain-{number}"
        folder = chain_of(where, processors, products, stage, interleaved=interleaved)
        for name in ("executor", *STRATEGIES):
            executor = Executor(folder) if name == "executor" else executor_of(folder, name)
            engine, frames, piece = min(taken_us(executor) for _ in range(rounds))
            click.echo(f"{name} on {told}: {engine:.1f} µs, frames {frames:.1f} µs")
            share = f"{engine / MICRO / PIECE_S:.1%}"
            yield name, told, f"{piece:.0f}", f"{engine:.1f}", share, f"{frames:.1f}"


def taken_us(executor: Executor) -> tuple[float, float, float]:
    """Return microseconds for a segment.

    Of the processors' threads besides sessions, of the threads that admit frames and take results,
    and of its session.
    """
    threads_s: list[float] = []

    def worked(work: Callable[..., None]) -> Callable[..., None]:
        def run(*given: object) -> None:
            work(*given)
            threads_s.append(thread_time())

        return run

    frame = {"t0": np.random.default_rng(0).random((WIDTH, WIDTH), np.float32)}
    threads = type(executor._make_threads(executor._make_flow()))
    with patch.object(threads, "_run_processor", worked(threads._run_processor)):
        begin_s = process_time()
        for _ in executor.run([frame] * FRAMES):
            pass
        took_s = process_time() - begin_s
    sessions_s = sum(span.work_s or 0.0 for span in executor.record.spans)
    parts_s = (sum(threads_s) - sessions_s, took_s - sum(threads_s), sessions_s)
    engine, frames, session_s = (MICRO * each / (FRAMES * SEGMENTS) for each in parts_s)
    return engine, frames, session_s


def chain_of(
    place: Path, processors: int, products: int, stage: int = 1, *, interleaved: bool = False
) -> Folder:
    """Write the chain of `run_overhead` with matrix products in place of its operators."""
    place.mkdir()
    chain(place, SEGMENTS, processors, stage, interleaved=interleaved)
    for at in range(SEGMENTS):
        _write(place / f"{at}.onnx", f"t{at}", f"t{at + 1}", products)
    folder = open_folder(place)
    tensor = Tensor("float32", (WIDTH, WIDTH), 4 * WIDTH * WIDTH)
    return replace(folder, tensors=dict.fromkeys(folder.tensors, tensor))


def _write(path: Path, read: str, made: str, products: int) -> None:
    """Write so many products of a matrix with the identity."""
    names = [read, *(f"p{at}" for at in range(products - 1)), made]
    nodes = [helper.make_node("MatMul", [a, "w"], [b]) for a, b in pairwise(names)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH, WIDTH])
        for name in (read, made)
    ]
    weight = numpy_helper.from_array(np.eye(WIDTH, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, path.stem, ends[:1], ends[1:], [weight])
    opset = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def _products(place: Path) -> int:
    """Return how many products take a millisecond here."""
    _write(place / "products.onnx", "x", "y", 8)
    opened = session(place / "products.onnx", 1, "CPUExecutionProvider")
    given = {"x": np.ones((WIDTH, WIDTH), np.float32)}
    times_s = []
    for _ in range(20):
        begin_s = perf_counter()
        opened.run(["y"], given)
        times_s.append(perf_counter() - begin_s)
    return max(1, round(8 * PIECE_S / min(times_s)))
