"""The searches over stages of an exploration, one after the other, and their results so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.files.progress import Phase, Progress, Tell
from parapipe.graph.partition import Partition
from parapipe.processes.deadline import Deadline
from parapipe.search.exploration import left_out
from parapipe.search.options import MapOptions
from parapipe.search.problems.identical_processors import Replicable, names_in_order, replicable
from parapipe.search.problems.solve import Reporter
from parapipe.search.problems.time_energy import EXACT, Tolerance
from parapipe.search.stages.candidates import StageCandidate
from parapipe.search.stages.search import FEW_CUTS, MOST_CUTS, search
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.trade_energy import Sets, Traded, coarse, trade_energy
from parapipe.search.stages.unit_schedules import Choice, cheapest_first, lookup, options_of
from parapipe.solvers.all_processors import all_used
from parapipe.solvers.problem import NANO, MappingProblem
from parapipe.solvers.registry import proves_shortest
from parapipe.solvers.schedule import Schedule, back, renamed, renamed_schedule


def using_all(
    fastest: Sequence[Choice], identical: Sequence[Sequence[int]], deadline: Deadline
) -> Iterator[Choice]:
    """Yield schedules that use all processors they may, where the shortest ones do not."""
    found: dict[MappingProblem, Schedule | None] = {}
    for choice in fastest:
        if deadline.over:
            return
        problem, names = choice.request.problem, None
        if identical:
            names = names_in_order(problem, identical)
            problem = renamed(problem, names)
        if problem not in found:
            shortest = renamed_schedule(choice.schedule, names) if names else choice.schedule
            found[problem] = all_used(problem, shortest)
        if schedule := found[problem]:
            yield Choice(
                choice.request, renamed_schedule(schedule, back(names)) if names else schedule
            )


ENERGY_UNITS = 100  # of a network in which energy is searched exactly, all schedules included
LARGE_CUTS = 60  # boundaries of the search with energy if there are more, up to MOST_CUTS units


@dataclass(slots=True)
class Searches:
    """Searches over stages. What they find is kept, so what is known only ever gets better.

    Parameters
    ----------
    model
        Its name, for errors.
    identical
        Of each cost table, groups of identical processors.
    deadline
        When to end with what has been found. A search that it ends has found a part of what it
        would have found with more time.
    """

    model: str
    partition: Partition
    tables: tuple[CostTable, ...]
    options: MapOptions
    identical: tuple[Sequence[Sequence[int]], ...]
    deadline: Deadline
    progress: Tell | None
    kept: dict[object, StageCandidate] = field(default_factory=dict)
    best: tuple[float, float] = (inf, inf)
    _told: int = 0
    _report: Reporter | None = None

    @property
    def known(self) -> list[StageCandidate]:
        """All that has been found so far, in the order in which it was."""
        return [*self.kept.values()]

    @property
    def large(self) -> bool:
        """Whether the network has too many units for an exact search."""
        units = self.partition.cuts.last
        return units > (ENERGY_UNITS if self.options.energy else MOST_CUTS)

    def replicable(self, table: int) -> Replicable:
        """Return the groups of identical processors of a cost table that may take turns."""
        return replicable(self.identical[table], self.tables[table])

    def left_out(self, resolution: float) -> Iterator[str]:
        """Yield what is left out of the front of a large network, shown at a resolution."""
        units = self.partition.cuts.last
        cuts = 0 if units > MOST_CUTS else LARGE_CUTS
        return left_out(units, MOST_CUTS, cuts if self.options.energy else None, resolution)

    def first(self, choices: Sequence[Choice], *, pipes: bool) -> bool:
        """Find a first front by few cuts; of `pipes`, of one processor for each stage alone.

        Tells whether there is one.
        """
        times = StageTable(lookup(options_of(choices, self.tables[0])), energy=False)
        return bool(self._stages(0, times, (), look=True, most_cuts=FEW_CUTS, pipes=pipes))

    def look(self, table: int, choices: Sequence[Choice]) -> None:
        """Search with the schedules that are known so far for what is better than all found."""
        self._searched(table, choices, self.known, look=True)

    def search(self, table: int, choices: Sequence[Choice]) -> list[StageCandidate]:
        """Search all stages with the schedules of one cost table."""
        return self._searched(table, choices, (), look=False)

    def trade(self, sets: Sets, known: Sequence[StageCandidate]) -> Traded:
        """Search with schedules that trade time for energy."""
        self.deadline.check()
        traded = trade_energy(
            sets,
            self.partition,
            self.tables[0],
            resolution=self.options.energy_resolution,
            identical=self.identical[0],
            replicable=self.replicable(0),
            known=known,
            deadline=self.deadline,
            better=self.keep,
        )
        self.keep(traded.candidates)
        return replace(traded, resolution=inf, timed_out=True) if self.deadline.over else traded

    def keep(self, found: Sequence[StageCandidate]) -> None:
        """Keep what was found; from now on there is something to end with."""
        for each in found:
            self.kept.setdefault((each.table, each.nano_objectives, each.processors), each)
            self.best = min(self.best[0], each.latency_ns), min(self.best[1], each.period_ns)
        self.deadline.interruptible = self.deadline.interruptible or bool(found)

    def reporter(self, phase: Phase) -> Reporter:
        """Return what tells how far a phase has come that begins now, and the best so far."""

        def tell(progress: Progress) -> None:
            if self.best[1] < inf:
                latency_s, period_s = (best_ns / NANO for best_ns in self.best)
                progress = replace(progress, best_latency_s=latency_s, best_period_s=period_s)
            if self.progress:
                self.progress(progress)

        return Reporter(phase, tell)

    def _searched(
        self,
        table: int,
        choices: Sequence[Choice],
        known: Sequence[StageCandidate],
        *,
        look: bool,
    ) -> list[StageCandidate]:
        """Return what is found with the schedules of one cost table.

        The first search is for times alone: it is fast, and finds the best of each kind. What it
        finds is known to the one with energy, for which options that take more in every respect
        than others on fewer processors are left out.
        """
        costs, units = self.tables[table], self.partition.cuts.last
        more: list[Choice] = []
        if proves_shortest(self.options.mapper) and not look:
            more += using_all(choices, self.identical[table], self.deadline)
        options = options_of([*choices, *more], costs)
        times = StageTable(lookup(options), energy=False)
        found = self._stages(table, times, known, look=look)
        if not self.options.energy or units > MOST_CUTS:
            return found
        known, frugal = [*known, *found], cheapest_first(options)
        if units <= ENERGY_UNITS:
            exact = StageTable(lookup(frugal), deadline=self.deadline)
            return [*found, *self._stages(table, exact, known, look=look)]
        share = self.options.energy_resolution
        few, within = coarse(frugal, units, len(costs.processors), share, self.deadline)
        coarser = self._stages(table, few, known, look=look, tolerance=within, most_cuts=LARGE_CUTS)
        return [*found, *coarser]

    def _stages(
        self,
        table: int,
        stages: StageTable,
        known: Sequence[StageCandidate],
        *,
        look: bool,
        tolerance: Tolerance = EXACT,
        most_cuts: int = MOST_CUTS,
        pipes: bool = False,
    ) -> list[StageCandidate]:
        """Search stages with the options of one cost table, if there is time left."""
        if self.kept:
            self.deadline.check()
        found = search(
            self.partition.cuts.last,
            stages,
            self.tables[table].static_power_w,
            tolerance=tolerance,
            cost_table=table,
            identical=self.identical[table],
            replicable=self.replicable(table),
            known=known,
            most_cuts=most_cuts,
            line=self.partition.cuts.line,
            pipes=pipes,
            deadline=self.deadline,
            tell=None if look else self._telling(),
            better=self.keep,
        )
        if not (found or known or pipes):
            raise MappingError(
                f"no mapping of '{self.model}' exists on this platform: some operators "
                "have no common processor with their neighbours; see the operator support of its "
                "processors"
            )
        self.keep(found)
        return found

    def _telling(self) -> Callable[[int, int], None]:
        """Return what a search tells; each table has one for times, and one with energy."""
        report = self._report = self._report or self.reporter("searching")
        before, count = self._told, len(self.tables) * (1 + self.options.energy)
        self._told += 1
        return lambda done, total: report(before * total + done, count * total)
