"""What a mapping run may be told. Each option is said once, here: type, bounds, default, meaning.

Its traits, the metadata of its field, say what it does beside that: where help lists it, beside
which others it has no effect, what it means for several models, what depends on it.

`parapipe map` makes its options from this record, `parapipe.map` takes its fields as keywords, and
front.json and the command in it are written from it; so are sweeps, their digests, and the keys of
the cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, TypedDict, get_type_hints

from parapipe.errors import ArgumentError
from parapipe.files.checked_arguments import (
    Count,
    FromZero,
    NotEmpty,
    Seconds,
    Share,
    Traits,
    check_arguments,
    is_repeatable,
    needs,
    traits,
)
from parapipe.files.progress import worker_count
from parapipe.platform.precision import Precision
from parapipe.platform.thermal_state import State
from parapipe.processes.memory_limit import workers_within
from parapipe.search.idle_options import needs_clock, needs_energy, needs_memory
from parapipe.search.option_types import (
    ByModel,
    Bytes,
    CacheFolder,
    Dims,
    DrawCount,
    FromTwo,
    Granularity,
    Interleaving,
    MapperName,
    MaxMemory,
    MaxSegments,
    Names,
    Objectives,
    Pins,
    Profiles,
    Quantile,
    Rates,
    Rules,
    Searches,
    Shapes,
    ShareToOne,
    Splitting,
    States,
)

DRAWS = 200
SCENARIOS = 8
_common, _model, _search, _limits = (
    partial(traits, section) for section in ("common", "model", "search", "limits")
)
_by_model = partial(_model, several="by model", not_of_sets="it is of several models")
_refused = partial(traits, several="refused")
_RATES = "requests follow each other, as fast as they can; --mix says their steps"
_DEADLINE = "it is of several models; bound the first token with `pick --max-latency`"
_ROBUST = "the search of several shapes is by the stated costs; shapes.json has intervals"
_COMPILER = "it compiles segments of one shape: map a single one, with `--dim`"


def _shape_text(shape: Any) -> str:  # noqa: ANN401 - one of `Shapes`
    from parapipe.graph.user_shapes import shape_text  # loads onnx

    return shape_text(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """What a mapping run may be told.

    Parameters
    ----------
    mapper
        What solves the subgraphs. "MODULE:FUNCTION" names a mapper of your own, whose results are
        not cached.
    granularity
        Map activations with the operator before them (fused), or every operator by itself (onnx).
    precision
        Plan the model as if it were converted to float16 or int8: each processor computes in that
        type or, if it lacks it, in the next wider one that it has; casts are priced. model:
        unchanged. Check the accuracy yourself. Default: what the platform's file says, else model.
    exclude
        Leave a processor of the platform out, by its name, as if there were none.
    pins
        Run an operator on one processor only, or all operators that a shell pattern of names
        matches. Any node that is fused into an operator names it, too. A name goes before a
        pattern.
    split
        auto: also split operators into parts that run on several processors at once, each part in
        proportion to its processor's speed.
    search
        Also run a search that another installed package adds, by its name.
    interleave
        auto: also let operators of several frames take turns on every processor, which gives more
        throughput at more latency. none: stages only.
    time_limit_s
        Time for one subgraph on one set of processors. When it is over, the best schedule found is
        taken and its gap reported.
    budget_s
        Time for the whole command, plans included. Then, as after Ctrl-C, the best front so far is
        taken; a first front is always completed. Default: no limit.
    memory_limit_bytes
        Memory of this machine that the search may take, its other processes included. Near it, the
        best front so far is taken, and the result says so. Default: a quarter of the machine's
        memory, or of what its control group may take.
    objectives
        What the front minimises and maximises.
    max_memory_bytes
        Only configurations that need at most this many bytes at any moment: in all memories
        together, or in memories of the platform by their names.
    max_stages
        Only configurations of at most so many stages; of frames that take turns on processors,
        each frame lag counts as one.
    max_segments
        Only configurations of which no processor has more segments than this, or processors of the
        platform by their names: what an export makes one file of. Limits that the platform states
        hold in any case.
    recompute
        Also compute tensors again instead of keeping them, where the model runs on one processor:
        less memory for more time and energy. Needs `max_memory_bytes`, or memory as an objective.
    resolution
        Leave out a configuration that is in no objective better than another one by more than this
        share, unless it has a name or is on the front of latency and throughput; 0 keeps them all.
    energy_resolution
        With energy as an objective, the mappers auto and fine also use slower schedules that take
        less energy: for every possible configuration, the front has one whose latency, period and
        energy are each at most this share larger. 0 is exact, except for rounding to whole
        microseconds, and slow.
    thermal_state
        cold: at the default clocks. sustained: at those of long runs, within the power that the
        platform may draw for ever. Default: what the platform's file says, else cold.
    dvfs
        Choose operating points, too: the front also varies the processors' frequencies.
    dvfs_points
        With `dvfs`, how many operating points of each processor are considered at most.
    jobs
        Subgraphs solved at the same time; one per core, as memory allows, if not given.
    seed
        Seed of the solvers and of the draws.
    draws
        How often all costs are drawn at random within their doubt, which gives figures their
        intervals; 0: no intervals; at most 100000.
    robust
        Also find the configurations whose figures are best at this quantile of the draws, as in 0.9
        for nine of ten. The search is repeated with drawn costs, and both fronts are listed.
    scenarios
        With `robust`, how many times the search is repeated.
    deterministic
        The same input, seed and time limit give the same bytes, however busy the machine is and
        whatever was solved before: mappers stop by counted work, which takes longer.
    cache
        Folder that keeps solved subgraphs for later runs. True: PARAPIPE_CACHE, or parapipe in
        XDG_CACHE_HOME or ~/.cache. False: none.
    dims
        The values of named dimensions of the model, by name. 0 leaves a tensor empty, such as the
        cache before the first token, where the model allows that.
    shapes
        Full shapes of graph inputs, by name; or of results whose shape the model does not state,
        with a data type if the model states none.
    at_most
        Entries of each result whose length depends on values (NonMaxSuppression, NonZero, ...).
    states
        Inputs that the step before has made, by name, with the outputs that are fed back to them:
        beside those that are recognised by their names, such as `past_key_values.0.key` and
        `present.0.key`. The steps of a sequence then follow each other at the latency of the loop.
        "none" in place of an output: the input is no state.
    sequences
        With states: how many sequences, each with states of its own, take turns. They may fill a
        pipeline in which one alone has to wait for itself.
    profiles
        CSV files of measured times. By default those in profiles/PLATFORM beside the platform's
        file, else the shipped ones.
    rules
        YAML file with the work of operator types that parapipe does not know.
    compiler
        Take the times of NPUs out of what this compiler tells of the model, then of the segments
        of the best plans, and search again until these take what was predicted, at most 3 times.
        The times stay in profiles/PLATFORM/COMPILER.csv beside the platform's file.
    rates
        Frames per second that arrive. Configurations that cannot reach them are left out, and
        energy and power are stated at this rate, not at full throughput. With several models: of
        each, by the models' names.
    deadline_s
        With several models: the greatest latency that a model may have, by name.
    priority
        With several models: weight of a model's latency, by name; 1 if not given.

    Raises
    ------
    ArgumentError
        Options are not what they must be; it names all of them.
    """

    mapper: MapperName = field(default="auto", metadata=_search(several="refused", solves=True))
    granularity: Granularity = field(default="fused", metadata=_model(reads_model=True))
    precision: Precision | None = field(default=None, metadata=_model())
    exclude: Names = field(default=(), metadata=_search(metavar="NAME"))
    pins: Pins | None = field(default=None, metadata=_search())
    split: Splitting = field(default="none", metadata=_search(several="refused"))
    search: Searches = field(default=(), metadata=_search(several="refused"))
    interleave: Interleaving = field(default="auto", metadata=_search(several="refused"))
    time_limit_s: Seconds = field(default=60.0, metadata=_limits(several="refused", solves=True))
    budget_s: Seconds | None = field(default=None, metadata=_common(idle=needs_clock))
    memory_limit_bytes: Bytes | None = field(default=None, metadata=_limits(text="{:.17g}B".format))
    objectives: Objectives = field(default="latency-throughput-energy", metadata=_search())
    max_memory_bytes: MaxMemory | None = field(
        default=None, metadata=_limits(several="refused", text="{:.17g}B".format)
    )
    max_stages: Count | None = field(default=None, metadata=_limits(several="refused"))
    max_segments: MaxSegments | None = field(default=None, metadata=_limits(several="refused"))
    recompute: bool = field(default=False, metadata=_search(several="refused", idle=needs_memory))
    resolution: Share = field(default=0.01, metadata=_limits())
    energy_resolution: ShareToOne = field(default=0.05, metadata=_limits(idle=needs_energy))
    thermal_state: State | None = field(default=None, metadata=_search())
    dvfs: bool = field(default=False, metadata=_search(several="refused"))
    dvfs_points: FromTwo = field(default=3, metadata=_search(idle=needs("dvfs")))
    jobs: Count | None = field(default=None, metadata=_common(changes_results=False))
    seed: FromZero = field(default=0, metadata=_search(solves=True))
    draws: DrawCount = field(default=DRAWS, metadata=_search(several="no effect"))
    robust: Quantile | None = field(default=None, metadata=_refused("search", not_of_sets=_ROBUST))
    scenarios: Count = field(default=SCENARIOS, metadata=_search(idle=needs("robust")))
    deterministic: bool = field(default=False, metadata=_search(solves=True))
    cache: CacheFolder = field(default=True, metadata=_search(changes_results=False))
    dims: Dims | None = field(default=None, metadata=_model(several="prefixed", reads_model=True))
    shapes: Shapes | None = field(
        default=None, metadata=_model(several="prefixed", reads_model=True, text=_shape_text)
    )
    at_most: Count | None = field(
        default=None, metadata=_model(several="refused", reads_model=True)
    )
    states: States | None = field(
        default=None, metadata=_model(several="refused", reads_model=True)
    )
    sequences: Count = field(default=1, metadata=_model(several="refused", reads_model=True))
    profiles: Profiles = field(default=(), metadata=_model())
    rules: Rules | None = field(default=None, metadata=_model(reads_model=True))
    compiler: NotEmpty | None = field(
        default=None, metadata=_refused("model", not_of_sets=_COMPILER)
    )
    rates: Rates | None = field(default=None, metadata=_by_model(not_of_sets=_RATES))
    deadline_s: ByModel | None = field(
        default=None, metadata=_by_model(text="{}s".format, not_of_sets=_DEADLINE)
    )
    priority: ByModel | None = field(default=None, metadata=_by_model())

    def __post_init__(self) -> None:
        check_arguments("MapOptions", option_hints(), self.to_dict())
        if self.robust is not None and not self.draws:
            raise ArgumentError(
                "robust needs draws of the costs: leave out draws 0, or robust", "MapOptions"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return self.where(lambda _option: True)

    def where(self, is_so: Callable[[Traits], bool]) -> dict[str, Any]:
        """Return the options that have a trait, by name."""
        return {name: getattr(self, name) for name in option_names(is_so)}

    def changed(self) -> dict[str, Any]:
        """Return those that results depend on and that are not at their defaults, by name."""
        default, own = MapOptions(), self.where(lambda option: option.changes_results)
        return {
            name: value
            for name, value in own.items()
            if value != (usual := getattr(default, name)) and (value or usual)
        }

    @property
    def of_stated_costs(self) -> MapOptions:
        """Those of the search with the stated costs: the other half of a budget is for draws."""
        if self.robust is None or self.budget_s is None:
            return self
        return replace(self, budget_s=self.budget_s / 2)

    @property
    def energy(self) -> bool:
        """Whether energy is an objective."""
        return "energy" in self.objectives

    @property
    def memory(self) -> bool:
        """Whether peak memory is an objective."""
        return "memory" in self.objectives

    @property
    def rate_fps(self) -> float | None:
        """Frames per second of a single model, if they were given."""
        return None if isinstance(self.rates, Mapping) else self.rates

    @property
    def workers(self) -> int:
        """Subgraphs solved at the same time."""
        if self.jobs is not None:
            return self.jobs
        return min(worker_count(None), workers_within(self.memory_limit_bytes))


class MapKeywords(TypedDict, total=False):
    """The fields of `MapOptions`, for editors and type checkers; a test keeps them equal."""

    mapper: MapperName
    granularity: Granularity
    precision: Precision | None
    exclude: Names
    pins: Pins | None
    split: Splitting
    search: Searches
    interleave: Interleaving
    time_limit_s: Seconds
    budget_s: Seconds | None
    memory_limit_bytes: Bytes | None
    objectives: Objectives
    max_memory_bytes: MaxMemory | None
    max_stages: Count | None
    max_segments: MaxSegments | None
    recompute: bool
    resolution: Share
    energy_resolution: ShareToOne
    thermal_state: State | None
    dvfs: bool
    dvfs_points: FromTwo
    jobs: Count | None
    seed: FromZero
    draws: DrawCount
    robust: Quantile | None
    scenarios: Count
    deterministic: bool
    cache: CacheFolder
    dims: Dims | None
    shapes: Shapes | None
    at_most: Count | None
    states: States | None
    sequences: Count
    profiles: Profiles
    rules: Rules | None
    compiler: NotEmpty | None
    rates: Rates | None
    deadline_s: ByModel | None
    priority: ByModel | None


@cache
def option_hints() -> dict[str, Any]:
    """Return the types of the options, bounds included, by name."""
    return get_type_hints(MapOptions, include_extras=True)


def option_traits() -> dict[str, Traits]:
    """Return the traits of the options by name."""
    return {each.name: each.metadata["traits"] for each in fields(MapOptions)}


def option_names(is_so: Callable[[Traits], bool]) -> list[str]:
    """Return the names of the options that have a trait."""
    return [name for name, option in option_traits().items() if is_so(option)]


def flag(name: str) -> str:
    """Return the option of the command line that an argument is: it stands for one of several."""
    single = re.sub("_([sjw]|bytes)$", "", name)
    repeats = is_repeatable(option_hints().get(name)) and not name.startswith("max_")
    if repeats or name in ("operators", "shape_sets"):
        single = single.removesuffix("s")
    return f"--{single.replace('_', '-')}"


def idle_options(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return which of all options say nothing beside the others, and with what they contradict."""
    reasons = {name: option.idle(arguments) for name, option in option_traits().items()}
    return {name: why for name, why in reasons.items() if why}
