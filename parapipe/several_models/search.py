"""The pattern of several models, its length, and the search for mappings of it.

A pattern says how many frames of each model come, in how long. In the shortest one, a model of one
frame has one assignment for all its frames. In one that is k times as long it has k: two frames of
one operator take turns on two processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

from parapipe.errors import ArgumentError
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.mapping import Mapping
from parapipe.mappings.service import service_of, with_all_loaded
from parapipe.modulo.baselines import join_problems
from parapipe.modulo.least_period import LeastPeriod, bound_s
from parapipe.processes.deadline import Deadline
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.stages.candidates import Candidate
from parapipe.several_models.patterns import LeastPeriods, Patterns

MOST_FRAMES = 24  # in a pattern
RESOLUTION = 0.05  # share by which a pattern may give more frames than are asked


@dataclass(frozen=True, slots=True)
class Pattern:
    """Frames of each model in one repeating pattern.

    Parameters
    ----------
    frames
        Of each model.
    period_s
        Seconds in which they come: the common period of the rates.
    excess
        Share by which a model gets more frames than are asked, at most.
    """

    frames: tuple[int, ...]
    period_s: float
    excess: float


def shortest_pattern(rates_fps: Sequence[float]) -> Pattern:
    """Return the shortest pattern that gives each model its rate, or at most 5 % more.

    The candidates are all patterns of at most `MOST_FRAMES` frames in which the rate of some model
    is met exactly; if none is within `RESOLUTION`, the one that gives least too much.

    Raises
    ------
    ArgumentError
        If one rate is so much greater than another that no pattern is short enough.
    """
    exact = [Fraction(rate).limit_denominator(10**9) for rate in rates_fps]
    candidates: list[tuple[bool, Fraction, int, tuple[int, ...], Fraction]] = []
    for rate in exact:
        for count in range(1, MOST_FRAMES + 1):
            period = count / rate
            frames = tuple(ceil(each * period) for each in exact)
            if sum(frames) > MOST_FRAMES:
                break
            excess = max(n / (each * period) for n, each in zip(frames, exact, strict=True)) - 1
            near = excess <= RESOLUTION
            candidates.append(
                (not near, Fraction(0) if near else excess, sum(frames), frames, period)
            )
    if not candidates:
        raise ArgumentError(
            f"rates of {', '.join(f'{rate:g}' for rate in rates_fps)} frames/s need more than "
            f"{MOST_FRAMES} frames in a pattern: ask for rates that are nearer to each other"
        )
    *_, frames, period = min(candidates)
    excess = max(n / (each * period) for n, each in zip(frames, exact, strict=True)) - 1
    return Pattern(frames, float(period), float(excess))


WORTH = 0.05  # share by which rates must be able to grow more for a pattern to be longer
MOST_TIMES = 4  # as long as the shortest, or as many times as there are processors
MOST_OPERATORS = 1500  # of a pattern that is longer than the shortest


@dataclass(frozen=True, slots=True)
class Length:
    """How long a pattern is, and what it takes at least.

    Parameters
    ----------
    times
        As long as the shortest.
    least
        Of all its frames.
    """

    times: int
    least: LeastPeriod

    @property
    def each_s(self) -> float:
        """Least seconds for the frames of the shortest pattern."""
        return self.least.period_s / self.times


def best_length(patterns: Patterns, reached: LeastPeriods) -> Length:
    """Return the shortest pattern that keeps the rates and is close to what any can reach.

    That is to within `WORTH` of the bound for patterns of any length, or, if none is that close, of
    the best one that may be tried. If none keeps the rates, it is the one that is nearest to that.

    Parameters
    ----------
    patterns
        The shortest.
    reached
        What it takes at least.
    """
    lengths = [Length(1, reached.shared)]
    close_s = bound_s(patterns.problem) * (1 + WORTH)
    enough_s = patterns.period_s if reached.bound_s <= patterns.period_s else inf
    frames, operators = len(patterns.frames.model), patterns.problem.operators
    most = min(
        max(MOST_TIMES, patterns.problem.processors),
        MOST_FRAMES // frames,
        MOST_OPERATORS // operators,
    )
    for times in range(2, most + 1):
        if min(each.each_s for each in lengths) <= min(close_s, enough_s) or patterns.over():
            break
        lengths.append(Length(times, _least_of_longer(patterns, lengths, times)))
    best_s = min(each.each_s for each in lengths)
    if best_s > close_s:
        close_s = best_s * (1 + WORTH)
    longest_s = max(best_s, min(close_s, enough_s))
    return next(each for each in lengths if each.each_s <= longest_s)


def _least_of_longer(patterns: Patterns, lengths: Sequence[Length], times: int) -> LeastPeriod:
    """Return the least period of a longer pattern, never above shorter ones in a row."""
    baselines, counts = patterns.baselines, patterns.frames.counts
    problem = join_problems(baselines.problems, [count * times for count in counts])
    assignments = [
        _joined_assignment(patterns, [one.least.processor, other.least.processor])
        for one in lengths
        for other in lengths
        if one.times <= other.times and one.times + other.times == times
    ]
    return patterns.least(problem, assignments)


def _joined_assignment(patterns: Patterns, places: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return assignments of patterns as that of one with all their frames."""
    assignment: list[int] = []
    begins = [0] * len(places)
    shortest = patterns.problem.operators
    for size, count in zip(patterns.frames.operators, patterns.frames.counts, strict=True):
        for number, place in enumerate(places):
            end = begins[number] + size * count * (len(place) // shortest)
            assignment += place[begins[number] : end]
            begins[number] = end
    return tuple(assignment)


@dataclass(frozen=True, slots=True)
class PatternSources:
    """What it takes to find patterns of several models.

    Parameters
    ----------
    patterns
        Of the length that is searched.
    reached
        How long such a pattern takes at least.
    times
        As long as the shortest pattern is each one.
    shortest
        The shortest patterns and how long they take at least, if the search is in longer ones;
        else None.
    """

    patterns: Patterns
    reached: LeastPeriods
    times: int = 1
    shortest: tuple[Patterns, LeastPeriods] | None = None


class SeveralSearch:
    """The search for patterns of several models on shared processors, or each on its own."""

    name = "several"
    moment = Moment.PATTERNS

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield patterns, with what each model gets; some may keep no deadline.

        There are no incumbents, and the patterns know the deadline.
        """
        del incumbents, deadline
        sources = problem.patterns
        assert isinstance(sources, PatternSources), "it is for several models"
        graph, costs, bound_s = problem.graph, problem.tables[0], sources.reached.bound_s
        for mapping in _mappings(problem, sources):
            evaluated = with_all_loaded(evaluate(mapping, graph, costs), mapping, graph, costs)
            service = service_of(mapping, evaluated, graph, costs, bound_s=bound_s)
            gap = max(0.0, 1 - service.rate_factor / service.bound)
            yield Configuration(mapping, evaluated, proven=False, gap=gap, table=0, several=service)


def _mappings(problem: SearchProblem, sources: PatternSources) -> Iterator[Mapping]:
    """Yield patterns; in longer ones, first the shortest ones repeated, if they keep the rates."""
    energy, tell = problem.options.energy, problem.reporter("interleaving")
    patterns, reached = sources.patterns, sources.reached
    below_s = inf
    if sources.shortest is not None:
        shortest, of_shortest = sources.shortest
        if of_shortest.shared.period_s <= shortest.period_s:
            shorter = shortest.schedules(of_shortest, energy=energy, tell=tell)
            yield from patterns.mappings_of(shorter, sources.times)
            below_s = sources.times * of_shortest.shared.period_s
    schedules = patterns.schedules(reached, energy=energy, tell=tell, below_s=below_s)
    yield from map(patterns.mapped, schedules)
