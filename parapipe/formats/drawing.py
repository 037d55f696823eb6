"""Configurations in one line: stages, or processors that take turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil

from parapipe.cost.operating_points import Setting
from parapipe.formats.stage_rows import ProcessorRow, StageRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.evaluate import Evaluated


def drawing(
    found: Configuration, stages: Sequence[StageRow], at: Setting, graph: OperatorGraph
) -> str:
    """Return what a configuration is in one line; see `ConfigurationRow.drawing`."""
    if graph.source.members:
        return _drawn_models(found, graph, at.platform.names)
    defaults_hz = {p.name: p.clock.default_frequency_hz for p in at.platform.processors}
    drawn = (
        _drawn_in_turn(stages, defaults_hz, found.evaluated)
        if found.mapping.kind == "interleaved"
        else draw(stages, defaults_hz)
    )
    if found.split is None:
        return drawn
    return f"{drawn} ({'recomputed' if found.split.recomputes else 'split'})"


def _drawn_in_turn(
    stages: Sequence[StageRow], defaults_hz: dict[str, float], evaluated: Evaluated
) -> str:
    """Return all processors, and how many frames are under way at once."""
    names = {each.name: _drawn_name(each, defaults_hz) for s in stages for each in s.processors}
    in_order = [names[name] for name in defaults_hz if name in names]
    numbers = [number for stage in stages for number in stage.subgraphs]
    frames = ceil(evaluated.latency_s / evaluated.period_s - 1e-9)
    run = f"{min(numbers)}-{max(numbers)}" if len({*numbers}) > 1 else f"{numbers[0]}"
    return f"{'+'.join(in_order)}[{run}] takes turns on {frames} frames"


def draw(stages: Sequence[StageRow], defaults_hz: dict[str, float]) -> str:
    """Return the stages in one line; see `ConfigurationRow.drawing`."""
    drawn = []
    for i, stage in enumerate(stages):
        before, behind = (
            {n for each in some for n in each.subgraphs} for some in (stages[:i], stages[i + 1 :])
        )
        names = (_drawn_name(processor, defaults_hz) for processor in stage.processors)
        used = ("/" if stage.in_turn else "+").join(names)
        drawn.append(f"{used}[{_drawn_numbers(stage.subgraphs, before, behind)}]")
    return " │ ".join(drawn)


def _drawn_numbers(numbers: Sequence[int], before: Collection[int], behind: Collection[int]) -> str:
    """Return a stage's subgraphs in runs; marked are those that earlier or later ones run, too."""
    runs: list[list[int]] = []
    for number in numbers:
        previous = runs[-1][-1] if runs else None
        if number - 1 == previous and previous not in behind and number not in before:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(
        ("…" if run[0] in before else "")
        + "-".join(str(number) for number in dict.fromkeys((run[0], run[-1])))
        + ("…" if run[-1] in behind else "")
        for run in runs
    )


def _drawn_name(processor: ProcessorRow, defaults_hz: dict[str, float]) -> str:
    """Return its name, followed by its gigahertz if it is not at its default frequency."""
    frequency_hz = processor.operating_point.frequency_hz
    if frequency_hz == defaults_hz[processor.name]:
        return processor.name
    return f"{processor.name}@{frequency_hz / 1e9:.3g}"


def _drawn_models(found: Configuration, graph: OperatorGraph, names: Sequence[str]) -> str:
    """Return which processors work for each model, in one line."""
    shown = []
    for member in graph.source.members:
        prefixes = tuple(map(member.prefix, range(member.frames)))
        used = {
            at.processor
            for at in found.mapping.placements
            if graph.operators[at.operator].id.startswith(prefixes)
        }
        where = "+".join(name for p, name in enumerate(names) if p in used)
        shown.append(f"{member.name} on {where}")
    return ", ".join(shown)
