"""A profile's rows out of a run: what each segment took, shared out over its operators.

A segment is what a session runs at one go, so only the time of all its operators together is known.
Each gets the share that it has in the prediction of the plan that ran; one that is by itself gets
all. Rows that are made so say `run` in the column `method`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from parapipe.cost.profile import RUN, Measurement
from parapipe.cost.signature import Signature
from parapipe.errors import ProfilingError
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.platform.divided import named_processors
from parapipe.platform.platform import Platform
from parapipe.profiling.single_models import Unit, UnitKey, distinct_units, unit_key
from parapipe.profiling.tasks import hardware_groups


@dataclass(frozen=True, slots=True)
class SegmentTime:
    """What a segment took in a run.

    Parameters
    ----------
    processor, cores
        Where it ran; the cores are those of the run.
    operators
        Ids of its operators.
    predicted_s
        Seconds of each of these, as predicted.
    time_s, spread, noisy
        Of the segment by itself, as in `Measurement`.
    """

    processor: str
    cores: tuple[int, ...]
    operators: tuple[str, ...]
    predicted_s: tuple[float, ...]
    time_s: float
    spread: float
    noisy: bool


@dataclass(frozen=True, slots=True)
class _Share:
    segment: tuple[str, ...]
    time_s: float
    spread: float
    noisy: bool


def measurements_of(
    segments: Iterable[SegmentTime], graph: OperatorGraph, platform: Platform
) -> Iterator[Measurement]:
    """Yield a measurement for each distinct operator that ran, on each processor where it did.

    Processors that the platform describes in the same way share what they took, as in `measure`.
    Of several runs of an operator the median counts, and of several operators with one signature
    the mean, so that they add up to what the segments took. Rows are the different segments that an
    operator ran in, and the spread is how far their medians lie apart; of one segment, how far
    frames do. What was noisy more often than not is noisy.

    Raises
    ------
    ProfilingError
        If the run was not of this graph, or not on the platform's own cores; all is told.
    """
    segments = tuple(segments)
    operators = {operator.id: operator for operator in graph.operators}
    _check_origin(segments, operators, platform)
    units = {unit.key: unit for unit in distinct_units(graph)}
    processors = named_processors(platform)
    groups = hardware_groups([*processors.values()])
    shares: dict[tuple[str, UnitKey], dict[str, list[_Share]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for segment in segments:
        for operator, share in _operator_shares(segment):
            key = unit_key(operators[operator], graph)
            if key in units:  # views are in none
                shares[groups[segment.processor], key][operator].append(share)
    for (group, key), of_operators in shares.items():
        for p in processors.values():
            if groups[p.name] == group:
                clock_hz = p.point.frequency_hz
                yield _measurement_of(units[key], p.name, clock_hz, of_operators.values())


def with_range_among(
    counted: Iterable[Measurement], others: Iterable[Iterable[Measurement]]
) -> Iterator[Measurement]:
    """Yield measurements of runs with the range of those of the same operators in other runs.

    Rows are the kinds of runs, and the spread is how far their times lie apart.
    """
    times_of = [{_row_key(m): m.time_s for m in each} for each in others]
    for m in counted:
        times_s = [m.time_s, *(each[_row_key(m)] for each in times_of)]
        yield replace(m, rows=len(times_s), spread=max(times_s) / min(times_s) - 1)


def _row_key(m: Measurement) -> tuple[Signature, str, str]:
    return m.signature, m.then, m.processor


def _operator_shares(segment: SegmentTime) -> Iterator[tuple[str, _Share]]:
    total_s = sum(segment.predicted_s)
    for operator, predicted_s in zip(segment.operators, segment.predicted_s, strict=True):
        part = predicted_s / total_s if total_s else 0.0
        if part > 0:
            time_s = part * segment.time_s
            yield operator, _Share(segment.operators, time_s, segment.spread, segment.noisy)


def _measurement_of(
    unit: Unit, processor: str, clock_hz: float, shares_of: Collection[Sequence[_Share]]
) -> Measurement:
    time_s = fmean(median(share.time_s for share in of_one) for of_one in shares_of)
    shares = [share for of_one in shares_of for share in of_one]
    ratios = [_segment_ratios(of_one) for of_one in shares_of]
    distance = max(max(each) for each in ratios) - min(min(each) for each in ratios)
    segments = max(map(len, ratios))
    return Measurement(
        signature=unit.signature,
        operator_class=unit.operator_class,
        macs=unit.macs,
        size_bytes=unit.size_bytes,
        processor=processor,
        frequency_hz=clock_hz,
        time_s=time_s,
        rows=segments,
        spread=distance if segments > 1 else max(share.spread for share in shares),
        method=RUN,
        then=unit.then,
        noisy=2 * sum(share.noisy for share in shares) > len(shares),
        weights="own",
    )


def _segment_ratios(shares: Sequence[_Share]) -> list[float]:
    """Return an operator's median time in each segment that it ran in, by that of all."""
    times_s: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for share in shares:
        times_s[share.segment].append(share.time_s)
    middle_s = median(share.time_s for share in shares)
    return [median(each) / middle_s for each in times_s.values()]


def _check_origin(
    segments: Sequence[SegmentTime], operators: Mapping[str, Operator], platform: Platform
) -> None:
    cores = {name: p.cores for name, p in named_processors(platform).items()}
    strange = [name for each in segments for name in each.operators if name not in operators]
    mistakes = [f"it ran operators that the model has not ({listed(strange)})"] if strange else []
    for name, used in dict.fromkeys((segment.processor, segment.cores) for segment in segments):
        if name not in cores:
            mistakes.append(f"platform '{platform.name}' has no processor '{name}'")
        elif used != cores[name]:
            mistakes.append(
                f"'{name}' ran on cores {list(used)}, and has {list(cores[name])} in platform "
                f"'{platform.name}'"
            )
    if mistakes:
        raise ProfilingError(
            f"nothing is learned from this run: {'; '.join(mistakes)}; run a plan of this model "
            "and platform on its own cores"
        )
