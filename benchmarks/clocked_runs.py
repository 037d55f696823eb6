"""Whole runs on the RK3399Pro with a clock for each block, and what our evaluation says of them.

A run has an order, a processor for each block, and an operating point for each block, of the GPU's
host too. What its blocks take by our costs at these points is held apart from what could be added,
so that fits can try how much of that is there:

    time   = loading + Σ_b ((1 + c·changed_b)·o_b + s·cpu_b),
    energy = P_idle·time + Σ_b t_b·(α V² f + β V)_b, equation (8) of Para-Pipe,

with o_b the operators of block b, changed_b whether the block before ran elsewhere, and cpu_b
whether b runs on a CPU. s, c, α and β are fitted to the relative errors, each network counting as
much as another one. A frame is loaded by the first block's CPU, or by its host, at its clock.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.whole_runs import graph_of
from parapipe.cost.block_points import BlockCosts, BlockPoint, block_runs_of
from parapipe.cost.measured_network import measured_networks, recognise
from parapipe.cost.pricing import View
from parapipe.cost.profile import Profile
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import assignment_of_order
from parapipe.mappings.evaluate import evaluate
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor

PLATFORM = "rockchip-rk3399pro"
NETWORKS = ("AlexNet", "GoogLeNet", "MobileNet-v1")

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Run:
    """A measured run.

    Parameters
    ----------
    network, order
        As the measurements call it, and the letter of each block's processor.
    points
        Of each block.
    input_s, task_s, total_s
        Loading the frame, the network, and both.
    task_j, total_j
        Joules of the board meanwhile.
    """

    network: str
    order: str
    points: tuple[BlockPoint, ...]
    input_s: float
    task_s: float
    total_s: float
    task_j: float
    total_j: float


def read_runs(path: Path, platform: Platform) -> tuple[list[Run], int]:
    """Return the runs of a table that have figures, and the number of those that have none.

    The columns are model, order, frequency_indices, input_ms, task_ms, total_ms, task_mj and
    total_mj; an entry of frequency_indices is an index of an operating point, from the lowest, or
    for a processor with a host two with a hyphen between.
    """
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    runs = [_run(row, platform) for row in rows if row["task_ms"]]
    return runs, len(rows) - len(runs)


def _run(row: Mapping[str, str], platform: Platform) -> Run:
    letters = {name[0].upper(): p for p, name in enumerate(platform.names)}
    indices = row["frequency_indices"].split()
    seconds = (float(row[f"{name}_ms"]) / 1e3 for name in ("input", "task", "total"))
    return Run(
        row["model"],
        row["order"],
        tuple(
            _point(letters[letter], entry, platform)
            for letter, entry in zip(row["order"], indices, strict=True)
        ),
        *seconds,
        *(float(row[f"{name}_mj"]) / 1e3 for name in ("task", "total")),
    )


def _point(p: int, entry: str, platform: Platform) -> BlockPoint:
    own, _, host = entry.partition("-")
    processor = platform.processors[p]
    at = [processor.operating_points[int(own)].frequency_hz]
    if processor.host:
        hosting = platform.processors[platform.index(processor.host)]
        at.append(hosting.operating_points[int(host)].frequency_hz)
    return BlockPoint(p, *at)


@dataclass(frozen=True)
class Costs:
    """A platform's costs of the three networks' blocks.

    Parameters
    ----------
    view, profiles
        As for `BlockCosts`.
    """

    platform: Platform
    view: View = "deployed"
    profiles: Sequence[Profile] | None = None
    _known: dict[tuple[str, int, BlockPoint], float] = field(default_factory=dict)

    @cached_property
    def of_network(self) -> Mapping[str, BlockCosts]:
        """By network."""
        found = {}
        for name in NETWORKS:
            graph = graph_of(name)
            network = recognise(graph, measured_networks(block_runs_of(self.platform).blocks_of))
            assert network is not None
            found[name] = BlockCosts(
                graph, self.platform, network.blocks_of(graph), profiles=self.profiles,
                view=self.view,
            )  # fmt: skip
        return found

    def operators_s(self, run: Run) -> Array:
        """Return the seconds of each block's operators."""
        return np.array([self.block_s(run.network, b, at) for b, at in enumerate(run.points)])

    def block_s(self, network: str, block: int, point: BlockPoint) -> float:
        """Return the seconds of the operators of one block at a point."""
        key = network, block, BlockPoint(point.processor, point.frequency_hz)
        if key not in self._known:
            self._known[key] = self.of_network[network].operators_s(block, key[2])
        return self._known[key]

    def loading_s(self, run: Run) -> float:
        """Return the seconds to load the run's frame."""
        return self.of_network[run.network].loading_s(run.points[0])

    def host_s(self, run: Run) -> Array:
        """Return what each block takes for the clock of its host."""
        costs = self.of_network[run.network]
        return np.array([costs.host_s(point) for point in run.points])

    def predicted(self, run: Run) -> tuple[float, float]:
        """Return seconds and joules of the board for a run, loading included, by `evaluate`."""
        known = self.of_network[run.network]
        graph, costs = graph_of(run.network), known.at(run.points)
        assignment = assignment_of_order(
            run.order, graph=graph, blocks=known.blocks, names=self.platform.names
        )
        figures = evaluate(mapping_of(graph, self.platform, costs, assignment), graph, costs)
        loading = loader(self.platform, run.points[0])
        power_w = self.platform.idle_power_w + loading.full_power_w
        return (
            figures.latency_s + figures.input_s,
            figures.sequential_board_energy_j + figures.input_s * power_w,
        )


