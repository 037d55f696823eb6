"""The methods of the Para-Pipe paper's evaluation, each run on a network and a platform.

Every row is one frame's latency L and the period T between frames of

    one processor     the fastest processor that runs the whole network, L = T
    Layer-switched    min L over sequences x: L = Σ_v w[v, x_v] + transfers, one operator at a time
    HEFT & CPOP       the better list schedule of the whole network as one problem, L = T
    para-only         one stage, operators side by side, least L
    hybrid-L          two or more stages, one of them parallel, least L (then T)
    hybrid-T          the same, least T (then L)
    pipe-only         two or more stages of one processor each, least T (then L)

The last four are the named configurations of `parapipe map`. Watched because that is the
comparison which the paper's method has to win.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import yaml

import parapipe
from benchmarks.mapping_quality import HEURISTICS, Network, improvement
from parapipe import ParetoFront
from parapipe.cost.cost_table import build_cost_table
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.graph.partition import partition
from parapipe.solvers.registry import mapper
from parapipe.solvers.schedule import Schedule

LIMIT_S = 10.0
BASELINES = ("Layer-switched", "HEFT & CPOP")
NAMED = {
    "one processor": "sequential",
    "para-only": "para-only",
    "hybrid-L": "hybrid-L",
    "hybrid-T": "hybrid-T",
    "pipe-only": "pipe-only",
}
METHODS = ("one processor", *BASELINES, "para-only", "hybrid-L", "hybrid-T", "pipe-only")
REFERENCE = "big"


@dataclass(frozen=True, slots=True)
class Row:
    """What a method makes of a network on a platform.

    Parameters
    ----------
    stages
        The configuration in one line.
    energy_j
        Of the processors used, per frame.
    busy
        By processor of the platform: the share of the period in which it runs operators.
    """

    platform: str
    model: str
    method: str
    stages: str
    latency_s: float
    period_s: float
    energy_j: float
    busy: Mapping[str, float]
    proven: bool

    @property
    def throughput_fps(self) -> float:
        """Frames per second."""
        return 1 / self.period_s


@dataclass(frozen=True, slots=True)
class Solving:
    """What a front took to solve.

    Parameters
    ----------
    total_s, longest_s
        Seconds in solvers, of all problems one by one, and of the longest.
    gap
        The largest of all problems.
    """

    platform: str
    model: str
    problems: int
    proven: int
    total_s: float
    longest_s: float
    gap: float


@dataclass(frozen=True, slots=True)
class SetRow:
    """The best that a set of processors gives a network.

    Parameters
    ----------
    latency_s, one_stage_fps, one_stage_frames_per_joule
        Of the shortest configuration of one stage.
    throughput_fps, fastest_frames_per_joule
        Of the configuration with the highest throughput, whatever its kind.
    frames_per_joule
        The most of those on the front of latency and throughput that use the whole set.
    """

    model: str
    processors: str
    latency_s: float
    one_stage_fps: float
    one_stage_frames_per_joule: float
    throughput_fps: float
    fastest_frames_per_joule: float
    frames_per_joule: float


def front(model: str, platform: str | Path, *, cache: bool = True) -> ParetoFront:
    """Map a network of the zoo onto stages, as the paper does, for latency and throughput."""
    return parapipe.map(
        f"zoo:{model}",
        platform,
        objectives="latency-throughput",
        interleave="none",
        time_limit_s=LIMIT_S,
        cache=cache,
        note=lambda _: None,
    )


def rows(found: ParetoFront, model: str, platform: str) -> list[Row]:
    """Return a row for each method that has a configuration there."""
    made = {name: baseline(model, platform, name) for name in BASELINES}
    names = {name for row in found.document.configurations for name in row.names}
    for method, name in NAMED.items():
        if name in names:
            made[method] = _row(found[name], model, platform, method)
    return [made[method] for method in METHODS if method in made]


def _row(row: ConfigurationRow, model: str, platform: str, method: str) -> Row:
    busy = {p.name: p.busy_s / row.period_s for stage in row.stages for p in stage.processors}
    return Row(
        platform, model, method, row.drawing, row.latency_s, row.period_s, row.energy_j, busy,
        row.proven,
    )  # fmt: skip


def baseline(model: str, platform: str, method: str) -> Row:
    """Schedule a whole network as one problem, without stages."""
    graph = parapipe.load_model(f"zoo:{model}")
    costs = build_cost_table(graph, parapipe.load_platform(platform))
    network = Network(graph, partition(graph), costs)
    names = HEURISTICS if method == "HEFT & CPOP" else ("layer_switched",)
    problem = network.whole()
    made: Schedule = min(
        (mapper(name)(problem, time_limit_s=LIMIT_S, seed=0) for name in names),
        key=lambda schedule: schedule.makespan_s,
    )
    busy_s = dict.fromkeys(sorted(made.used), 0.0)
    dynamic_j = 0.0
    for v, p in zip(network.parts.order, made.processor, strict=True):
        busy_s[p] += costs.time_s(v, p)
        dynamic_j += costs.energy_j(v, p)
    static_w = sum(costs.static_power_w[p] for p in made.used)
    return Row(
        platform,
        model,
        method,
        "+".join(costs.processors[p] for p in busy_s),
        made.makespan_s,
        made.makespan_s,
        dynamic_j + static_w * made.makespan_s,
        {costs.processors[p]: seconds / made.makespan_s for p, seconds in busy_s.items()},
        method == "Layer-switched" and made.certificate.proven,
    )


def solving(found: ParetoFront, model: str, platform: str) -> Solving:
    """Tell what a front took, also where its problems came from an earlier run."""
    certificates = [schedule.certificate for schedule in found.exploration.schedules.values()]
    return Solving(
        platform,
        model,
        problems=len(certificates),
        proven=sum(each.proven for each in certificates),
        total_s=sum(each.wall_s for each in certificates),
        longest_s=max(each.wall_s for each in certificates),
        gap=max(each.gap for each in certificates),
    )


def set_rows(model: str, platform: str, whole: ParetoFront) -> list[SetRow]:
    """Map a network on every set of processors that holds `REFERENCE`, as a chip of its own.

    Parameters
    ----------
    whole
        The front on all of them.
    """
    names = [each.name for each in parapipe.load_platform(platform).processors]
    others = [name for name in names if name != REFERENCE]
    made = []
    for size in range(len(others)):
        for chosen in combinations(others, size):
            kept = [name for name in names if name == REFERENCE or name in chosen]
            with TemporaryDirectory() as folder:
                found = front(model, without_others(platform, kept, Path(folder)))
            made.append(_set_row(found, model, kept))
    return [*made, _set_row(whole, model, names)]


def without_others(platform: str, kept: Sequence[str], folder: Path) -> Path:
    """Write a shipped platform with some of its processors only."""
    content: dict[str, list[dict[str, object]]] = parapipe.show_platform(platform)  # type: ignore[assignment]
    content["processors"] = [each for each in content["processors"] if each["name"] in kept]
    content["links"] = [
        each for each in content.get("links", []) if set(_ends(each)) <= set(kept)
    ]  # fmt: skip
    path = folder / f"{'-'.join(kept)}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def _ends(link: Mapping[str, object]) -> tuple[str, str]:
    return str(link["from"]), str(link["to"])


def _set_row(found: ParetoFront, model: str, processors: Sequence[str]) -> SetRow:
    every = found.document.configurations
    fastest = min(every, key=lambda row: (row.period_s, row.latency_s))
    shortest = min(_one_stage(found), key=lambda row: row.latency_s)
    using_all = [row for row in every if _used(row) == set(processors)]
    return SetRow(
        model,
        "+".join(processors),
        shortest.latency_s,
        shortest.throughput_fps,
        shortest.frames_per_joule,
        fastest.throughput_fps,
        fastest.frames_per_joule,
        max(row.frames_per_joule for row in using_all),
    )


def _one_stage(found: ParetoFront) -> list[ConfigurationRow]:
    return [row for row in found.document.configurations if len(row.stages) == 1]


def _used(row: ConfigurationRow) -> set[str]:
    return {processor.name for stage in row.stages for processor in stage.processors}


FIGURES = tuple(field.name for field in fields(SetRow))[2:]


def gains(found: Sequence[SetRow]) -> dict[str, dict[str, float]]:
    """Return, for each set, the mean over networks of each figure's gain over `REFERENCE` alone."""
    alone = {row.model: row for row in found if row.processors == REFERENCE}
    return {
        processors: {
            figure: mean(
                getattr(row, figure) / getattr(alone[row.model], figure) - 1
                for row in found
                if row.processors == processors
            )
            for figure in FIGURES
        }
        for processors in dict.fromkeys(row.processors for row in found)
        if processors != REFERENCE
    }


