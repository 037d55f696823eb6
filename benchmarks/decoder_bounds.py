"""What a step of decoding is bound by: reading weights, multiplying them, and the other operators.

Why: a step reads each weight once, so people divide the memory's bandwidth by the bytes of the
weights, and wonder about the difference to what they measure. Two rates bound products with
weights: what the cores read together of arrays that no cache holds, and what ONNX Runtime's kernel
for a single row multiplies of weights that are in cache. Both are measured between the requests
that they are compared with: how much these cores read changes within minutes.

A step is bounded by the slower of the two. A core that waits for a line of weights does not
multiply meanwhile, as far as it does not see what comes next; where it sees nothing, both take
turns, as in the ECM model (Stengel et al., Quantifying Performance Bottlenecks of Stencil
Computations Using the Execution-Cache-Memory Model, 2015): then their times add up.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from statistics import median
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from benchmarks.decoder import BITS, BLOCK, INT8, quantized
from parapipe.profiling.measure import session
from parapipe.runtime.sessions import pin_thread

READ_BYTES, READS = 256 << 20, 3  # of each core, and how often before and after some requests
CHUNK = 1 << 20  # numbers that are read at one go
ROWS = 768  # of products in cache, as most of the decoder have
COLUMNS = {"float32": (32, 256), "int4": (192, 1536)}
"""Of products in cache, a small one and one of at most half of what two cores' L2 caches hold."""
REPEATS, RUNS = 16, 10  # of a product in a session, and of the session


class Reads:
    """Arrays that no cache holds, one for each core."""

    def __init__(self) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._arrays = [np.ones(READ_BYTES // 4, np.float32) for _ in self._cores]
        self.bytes_per_s()  # the first one finds the arrays where they were written

    def bytes_per_s(self) -> float:
        """Return how many bytes all cores together read a second, now."""

        def read(core: int, array: NDArray[np.float32]) -> None:
            pin_thread([core])
            for begin in range(0, len(array), CHUNK):
                array[begin : begin + CHUNK].max()

        threads = [Thread(target=read, args=each)
                   for each in zip(self._cores, self._arrays, strict=True)]  # fmt: skip
        begin_s = perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(self._cores) * READ_BYTES / (perf_counter() - begin_s)


class CachedProducts:
    """Products of a single row with weights that are in cache, a small one and a large one.

    Parameters
    ----------
    weights
        float32 or int4.
    """

    def __init__(self, weights: str) -> None:
        threads = len(os.sched_getaffinity(0))
        self._models = [cached_product(weights, columns) for columns in COLUMNS[weights]]
        self._sessions = [
            session(model.SerializeToString(), threads, "CPUExecutionProvider")
            for model, _ in self._models
        ]
        self._row = {"x": np.ones((REPEATS, ROWS), np.float32)}

    def line(self) -> tuple[float, float]:
        """Return the seconds that a product takes whatever its size, and those of each byte."""
        small, large = (self._time_s(each) for each in self._sessions)
        few, many = (size_bytes for _, size_bytes in self._models)
        return line_through((few, small), (many, large))

    def _time_s(self, opened: Any) -> float:  # noqa: ANN401 - onnxruntime is untyped
        opened.run(None, self._row)
        times_s = []
        for _ in range(RUNS):
            begin_s = perf_counter()
            opened.run(None, self._row)
            times_s.append(perf_counter() - begin_s)
        return median(times_s) / REPEATS


def line_through(small: tuple[float, float], large: tuple[float, float]) -> tuple[float, float]:
    """Return where a line through two points begins, at 0 or above, and how much it rises.

    A product of no weights takes no less than nothing: then the line goes through the large one.
    """
    slope = (large[1] - small[1]) / (large[0] - small[0])
    begin = large[1] - slope * large[0]
    return (begin, slope) if begin >= 0 else (0.0, large[1] / large[0])


def cached_product(weights: str, columns: int) -> tuple[onnx.ModelProto, int]:
    """Return a model that multiplies rows one by one with the same weights, and their bytes."""
    weight = np.random.default_rng(0).standard_normal((ROWS, columns), np.float32)
    if weights == "float32":
        stored: dict[str, NDArray[Any]] = {"w": weight}
        kind, domain, said = "MatMul", "", dict[str, Any]()
    else:
        packed, scales = quantized(weight)
        stored = {"w": packed, "scales": scales}
        kind, domain = "MatMulNBits", "com.microsoft"
        said = {"K": ROWS, "N": columns, "bits": BITS, "block_size": BLOCK,
                "accuracy_level": INT8}  # fmt: skip
    rows = [f"row{n}" for n in range(REPEATS)]
    nodes = [helper.make_node("Split", ["x"], rows, axis=0, num_outputs=REPEATS)]
    nodes += [
        helper.make_node(kind, [each, *stored], [f"{each}/y"], domain=domain, **said)
        for each in rows
    ]
    nodes.append(helper.make_node("Concat", [f"{each}/y" for each in rows], ["y"], axis=0))
    graph = helper.make_graph(
        nodes, "cached",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (REPEATS, ROWS))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (REPEATS, columns))],
        [numpy_helper.from_array(each, name) for name, each in stored.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model, sum(each.nbytes for each in stored.values())


@dataclass(slots=True)
class StepBounds:
    """What bounds the steps of one placement, measured between its requests.

    Parameters
    ----------
    reads
        Bytes a second that all cores read.
    lines
        Of products in cache, as `CachedProducts.line` gives them.
    """

    reads: list[float] = field(default_factory=list)
    lines: list[tuple[float, float]] = field(default_factory=list)

    def sample(self, reads: Reads, products: CachedProducts) -> None:
        """Measure both now."""
        self.reads += [reads.bytes_per_s() for _ in range(READS)]
        self.lines.append(products.line())

    @property
    def read_bytes_per_s(self) -> float:
        """Median of the reads."""
        return median(self.reads)

    @property
    def cached_bytes_per_s(self) -> float:
        """Bytes of weights in cache that a large product multiplies a second."""
        return 1 / median(slope for _, slope in self.lines)

    def reading_s(self, size_bytes: float) -> float:
        """Seconds to read the bytes of a step once."""
        return size_bytes / self.read_bytes_per_s

    def multiplying_s(self, products: int, weights_bytes: float) -> float:
        """Seconds of products whose weights were all in cache."""
        return products * median(begin for begin, _ in self.lines) + (
            weights_bytes / self.cached_bytes_per_s
        )