def loader(platform: Platform, point: BlockPoint) -> Processor:
    """Return the CPU that loads the frame for a first block, at its clock."""
    processor = platform.processors[point.processor]
    if processor.host and point.host_hz:
        return platform.processors[platform.index(processor.host)].at(point.host_hz)
    return processor.at(point.frequency_hz)


def changed(run: Run) -> Array:
    """Return 1 for each block that follows one on another processor, 0 for others."""
    moved = (before.processor != at.processor for before, at in pairwise(run.points))
    return np.array([0.0, *moved])


def on_cpu(run: Run, platform: Platform) -> Array:
    """Return 1 for each block on a CPU, 0 for others."""
    return np.array([float(platform.processors[p.processor].kind == "cpu") for p in run.points])


Correction = Callable[[Costs, Run], Sequence[float]]
"""Seconds of a run per unit of each parameter that is fitted."""


def plain_s(costs: Costs, run: Run) -> float:
    """Return a run's time with nothing added."""
    return costs.loading_s(run) + float(np.sum(costs.operators_s(run) + costs.host_s(run)))


def start_and_change(costs: Costs, run: Run) -> Sequence[float]:
    """Return what `cpu_start_s` and `change_share` of a platform's `block_runs` multiply."""
    starts = float(np.sum(on_cpu(run, costs.platform)))
    return starts, float(costs.operators_s(run) @ changed(run))


def start(costs: Costs, run: Run) -> Sequence[float]:
    """Return what `cpu_start_s` multiplies."""
    return start_and_change(costs, run)[:1]


def nothing(_costs: Costs, _run: Run) -> Sequence[float]:
    """Return no parameters."""
    return ()


def switching(costs: Costs, run: Run) -> Sequence[float]:
    """Return the start of blocks on a CPU, and the delays of the clock that were measured.

    Until a clock has changed, a block runs at the point from before; a processor that did not run
    the block before is at its lowest one, as the runs' authors have it.
    """
    slower_s = 0.0
    for block, (before, at) in enumerate(pairwise(run.points), start=1):
        processor = costs.platform.processors[at.processor]
        lowest_hz = processor.operating_points[0].frequency_hz
        same = before.processor == at.processor
        old = BlockPoint(at.processor, before.frequency_hz if same else lowest_hz)
        new_s, old_s = (costs.block_s(run.network, block, each) for each in (at, old))
        delays = processor.clock.switching
        assert delays is not None
        delay_s = delays.up_s if old_s > new_s else delays.down_s
        slower_s += min(delay_s, old_s) * (1 - new_s / old_s)
    return (*start(costs, run), slower_s)


