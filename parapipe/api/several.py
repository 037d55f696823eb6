"""Several models for one board: their names, what is asked for each, and their graph."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from parapipe.api.checked import Model, Note
from parapipe.api.load import load_graph
from parapipe.digits import plain
from parapipe.errors import ArgumentError, ParapipeError
from parapipe.files.checked_arguments import Must, Traits
from parapipe.files.mistakes import listed
from parapipe.files.shipped import path_exists
from parapipe.search.options import MapOptions, option_traits
from parapipe.strategies.registry import PLAN

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.operating_points import Settings
    from parapipe.files.progress import Tell
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.plan.schema import Plan
    from parapipe.processes.deadline import Deadline
    from parapipe.several_models.front import SeveralModelsFront
    from parapipe.several_models.patterns import Demand

Models = (
    Model
    | Annotated[Sequence[Model], Must("a list of them")]
    | Annotated[Mapping[str, Model], Must("a table of them by name")]
)
Value = TypeVar("Value")
_NAMED = re.compile(r"([A-Za-z0-9_-]+)=(.+)", re.S)
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
MOST_OPERATORS = 6000  # in a pattern


@dataclass(frozen=True, slots=True)
class Requests:
    """What is asked for several models, most urgent first.

    Parameters
    ----------
    models
        File or name of each.
    frames, period_s
        Of a pattern.
    """

    demands: tuple[Demand, ...]
    models: tuple[str, ...]
    frames: tuple[int, ...]
    period_s: float


def models_by_name(models: Models, options: MapOptions) -> dict[str, str] | None:
    """Return models by name; None if there is a single one, of which no rate is asked."""
    by_model = options.where(lambda option: option.several == "by model")
    named = any(isinstance(each, Mapping) and each for each in by_model.values())
    if isinstance(models, str | os.PathLike):
        if not named:
            return None
        models = [models]
    elif not models:
        raise ArgumentError("map: give at least one model")
    elif len(models) == 1 and not named and not isinstance(models, Mapping):
        return None
    if isinstance(models, Mapping):
        odd = [f"'{name}'" for name in models if not name or _ODD.search(name)]
        if odd:
            raise ArgumentError(
                f"map: names of models have letters, digits, '-' and '_' only, and not as "
                f"{listed(odd)}"
            )
        return {name: os.fspath(each) for name, each in models.items()}
    by_name: dict[str, str] = {}
    for each in (os.fspath(model) for model in models):
        match = None if path_exists(Path(each)) else _NAMED.fullmatch(each)
        stem = Path(each.removeprefix("zoo:")).name.removesuffix(".onnx")
        name, path = (match[1], match[2]) if match else (_ODD.sub("-", stem), each)
        if name in by_name:
            raise ArgumentError(
                f"map: two models are called '{name}': give one another name, as in {name}-2={path}"
            )
        by_name[name] = path
    return by_name


def requests_of(models: Mapping[str, str], options: MapOptions, note: Note) -> Requests:
    """Return what is asked for several models.

    Raises
    ------
    ArgumentError
        A rate is missing, a name is none of theirs, or an option has no meaning with several.
    """
    from parapipe.several_models.patterns import Demand
    from parapipe.several_models.search import shortest_pattern

    _check_requests(models, options)
    rates = options.rates if isinstance(options.rates, Mapping) else {}
    demands = [
        Demand(
            name,
            rates[name],
            (options.deadline_s or {}).get(name, inf),
            (options.priority or {}).get(name, 1.0),
        )
        for name in models
    ]
    demands.sort(key=lambda each: (-each.priority, each.deadline_s))
    shortest = shortest_pattern([each.rate_fps for each in demands])
    if shortest.excess > 1e-9:
        rates_text = listed(
            [
                f"{plain(count / shortest.period_s)} of '{each.name}' for {plain(each.rate_fps)}"
                for each, count in zip(demands, shortest.frames, strict=True)
            ]
        )
        note(f"frames come in a pattern that repeats; per second, that gives {rates_text}")
    files = tuple(models[each.name] for each in demands)
    return Requests(tuple(demands), files, shortest.frames, shortest.period_s)


def _check_requests(models: Mapping[str, str], options: MapOptions) -> None:
    wrong = []
    if options.rate_fps is not None:
        wrong.append("a rate without a name is of a single model")
        options = replace(options, rates=None)
    for what, by_model in options.where(lambda option: option.several == "by model").items():
        unknown = [f"'{name}'" for name in by_model or () if name not in models]
        if unknown:
            wrong.append(f"{what} names {listed(unknown)}, and the models are {listed([*models])}")
    rates = options.rates if isinstance(options.rates, Mapping) else {}
    without = [f"'{name}'" for name in models if name not in rates]
    if without:
        wrong.append(f"give a rate for {listed(without)}, as in {without[0][1:-1]}=30")
    traits = option_traits()
    odd = [f"`{name}`" for name in options.changed() if traits[name].several == "refused"]
    if options.memory:
        odd.append("memory as an objective")
    if odd:
        wrong.append(f"{listed(odd)} cannot be asked for several models")
    for what, prefixed in options.where(_is_prefixed).items():
        wanted = tuple(f"{name}/" for name in models)
        odd = [f"'{key}'" for key in prefixed or () if not key.startswith(wanted)]
        if odd:
            wrong.append(
                f"{what} of several models begin with the model's name, as in "
                f"{next(iter(models))}/batch, and not as {listed(odd)}"
            )
    if wrong:
        raise ArgumentError(f"map: {'; '.join(wrong)}")


def _is_prefixed(option: Traits) -> bool:
    """Tell whether an option's keys begin with the names of models."""
    return option.several == "prefixed"


