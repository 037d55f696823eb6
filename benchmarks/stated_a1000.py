"""The six networks of the A1000's stated times, as they stand in their source.

The source says of each operator its type, its successors, its time on the NPU and on a DSP, and the
time to load its inputs and to store its output. So its networks can be mapped without ONNX files,
two of them (BEVFormer and `bev_conv`) only so. A hand-over from u to v, which run on two different
processors, takes store(u) + load(v), and nothing on the same one. Three rules charge it:

    edge      every edge by itself, as the source does
    tensor    a tensor once for each processor that receives it, with the longest of its loads
    median    as `tensor`, each for 137 µs, which the platform bst-a1000 takes for all of them

Shapes are not known, so operators cannot be split here, and memory is not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import parapipe
from benchmarks.mapping_quality import Network
from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost, PartCost
from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph, Tensor, Work
from parapipe.graph.partition import partition
from parapipe.platform.fields import named_value
from parapipe.platform.support import Refusal
from tools.stated_networks import StatedOperator, read_stated

TABLE = Path(__file__).parents[1] / "profiles/bst-a1000/measured/operators.csv"
PLATFORM = "bst-a1000"
Rule = Literal["edge", "tensor", "median"]
RULES: tuple[Rule, ...] = get_args(Rule)
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})


@cache
def stated_networks() -> Mapping[str, Sequence[StatedOperator]]:
    """Return the source's networks by name, operators in topological order."""
    return read_stated(TABLE)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Tensors between operators.

    Parameters
    ----------
    read, made
        Names of tensors by operator.
    time_s
        Of each tensor's hand-over.
    """

    read: Mapping[str, Sequence[str]]
    made: Mapping[str, Sequence[str]]
    time_s: Mapping[str, float]


def _edges(operators: Sequence[StatedOperator], rule: Rule) -> _Edges:
    load_s = {each.name: each.read_s for each in operators}
    read: dict[str, list[str]] = defaultdict(list)
    made: dict[str, list[str]] = {}
    time_s: dict[str, float] = {}
    median_s = parapipe.load_platform(PLATFORM).transfer_s(1, 0, 1)
    for each in operators:
        by_edge = rule == "edge" and each.successors
        made[each.name] = (
            [f"{each.name}>{reader}" for reader in each.successors] if by_edge else [each.name]
        )
        for i, reader in enumerate(each.successors):
            name = made[each.name][i if by_edge else 0]
            read[reader].append(name)
            longest_s = max(time_s.get(name, 0.0), each.write_s + load_s[reader])
            time_s[name] = median_s if rule == "median" else longest_s
    return _Edges(read, made, time_s)


def network_of(operators: Sequence[StatedOperator], rule: Rule, dsps: int = 2) -> Network:
    """Return a network of the source, priced on the NPU and some DSPs by a rule for hand-overs."""
    edges = _edges(operators, rule)
    inputs = {each.name: f"input of {each.name}" for each in operators if not edges.read[each.name]}
    graph = OperatorGraph(
        ModelSource(operators[0].network, ""),
        "onnx",
        tuple(
            Operator(
                edges.made[each.name][0], each.name, "", each.type, {},
                tuple(edges.read[each.name]) or (inputs[each.name],),
                tuple(edges.made[each.name]),
                Work(int(each.type in _PRODUCTS), 1, 1), (each.name,),
            )
            for each in operators
        ),
        {
            name: Tensor(name, (1,), "int8")
            for name in (*inputs.values(), *(t for made in edges.made.values() for t in made))
        },
        {},
        tuple(inputs.values()),
        tuple(edges.made[each.name][0] for each in operators if not each.successors),
    )  # fmt: skip
    processors = ("npu", *(f"dsp{number}" for number in range(dsps)))
    return Network(graph, partition(graph), _costs(operators, graph, edges, processors))


def _costs(
    operators: Sequence[StatedOperator],
    graph: OperatorGraph,
    edges: _Edges,
    processors: Sequence[str],
) -> CostTable:
    chips = {each.name: each for each in parapipe.load_platform(f"{PLATFORM}-4dsp").processors}

    def entry(operator: StatedOperator, processor: str) -> OperatorCost | Refusal:
        time_s = operator.npu_s if processor == "npu" else operator.dsp_s
        if time_s is None:
            return Refusal(processor, "no time is stated", operator.type, operator.name)
        power = chips[processor].dynamic_power("elementwise")
        time = named_value("stated", time_s, "s")
        return OperatorCost(
            (PartCost(operator.name, operator.type, "stated", TABLE.name, time, power),), 0
        )

    count = range(len(processors))
    transfers = {
        name: tuple(
            tuple(0.0 if p == q else edges.time_s.get(name, 0.0) for q in count) for p in count
        )
        for name in graph.tensors
    }
    nothing = (0.0,) * len(processors)
    return CostTable(
        tuple(processors),
        tuple(tuple(entry(each, name) for name in processors) for each in operators),
        transfers,
        nothing,
        nothing,
        tuple(chips[name].static_power_w for name in processors),
        parapipe.load_platform(PLATFORM).idle_power_w,
    )
