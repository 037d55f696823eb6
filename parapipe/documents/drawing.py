"""Texts and rows for front.json: configurations in one line, its command, and several models."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.cost.operating_points import Setting
from parapipe.documents.front_records import (
    DemandRow,
    GrowthRow,
    Inputs,
    ProcessorRow,
    ServedRow,
    SeveralRow,
    SharingRow,
    StageRow,
)
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import Evaluated
from parapipe.search.options import MapOptions, flag, idle_options, option_names, option_traits
from parapipe.several_models.random_arrivals import simulate_random_arrivals

if TYPE_CHECKING:
    from parapipe.modulo.baselines import Baseline
    from parapipe.several_models.patterns import Demand, LeastPeriods


def map_command(
    model: str | Path | Mapping[str, str], platform: str | Path, options: MapOptions
) -> str:
    """Return the command as a line for a shell, without options that are at their defaults.

    Parameters
    ----------
    model
        Several of them by name.
    """
    left_out = [*idle_options(options.to_dict())]
    models = [f"{model}"]
    if isinstance(model, Mapping):
        models = [f"{name}={each}" for name, each in model.items()]
        left_out += option_names(lambda option: option.several == "no effect")
    words = ["parapipe", "map", *models, "--platform", f"{platform}"]
    changed = {name: each for name, each in options.changed().items() if name not in left_out}
    for name in sorted(changed, key=lambda name: _option_rank(changed[name])):
        words += _option_words(name, changed[name])
    return shlex.join(words)


def _option_rank(value: object) -> int:
    """Return the place of an option: values come first, then flags, then what may be repeated."""
    if isinstance(value, str):
        return 0
    return 2 if isinstance(value, Mapping | Sequence) else value is True


def _option_words(name: str, value: object) -> Iterator[str]:
    text = option_traits()[name].text
    match value:
        case True:
            yield flag(name)
        case Mapping():
            for key, each in value.items():
                yield from (flag(name), f"{key}={text(each)}")
        case tuple() | list():
            for each in value:
                yield from (flag(name), text(each))
        case _:
            yield from (flag(name), text(value))


def inputs_of(platform: str | Path, options: MapOptions) -> Inputs:
    """Return what costs depend on."""
    return Inputs(
        platform=os.fspath(platform),
        profiles=tuple(os.fspath(path) for path in options.profiles),
        dims=dict(options.dims or {}),
        shapes=dict(options.shapes or {}),
        rules=None if options.rules is None else os.fspath(options.rules),
        at_most=options.at_most,
        states=dict(options.states or {}) or None,
        sequences=None if options.sequences == 1 else options.sequences,
    )


def render_configuration(
    configuration: Configuration, stages: Sequence[StageRow], at: Setting, graph: OperatorGraph
) -> str:
    """Return what a configuration is in one line; see `ConfigurationRow.drawing`."""
    if graph.source.members:
        return _render_models(configuration, graph, at.platform.names)
    defaults_hz = {p.name: p.clock.default_frequency_hz for p in at.platform.processors}
    rendered = (
        _render_interleaved(stages, defaults_hz, configuration.evaluated)
        if configuration.mapping.kind == "interleaved"
        else render_stages(stages, defaults_hz)
    )
    if configuration.split is None:
        return rendered
    return f"{rendered} ({'recomputed' if configuration.split.recomputes else 'split'})"


def _render_interleaved(
    stages: Sequence[StageRow], defaults_hz: dict[str, float], evaluated: Evaluated
) -> str:
    """Return all processors, and how many frames are under way at once."""
    processors = {each.name: each for stage in stages for each in stage.processors}
    used = [processors[name] for name in defaults_hz if name in processors]
    numbers = [number for stage in stages for number in stage.subgraphs]
    frames = ceil(evaluated.latency_s / evaluated.period_s - 1e-9)
    run = f"{min(numbers)}-{max(numbers)}" if len({*numbers}) > 1 else f"{numbers[0]}"
    names = "+".join(_render_processor(each, defaults_hz) for each in used)
    return f"{names}[{run}] takes turns on {frames} frames"


def render_stages(stages: Sequence[StageRow], defaults_hz: dict[str, float]) -> str:
    """Return the stages in one line; see `ConfigurationRow.drawing`."""
    rendered = []
    for i, stage in enumerate(stages):
        before, behind = (
            {n for each in some for n in each.subgraphs} for some in (stages[:i], stages[i + 1 :])
        )
        names = (_render_processor(processor, defaults_hz) for processor in stage.processors)
        used = ("/" if stage.in_turn else "+").join(names)
        rendered.append(f"{used}[{_render_subgraphs(stage.subgraphs, before, behind)}]")
    return " │ ".join(rendered)


def _render_subgraphs(
    numbers: Sequence[int], before: Collection[int], behind: Collection[int]
) -> str:
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


def _render_processor(processor: ProcessorRow, defaults_hz: dict[str, float]) -> str:
    """Return its name, followed by its gigahertz if it is not at its default frequency."""
    frequency_hz = processor.operating_point.frequency_hz
    if frequency_hz == defaults_hz[processor.name]:
        return processor.name
    return f"{processor.name}@{frequency_hz / 1e9:.3g}"


def _render_models(configuration: Configuration, graph: OperatorGraph, names: Sequence[str]) -> str:
    """Return which processors work for each model, in one line."""
    rendered = []
    for member in graph.source.members:
        prefixes = tuple(map(member.prefix, range(member.frames)))
        used = {
            at.processor
            for at in configuration.mapping.placements
            if graph.operators[at.operator].id.startswith(prefixes)
        }
        where = "+".join(name for p, name in enumerate(names) if p in used)
        rendered.append(f"{member.name} on {where}")
    return ", ".join(rendered)


def several_row(
    graph: OperatorGraph,
    demands: Sequence[Demand],
    reached: LeastPeriods,
    period_s: float,
    processors: Sequence[str],
) -> SeveralRow:
    """Write down what is asked, and what ways without sharing reach."""

    def sharing(baseline: Baseline | None) -> SharingRow | None:
        if baseline is None:
            return None
        return SharingRow(
            rate_factor=period_s / baseline.period_s,
            processors={
                demand.name: tuple(processors[p] for p in each)
                for demand, each in zip(demands, baseline.sets, strict=True)
            },
        )

    in_turn = sharing(reached.in_turn)
    assert in_turn is not None
    return SeveralRow(
        period_s=period_s,
        models=tuple(
            DemandRow(
                name=demand.name,
                model=member.source.name,
                model_sha256=member.source.sha256,
                frames=member.frames,
                rate_fps=demand.rate_fps,
                pattern_fps=member.frames / period_s,
                deadline_s=demand.deadline_s if demand.deadline_s < inf else None,
                priority=demand.priority,
            )
            for demand, member in zip(demands, graph.source.members, strict=True)
        ),
        shared=period_s / reached.shared.period_s,
        bound=period_s / reached.bound_s,
        own_processors=sharing(reached.own_processors),
        in_turn=in_turn,
        one_each=sharing(reached.one_each),
    )


def growth_row(configuration: Configuration, demands: Sequence[Demand]) -> GrowthRow:
    """Write down what the models get of a configuration."""
    assert configuration.several is not None
    growth, period_s = configuration.several, configuration.evaluated.period_s
    models = {}
    for demand, come_s, latency_s in zip(demands, growth.come_s, growth.latency_s, strict=True):
        turn_s = period_s / len(come_s) / growth.effective_factor
        random = simulate_random_arrivals(demand.rate_fps, turn_s, latency_s)
        models[demand.name] = ServedRow(
            latency_s=latency_s,
            come_s=come_s,
            utilisation=random.utilisation,
            random_p99_s=random.p99_s,
        )
    return GrowthRow(
        rate_factor=growth.rate_factor,
        contended_rate_factor=growth.contended_rate_factor,
        power_w=configuration.evaluated.energy_j / period_s,
        models=models,
    )
