"""A profile's rows out of what a runtime's tool tells of a model's layers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from parapipe.cost.cost_table import CostTable
from parapipe.cost.measured_rows import APPORTIONED
from parapipe.cost.profile import TIMED, Measurement
from parapipe.errors import ProfilingError
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.imports.layers import ToolProfile
from parapipe.imports.matching import Block, Matches, match_layers
from parapipe.imports.places import processors_of, runs_of
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.profiling.operator_times import OperatorTime, measurements_of
from parapipe.profiling.profile_report import ImportedLayers, UnmatchedLayer
from parapipe.profiling.tasks import hardware_groups

NEAR = 0.05
"""Share of the tool's own total by which its layers may miss it without a note."""
LEAST_SHARE = 0.01
"""Share of the time below which conversions are not told."""


Taken = Mapping[str, Mapping[int, OperatorTime]]  # by processor and operator


@dataclass(frozen=True, slots=True)
class ImportedRows:
    """What of a file becomes rows of a profile.

    Parameters
    ----------
    notes
        What to know of it, a sentence each.
    """

    measurements: tuple[Measurement, ...]
    summary: ImportedLayers
    notes: tuple[str, ...]


def rows_of(
    profile: ToolProfile,
    graph: OperatorGraph,
    platform: Platform,
    costs: CostTable,
    requested: Sequence[str],
) -> ImportedRows:
    """Return the rows of the operators that a file's layers stand for.

    The time of several operators, a block, is shared out by the operators' prices. Processors that
    the platform describes in the same way get the same rows, but for those that the file tells of.

    Parameters
    ----------
    costs
        Of the graph, without measured times.
    requested
        What the user said of processors, as in `processors_of`.

    Raises
    ------
    ProfilingError
        If no layer stands for an operator, or it is not known where they ran.
    """
    profile = _of_model(profile, graph.source.name)
    names = processors_of((layer.place for layer in profile.layers), requested, platform)
    taken: dict[str, dict[int, OperatorTime]] = defaultdict(dict)
    every: list[Matches] = []
    for layers in runs_of(profile.layers):
        matches = match_layers(graph, layers)
        every.append(matches)
        for block in matches.blocks:
            name = names[block.place]
            taken[name].update(_operator_times(block, costs, costs.processors.index(name)))
    if not any(matches.blocks for matches in every):
        first = listed([f"'{layer.name}'" for layer in profile.layers])
        raise ProfilingError(
            f"no layer of the {profile.title} ({first}) stands for an operator of model "
            f"'{graph.source.name}'; was it made of another model? Names of layers must be those "
            "of the model's nodes or tensors, or types and shapes must be told"
        )
    measurements = [
        m
        for name, times in taken.items()
        for m in measurements_of(
            graph, [times], costs, _equal_processors(platform, name, taken), weights=""
        )
    ]
    refused = [*_refused_notes(graph, platform, costs, taken)]
    if not measurements:
        raise ProfilingError(f"nothing is imported: {'; '.join(refused)}, or give a `precision`")
    summary = _summary(profile, every, graph, costs, taken)
    notes = (*_notes(summary, every), *refused)
    return ImportedRows(tuple(measurements), summary, notes)


def _of_model(profile: ToolProfile, model: str) -> ToolProfile:
    """Return a profile without the times of other whole models; it may name one in its own way.

    Raises
    ------
    ProfilingError
        If it has several, and none of this name.
    """
    wholes = [layer for layer in profile.layers if layer.whole]
    if len(wholes) < 2:
        return profile
    own = [layer for layer in wholes if _plain(layer.name) == _plain(Path(model).stem)]
    if not own:
        raise ProfilingError(
            f"the {profile.title} has no line of '{Path(model).stem}' but of "
            f"{listed([layer.name for layer in wholes])}; give the line of this model alone"
        )
    return replace(profile, layers=tuple(own[:1]))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rpartition(":")[2].lower())


