"""A search and the front that is made of it: what `map` does once it knows its options."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import Note, PlatformFile
from parapipe.api.load import load_graph, load_platform_without
from parapipe.api.several import Models, loaded_models, models_by_name, requests_of, search_patterns
from parapipe.errors import ModelError
from parapipe.files.mistakes import listed
from parapipe.files.progress import ALONE, Tell
from parapipe.processes.deadline import Deadline, arena_effort_s
from parapipe.search.options import MapOptions

if TYPE_CHECKING:
    from parapipe.api.front import ParetoFront
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.operating_points import Setting, Settings
    from parapipe.cost.profile import Profile
    from parapipe.documents.front_records import CompilationRow
    from parapipe.graph.operator_graph import ModelSource, OperatorGraph
    from parapipe.graph.partition import Partition
    from parapipe.mappings import configuration as pipeline
    from parapipe.platform.platform import Platform
    from parapipe.search.contract import SplitSources
    from parapipe.search.exploration_result import Exploration
    from parapipe.several_models.patterns import Demand, LeastPeriods
    from parapipe.uncertainty.robust import RobustRow
    from parapipe.uncertainty.samples import SampledFront


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """How a search is to be run.

    Parameters
    ----------
    options
        As given; of several models, without draws.
    executor, progress, note
        As for `map`.
    graph
        Of one model that is read already, with digests and without weights.
    """

    model: Models
    platform: PlatformFile
    options: MapOptions
    executor: Executor | None
    progress: Tell | None
    note: Note
    deadline: Deadline
    graph: OperatorGraph | None = None

    @property
    def single(self) -> str | Path:
        """The model, or the first of several."""
        return self.model if isinstance(self.model, str | Path) else next(iter(self.model))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, and what it was made of.

    Parameters
    ----------
    profiles
        Measured times; None for the shipped ones.
    limited_options
        The options with limits of the platform too.
    several
        Of several models: what is asked for them, and what ways without sharing reach.
    """

    run: SearchRequest
    target: Platform
    profiles: tuple[Profile, ...] | None
    graph: OperatorGraph
    priced: Settings
    parts: Partition
    exploration: Exploration
    limited_options: MapOptions
    several: tuple[Sequence[Demand], LeastPeriods] | None = None


def search_once(run: SearchRequest, compiled: Profile | None = None) -> SearchResult:
    """Price a model, or several, and search.

    Parameters
    ----------
    compiled
        Times that count where no others are measured.
    """
    from parapipe.cost.co_run import co_run_law
    from parapipe.cost.compiled_groups import join_compiled
    from parapipe.cost.operating_points import settings
    from parapipe.search.contract import SplitSources
    from parapipe.search.infeasible import check_energies
    from parapipe.search.stages.finest_cuts import finest_partition

    options, note = run.options, run.note
    target = load_platform_without(run.platform, options.exclude, options.thermal_state)
    measured = profiles_of(run, target, compiled)
    models = models_by_name(run.model, options)
    if models and target.sustained_power_w is not None:
        note("several models are planned without the power budget, which is for one")
        target = target.model_copy(update={"power_budget": None})
    requests = requests_of(models, options, note) if models else None
    read = options.where(lambda option: option.reads_model)
    # weights are hashed once there is a front: they may be many gigabytes
    if requests:
        if co_run_law(target):
            note(
                "patterns of several models are searched as if processors did not slow each other "
                "down; what they take, and whether rates and deadlines are kept, counts that"
            )
        if capturing := [f"'{each.name}'" for each in target.processors if each.captures_graphs]:
            note(
                f"frames of several models come one by one: each operator of {listed(capturing)} "
                "counts its own launch, though graphs can be captured there"
            )
        patterns = loaded_models(requests, options, note)
        graph, options = patterns.graph(), replace(options, draws=0)
    else:
        graph = run.graph or load_graph(run.single, **read, digests=True, weights=False, note=note)
        graph = join_compiled(graph, _fusing(measured, options))
    most = options.dvfs_points if options.dvfs else 1
    price = partial(
        settings, platform=target, most=most, profiles=measured, precision=options.precision,
        pins=options.pins or {}, arrival_s=1 / options.rate_fps if options.rate_fps else 0.0,
    )  # fmt: skip
    priced = price(graph)
    check_energies(priced.combinations[0].costs)
    limited = _with_limits_of(target, options)
    _note_costs(graph, priced.combinations[0], note)
    run = replace(run, options=options)
    if requests:
        result = search_patterns(
            patterns, (graph, priced), price, options, deadline=run.deadline, progress=run.progress
        )
        if result.times > 1:
            graph = patterns.graph(result.times)
            priced = price(graph)
        several = requests.demands, result.reached
        return SearchResult(
            run, target, measured, graph, priced, result.partition, result.exploration, limited,
            several,
        )  # fmt: skip
    parts = finest_partition(graph, [each.costs for each in priced.combinations])

    def split(rules: Sequence[str]) -> OperatorGraph:
        split_graph = load_graph(
            run.single, **read, digests=False, note=lambda _: None, split=rules
        )
        return replace(split_graph, source=replace(graph.source, split=tuple(rules)))

    exploration = _search_one_model(
        graph,
        parts,
        priced,
        limited.of_stated_costs,
        note=note,
        executor=run.executor,
        progress=run.progress,
        sources=SplitSources(target, measured, split),
        deadline=run.deadline,
    )
    return SearchResult(run, target, measured, graph, priced, parts, exploration, limited)


