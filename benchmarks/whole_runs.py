"""Whole runs on the A311D, and what the blocks that were measured apart say of them.

A run has an order, a processor for each block. Its plain prediction is the sum of its blocks; what
could be added is held apart, stage by stage, so that fits can try how much of it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.measured_network import measured_networks, recognise
from parapipe.cost.measured_rows import MeasuredRun, read_measured_runs
from parapipe.documents.comparison import Pair
from parapipe.documents.evaluation import EvaluationDocument, evaluate_assignment
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.platform.load import load_platform
from parapipe.platform.platform import Platform
from parapipe.zoo.registry import build

PLATFORM = "amlogic-a311d"
MODELS = {"AlexNet": "alexnet", "GoogLeNet": "googlenet", "MobileNet-v1": "mobilenet-v1"}
REPOSITORY = Path(__file__).parents[1]
RUNS = REPOSITORY / "profiles" / PLATFORM / "measured/end_to_end_calibration.csv"

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run and its plain prediction.

    Parameters
    ----------
    measured
        With input, latency, longest stage and energy.
    processors, block_s, received_bytes
        By block: name of its processor, its seconds when measured apart, bytes of the tensors
        that it reads from earlier blocks.
    stage
        Number of each block's stage.
    transfers_s, hand_overs_s
        By stage: what fetching its inputs takes by the platform's links, without and with what
        waiting for each other costs.
    """

    measured: MeasuredRun
    processors: tuple[str, ...]
    block_s: Array
    received_bytes: Array
    stage: NDArray[np.int64]
    transfers_s: Array
    hand_overs_s: Array

    def pairs(self, added_s: Array | float = 0.0) -> Iterator[Pair]:
        """Yield latency and longest stage, with seconds added to each stage."""
        stages = np.bincount(self.stage, weights=self.block_s) + added_s
        run = self.measured
        assert run.input_s is not None
        assert run.longest_stage_s is not None
        loaded = stages.copy()
        loaded[0] += run.input_s
        latency_s, longest_s = float(stages.sum()), float(loaded.max())
        yield Pair(run.model, run.order, "latency", latency_s, run.latency_s)
        yield Pair(run.model, run.order, "longest stage", longest_s, run.longest_stage_s)


@cache
def graph_of(network: str) -> OperatorGraph:
    """Return a calibration network operator by operator; its weights have no effect."""
    model = build(MODELS[network], weightless=True)
    return import_proto(model, source=ModelSource(f"zoo:{MODELS[network]}", ""), granularity="onnx")


def priced(platform: Platform, network: str, order: str) -> EvaluationDocument:
    """Return what `parapipe evaluate` says of an order."""
    return evaluate_assignment(graph_of(network), platform, assignment=None, order=order)


@cache
def whole_runs() -> tuple[WholeRun, ...]:
    """Return all runs that may be used to calibrate, repeats included."""
    return tuple(_whole_run(measured) for measured in read_measured_runs(RUNS))


def _whole_run(measured: MeasuredRun) -> WholeRun:
    platform = load_platform(PLATFORM)
    times, received = _blocks(platform, measured.model)
    letters = {name[0].upper(): name for name in platform.names}
    processors = tuple(letters[letter] for letter in measured.order)
    stage = [i for i, (_, run) in enumerate(groupby(measured.order)) for _ in run]
    none, moved, handed = _stages_with_shares(measured.model, measured.order)
    return WholeRun(
        measured,
        processors,
        np.array([times[p][b] for b, p in enumerate(processors)]),
        np.array(received),
        np.array(stage),
        np.subtract(moved, none),
        np.subtract(handed, none),
    )


@cache
def _stages_with_shares(network: str, order: str) -> tuple[list[float], ...]:
    platforms = _with_shares(load_platform(PLATFORM))
    return tuple([s.time_s for s in priced(each, network, order).stages] for each in platforms)


def _with_shares(platform: Platform) -> Iterator[Platform]:
    """Yield the platform without hand-overs, with transfers, and with all that its links say."""
    known = platform.evaluation
    assert known is not None
    whole = {"evaluation": known.model_copy(update={"hand_over_share": 1.0})}
    silent = [link.model_copy(update={"synchronisation": None}) for link in platform.links]
    yield platform.model_copy(
        update={"evaluation": known.model_copy(update={"hand_over_share": 0.0})}
    )
    yield platform.model_copy(update={**whole, "links": tuple(silent)})
    yield platform.model_copy(update=whole)


@cache
def _of_network(profile: str, network: str) -> tuple[Mapping[str, Sequence[float]], list[float]]:
    graph = graph_of(network)
    found = recognise(graph, measured_networks(profile))
    assert found is not None
    times = {
        p: [
            sum(row.times_s[p] for row in found.network.rows if row.block == block)
            for block in range(found.network.blocks)
        ]
        for p in found.network.rows[0].times_s
    }
    blocks = found.blocks_of(graph)
    received = [0.0] * found.network.blocks
    for name, producer in graph.producer.items():
        for block in {blocks[v] for v in graph.consumers.get(name, ())} - {blocks[producer]}:
            received[block] += graph.tensors[name].size_bytes
    return times, received


def _blocks(platform: Platform, network: str) -> tuple[Mapping[str, Sequence[float]], list[float]]:
    return _of_network(platform.profile_name, network)