@dataclass(frozen=True, slots=True)
class PatternGraphs:
    """What is asked for several models, and the graph of each."""

    requests: Requests
    graphs: tuple[OperatorGraph, ...]

    def graph(self, times: int = 1) -> OperatorGraph:
        """Return the graph of all frames of a pattern that is so many times as long.

        Raises
        ------
        ArgumentError
            It has too many operators.
        """
        from parapipe.graph.operator_graph import Member
        from parapipe.graph.several import union

        each_model = zip(self.requests.demands, self.graphs, self.requests.frames, strict=True)
        members = [
            Member(demand.name, graph.source, frames * times)
            for demand, graph, frames in each_model
        ]
        total = sum(
            len(graph.operators) * each.frames
            for graph, each in zip(self.graphs, members, strict=True)
        )
        if total > MOST_OPERATORS:
            shown = listed([f"{each.frames} of '{each.name}'" for each in members])
            raise ArgumentError(
                f"map: a pattern of {shown} has {total} operators, more than {MOST_OPERATORS}: ask "
                "for rates with a shorter common period"
            )
        return union(self.graphs, members)


def loaded_models(requests: Requests, options: MapOptions, note: Note) -> PatternGraphs:
    """Read the models."""
    graphs, read = [], options.where(lambda option: option.reads_model)
    for demand, model in zip(requests.demands, requests.models, strict=True):

        def note_for(sentence: str, name: str = demand.name) -> None:
            note(f"{name}: {sentence}")

        prefixed = options.where(_is_prefixed)
        own = {name: _of_model(each, demand.name) for name, each in prefixed.items()}
        read |= own
        graph = load_graph(model, **read, digests=True, weights=False, note=note_for)
        if graph.states:
            note_for(
                f"its {len(graph.states)} states are taken as any other inputs: beside other "
                "models, frames do not wait for the step before"
            )
        graphs.append(graph)
    return PatternGraphs(requests, tuple(graphs))


def search_patterns(
    patterns: PatternGraphs,
    shortest: tuple[OperatorGraph, Settings],
    price: Callable[[OperatorGraph], Settings],
    options: MapOptions,
    *,
    deadline: Deadline,
    progress: Tell | None,
) -> SeveralModelsFront:
    """Search for patterns of several models.

    Parameters
    ----------
    shortest
        Graph and costs of the shortest pattern.
    price
        Returns the costs of the graph of a longer one.
    """
    from parapipe.search.registry import requested_searches
    from parapipe.several_models.front import explore_several

    def longer(times: int) -> tuple[OperatorGraph, CostTable]:
        graph = patterns.graph(times)
        return graph, price(graph).combinations[0].costs

    (graph, priced), requests = shortest, patterns.requests
    at = priced.combinations[0]
    return explore_several(
        graph,
        at.costs,
        requests.demands,
        options,
        period_s=requests.period_s,
        deadline=deadline,
        longer=longer,
        searches=requested_searches(options),
        progress=progress,
    )


def random_pace_s(plan: Plan, strategy: str, error: type[ParapipeError]) -> float:
    """Return how often a pattern repeats whose frames come at random times: as it can sustain.

    Raises
    ------
    ParapipeError
        The error given, if they cannot: the plan is of one model, or a strategy decides.
    """
    if not plan.models:
        raise error(
            "random arrivals are for plans of several models, each with a rate, and this plan is "
            "of one: map the models together with a rate for each, or leave random arrivals out"
        )
    if strategy != PLAN:
        raise error(
            "random arrivals take the turns that the plan has, and are for the strategy 'plan' "
            f"only, not for '{strategy}'"
        )
    return plan.predicted.sustained_period_s


def _of_model(by_key: Mapping[str, Value] | None, name: str) -> dict[str, Value]:
    """Return what is said of one model's dimensions or shapes."""
    begin = f"{name}/"
    return {
        key.removeprefix(begin): value
        for key, value in (by_key or {}).items()
        if key.startswith(begin)
    }
