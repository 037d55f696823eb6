"""Plans for models made without a search: all configurations, on a board drawn by hand."""

import re
from types import SimpleNamespace

import numpy as np

from parapipe.graph.onnx_import import import_model
from parapipe.plan.build import build_plan
from tests.cases.interleaved import plan_of, random_document
from tests.cases.plan_cases import Costs, configured, platform_of

BIG, LITTLE, MIDDLE, GPU = range(4)
BOARD = SimpleNamespace(
    name="board",
    link_of=platform_of(4).link_of,
    processors=tuple(
        SimpleNamespace(
            name=name,
            kind="gpu" if name == "gpu" else "cpu",
            backend="nominal",
            compiler=None,
            options=None,
            cores=cores,
            stream_of=None,
            point=SimpleNamespace(frequency_hz=1e9, voltage_v=0.8),
        )
        for name, cores in (("big", (0, 1)), ("little", (2, 3)), ("middle", (4,)), ("gpu", ()))
    ),
)
ARRANGEMENTS = {
    "sequential": lambda v, count: (0, BIG),
    "pipe-only": lambda v, count: (0, LITTLE) if 2 * v < count else (1, BIG),
    "para-only": lambda v, count: (0, (BIG, LITTLE)[v % 2]),
    "hybrid": lambda v, count: (0, MIDDLE) if 3 * v < count else (1, (BIG, LITTLE)[v % 2]),
    "gpu-alone": lambda v, count: (0, GPU),
    "pipe-gpu": lambda v, count: (0, GPU) if 2 * v < count else (1, BIG),
    "para-gpu": lambda v, count: (0, (BIG, LITTLE, GPU)[v % 3]),
    "hybrid-gpu": lambda v, count: (0, LITTLE) if 3 * v < count else (1, (BIG, GPU)[v % 2]),
}
"""Stage and processor of each operator, by its number and how many there are."""


def plan_for(path, arrangement="sequential", *, granularity="fused"):
    """A plan for an ONNX file."""
    graph = import_model(path, granularity=granularity)
    count = len(graph.operators)
    return placed(graph, BOARD, [ARRANGEMENTS[arrangement](v, count) for v in range(count)])


def placed(graph, board, place):
    """A plan that has each operator in a stage and on a processor, given for all in order."""
    count = len(graph.operators)
    stages = [
        [(v, processor) for v, (at, processor) in enumerate(place) if at == stage]
        for stage in sorted({stage for stage, _ in place})
    ]
    costs = Costs([[1e-3] * len(board.processors) for _ in range(count)], _Same(), ("nominal",))
    costs.processors = tuple(each.name for each in board.processors)
    return build_plan(graph, board, costs, configured(graph, costs, stages))


def taking_turns(path, seed):
    """A plan of two processors that work on several frames, at random."""
    graph = import_model(path)
    return plan_of(random_document(graph, seed, processors=2))


def parts_apart(path, processors):
    """A plan of a split model, one stage: part k of every operator is on the k-th processor.

    What is no part is on the first one, and there are more parts than processors at times.
    """
    graph = import_model(path)
    parts = [re.search(r"/part(\d+)", operator.name) for operator in graph.operators]
    place = [(0, processors[int(part[1]) % len(processors) if part else 0]) for part in parts]
    return placed(graph, BOARD, place)


class _Same(dict):
    """Transfers that all take the same time."""

    def get(self, key, default=None):
        return 1e-4


def frame_of(model, seed=0):
    """Random inputs of an ONNX model, by name."""
    rng = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: rng.uniform(
            -1, 1, [d.dim_value for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
        if value.name not in constants
    }
