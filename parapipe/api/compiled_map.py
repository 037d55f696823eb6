"""`map --compiler`: searches whose best plans are compiled, until these take what was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from parapipe.api.compiled import (
    COMPILE_TIME_S,
    compiled_measurements,
    compiled_profile_path,
    model_parts,
)
from parapipe.api.load import load_model, load_platform_without
from parapipe.api.search_run import SearchRequest, SearchResult, front_of, search_once
from parapipe.api.several import models_by_name
from parapipe.errors import ArgumentError

if TYPE_CHECKING:
    from parapipe.api.checked import Note
    from parapipe.api.front import ParetoFront
    from parapipe.cost.profile import Measurement
    from parapipe.mappings.configuration import Configuration
    from parapipe.profiling.compiled_segments import CompilerChoice, ModelParts
    from parapipe.profiling.operator_times import OperatorTime

ROUNDS = 3
"""Searches at most; each may take as much of a budget as those behind it, compiling not counted."""
TOLERANCE = 0.02
"""Share of the predicted time by which compiled segments may differ from it, all together."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Segments of the best plans, compiled.

    Parameters
    ----------
    times
        By processor's name: what operators take in each segment there.
    plans, segments
        How many there are.
    largest
        Largest |compiled − predicted| / predicted of a segment's time.
    total
        Sum of |compiled − predicted| over all segments, / sum of predicted.
    version
        Of the compiler; empty if nothing was compiled.
    refused
        Why segments did not compile.
    on_cpu
        Nodes that the compiler leaves to the CPU.
    """

    times: Mapping[str, Sequence[Mapping[int, OperatorTime]]]
    plans: int
    segments: int
    largest: float
    total: float
    version: str
    refused: tuple[str, ...]
    on_cpu: tuple[str, ...]


def map_compiled(run: SearchRequest, name: str) -> ParetoFront:
    """Return a front whose best plans have been compiled by the compiler of a name.

    Raises
    ------
    ArgumentError, CompileError, PlatformError
        As for `compile_profile`; or if operators are to be split, or mapped one by one.
    """
    from parapipe.cost.profile import Profile
    from parapipe.documents.front_records import CompilationRow
    from parapipe.graph.user_shapes import SizeKeywords
    from parapipe.profiling.compiled_segments import CompilerChoice
    from parapipe.profiling.profile_rows import key_of
    from parapipe.profiling.profiling_run import take_in

    options = run.options
    if options.split != "none" or options.granularity != "fused":
        raise ArgumentError(
            "map: a compiler fuses operators, so that they are neither split nor mapped one by "
            "one; leave out `compiler`, or `split` and `granularity`"
        )
    models_by_name(run.model, options)  # refuses several
    target = load_platform_without(run.platform, options.exclude, options.thermal_state)
    path = compiled_profile_path(None, run.platform, target, name)
    choice = CompilerChoice(name, options.precision, COMPILE_TIME_S)
    sizes = SizeKeywords(dims=options.dims, shapes=options.shapes, at_most=options.at_most)
    graph = load_model(run.single, rules=options.rules, note=lambda _: None, **sizes)
    run = replace(run, note=_once(run.note))  # each search says what it rests on
    notes: list[str] = []
    with model_parts(run.single, graph, **sizes) as parts:
        with run.deadline.paused():
            rows = {key_of(m): m for m in compiled_measurements(parts, target, choice, notes)}
        for sentence in notes:
            run.note(sentence)
        number, left = 0, ROUNDS
        while left:
            profile = Profile(f"{target.profile_name}/{name}", tuple(rows.values()), str(path))
            with run.deadline.shared(1 / left):
                result = search_once(run, profile)
            with run.deadline.paused():
                comparison = compare_segments(result, parts.of(result.graph), choice)
            number, left = number + 1, left - 1
            if comparison.total > TOLERANCE:
                rows |= {key_of(m): m for m in corrected(result, comparison)} if left else {}
            else:  # what is left of a budget is for one that goes on
                left = min(left, int(_may_go_on(result)))
    take_in(rows.values(), target, path)
    for sentence in comparison.refused:
        run.note(sentence)
    record = CompilationRow(
        compiler=name,
        version=comparison.version,
        rounds=number,
        plans=comparison.plans,
        segments=comparison.segments,
        total_difference=comparison.total,
        largest_difference=comparison.largest,
        refused=comparison.refused,
        on_cpu=comparison.on_cpu,
    )
    return front_of(result, record)


def _may_go_on(result: SearchResult) -> bool:
    """Tell whether a search ended early, and there is time left of the budget."""
    deadline = result.run.deadline
    return result.exploration.unfinished is not None and 0 < deadline.left_s < inf


def _once(note: Note) -> Note:
    """Return what takes sentences, and passes each on once."""
    seen: set[str] = set()

    def take(sentence: str) -> None:
        if sentence not in seen:
            seen.add(sentence)
            note(sentence)

    return take


def best_of(result: SearchResult) -> list[Configuration]:
    """Return the configurations of least latency, periods and energy, each once; none is split."""
    whole = [each for each in result.exploration.found if each.split is None]
    figures = [
        (at.latency_s, at.period_s, at.sustained_period_s, at.energy_j)
        for at in (each.evaluated for each in whole)
    ]
    best = [column.index(min(column)) for column in zip(*figures, strict=True)]
    return [whole[i] for i in dict.fromkeys(best)]


def compare_segments(result: SearchResult, parts: ModelParts, choice: CompilerChoice) -> Comparison:
    """Compile the segments of the best plans, and compare their times with those predicted.

    Times are those at the default operating points.
    """
    from parapipe.compilers.contract import CompileError
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.profiling.compiled_rows import RowTimes, operator_times
    from parapipe.profiling.compiled_segments import compiler_for

    graph, platform = result.graph, result.target
    own, predicted = (
        build_cost_table(graph, on, profiles=profiles, precision=choice.precision)
        for on, profiles in ((platform.with_controllers, ()), (platform, result.profiles))
    )
    configurations = best_of(result)
    times: dict[str, list[Mapping[int, OperatorTime]]] = {}
    refused: list[str] = []
    pairs: list[tuple[float, float]] = []
    on_cpu: dict[str, None] = {}
    version, count = "", 0
    for name, segments in _segments(result, configurations, choice.name).items():
        place = platform.names.index(name)
        processor = platform.processors[place]
        of_rows = RowTimes.of(own, platform.with_controllers, processor)
        for operators in segments:
            count += 1
            try:
                segment = compiler_for(processor, choice, own, operators).compile(parts, operators)
            except CompileError as error:
                if error.cause == "missing":
                    raise
                refused.append(f"a segment of {name} is not compiled: {error.message}")
                continue
            version = segment.version
            on_cpu.update((each.node, None) for each in segment.on_cpu)
            expected_s = sum(predicted.time_s(v, place) for v in operators)
            pairs.append((of_rows.segment_s(segment), expected_s))
            of_segment = operator_times(graph, segment, of_rows)
            times.setdefault(name, []).append(of_segment)
    largest, total = differences(pairs)
    return Comparison(
        times, len(configurations), count, largest, total, version, tuple(refused), tuple(on_cpu)
    )


def differences(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return how far compiled times differ from predicted ones: at most, and all together.

    Parameters
    ----------
    pairs
        Compiled and predicted seconds of each segment.
    """
    largest = max((abs(one / other - 1) for one, other in pairs if other), default=0.0)
    expected_s = sum(other for _, other in pairs)
    total_s = sum(abs(one - other) for one, other in pairs)
    return largest, total_s / expected_s if expected_s else 0.0