def _operator_times(block: Block, costs: CostTable, p: int) -> Iterator[tuple[int, OperatorTime]]:
    """Yield what the operators of a block take: shares in proportion to their prices."""
    method = TIMED if len(block.operators) == 1 else APPORTIONED
    own_s = {v: costs.time_s(v, p) for v in block.operators if costs.cost(v, p)}
    total_s = sum(own_s.values())
    for v in block.operators:
        share = own_s.get(v, 0.0) / total_s if total_s else 1 / len(block.operators)
        yield v, OperatorTime(share * block.time_s, method)


def _equal_processors(platform: Platform, name: str, taken: Taken) -> list[Processor]:
    """Return a processor and those with the same hardware that have no times of their own."""
    groups = hardware_groups(platform.processors)
    own = next(p for p in platform.processors if p.name == name)
    others = (p for p in platform.processors if groups[p.name] == groups[name])
    return [own, *(p for p in others if p.name not in taken)]


def _summary(
    profile: ToolProfile,
    every: Sequence[Matches],
    graph: OperatorGraph,
    costs: CostTable,
    taken: Taken,
) -> ImportedLayers:
    total_s = sum(layer.time_s for layer in profile.layers)
    without = dict.fromkeys(v for matches in every for v in matches.without)
    return ImportedLayers(
        format=profile.format,
        layers=len(profile.layers),
        layers_s=total_s,
        tool_s=profile.total_s,
        imported_s=sum(
            time.time_s
            for name, times in taken.items()
            for v, time in times.items()
            if costs.cost(v, costs.processors.index(name))
        ),
        inserted_s=sum(matches.inserted_s for matches in every),
        blocks=sum(len(block.operators) > 1 for matches in every for block in matches.blocks),
        unmatched=tuple(
            UnmatchedLayer(layer.name, layer.time_s, layer.time_s / total_s)
            for matches in every
            for layer in sorted(matches.unmatched, key=lambda each: -each.time_s)
        ),
        without=tuple(graph.operators[v].name for v in without),
    )


def _notes(summary: ImportedLayers, every: Sequence[Matches]) -> Iterator[str]:
    if summary.unmatched:
        share = sum(each.share for each in summary.unmatched)
        listed_layers = listed([f"'{each.name}' {each.share:.1%}" for each in summary.unmatched])
        yield (
            f"{_counted(len(summary.unmatched), 'layer')} with {share:.1%} of the time matched no "
            f"operator, and are left out: {listed_layers}"
        )
    if summary.without:
        names = listed([f"'{name}'" for name in summary.without])
        yield f"{_counted(len(summary.without), 'operator')} without a time in the file: {names}"
    if summary.inserted_s >= LEAST_SHARE * summary.layers_s:
        share = summary.inserted_s / summary.layers_s
        yield (
            f"conversions of layout or type and views take {share:.1%} of the time, which counts "
            "with the operators behind them"
        )
    if summary.blocks:
        shared = [b.operators for matches in every for b in matches.blocks if len(b.operators) > 1]
        yield (
            f"{sum(map(len, shared))} operators ran in {_counted(len(shared), 'block')}, of which "
            "only the times are known: they share these by their prices"
        )
    if summary.tool_s and abs(summary.layers_s / summary.tool_s - 1) > NEAR:
        yield (
            f"the layers add up to {summary.layers_s / summary.tool_s:.0%} of the "
            f"{summary.tool_s * 1e3:.4g} ms that the tool tells for the whole"
        )


def _refused_notes(
    graph: OperatorGraph, platform: Platform, costs: CostTable, taken: Taken
) -> Iterator[str]:
    """Yield what the platform says processors do not run, though they did."""
    for name, times in taken.items():
        p = costs.processors.index(name)
        refused = [v for v in times if not costs.cost(v, p)]
        if refused:
            types = dict.fromkeys(graph.operators[v].type for v in refused)
            yield (
                f"platform '{platform.name}' says that '{name}' does not run "
                f"{_counted(len(refused), 'operator')} ({listed([*types])}) that ran there: their "
                f"times are left out; allow them in its file"
            )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
