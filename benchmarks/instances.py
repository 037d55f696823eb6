"""Seeded families of mapping problems, after subgraphs that real networks have.

Nothing here was measured: the families keep the shape of a problem (how many operators, how wide,
who supports what, how long a transfer takes beside an operator) and draw the numbers. The same
arguments give the same problem on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from parapipe.solvers.problem import Flow, MappingProblem

MICRO = 1e-6

# Microseconds of the fastest processor (least, most), and factors of all (least, most); None where
# a processor does not support the kind.
Kinds = Mapping[str, tuple[tuple[int, int], Sequence[tuple[float, float] | None]]]

# A big and a little cluster and a GPU, in about the ratios of the Amlogic A311D.
CLUSTERS: Kinds = {
    "conv": ((300, 6000), ((1.0, 1.3), (2.3, 3.0), (0.8, 1.6))),
    "pool": ((100, 1500), ((1.0, 1.2), (1.8, 2.5), (1.0, 2.5))),
    "concat": ((100, 600), ((1.0, 1.2), (1.8, 2.5), (1.0, 2.5))),
}

# An NPU that lacks some kinds and two identical DSPs: the third processor is as fast as the second.
NPU_AND_DSPS: Kinds = {
    "matmul": ((80, 600), ((1.0, 1.2), (4.0, 8.0))),
    "elementwise": ((40, 200), ((1.0, 1.5), (1.0, 2.0))),
    "shape": ((20, 80), ((1.0, 1.5), (0.8, 1.2))),
    "softmax": ((80, 300), (None, (1.0, 1.5))),
    "norm": ((60, 250), (None, (1.0, 1.5))),
}
DSP_LATENCY_US = ((0, 60, 60), (60, 0, 20), (60, 20, 0))


@dataclass(slots=True)
class _Sketch:
    """A problem under construction; operators are added in topological order."""

    random: Random
    kinds: Kinds
    processors: int
    latency_us: Sequence[Sequence[int]]
    time_us: list[tuple[float, ...]] = field(default_factory=list)
    readers: list[list[int]] = field(default_factory=list)

    def add(self, kind: str, *inputs: int) -> int:
        """Add an operator that reads the outputs of others; return its index."""
        (least, most), factors = self.kinds[kind]
        base_us = self.random.randint(least, most)
        drawn = [inf if f is None else round(base_us * self.random.uniform(*f)) for f in factors]
        drawn += drawn[-1:] * (self.processors - len(drawn))
        self.time_us.append(tuple(drawn))
        self.readers.append([])
        v = len(self.time_us) - 1
        for u in inputs:
            self.readers[u].append(v)
        return v

    def problem(self) -> MappingProblem:
        """Return the problem; operators that read no other read a tensor at home on processor 0."""
        flows = [
            Flow(u, tuple(readers), self._transfer_s())
            for u, readers in enumerate(self.readers)
            if readers
        ]
        read = {v for readers in self.readers for v in readers}
        sources = tuple(v for v in range(len(self.readers)) if v not in read)
        flows.append(Flow(None, sources, self._transfer_s(), 0))
        rows = tuple(tuple(t * MICRO for t in row) for row in self.time_us)
        return MappingProblem(rows, tuple(flows), tuple(range(len(rows))))

    def _transfer_s(self) -> tuple[tuple[float, ...], ...]:
        size_us = self.random.randint(10, 250)
        return tuple(
            tuple(0.0 if not us else (us + size_us) * MICRO for us in row)
            for row in self.latency_us
        )


def inception_like(operators: int, *, processors: int = 3, seed: int = 0) -> MappingProblem:
    """Four branches of an inception from one operator to a concat, the longer ones first.

    V operators on P processors: P^V placements, and as many orders as the branches interleave.
    Watched because it is the subgraph for which the paper's fine-grained ILP takes minutes.
    """
    latency_us = [[0, 150, 400], [150, 0, 400], [400, 400, 0]]
    sketch = _Sketch(
        Random(f"inception {operators} {seed}"),
        {name: (span, factors[:processors]) for name, (span, factors) in CLUSTERS.items()},
        processors,
        [row[:processors] for row in latency_us[:processors]],
    )
    entry = sketch.add("conv")
    lengths = [(operators - 2 + i) // 4 for i in reversed(range(4))]
    ends = []
    for branch, length in enumerate(lengths):
        last = entry
        for step in range(length):
            last = sketch.add("pool" if (branch, step) == (3, 0) else "conv", last)
        ends.append(last)
    sketch.add("concat", *ends)
    return sketch.problem()


def decoder_like(operators: int, width: int, *, seed: int = 0) -> MappingProblem:
    """Layers of a detection transformer's decoder; an NPU and two identical DSPs.

    One layer after the other: self-attention, attention to the encoder's memory, feed-forward. The
    memory's keys and values can be computed for all layers at once, and each layer feeds two
    prediction heads whose results are stacked at the end, so that what is beside the layers makes
    the problem `width` operators wide. Watched because nothing splits it, and because the layers'
    path and the load of what runs beside it are in each other's way.
    """
    sketch = _Sketch(Random(f"decoder {operators} {width} {seed}"), NPU_AND_DSPS, 3, DSP_LATENCY_US)
    layers = (width - 4) // 2
    queries, memory, reference = (sketch.add("matmul") for _ in range(3))
    each, more = divmod(operators - 5, layers)
    scores, boxes = [], [reference]
    for layer in range(layers):
        length = each + (layer < more)
        attended = _attention(sketch, queries, queries)
        attended = _attention(sketch, attended, memory)
        hidden = sketch.add("elementwise", sketch.add("matmul", attended))
        queries = sketch.add("norm", sketch.add("matmul", hidden), attended)
        left = length - 22
        scores.append(_series(sketch, queries, left // 2))
        boxes.append(_series(sketch, queries, left - left // 2))
    sketch.add("shape", *scores)
    sketch.add("shape", *boxes)
    return sketch.problem()


def _attention(sketch: _Sketch, queries: int, memory: int) -> int:
    """Add nine operators that attend to a memory; return the last."""
    query, key, value = (sketch.add("matmul", x) for x in (queries, memory, memory))
    weights = sketch.add("softmax", sketch.add("matmul", query, key))
    context = sketch.add("shape", sketch.add("matmul", weights, value))
    return sketch.add("norm", sketch.add("matmul", context), queries)


def _series(sketch: _Sketch, last: int, length: int) -> int:
    for _ in range(length):
        last = sketch.add(sketch.random.choice(("matmul", "elementwise", "norm")), last)
    return last


def parallel_series(operators: int, count: int, *, seed: int = 0) -> MappingProblem:
    """Attention blocks in parallel series, joined in a short tail; an NPU and two identical DSPs.

    Between the blocks of a series are other operators. Watched because the
    loads of the processors bound it, and no path does: to prove an optimum is to fill three
    processors to the microsecond.
    """
    sketch = _Sketch(Random(f"lanes {operators} {count} {seed}"), NPU_AND_DSPS, 3, DSP_LATENCY_US)
    entry = sketch.add("matmul")
    ends = [_one_series(sketch, entry, (operators - 4 + i) // count) for i in range(count)]
    last = sketch.add("shape", *ends)
    for kind in ("norm", "matmul"):
        last = sketch.add(kind, last)
    return sketch.problem()


def _one_series(sketch: _Sketch, entry: int, length: int) -> int:
    """Add a series of so many operators; return its last."""
    last = entry
    left = length
    while left >= 5:
        query, key = sketch.add("matmul", last), sketch.add("matmul", last, entry)
        weights = sketch.add("softmax", sketch.add("matmul", query, key))
        last = sketch.add("norm", weights, last)
        between = min(left - 5, sketch.random.randint(0, 3))
        last = _series(sketch, last, between)
        left -= 5 + between
    return _series(sketch, last, left)


def irregular(operators: int, width: int, *, seed: int = 0) -> MappingProblem:
    """Layers of `width` operators that each read one to three of the two layers before.

    An NPU and two identical DSPs, as above. Watched because nothing about it is regular: joins
    have many ancestors, and nothing splits it.
    """
    sketch = _Sketch(
        Random(f"irregular {operators} {width} {seed}"),
        NPU_AND_DSPS,
        3,
        DSP_LATENCY_US,
    )
    random = sketch.random
    layers = [[sketch.add("matmul")]]
    while (left := operators - 1 - len(sketch.time_us)) > 0:
        near = [*layers[-1], *(layers[-2] if len(layers) > 1 else [])]
        layer = []
        for _ in range(min(width, left)):
            inputs = {random.choice(layers[-1])}
            inputs |= {random.choice(near) for _ in range(random.randint(0, 2))}
            layer.append(sketch.add(random.choice([*NPU_AND_DSPS]), *sorted(inputs)))
        layers.append(layer)
    sketch.add("norm", *[v for v, readers in enumerate(sketch.readers) if not readers])
    return sketch.problem()