def profiles_of(
    run: SearchRequest, target: Platform, compiled: Profile | None
) -> tuple[Profile, ...] | None:
    """Return the profiles that prices come from, that of compiled times last."""
    from parapipe.cost.profile import chosen_profiles, shipped_profiles

    chosen = chosen_profiles(
        run.options.profiles, beside=run.platform, platform=target.profile_name
    )
    if compiled is None:
        return chosen
    others = shipped_profiles(target.profile_name) if chosen is None else chosen
    return (*(each for each in others if each.path != compiled.path), compiled)


def front_of(result: SearchResult, compilation: CompilationRow | None = None) -> ParetoFront:
    """Return the front of what was found.

    Parameters
    ----------
    compilation
        What was compiled meanwhile.
    """
    # what follows loads packages that are of no use before there is a front
    from parapipe.api.front import Configuration, ParetoFront
    from parapipe.documents.build_front import front_document, networks_behind, setting_of
    from parapipe.documents.drawing import inputs_of, map_command

    run, options, priced, parts = result.run, result.run.options, result.priced, result.parts
    graph = replace(result.graph, source=_with_weight_digests(result.graph.source, run.note))
    exploration, samples, robust = _sample_costs(
        result.exploration, graph, parts, priced, result.limited_options,
        jobs=ALONE if run.executor else options.workers, gone_s=run.deadline.gone_s,
    )  # fmt: skip
    if robust:
        robust.tell(options.scenarios, run.note)
    inputs = inputs_of(run.platform, options)
    beside = not options.profiles and Path(run.platform).is_file()
    if compilation or beside:  # beside a shipped platform they depend on the command's folder
        files = tuple(each.path for each in result.profiles or ())
        inputs = inputs.model_copy(update={"profiles": files})
    named = models_by_name(run.model, options)
    document = front_document(
        graph,
        parts,
        priced,
        exploration,
        options,
        several=result.several,
        command=map_command(named or run.single, run.platform, options),
        inputs=inputs,
        networks=networks_behind(result.profiles, result.target.profile_name),
        drawn=samples,
        robust=robust,
    )
    if compilation:
        document = document.model_copy(update={"compilation": compilation})
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
    return ParetoFront(
        document, configurations, exploration, parts, samples, result.run.options.workers
    )


def _with_limits_of(target: Platform, options: MapOptions) -> MapOptions:
    """Return the options with limits of the platform too; MappingError for names it has not."""
    from parapipe.mappings.memory import MemoryLimit
    from parapipe.mappings.segments import SegmentLimit

    MemoryLimit(options.max_memory_bytes).check(target.memory_system)
    asked = SegmentLimit(options.max_segments)
    asked.check(target.names)
    return replace(options, max_segments=asked.within(target.segment_rules).most)


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
    from parapipe.problems.cache import Cache
    from parapipe.problems.method import Method, stopped_by_clock
    from parapipe.search.configurations_from_costs import explore
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
    if options.deterministic and deadline.short_of_memory:
        note(
            "the search came near the memory that it may take: another run may end elsewhere; "
            "give a greater `memory_limit_bytes`"
        )
    return exploration


def _fusing(
    measured: tuple[Profile, ...] | None, options: MapOptions
) -> tuple[Profile, ...] | None:
    """Return the profiles whose groups are not cut: none where operators are split into parts."""
    return () if options.split == "auto" else measured


def _note_costs(graph: OperatorGraph, at: Setting, note: Note) -> None:
    """Say what costs rest on that is not measured, what is converted, and what nothing runs."""
    from parapipe.cost.pricing import conversions
    from parapipe.profiling.runtimes import runtime_note

    if at.costs.precision == "model":
        for sentence in conversions(graph, at.platform):
            note(sentence)
    if sentence := runtime_note(at.platform.processors):
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
