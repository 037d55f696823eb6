"""What a profile measures: the operators of a model, and parts of them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from parapipe.api.load import load_model, model_file, source_nodes, split_file
from parapipe.api.models import has_external_weights
from parapipe.errors import SplitError
from parapipe.files.progress import ALONE
from parapipe.search.option_types import Rules

if TYPE_CHECKING:
    from parapipe.api.checked import Model
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.profile import Profile
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.graph.user_shapes import SizeKeywords
    from parapipe.platform.platform import Platform
    from parapipe.profiling.single_models import UnitKey
    from parapipe.profiling.tasks import Tasks


@contextmanager
def tasks_in(
    model: Model, graph: OperatorGraph, platform: Platform, **sizes: Unpack[SizeKeywords]
) -> Iterator[Tasks]:
    """Yield what there is to measure of a model, which `graph` was read from."""
    from parapipe.profiling.tasks import tasks_of

    with source_nodes(model, graph, **sizes) as (proto, resolved, read):
        yield tasks_of(graph, proto, resolved, platform, read)


@contextmanager
def tasks_here(
    model: Model, platform: Platform, rules: Rules | None, **sizes: Unpack[SizeKeywords]
) -> Iterator[Tasks]:
    """Yield what there is to measure of a model on this machine, whose processors are looked at."""
    from parapipe.profiling.profiling_run import check_cores
    from parapipe.runtime.machine import denormals_to_zero

    graph = load_model(model, rules=rules, **sizes)
    with tasks_in(model, graph, platform, **sizes) as tasks, denormals_to_zero():
        check_cores(platform, tasks)
        yield tasks


SEARCH_S = 10.0  # for one subgraph on one set of processors
SEARCHES = 3
"""Searches for parts, each with the times of what those before have asked for."""


def part_rule_lists(
    graph: OperatorGraph, platform: Platform, path: Path, *, searches: int = SEARCHES
) -> Iterator[Sequence[Sequence[str]]]:
    """Yield lists of split rules; measure their parts before asking for the next lists.

    First each operator by itself in parts that suit the processors' speeds, then what searches take
    that know these times.

    Parameters
    ----------
    path
        The profile, read anew for each search; those of the platform if it is not there.
    searches
        At most so many; more than one helps only if parts are measured in between.

    Raises
    ------
    CostError
        If an operator has no price on a processor that runs it.
    """
    from parapipe.split_search.search import balanced_rules, searched_rules

    for rules_of in (balanced_rules, *(searched_rules,) * searches):
        costs, profiles = _costs_by_profile(graph, platform, path)
        yield rules_of(graph, platform, costs, profiles)


def _costs_by_profile(
    graph: OperatorGraph, platform: Platform, path: Path
) -> tuple[CostTable, Sequence[Profile]]:
    """Return costs by a profile, read anew; by those of the platform if it is not there."""
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.cost.profile import read_profile, shipped_profiles

    profiles = (read_profile(path),) if path.exists() else shipped_profiles(platform.profile_name)
    return build_cost_table(graph, platform, profiles=profiles, precision="model"), profiles


def most_useful(
    graph: OperatorGraph, platform: Platform, path: Path, count: int
) -> set[tuple[UnitKey, str]]:
    """Return the operators, by key and processor, whose measurement lowers the doubt most.

    That is the sum of what it takes away of the variances of latency and period, over the
    configurations with a name that a search finds with the times so far.

    Parameters
    ----------
    path
        The profile; the times of the platform if it is not there.
    count
        At most so many.

    Raises
    ------
    CostError
        If an operator has no price on a processor that runs it.
    """
    from parapipe.profiling.single_models import unit_key
    from parapipe.search.configurations_from_costs import explore
    from parapipe.search.options import MapOptions
    from parapipe.search.stages.finest_cuts import finest_partition
    from parapipe.uncertainty.contributions import gains

    costs, _ = _costs_by_profile(graph, platform, path)
    options = MapOptions(objectives="latency-throughput", time_limit_s=SEARCH_S, jobs=ALONE)
    parts = finest_partition(graph, [costs])
    configurations = explore(graph, parts, costs, options).found
    named = [each for each in configurations if each.names]
    total: dict[tuple[UnitKey, str], float] = defaultdict(float)
    for (v, p), gain in gains(named, graph, costs).items():
        total[unit_key(graph.operators[v], graph), costs.processors[p]] += gain
    useful = [each for each in total if total[each] > 0]
    return set(sorted(useful, key=lambda each: -total[each])[:count])


def part_tasks(
    model: Model,
    platform: Platform,
    lists: Sequence[Sequence[str]],
    *,
    rules: Rules | None,
    note: Callable[[str], None],
    **sizes: Unpack[SizeKeywords],
) -> Iterator[Tasks]:
    """Yield what there is to measure of a model that is split by each of some lists of rules.

    Parameters
    ----------
    note
        Takes a sentence for each list by which the model cannot be split.
    """
    from parapipe.graph.skim import skim

    with model_file(os.fspath(model)) as path:
        external = has_external_weights(skim(path))
        for split in lists:
            name = os.fspath(model)
            try:
                with split_file(path, name, split, "fused", external=external, **sizes) as file:
                    graph = load_model(file, rules=rules, note=lambda _: None)
                    with tasks_in(str(file), graph, platform) as tasks:
                        yield tasks
            except SplitError as error:
                note(f"some parts are not measured: {error}")
