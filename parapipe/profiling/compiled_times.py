"""Seconds of the rows of a compiled segment.

A row that the compiler prices takes its cycles, times a factor. One that it does not price takes
parapipe's own price of its nodes, times a share, and on the NPU a time to start it. An activation
that is looked up in a table is not in the cycles of the row that it was fused into, so its own
price comes on top. Factor, share and start are the platform's: docs/compiler-costs.md says how they
were fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from parapipe.compilers.contract import CompiledRow
from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost
from parapipe.errors import PlatformError
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.platform.sections import Compiled

TABLE_ACTIVATIONS = frozenset(
    {"Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mul", "Sigmoid", "Tanh"}
)
"""Types that cost time on top of the convolution they were fused into, Mul as a part of SiLU.

YOLOv5s with SiLU has the cycles of YOLOv5s with ReLU, and takes 37 % longer on the RK3588.
"""


@dataclass(frozen=True, slots=True)
class NodePrice:
    """What parapipe itself says of an ONNX node.

    Parameters
    ----------
    type
        ONNX type.
    npu_s, cpu_s
        Seconds on the processor that the segment is compiled for, and on the CPU that controls it;
        of what only one of them runs, both are the same. 0 of a view, and of what is folded into
        constants.
    """

    type: str
    npu_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class RowWork:
    """What the time of rows follows from.

    Parameters
    ----------
    cycles
        Of the rows that the compiler prices.
    starts
        Rows on the NPU that it does not price.
    own_s
        parapipe's price of what it does not price.
    """

    cycles: int
    starts: int
    own_s: float

    def time_s(self, clock_hz: float, fit: Compiled) -> float:
        """Return the seconds at a clock, by a platform's fit."""
        return (
            fit.cycle_factor * self.cycles / clock_hz
            + fit.row_start_s * self.starts
            + fit.own_share * self.own_s
        )


def row_work(row: CompiledRow, prices: Mapping[str, NodePrice]) -> RowWork:
    """Return what a row's time follows from.

    Parameters
    ----------
    prices
        Of nodes, by name; those that are not in it cost nothing by themselves.
    """
    nodes = [prices[name] for name in row.nodes if name in prices]
    if row.cycles:
        fused = [each for each in nodes[1:] if each.type in TABLE_ACTIVATIONS]
        return RowWork(row.cycles, 0, sum(each.npu_s for each in fused))
    if row.on_npu:
        return RowWork(0, 1, sum(each.npu_s for each in nodes))
    return RowWork(0, 0, sum(each.cpu_s for each in nodes))


def total_work(rows: Iterable[CompiledRow], prices: Mapping[str, NodePrice]) -> RowWork:
    """Return what the time of several rows follows from."""
    works = [row_work(row, prices) for row in rows]
    return RowWork(
        sum(each.cycles for each in works),
        sum(each.starts for each in works),
        sum(each.own_s for each in works),
    )


def node_prices(costs: CostTable, platform: Platform, processor: Processor) -> dict[str, NodePrice]:
    """Return parapipe's own prices of the nodes of a graph, by name.

    Parameters
    ----------
    costs
        Without compiled times: of the platform's other times and data sheets.
    """
    here = platform.names.index(processor.name)
    host = platform.names.index(processor.host) if processor.host else here
    prices: dict[str, NodePrice] = {}
    for entries in costs.entries:
        on_npu, on_cpu = (_part_times(entries[p]) for p in (here, host))
        types = {name: kind for each in (on_cpu, on_npu) for name, (kind, _) in each.items()}
        for name, kind in types.items():
            _, npu_s = on_npu.get(name) or on_cpu[name]
            _, cpu_s = on_cpu.get(name) or on_npu[name]
            prices[name] = NodePrice(kind, npu_s, cpu_s)
    return prices


def _part_times(entry: object) -> dict[str, tuple[str, float]]:
    if not isinstance(entry, OperatorCost):
        return {}
    return {part.operator: (part.type, part.time_s) for part in reversed(entry.parts)}


def fit_of(processor: Processor, platform: str) -> Compiled:
    """Return how a processor's cycles become seconds.

    Raises
    ------
    PlatformError
        If the platform does not say it.
    """
    if processor.compiled is None:
        raise PlatformError(
            f"platform '{platform}' does not say how cycles of processor '{processor.name}' become "
            "seconds; state `compiled` there: cycle_factor, row_start_s, own_share and source"
        )
    return processor.compiled
