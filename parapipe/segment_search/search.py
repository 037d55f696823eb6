"""The configurations that keep a limit of segments, out of all that searches find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from parapipe.mappings.configuration import Configuration
from parapipe.mappings.segments import LimitedSegments
from parapipe.problems.identical_processors import NO_REPLICAS, replicable
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.stages.candidates import Candidate, StageCandidate, configure
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_incumbents import schedules_on_all
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.unit_schedules import options_lookup, unit_options
from parapipe.segment_search.counting import SegmentCounter
from parapipe.segment_search.limited_stages import LimitedStages, UnitOptions
from parapipe.solvers.registry import proves_shortest

CUTS = 60  # boundaries of stages if there are more


class FewSegmentsSearch:
    """The search for stages of which no processor has more segments than it may."""

    name = "few-segments"
    moment = Moment.SEGMENTS

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield the incumbents, then stages with fewer segments if some have too many."""
        limited = LimitedSegments(problem.options.max_segments, problem.graph, problem.tables)
        kept: list[StageCandidate] = []
        all_fit = True
        for each in incumbents:
            configuration = configure(each, problem.graph, problem.tables)
            fits = limited.fits(configuration)
            all_fit &= fits
            if fits and isinstance(each, StageCandidate):
                kept.append(each)
            yield configuration
        if all_fit:
            return
        with suppress(OverError):
            for candidate in _limited_stages(problem, kept, deadline):
                yield configure(candidate, problem.graph, problem.tables)


def _limited_stages(
    problem: SearchProblem, known: Sequence[StageCandidate], deadline: Deadline
) -> Iterator[StageCandidate]:
    """Yield stages that keep the limit and that no known ones match, by the first cost table."""
    costs, partition = problem.tables[0], problem.partition
    limit = LimitedSegments(problem.options.max_segments, problem.graph, problem.tables).limit
    whole = costs.segment_rules.whole if costs.segment_rules else costs.processors
    most = [limit.of(name) for name in whole]
    choices = [*problem.schedules()]
    identical: Sequence[Sequence[int]] = problem.identical[0]
    if proves_shortest(problem.options.mapper):
        choices += [*schedules_on_all(choices, identical, deadline)]
    turns = replicable(identical, costs)
    if any(len({most[p] for p in group}) > 1 for group in identical):
        identical, turns = (), NO_REPLICAS
    options = options_lookup(unit_options(choices, costs))
    count = partition.cuts.last
    units = UnitOptions(options, SegmentCounter(problem.graph, partition.cuts.boundaries, most))
    every = [*known]
    for energy in (False, True)[: 1 + problem.options.energy]:
        table = StageTable(options, energy=energy, deadline=deadline)
        found = search(
            count,
            LimitedStages(table, units, range(count + 1), deadline),
            costs.static_power_w,
            identical=identical,
            replicable=turns,
            incumbents=[each for each in every if not each.table],
            most_cuts=CUTS,
            line=partition.cuts.line,
            most_stages=problem.options.max_stages,
            arrival_s=costs.arrival_s,
            deadline=deadline,
        )
        every += found
        yield from found
    for sentence in _left_out(problem, count, thinned=units.thinned):
        problem.left_out(sentence)


def _left_out(problem: SearchProblem, units: int, *, thinned: bool) -> Iterator[str]:
    """Yield what the search for few segments does not look at, a sentence each."""
    others = [
        *(["frames that take turns"] if problem.options.interleave == "auto" else []),
        *(["operators split"] if problem.options.split == "auto" else []),
        *(["operating points and divisions but the first"] if len(problem.tables) > 1 else []),
        *(["schedules that trade time for energy"] if problem.options.energy else []),
    ]
    if others:
        yield (
            f"with so few segments, of {' and of '.join(others)} only what was found without "
            "that limit and keeps it is there"
        )
    if units > CUTS:
        yield f"with so few segments, stages begin and end at {CUTS - 1} of {units - 1} places"
    if thinned:
        yield "with so few segments, there were too many ways to form stages to look at all"
