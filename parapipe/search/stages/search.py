"""The search over stages: which processors, which cut points, which schedules.

A stage is a contiguous range of units on a set of processors that no other stage uses. Labels say
what the stages so far take. Those of one state are kept as long as no other label of that state is
at least as good in every objective, and as long as the best that can come of them is not beaten by
a configuration that is known. So the answer is the exact Pareto front over all configurations that
the units' options allow. A network with many units is first cut at few places, then at more: what
the first passes find is known to the next, so that most of what these could do is left out early.
Where energy counts and the best times are known, one pass is enough.

Where units have many schedules each, there are too many sums of them to keep. With a tolerance,
figures are compared on a grid: of labels that fall into one cell, the one of least energy is kept.
What a label loses by that is bounded by the cells it has passed through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf

from parapipe.pareto import staircase
from parapipe.problems.identical_processors import NO_REPLICAS, Replicable
from parapipe.problems.time_energy import EXACT, Tolerance
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.stages.boundary_pass import Pass
from parapipe.search.stages.candidates import SearchSpace, StageCandidate
from parapipe.search.stages.stage_table import StageTable
from parapipe.solvers.problem import NANO

FEW_PROCESSORS = 5  # with more, stages of one processor each come first: others are very many
FEW_CUTS = 12  # boundaries of the first pass; each further one has three times as many
MOST_CUTS = 300  # boundaries of the last pass


def search(
    units: int,
    stages: StageTable,
    static_power_w: Sequence[float],
    *,
    tolerance: Tolerance = EXACT,
    cost_table: int = 0,
    identical: Sequence[Sequence[int]] = (),
    replicable: Replicable = NO_REPLICAS,
    incumbents: Sequence[StageCandidate] = (),
    most_cuts: int = MOST_CUTS,
    line: Sequence[int] | None = None,
    pipes: bool = False,
    most_stages: int | None = None,
    arrival_s: float = 0.0,
    power_budget_w: float | None = None,
    deadline: Deadline | None = None,
    tell: Callable[[int, int], None] | None = None,
    better: Callable[[Sequence[StageCandidate]], None] | None = None,
) -> list[StageCandidate]:
    """Find every Pareto-optimal configuration, or what matches all within a tolerance.

    Parameters
    ----------
    units
        Number of units.
    stages
        What stages can be made of the units' options, and whether the front trades energy, too.
        Without, energy is that of the labels found.
    static_power_w
        Static power of each processor while it belongs to a configuration.
    tolerance
        For each configuration that the options allow, one is found or known whose latency, period
        and energy are at most (1 + stage) × (1 + label)^stages times as large, besides what the
        fronts of stages are off by themselves.
    cost_table
        Number of the cost table, for the candidates.
    identical
        Groups of identical processors. They are used in the order of their numbers: what differs
        in their places only is searched once. (Each alone may still run the whole network.)
    replicable
        Those of these groups that may take turns on the frames of a stage of one processor.
    incumbents
        Configurations that what is found must not be beaten by.
    most_cuts
        If there are more boundaries between units, stages begin and end at so many of them alone.
    line
        Boundaries, both ends included, of which each one can be reached from the one before. Where
        stages are not cut everywhere, they are cut at some of these; all boundaries if not given.
    pipes
        Whether to search only pipelines of one processor for each stage.
    most_stages
        Of a configuration; any number if not given.
    arrival_s
        Seconds between frames as they arrive: static energy is for at least so long.
    power_budget_w
        Watts that processors may draw on average: who draws more is slowed. Where the front trades
        no energy, what is found is slowed, and only that.
    deadline
        When to end with what has been found: all configurations of one stage (with many processors
        perhaps only those on one processor), and those that the passes so far have found. Where
        none are known, the first pass goes to its end. (The stages may have a deadline of their
        own.)
    tell
        Told how many boundaries of how many have been passed.
    better
        Given all that has been found, after each pass.

    Returns
    -------
    Candidates sorted by objectives, besides those known. If exact, they hold the front of each
    set of processors as one stage, and of those of several stages the Pareto-optimal ones; if
    energy does not count, also that of kind pipe-only with the least period, and those of kind
    hybrid with the least latency and the least period, the other of the two as small as it can
    then be. Of those that differ in identical processors only, the platform's first lead.
    """
    if pipes and not all(stages.places(units)):
        return []
    line = line or range(units + 1)
    if units > most_cuts:
        cuts = _spread_cuts(stages.places(units), line, most_cuts)
        units, stages = len(cuts) - 1, stages.at_cuts(cuts)
        line = range(units + 1)
    deadline = deadline or Deadline()
    static_w = tuple(static_power_w)
    space = SearchSpace(
        units,
        stages,
        static_w,
        tolerance,
        cost_table,
        identical,
        pipes,
        replicable,
        most_stages,
        arrival_s * NANO,
        power_budget_w,
    )
    alone = pipes or (len(static_w) > FEW_PROCESSORS and not stages.energy)
    candidates: list[StageCandidate] = []
    passes: list[SearchSpace] = []
    with suppress(OverError):
        if not alone:
            candidates += space.single_stages()
        # what is known leaves out as much as first passes would, which take longer than the last
        enough = incumbents and stages.energy and deadline.seconds == inf
        every = () if enough else _list_cuts(space.places, line)
        parts = (replace(space, units=len(cuts) - 1, stages=stages.at_cuts(cuts)) for cuts in every)
        passes += [*parts, space]
        if alone:
            passes = [replace(passes[0], pipes=True), *([] if pipes else passes)]
            candidates += passes[0].single_stages()
    total = sum(each.units for each in passes)
    done = 0
    until = deadline if incumbents else Deadline()
    for each in passes:
        if until.over:
            break
        with deadline.ending(), suppress(OverError):
            boundary_pass = Pass(each, [*incumbents, *candidates], until)
            candidates = [*boundary_pass.run(partial(_report, tell, done, total)), *candidates]
            if better:
                better(candidates)
                _report(tell, done, total, each.units)
            if each.pipes and not pipes and not deadline.over:
                candidates = [*space.single_stages(), *candidates]
        until = deadline
        done += each.units
    if tolerance != EXACT:
        candidates = staircase(candidates, lambda candidate: candidate.nano_objectives)
    # of equals on the same processors, that of the last pass, which comes first
    distinct = {(each.nano_objectives, each.processors): each for each in reversed(candidates)}
    return [distinct[key] for key in sorted(distinct)]


def _report(tell: Callable[[int, int], None] | None, before: int, total: int, done: int) -> None:
    if tell:
        tell(before + done, total)


def _list_cuts(places: Sequence[Sequence[object]], line: Sequence[int]) -> Iterator[list[int]]:
    """Yield a few boundaries, then more, both ends included; those with few places come first."""
    count = FEW_CUTS
    while count < len(line) - 1:
        yield _spread_cuts(places, line, count)
        count *= 3


def few_cuts(units: int, stages: StageTable) -> list[int]:
    """Return the boundaries of a pass of moderate size; all of them if there are no more."""
    most = FEW_CUTS * 3
    every = range(units + 1)
    return list(every) if units <= most else _spread_cuts(stages.places(units), every, most)


def _spread_cuts(places: Sequence[Sequence[object]], line: Sequence[int], count: int) -> list[int]:
    """Return at most so many boundaries besides the first, all over a line."""
    last = len(line) - 1
    if last <= count:
        return list(line)
    ends = [round(i * last / count) for i in range(1, count + 1)]
    inner = [min(line[a:b], key=lambda u: len(places[u])) for a, b in pairwise(ends)]
    return [line[0], *inner, line[last]]