def corrected(result: SearchResult, comparison: Comparison) -> Iterator[Measurement]:
    """Yield rows of a profile out of compiled segments: the mean of each distinct operator."""
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.profiling.operator_times import measurements_of
    from parapipe.profiling.tasks import hardware_groups

    platform = result.target
    own = build_cost_table(
        result.graph, platform, profiles=(), precision=result.run.options.precision
    )
    groups = hardware_groups(platform.processors)
    for name, times in comparison.times.items():
        equal = [p for p in platform.processors if groups[p.name] == groups[name]]
        yield from measurements_of(result.graph, times, own, equal, weights="own")


def _segments(
    result: SearchResult, configurations: Sequence[Configuration], compiler: str
) -> dict[str, list[tuple[int, ...]]]:
    """Return the different segments on processors of a compiler, of equal ones once."""
    from parapipe.documents.build_front import setting_of
    from parapipe.plan.build import build_plan
    from parapipe.plan.segments import segments
    from parapipe.profiling.tasks import hardware_groups

    by_name = {p.name: p for p in result.target.processors}
    groups = hardware_groups(result.target.processors)
    number = {operator.id: v for v, operator in enumerate(result.graph.operators)}
    different: dict[str, dict[tuple[int, ...], None]] = {}
    for each in configurations:
        at = setting_of(each, result.priced)
        plan = build_plan(result.graph, at.platform, at.costs, each.mapping, found=each.evaluated)
        for name, runs in segments(plan).items():
            processor = by_name.get(name)
            if processor and processor.compiler and processor.compiler.name == compiler:
                operators = (tuple(number[v] for v in run.operators) for run in runs)
                different.setdefault(groups[name], {}).update(dict.fromkeys(operators))
    return {name: [*runs] for name, runs in different.items()}
