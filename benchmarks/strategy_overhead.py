"""What the engine takes for a segment of a millisecond, for `benchmarks.strategies_here`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

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
STRATEGIES = ("ready-pool", "steal", "barriers")


def overhead_rows(place: Path, rounds: int) -> Iterator[Sequence[object]]:
    """Yield the head and the rows of the second table."""
    yield "what decides", "processors", "segment, µs", "engine, µs", "share of a millisecond"
    products = _products(place)
    for processors in (1, 2):
        folder = chain_of(place / f"chain-{processors}", processors, products)
        for name in ("executor", *STRATEGIES):
            executor = Executor(folder) if name == "executor" else executor_of(folder, name)
            found = [above_us(executor) for _ in range(rounds)]
            above, piece = min(found)
            click.echo(f"{name} on {processors}: {above:.1f} µs")
            share = f"{above / MICRO / PIECE_S:.1%}"
            yield name, processors, f"{piece:.0f}", f"{above:.1f}", share


def above_us(executor: Executor) -> tuple[float, float]:
    """Return microseconds for a segment: of all threads besides sessions, and of its session."""
    frame = {"t0": np.random.default_rng(0).random((WIDTH, WIDTH), np.float32)}
    begin_s = process_time()
    for _ in executor.run([frame] * FRAMES):
        pass
    took_s = process_time() - begin_s
    sessions_s = sum(span.work_s or 0.0 for span in executor.record.spans)
    jobs = FRAMES * SEGMENTS
    return MICRO * (took_s - sessions_s) / jobs, MICRO * sessions_s / jobs


def chain_of(place: Path, processors: int, products: int) -> Folder:
    """Write the chain of `run_overhead` with matrix products in place of its operators."""
    place.mkdir()
    chain(place, SEGMENTS, processors)
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
