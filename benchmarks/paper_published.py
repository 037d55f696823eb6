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

SOLVE_S = {"inception-v3": 4 * 60.0, "inception-v4": 4 * 60.0, "petr": 361 * 60.0}
"""Table III: its fine-grained programme for para-only on the A1000; the others, below a minute."""

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


A1000_NETWORKS = {
    "GoogLeNet": "googlenet",
    "Inception-v3": "inception-v3",
    "Inception-v4": "inception-v4",
    "Inception-ResNet-v2": "inception-resnet-v2",
    "bev_conv": "petr",
    "BEVFormer": "bevformer",
}
"""Networks of the A1000's stated times, and what the paper has for them in its tables."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A change that the text gives for the A1000.

    Parameters
    ----------
    method, base
        What is compared; the base is the better one of two names joined by "&".
    figure
        "latency" or "throughput".
    change
        The first over the second, less one; a mean over the networks unless one is named.
    """

    method: str
    base: str
    figure: str
    change: float
    network: str = ""


A1000_RATIOS = (
    Ratio("para-only", "HEFT & CPOP", "latency", -0.155),
    Ratio("para-only", "HEFT & CPOP", "throughput", 0.188),
    Ratio("hybrid-T", "para-only", "throughput", 0.162),
    Ratio("pipe-only", "para-only", "latency", 5.7 - 1, "bev_conv"),
    Ratio("pipe-only", "para-only", "throughput", 0.314 - 1, "bev_conv"),
)

A1000_STAGES: Mapping[tuple[str, str], tuple[tuple[tuple[str, ...], int], ...]] = {
    ("GoogLeNet", "hybrid-L"): ((("npu",), 10), (("dsp0", "dsp1"), 11)),
    ("GoogLeNet", "hybrid-T"): ((("npu",), 9), (("dsp0", "dsp1"), 11)),
    ("Inception-v4", "hybrid-L"): ((("npu", "dsp0"), 20), (("dsp1",), 21)),
    ("Inception-v4", "hybrid-T"): ((("dsp0",), 3), (("npu", "dsp1"), 21)),
    ("bev_conv", "hybrid-L"): ((("npu", "dsp0"), 17), (("dsp1",), 24)),
    ("bev_conv", "hybrid-T"): ((("npu", "dsp0"), 15), (("dsp1",), 24)),
    ("BEVFormer", "hybrid-L"): ((("npu", "dsp0"), 23), (("dsp1",), 25)),
    ("BEVFormer", "hybrid-T"): ((("dsp0",), 2), (("npu", "dsp1"), 25)),
}
"""Table II: processors and last subgraph of each stage; which DSP comes first is our choice."""
