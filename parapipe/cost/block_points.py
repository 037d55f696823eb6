"""Costs of a network whose blocks run one after the other, each at a clock of its own.

A block is what was measured apart on a board: a run of operators on one processor. What is known of
such runs beyond their operators is the platform's section `block_runs`. A block b takes

    t_b = (1 + c·[the block before ran elsewhere])·Σ t(operator, its point) + start + host,

with c the section's `change_share`, start its `cpu_start_s` on a CPU, and on a processor with a
host its `host_cycles`·(1/f_host − 1/f_host,0): times were measured with the host at its default
clock f_host,0. The links' transfers do not count, c holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.price import OperatorCost, PartCost
from parapipe.cost.pricing import View
from parapipe.cost.profile import Profile
from parapipe.errors import AssignmentError, PlatformError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.fields import Expression, named_value
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.platform.processor import Processor
from parapipe.platform.sections import BlockRuns
from parapipe.platform.support import Refusal


@dataclass(frozen=True, slots=True)
class BlockPoint:
    """Where a block runs, and at which clock.

    Parameters
    ----------
    processor
        Platform index.
    frequency_hz
        Of the processor.
    host_hz
        Of its host; None without one.
    """

    processor: int
    frequency_hz: float
    host_hz: float | None = None


def block_runs_of(platform: Platform) -> BlockRuns:
    """Return what a platform says of runs with a clock for each block.

    Raises
    ------
    PlatformError
        If it says nothing.
    """
    if platform.block_runs is None:
        raise PlatformError(
            f"platform '{platform.name}' does not say what runs with an operating point for each "
            "block take; leave the points out, or add a section block_runs"
        )
    return platform.block_runs


def read_points(text: str, processors: Sequence[int], platform: Platform) -> tuple[BlockPoint, ...]:
    """Return the point of each block from a text such as `1800 800/1200 408`.

    Parameters
    ----------
    text
        Megahertz of each block, and after a stroke those of the host if its processor has one;
        without them, the host is at its default clock.
    processors
        Platform index of each block's processor.

    Raises
    ------
    AssignmentError
        If their number is not that of the blocks, or one is no operating point of the block's
        processor or of its host; all of it at once.
    """
    words = text.split()
    mistakes = []
    if len(words) != len(processors):
        mistakes.append(f"there are {len(words)} for {len(processors)} blocks")
    found = []
    for block, (word, p) in enumerate(zip(words, processors, strict=False)):
        processor, (own, stroke, host) = platform.processors[p], word.partition("/")
        frequency_hz, host_hz = _point_hz(own, processor), None
        if frequency_hz is None:
            mistakes.append(_no_point(block, own, processor))
        if processor.host:
            hosting = platform.processors[platform.index(processor.host)]
            host_hz = _point_hz(host, hosting) if stroke else hosting.clock.default_frequency_hz
            if host_hz is None:
                mistakes.append(_no_point(block, host, hosting))
        elif stroke:
            mistakes.append(f"block {block}: '{processor.name}' has no host; leave out '/{host}'")
        found.append(BlockPoint(p, frequency_hz or 0.0, host_hz))
    if mistakes:
        raise AssignmentError(
            f"points '{text}' do not fit: {'; '.join(mistakes)}; give the megahertz of each block, "
            "and after a stroke those of its processor's host, as in 1800 800/1200"
        )
    return tuple(found)


def _point_hz(text: str, processor: Processor) -> float | None:
    """Return the frequency of the operating point that a text names in megahertz."""
    points = {f"{point.frequency_hz / 1e6:g}": point for point in processor.operating_points}
    return points[text].frequency_hz if text in points else None


def _no_point(block: int, text: str, processor: Processor) -> str:
    known = ", ".join(f"{point.frequency_hz / 1e6:g}" for point in processor.operating_points)
    return f"block {block}: '{text}' is no operating point of '{processor.name}', which has {known}"


class BlockCosts:
    """Prices a graph whose blocks have points; tables at one point are made once.

    Parameters
    ----------
    blocks
        Block of each operator.
    profiles, precision, view
        As for `build_cost_table`. Activations are free in the view `deployed` alone.

    Raises
    ------
    PlatformError
        As for `block_runs_of`.
    """

    def __init__(
        self,
        graph: OperatorGraph,
        platform: Platform,
        blocks: Sequence[int],
        *,
        profiles: Sequence[Profile] | None = None,
        view: View = "deployed",
        precision: Precision | None = None,
    ) -> None:
        self.rules = block_runs_of(platform)
        self.platform = platform
        self.blocks = blocks
        self.free = frozenset(self.rules.fused_activations if view == "deployed" else ())
        self._build = partial(
            build_cost_table, graph, profiles=profiles, view=view, precision=precision
        )
        self._default = self._build(platform)
        self._at: dict[tuple[int, float], CostTable] = {}

    def at(self, points: Sequence[BlockPoint]) -> CostTable:
        """Return the costs with each block at its point.

        Only costs of operators where they run are those of the points. Static power of a processor
        with several points is the mean over the time for which it works.
        """
        costs = self._default
        column = [self._operator(v, points[block], costs) for v, block in enumerate(self.blocks)]
        self._add_beyond_operators(column, points)
        moved = tuple((0.0,) * len(costs.processors) for _ in costs.processors)
        return replace(
            costs,
            entries=tuple(
                (*row[:p], own, *row[p + 1 :])
                for row, own, p in zip(
                    costs.entries, column, (points[b].processor for b in self.blocks), strict=True
                )
            ),
            transfers=dict.fromkeys(costs.transfers, moved),
            input_times_s=tuple(
                self.loading_s(points[0]) if p == points[0].processor else time_s
                for p, time_s in enumerate(costs.input_times_s)
            ),
            static_power_w=tuple(self._static_power_w(column, points)),
        )

    def operators_s(self, block: int, point: BlockPoint) -> float:
        """Return the seconds of a block's operators alone; infinite if one cannot run there."""
        members = (v for v, own in enumerate(self.blocks) if own == block)
        entries = [self._operator(v, point, self._default) for v in members]
        if any(isinstance(entry, Refusal) for entry in entries):
            return inf
        return sum(entry.time_s for entry in entries if isinstance(entry, OperatorCost))

    def _operator(self, v: int, point: BlockPoint, default: CostTable) -> OperatorCost | Refusal:
        p, key = point.processor, (point.processor, point.frequency_hz)
        if key not in self._at:
            clocks = [processor.point.frequency_hz for processor in self.platform.processors]
            clocks[p] = point.frequency_hz
            same = clocks[p] == self.platform.processors[p].point.frequency_hz
            self._at[key] = default if same else self._build(self.platform.at(clocks))
        entry = self._at[key].entries[v][p]
        if isinstance(entry, Refusal) or not any(part.type in self.free for part in entry.parts):
            return entry
        return replace(
            entry,
            parts=tuple(_free(each) if each.type in self.free else each for each in entry.parts),
        )

    def _add_beyond_operators(
        self, column: list[OperatorCost | Refusal], points: Sequence[BlockPoint]
    ) -> None:
        """Add what blocks take beside their operators to the longest operator of each."""
        for block, point in enumerate(points):
            timed = {
                v: entry
                for v, entry in enumerate(column)
                if self.blocks[v] == block and isinstance(entry, OperatorCost)
            }
            if not timed:
                continue
            longest = max(timed, key=lambda v: timed[v].time_s)
            block_s = sum(entry.time_s for entry in timed.values())
            changed = block > 0 and points[block - 1].processor != point.processor
            first, *others = timed[longest].parts
            for extra in self._beyond_operators(point, block_s if changed else 0.0):
                first = replace(
                    first,
                    time=first.time + extra,
                    provenance="fitted",
                    source=f"{first.source}, with what its block takes beside operators",
                )
            column[longest] = replace(timed[longest], parts=(first, *others))

    def _beyond_operators(self, point: BlockPoint, changed_s: float) -> Iterator[Expression]:
        processor, rules = self.platform.processors[point.processor], self.rules
        if processor.kind == "cpu" and rules.cpu_start_s:
            yield named_value("start of a block", rules.cpu_start_s, "s")
        if changed_s and rules.change_share:
            share = named_value("change of processor", rules.change_share)
            yield share * named_value("block", changed_s, "s")
        if point.host_hz and rules.host_cycles:
            yield self._host_time(point)

    def loading_s(self, first: BlockPoint) -> float:
        """Return the seconds to load a frame for a first block; a host loads for what it hosts."""
        processor = self.platform.processors[first.processor]
        hosting = self._host(first) if first.host_hz else processor
        share, default_hz = self.rules.loading_compute_share, hosting.clock.default_frequency_hz
        factor = share * default_hz / (first.host_hz or first.frequency_hz) + 1 - share
        return self._default.input_s(first.processor) * factor

    def host_s(self, point: BlockPoint) -> float:
        """Return the seconds that a block takes longer than with its host at the default clock."""
        return self._host_time(point).value if point.host_hz else 0.0

    def _host_time(self, point: BlockPoint) -> Expression:
        assert point.host_hz is not None
        cycles = named_value("cycles of the host", self.rules.host_cycles)
        default_hz = self._host(point).clock.default_frequency_hz
        default = named_value("host at", default_hz, "Hz")
        return cycles / named_value("host at", point.host_hz, "Hz") - cycles / default

    def _host(self, point: BlockPoint) -> Processor:
        name = self.platform.processors[point.processor].host
        assert name is not None
        return self.platform.processors[self.platform.index(name)]

    def _static_power_w(
        self, column: Sequence[OperatorCost | Refusal], points: Sequence[BlockPoint]
    ) -> Iterator[float]:
        for p, processor in enumerate(self.platform.processors):
            joules = seconds = 0.0
            for block, entry in zip(self.blocks, column, strict=True):
                if points[block].processor == p and isinstance(entry, OperatorCost):
                    seconds += entry.time_s
                    static_w = processor.at(points[block].frequency_hz).static_power_w
                    joules += static_w * entry.time_s
            yield joules / seconds if seconds else processor.static_power_w


def _free(part: PartCost) -> PartCost:
    nothing = named_value("computed with the operator before", 0.0, "s")
    return replace(
        part, time=nothing, provenance="fitted", source="computed with the operator before"
    )