@dataclass(frozen=True, slots=True)
class Overtaken:
    """By which shares a network's configurations beat the better of HEFT and CPOP.

    Parameters
    ----------
    latency, throughput
        Of the shortest configuration of one stage, and of the one with the highest throughput.
    subgraphs
        Latency of the optimum of each subgraph with branches, by itself: the mean.
    sequence
        Latency of the shortest one against Layer-switched: what running side by side brings.
    busiest
        Share of the shortest one's latency in which its busiest processor computes.
    """

    platform: str
    model: str
    latency: float
    subgraphs: float
    throughput: float
    sequence: float
    busiest: float


def overtaken(found: ParetoFront, methods: Mapping[str, Row]) -> Overtaken:
    """Compare a front with its rows of "HEFT & CPOP" and of "Layer-switched"."""
    heuristic = methods["HEFT & CPOP"]
    made = found.configurations[0]
    network = Network(made.graph, partition(made.graph), made.costs)
    shares = [improvement(each, LIMIT_S) for each in network.parallel()]
    shortest = min(_one_stage(found), key=lambda row: row.latency_s)
    fastest = min(row.period_s for row in found.document.configurations)
    return Overtaken(
        heuristic.platform,
        heuristic.model,
        1 - shortest.latency_s / heuristic.latency_s,
        mean(shares),
        heuristic.period_s / fastest - 1,
        1 - shortest.latency_s / methods["Layer-switched"].latency_s,
        max(p.busy_s for p in shortest.stages[0].processors) / shortest.latency_s,
    )
