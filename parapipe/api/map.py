"""The Pareto front of a model on a platform."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from parapipe.api.checked import Folder, Note, PlatformFile, checked
from parapipe.api.load import load_graph, load_platform
from parapipe.api.several import Models, loaded_models, models_by_name, requests_of, search_patterns
from parapipe.errors import ModelError
from parapipe.files.locked_folders import clear_abandoned_scratch
from parapipe.files.progress import ALONE, Tell
from parapipe.processes.deadline import Deadline, arena_effort_s, search_s
from parapipe.search.options import MapKeywords, MapOptions
from parapipe.solvers import registry

if TYPE_CHECKING:
    from parapipe.api.front import ParetoFront
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.operating_points import Setting, Settings
    from parapipe.cost.profile import Profile
    from parapipe.graph.operator_graph import ModelSource, OperatorGraph
    from parapipe.graph.partition import Partition
    from parapipe.mappings import configuration as pipeline
    from parapipe.search.contract import SplitSources
    from parapipe.search.exploration_result import Exploration
    from parapipe.uncertainty.robust import RobustRow
    from parapipe.uncertainty.samples import SampledFront


@checked
def map(
    model: Models,
    platform: PlatformFile,
    *,
    options: MapOptions | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    note: Note | None = None,
    **keywords: Unpack[MapKeywords],
) -> ParetoFront:
    """Find all configurations of a model on a platform that no other one beats.

    Parameters
    ----------
    model, platform
        As for `load_model` and `load_platform`. Several models, as a list or by name, share the
        platform: give their `rates`.
    options
        What else there is to say; see `MapOptions`.
    executor
        Solves the subgraphs in place of this process and worker processes of its own; it stays
        open.
    progress
        Called after each solved subgraph, and after each place at which the search has cut.
    note
        Takes what does no harm but should be known, a sentence each; a warning if not given.
    keywords
        Fields of `MapOptions`, in place of those of `options`.
    """
    options = replace(options or MapOptions(), **keywords)
    deadline = Deadline(search_s(options.of_stated_costs.budget_s))
    registry.check_name(options.mapper)
    for name in options.search:
        check_search(name)
    clear_abandoned_scratch()
    from parapipe.cost.compiled_groups import join_compiled
    from parapipe.cost.operating_points import settings
    from parapipe.cost.profile import chosen_profiles
    from parapipe.mappings.memory import MemoryLimit
    from parapipe.search.contract import SplitSources
    from parapipe.search.infeasible import check_energies
    from parapipe.search.stages.finest_cuts import finest_partition

    target = load_platform(platform)
    measured = chosen_profiles(options.profiles, beside=platform, platform=target.profile_name)
    note = note or warnings.warn
    models = models_by_name(model, options)
    single = model if isinstance(model, str | Path) else next(iter(model))
    requests = requests_of(models, options, note) if models else None
    read = options.where(lambda option: option.reads_model)
    # weights are hashed once there is a front: they may be many gigabytes
    if requests:
        patterns = loaded_models(requests, options, note)
        graph, options = patterns.graph(), replace(options, draws=0)
    else:
        graph = load_graph(single, **read, digests=True, weights=False, note=note)
        graph = join_compiled(graph, _fusing(measured, options))
    most = options.dvfs_points if options.dvfs else 1
    price = partial(
        settings, platform=target, most=most, profiles=measured, precision=options.precision
    )
    priced = price(graph)
    check_energies(priced.combinations[0].costs)
    MemoryLimit(options.max_memory_bytes).check(target.memory_system)
    _note_costs(graph, priced.combinations[0], note)
    if requests:
        result = search_patterns(
            patterns, (graph, priced), price, options, deadline=deadline, progress=progress
        )
        exploration, parts = result.exploration, result.partition
        if result.times > 1:
            graph = patterns.graph(result.times)
            priced = price(graph)
    else:
        parts = finest_partition(graph, [each.costs for each in priced.combinations])

        def split(rules: Sequence[str]) -> OperatorGraph:
            split_graph = load_graph(
                single, **read, digests=False, note=lambda _: None, split=rules
            )
            return replace(split_graph, source=replace(graph.source, split=tuple(rules)))

        exploration = _search_one_model(
            graph,
            parts,
            priced,
            options.of_stated_costs,
            note=note,
            executor=executor,
            progress=progress,
            sources=SplitSources(target, measured, split),
            deadline=deadline,
        )
    # what follows loads packages that are of no use before there is a front
    from parapipe.api.front import Configuration, ParetoFront
    from parapipe.documents.build_front import front_document, networks_behind, setting_of
    from parapipe.documents.drawing import inputs_of, map_command

    graph = replace(graph, source=_with_weight_digests(graph.source, note))
    exploration, samples, robust = _sample_costs(
        exploration, graph, parts, priced, options,
        jobs=ALONE if executor else options.workers, gone_s=deadline.gone_s,
    )  # fmt: skip
    if robust:
        robust.tell(options.scenarios, note)
    document = front_document(
        graph,
        parts,
        priced,
        exploration,
        options,
        several=(requests.demands, result.reached) if requests else None,
        command=map_command(models or single, platform, options),
        inputs=inputs_of(platform, options),
        networks=networks_behind(measured, target.profile_name),
        drawn=samples,
        robust=robust,
    )
    configurations = tuple(
        Configuration(
            row,
            document,
            configuration,
            _mapped_graph(configuration, graph),
            setting_of(configuration, priced),
            max_memory_bytes=options.max_memory_bytes,
            arena_effort_s=arena_effort_s(options.budget_s, len(exploration.found)),
        )
        for row, configuration in zip(document.configurations, exploration.found, strict=True)
    )
    return ParetoFront(document, configurations, exploration, parts, samples)


def _sample_costs(
    exploration: Exploration,
    graph: OperatorGraph,
    parts: Partition,
    priced: Settings,
    options: MapOptions,
    *,
    jobs: int,
    gone_s: float,
) -> tuple[Exploration, SampledFront | None, RobustRow | None]:
    """Draw the costs of what was found, and add what is best at a quantile, as far as asked for."""
    from parapipe.documents.build_front import setting_of
    from parapipe.search.registry import requested_searches
    from parapipe.uncertainty.causes import Draws
    from parapipe.uncertainty.robust import with_robust
    from parapipe.uncertainty.samples import sampled_front

    def costs(configuration: pipeline.Configuration) -> CostTable:
        return setting_of(configuration, priced).costs

    if options.robust is not None:
        every = [setting.costs for setting in priced.combinations]
        return with_robust(
            exploration, graph, parts, every, options,
            costs_of=costs, searches=requested_searches(options), gone_s=gone_s,
        )  # fmt: skip
    if not options.draws:
        return exploration, None, None
    draws = Draws(options.draws, options.seed)
    return exploration, sampled_front(exploration.found, graph, costs, draws, jobs), None


def _search_one_model(
    graph: OperatorGraph,
    parts: Partition,
    priced: Settings,
    options: MapOptions,
    *,
    note: Note,
    executor: Executor | None,
    progress: Tell | None,
    sources: SplitSources,
    deadline: Deadline,
) -> Exploration:
    """Search for configurations of one model."""
    from parapipe.search.configurations_from_costs import explore
    from parapipe.search.problems.cache import Cache
    from parapipe.search.problems.method import Method, stopped_by_clock
    from parapipe.search.registry import requested_searches

    costs, *others = (setting.costs for setting in priced.combinations)
    folder = None if isinstance(options.cache, bool) else Path(options.cache)
    with nullcontext() if options.cache is False else Cache(folder, note) as cache:
        exploration = explore(
            graph,
            parts,
            costs,
            options,
            cache=cache,
            executor=executor,
            progress=progress,
            others=others,
            searches=requested_searches(options),
            sources=sources,
            deadline=deadline,
        )
    method = Method(**options.where(lambda option: option.solves))
    late = stopped_by_clock(exploration.schedules.values(), method)
    if options.deterministic and late:
        note(
            f"{late} subgraphs ran out of time, and the mapper '{options.mapper}' stops by the "
            "clock: another run may differ; give a longer time limit or another mapper"
        )
    return exploration


def _fusing(
    measured: tuple[Profile, ...] | None, options: MapOptions
) -> tuple[Profile, ...] | None:
    """Return the profiles whose groups are not cut: none where operators are split into parts."""
    return () if options.split == "auto" else measured


def _note_costs(graph: OperatorGraph, at: Setting, note: Note) -> None:
    """Say what costs rest on that is not measured, and which operators are converted."""
    from parapipe.cost.pricing import conversions

    if at.costs.precision == "model":
        for sentence in conversions(graph, at.platform):
            note(sentence)
    if at.platform.nominal_power:
        note(
            f"energy of {', '.join(at.platform.nominal_power)} rests on nominal power, not measured"
        )


def _with_weight_digests(source: ModelSource, note: Note) -> ModelSource:
    """Add the digests of external data; a front is not lost for want of them."""
    from parapipe.graph.model_source import with_external_digests

    if source.members:
        return replace(
            source,
            members=tuple(
                replace(each, source=_with_weight_digests(each.source, note))
                for each in source.members
            ),
        )
    try:
        return with_external_digests(source)
    except ModelError as error:
        note(f"{error}; the plans have no digests of the weights, so nobody can check them")
        return replace(source, external={})


def _mapped_graph(configuration: pipeline.Configuration, graph: OperatorGraph) -> OperatorGraph:
    """Return the graph that a configuration maps: the model's, or that with operators split."""
    if not configuration.split:
        return graph
    split = configuration.split.graph
    return replace(split, source=replace(graph.source, split=split.source.split))


def mapper_names() -> tuple[str, ...]:
    """Names of all mappers, sorted."""
    return registry.MAPPERS.names()


def check_mapper(name: str) -> None:
    """Raise a MappingError if there is no mapper of that name."""
    registry.check_name(name)


def search_names() -> tuple[str, ...]:
    """Names of the searches that other packages add, sorted."""
    from parapipe.search.registry import SEARCHES

    return SEARCHES.names_of_others()


def check_search(name: str) -> None:
    """Raise a MappingError if no package adds a search of that name."""
    from parapipe.search.registry import check_search as check

    check(name)


def reuse_processes() -> AbstractContextManager[object]:
    """Let the worker processes of one call stay for the next, until the context ends."""
    from parapipe.processes.workers import shared_processes

    return shared_processes("parapipe.front.pareto_front")


@checked
def check_directory(directory: Folder) -> None:
    """Raise an OutputError if a front could not be written to a folder; leave it as it was."""
    from parapipe.front.pareto_front import check_directory as check

    check(Path(directory))


def check_figure(path: Path) -> None:
    """Raise an OutputError if the front could not be drawn into a file; leave all as it was."""
    from parapipe.figures.axes import check_picture

    check_picture(path)
