"""The coarse-grained mapper of the Para-Pipe paper: each branch whole on one processor.

What it decides, in this order:

1. The *sink* of parallel branches, the operator they join in, goes on the processor that runs it
   fastest (of equals, on the one that runs all the branches fastest).
2. The *branches* are assigned by the ILP of equations (1) and (2), `branch_ilp.assign`: a branch
   costs the time of its operators and, as a load like these, the transfers of its outputs to the
   sink. A branch that no processor supports whole is placed first, as a series of its own on all
   processors, and its load counts beside the others'.
3. A *run* of operators outside branches takes the processors on which it ends first, if it is a
   chain (`chain.place_run`, exact). If its operators read each other crosswise, it counts as a
   single branch, whole on one processor; only if none supports it whole it is split like a chain.
   The processor of its last operator, from which branches get their inputs, is the one with the
   shortest replay.
4. Of assignments with the same L, moves of single branches look for the shortest replay.
5. *Nested* branches go through the ILP again, on their branch's processor and those that have no
   branch (the heaviest branch is served first). That stays where it shortens the replay: (2)
   does not count what it costs to bring inputs to a processor.

The last two are left out of problems of more than `MOST_SEARCHED` operators.

Transfers are pure delays to all that. `branches.branch_times` then orders the branches of each
processor and replays the whole exactly; `replay.timed` puts transfers in where they occupy
something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import fsum, inf
from time import perf_counter

from parapipe.solvers.branch_ilp import NO_SOLVER, Claim, Part, assign_part
from parapipe.solvers.chain import Run, is_chain, place_run
from parapipe.solvers.cp_sat import Budget
from parapipe.solvers.fine.list_schedules import MOST_SEARCHED
from parapipe.solvers.paths import list_order
from parapipe.solvers.problem import MappingProblem, Parallel, Series, operators_of
from parapipe.solvers.replay import Timed, certified, replay, with_transfers
from parapipe.solvers.schedule import Schedule

TransferTimes = tuple[tuple[float, ...], ...]


def branch_load_s(
    problem: MappingProblem, branch: Collection[int], placed: Mapping[int, int]
) -> tuple[float, ...]:
    """t_bp + c_b,p,sink of a branch on each processor p, in seconds.

    t_bp sums the times of the branch's operators, infinite if p does not support one of them;
    c_b,p,sink sums the transfers of its outputs to those operators outside that are placed: the
    sink, once it is. Tensors that others send to the branch are no part of (2).
    """
    outgoing = list(deliveries(problem, branch, placed))
    return tuple(
        fsum(
            [
                *(problem.time_s[v][p] for v in branch),
                *(transfer_s[p][q] for _, transfer_s, q in outgoing),
            ]
        )
        for p in range(problem.processors)
    )


def load_of_placed_s(
    problem: MappingProblem, branches: Iterable[Collection[int]], placed: Mapping[int, int]
) -> tuple[float, ...]:
    """Load of each processor from branches whose operators have been placed one by one."""
    shares: list[list[float]] = [[] for _ in range(problem.processors)]
    for branch in branches:
        for v in branch:
            shares[placed[v]].append(problem.time_s[v][placed[v]])
        for v, transfer_s, q in deliveries(problem, branch, placed):
            shares[placed[v]].append(transfer_s[placed[v]][q])
    return tuple(fsum(share) for share in shares)


def deliveries(
    problem: MappingProblem, branch: Collection[int], placed: Mapping[int, int]
) -> Iterator[tuple[int, TransferTimes, int]]:
    """Yield producer, transfer times and target of each tensor that leaves the branch.

    Once per processor with a placed reader outside: readers there share the transfer.
    """
    inside = frozenset(branch)
    for flow in problem.flows:
        if flow.producer is not None and flow.producer in inside:
            outside = placed.keys() & set(flow.consumers) - inside
            for q in sorted({placed[v] for v in outside}):
                yield flow.producer, flow.transfer_s, q


def branch_times(problem: MappingProblem, placed: Mapping[int, int]) -> Timed:
    """Start and end of operators that all have a processor.

    Branches of one processor run in the order of their transfers to where they are read, the
    longest first: Jackson's rule, optimal for jobs that are ready together and delivered after
    they have run. Yet no processor waits for a branch while it could run another.
    """
    processor = tuple(placed[v] for v in range(problem.operators))
    order = [*_by_branch(problem, problem.structure, placed)]
    priority = sorted(range(problem.operators), key=order.__getitem__)
    return replay(problem, processor, list_order(problem, processor, priority))


def makespan_s(problem: MappingProblem, placed: Mapping[int, int]) -> float:
    """Seconds until the last of the placed operators has ended."""
    return branch_times(problem, placed).makespan_s


def _by_branch(problem: MappingProblem, series: Series, placed: Mapping[int, int]) -> Iterator[int]:
    for step in series:
        if isinstance(step, int):
            yield step
            continue
        ranks = {i: _branch_key(problem, branch, placed) for i, branch in enumerate(step)}
        for i in sorted(ranks, key=ranks.__getitem__):
            yield from _by_branch(problem, step[i], placed)


def _branch_key(
    problem: MappingProblem, branch: Series, placed: Mapping[int, int]
) -> tuple[float, float]:
    """Longest transfer first, then longest time."""
    inside = operators_of(branch)
    sent_s = [transfer_s[placed[v]][q] for v, transfer_s, q in deliveries(problem, inside, placed)]
    return -max(sent_s, default=0.0), -sum(problem.time_s[v][placed[v]] for v in inside)


def map(  # the protocol's name
    problem: MappingProblem, *, time_limit_s: float, seed: int, deterministic: bool = False
) -> Schedule:
    """Place every branch whole on one processor; the schedule is replayed exactly and verified.

    The certificate speaks of L of equation (2), added up over the parts of the outermost series
    (a run that counts as one branch is a part). The makespan is another figure: (2) counts
    transfers to the sink as load and those to the branches not at all. Costs go into the ILP in
    whole microseconds, rounded down: `bound_s` bounds the L of every assignment, `proven` says
    that none has a smaller L in these units, and `objective_s` is the exact L of the answer. A
    mere chain has no L: there the certificate proves the makespan.

    Parameters
    ----------
    time_limit_s
        For the whole call. There is a schedule even if it is 0.
    seed
        Of CBC's random choices.
    deterministic
        Count nodes of CBC's search trees in place of wall time.

    Raises
    ------
    MappingError
        If CBC cannot be run.
    """
    begin_s = perf_counter()
    search = _CoarseSearch(
        replace(problem, transfer_resource=()), Budget(time_limit_s, deterministic, begin_s), seed
    )
    search.place_series(problem.structure, outermost=True)
    for runs in search.runs:
        search.choose_run(runs)
    if problem.operators <= MOST_SEARCHED:
        for part in search.parts:
            search.break_ties(part)
        for part in search.parts:
            search.spread(part)
    delayed = branch_times(search.problem, search.placed)
    processor = tuple(search.placed[v] for v in range(problem.operators))
    times = with_transfers(problem, processor, delayed)
    claims = [*search.claims, *(part.claim() for part in search.parts)]
    # of a chain pure delays allow the least
    least_s, reached_s = delayed.makespan_s, times.makespan_s
    proves = "L of equation (2)" if claims else "makespan"
    claims = claims or [Claim(reached_s, least_s, least_s >= reached_s, "shortest path")]
    return certified(
        problem,
        processor,
        times,
        bound_s=fsum(claim.bound_s for claim in claims),
        proves=proves,
        objective_s=fsum(claim.objective_s for claim in claims),
        proven=all(claim.proven for claim in claims),
        solver=", ".join(sorted({claim.solver for claim in claims})),
        seed=seed,
        began_s=begin_s,
    )


@dataclass(slots=True)
class _CoarseSearch:
    """The placement of a problem, step by step."""

    problem: MappingProblem
    budget: Budget
    seed: int
    placed: dict[int, int] = field(default_factory=dict)
    runs: list[tuple[Run, ...]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    def place_series(self, series: Series, *, outermost: bool) -> None:
        """Place sinks, then branches, then runs: each looks at where the former are."""
        for step, following in pairwise(series):
            if not isinstance(step, int) and isinstance(following, int):
                self.placed[following] = self._sink_processor(following, step)
        lengths_s = [
            self._place_parallel(step, outermost) for step in series if not isinstance(step, int)
        ]
        clock_s = 0.0
        for _, group in groupby(series, key=lambda step: isinstance(step, int)):
            steps = tuple(group)
            run = tuple(step for step in steps if isinstance(step, int))
            if run:
                clock_s = self._place_run(run, clock_s, outermost)
            else:
                clock_s += fsum(lengths_s[: len(steps)])
                del lengths_s[: len(steps)]

    def _sink_processor(self, sink: int, branches: Parallel) -> int:
        times_s = self.problem.time_s
        before = operators_of((branches,))
        return min(
            range(self.problem.processors),
            key=lambda p: (times_s[sink][p], fsum(times_s[v][p] for v in before), p),
        )

    def _place_parallel(self, parallel: Parallel, outermost: bool) -> float:
        """Assign the branches and return L."""
        branches = [branch for branch in parallel if branch]
        loads_s = [self._load_s(branch) for branch in branches]
        split = [b for b, row in zip(branches, loads_s, strict=True) if min(row) == inf]
        for branch in split:
            self.place_series(branch, outermost=False)
        part = self._assign(
            tuple(b for b in branches if b not in split),
            tuple(row for row in loads_s if min(row) < inf),
            load_of_placed_s(self.problem, [operators_of(b) for b in split], self.placed),
        )
        if outermost:
            part.split_bound_s = self._split_bound_s(branches) if split else None
            self.parts.append(part)
        return part.heaviest_s()

    def _split_bound_s(self, branches: Sequence[Series]) -> float:
        """Work over processors: no way of splitting branches gets below that."""
        times_s = self.problem.time_s
        work_s = fsum(min(times_s[v]) for v in operators_of((tuple(branches),)))
        return work_s / self.problem.processors

    def _place_run(self, run: tuple[int, ...], begin_s: float, outermost: bool) -> float:
        """Place a run's operators and return the second at which it ends, to our knowledge."""
        chain = is_chain(self.problem, run)
        rest = tuple(v for v in run if v not in self.placed)
        load_s = self._load_s(rest)
        if not chain and min(load_s) < inf:
            best_s = min(load_s)
            self.placed.update(dict.fromkeys(rest, load_s.index(best_s)))
            claim = Claim(best_s, best_s, True, NO_SOLVER)
            end_s = begin_s + best_s
        else:
            runs = place_run(self.problem, run, self.placed, begin_s=begin_s)
            self.placed.update(zip(run, runs[0].processor, strict=True))
            end_s = runs[0].end_s
            if outermost:
                self.runs.append(runs)
            bound_s = fsum(min(self.problem.time_s[v]) for v in run)
            claim = Claim(max(end_s - begin_s, bound_s), bound_s, False, "shortest path")
        if outermost and not chain:
            self.claims.append(claim)
        return end_s

    def _load_s(self, branch: Series) -> tuple[float, ...]:
        return branch_load_s(self.problem, operators_of(branch), self.placed)

    def _assign(
        self, branches: Parallel, load_s: tuple[tuple[float, ...], ...], base_s: tuple[float, ...]
    ) -> Part:
        """Assign branches by the ILP and place their operators."""
        part = assign_part(
            branches,
            load_s,
            base_s,
            time_limit_s=self.budget.left_s,
            seed=self.seed,
            deterministic=self.budget.deterministic,
        )
        self.budget.work(part.assignment.spent_s)
        for branch, p in zip(branches, part.processor, strict=True):
            self._move(branch, p)
        return part

    def _move(self, branch: Series, processor: int) -> None:
        self.placed.update(dict.fromkeys(operators_of(branch), processor))

    def choose_run(self, runs: Sequence[Run]) -> None:
        """Of runs that end on different processors, take the one with the shortest replay."""
        if len(runs) == 1:
            return
        replayed: dict[Run, float] = {}
        for run in runs:
            self.placed.update(zip(run.operators, run.processor, strict=True))
            replayed[run] = makespan_s(self.problem, self.placed)
        best = min(replayed, key=replayed.__getitem__)
        self.placed.update(zip(best.operators, best.processor, strict=True))

    def break_ties(self, part: Part) -> None:
        """Move single branches while that shortens the replay and keeps L."""
        limit_s = part.heaviest_s()
        best_s = makespan_s(self.problem, self.placed)
        for _ in part.branches:  # a round each, lest a long search outlast the time limit
            best: tuple[float, int, int] = (best_s, 0, 0)
            for i, row in enumerate(part.load_s):
                own = part.processor[i]
                for p in set(range(len(row))) - {own}:
                    part.processor[i] = p
                    if part.heaviest_s() <= limit_s:
                        self._move(part.branches[i], p)
                        best = min(best, (makespan_s(self.problem, self.placed), i, p))
                part.processor[i] = own
                self._move(part.branches[i], own)
            if best[0] >= best_s:
                return
            best_s, i, p = best
            part.processor[i] = p
            self._move(part.branches[i], p)

    def spread(self, part: Part) -> None:
        """Give nested branches the processors that have no branch, the heaviest branch first."""
        everywhere = range(self.problem.processors)
        idle = frozenset(p for p in everywhere if not part.base_s[p]).difference(part.processor)
        loads_s = [row[p] for row, p in zip(part.load_s, part.processor, strict=True)]
        for i in sorted(range(len(loads_s)), key=lambda i: -loads_s[i]):
            idle -= self._spread_branch(part.branches[i], part.processor[i], idle)

    def _spread_branch(self, branch: Series, own: int, idle: frozenset[int]) -> frozenset[int]:
        """Spread what is nested in a branch; return the idle processors it took.

        Parallel parts of one branch run one after the other and may take the same.
        """
        taken: frozenset[int] = frozenset()
        for step in branch:
            if isinstance(step, int) or not idle:
                continue
            nested = tuple(inner for inner in step if inner)
            before, before_s = dict(self.placed), makespan_s(self.problem, self.placed)
            allowed = idle | {own}
            load_s = tuple(
                tuple(s if p in allowed else inf for p, s in enumerate(self._load_s(inner)))
                for inner in nested
            )
            processor = self._assign(nested, load_s, (0.0,) * self.problem.processors).processor
            if makespan_s(self.problem, self.placed) >= before_s:
                self.placed = before
                processor = [own] * len(nested)
            left = idle.difference(processor)
            for inner, p in zip(nested, processor, strict=True):
                left -= self._spread_branch(inner, p, left)
            taken |= idle - left
        return taken
