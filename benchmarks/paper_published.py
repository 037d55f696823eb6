"""What the Para-Pipe paper reports, as far as its numbers are at hand.

Shares are fractions of one; a negative change is a reduction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Network:
    """A row of Tables I and III: operators, subgraphs, parallelism of the widest subgraph."""

    operators: int
    subgraphs: int
    parallelism: int


NETWORKS: Mapping[str, Network] = {
    "googlenet": Network(141, 11, 4),
    "inception-v3": Network(220, 13, 6),
    "inception-v4": Network(343, 21, 6),
    "inception-resnet-v2": Network(576, 45, 4),
    "petr": Network(337, 24, 16),
    "bevformer": Network(257, 25, 4),
}

PETR_LARGEST = 169
"""Operators of PETR's largest subgraph."""

ESTIMATOR_RMSPE = {"latency": 0.1533, "longest stage": 0.1525, "energy": 0.0640}

SOLVE_S = {"inception-v3": 4 * 60.0, "petr": 361 * 60.0}
"""Its fine-grained programme, "an Inception" and PETR."""

OVER_HEFT_CPOP = {"amlogic-a311d-2024": 0.109, "bst-a1000": 0.155}
"""Improvement over the better of HEFT and CPOP."""

FINE_OVER_COARSE = 0.0335
"""On the two CPU clusters, in latency."""

PROGRAM_OVERHEAD = 0.059
"""Of fine-grained plans on the board, over what was predicted."""

SYNCHRONISATION = {"big+little": 0.047, "big+gpu": 0.217}
"""Of fine-grained plans on the board."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a set of processors gives against the big cluster alone, averaged over networks."""

    latency: float | None
    throughput: float | None
    efficiency: float


GAINS: Mapping[str, Gain] = {
    "big+little": Gain(-0.164, 0.198, 0.142),
    "big+gpu": Gain(None, None, 0.176),
    "big+little+gpu": Gain(None, None, 0.313),
}