def transfers(costs: Costs, run: Run) -> Sequence[float]:
    """Return the start of blocks on a CPU, and the links' transfers at the default clocks."""
    known, graph = costs.of_network[run.network], graph_of(run.network)
    moved_s = 0.0
    for name, producer in graph.producer.items():
        source = known.blocks[producer]
        readers = {known.blocks[v] for v in graph.consumers.get(name, ())} - {source}
        ends = {run.points[block].processor for block in readers}
        moved_s += sum(
            costs.platform.transfer_s(
                graph.tensors[name].size_bytes, run.points[source].processor, q
            )
            for q in ends
        )
    return (*start(costs, run), moved_s)


def fit(rows: Sequence[Sequence[float] | Array], rest: Array, networks: Sequence[str]) -> Array:
    """Return x ≥ 0 with rows·x ≈ rest by least squares, each network of equal weight.

    Parameters
    ----------
    rows, rest
        Relative to what was measured.
    networks
        That of each row.
    """
    count = {name: networks.count(name) for name in set(networks)}
    weight = np.array([count[name] ** -0.5 for name in networks])
    matrix = np.array(rows, dtype=np.float64).reshape(len(rest), -1) * weight[:, None]
    found = np.zeros(matrix.shape[1])
    used = np.ones(matrix.shape[1], dtype=bool)
    while used.any():
        found[:] = 0.0
        found[used], *_ = np.linalg.lstsq(matrix[:, used], rest * weight, rcond=None)
        if (found >= 0).all():
            break
        used &= found > 0
    return found


def fit_times(costs: Costs, runs: Sequence[Run], correction: Correction) -> Array:
    """Return the parameters of a correction that fit the runs' times best."""
    rows = [[x / run.total_s for x in correction(costs, run)] for run in runs]
    rest = np.array([1 - plain_s(costs, run) / run.total_s for run in runs])
    return fit(rows, rest, [run.network for run in runs])


def fit_powers(costs: Costs, runs: Sequence[Run], times: Array) -> dict[str, tuple[float, float]]:
    """Return α and β of each processor, in W/(V²·Hz) and W/V, fitted to the runs' energies.

    Parameters
    ----------
    times
        `cpu_start_s` and `change_share`: the energies follow from predicted times.
    """
    platform = costs.platform
    rows, rest = [], []
    for run in runs:
        blocks_s = costs.operators_s(run) * (1 + times[1] * changed(run)) + costs.host_s(run)
        blocks_s += times[0] * on_cpu(run, platform)
        loading_s = costs.loading_s(run)
        row = np.zeros(2 * len(platform.processors))
        pairs = [(platform.processors[at.processor].at(at.frequency_hz), s)
                 for at, s in zip(run.points, blocks_s, strict=True)]  # fmt: skip
        for processor, seconds in [*pairs, (loader(platform, run.points[0]), loading_s)]:
            point, p = processor.point, platform.index(processor.name)
            row[2 * p] += seconds * point.voltage_v**2 * point.frequency_hz / 1e9
            row[2 * p + 1] += seconds * point.voltage_v
        rows.append(row / run.total_j)
        idle_j = platform.idle_power_w * (float(blocks_s.sum()) + loading_s)
        rest.append(1 - idle_j / run.total_j)
    found = fit(rows, np.array(rest), [run.network for run in runs])
    return {name: (found[2 * p] / 1e9, found[2 * p + 1]) for p, name in enumerate(platform.names)}


def with_fits(
    platform: Platform, times: Array, powers: Mapping[str, tuple[float, float]]
) -> Platform:
    """Return the platform with other numbers for starts, changes, and power."""
    rules = block_runs_of(platform).model_copy(
        update={"cpu_start_s": float(times[0]), "change_share": float(times[1])}
    )
    processors = tuple(
        each.model_copy(update={"power": each.power.model_copy(update=dict(zip(
            ("alpha_w_per_v2_hz", "beta_w_per_v"), powers[each.name], strict=True)))})
        for each in platform.processors
    )  # fmt: skip
    return platform.model_copy(update={"block_runs": rules, "processors": processors})
