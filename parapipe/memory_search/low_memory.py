"""Configurations that need less memory than others: orders, stages, cuts, and frames under way.

A configuration is changed without moving operators: in each stage those go first that leave the
fewest bytes alive; neighbouring stages become one, so that their queue goes and fewer frames are
under way; or fewer processors take turns on a stage. Or an operator of a tensor that is alive at
the peak moves to another processor, or to the stage before or behind. Besides, the search over
stages runs once more, with cuts only where few bytes are live. What comes of it is timed, evaluated
and measured like all others.

Of an interleaved configuration, too, the assignment stays as it is. At its own period the order and
the starts of its work are annealed for what is buffered meanwhile. If that does not keep the limit,
longer periods are tried, up to one that is known to fit: then each frame is through in fewer
periods, and fewer are under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, product
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.assembly import assignment_of, mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration, Least
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import MemoryLimit
from parapipe.modulo.cyclic_problem import CyclicProblem, ModuloSchedule
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.modulo.reordering import Sizes, less_buffered
from parapipe.problems.problems import whole_problem
from parapipe.search.interleaved import modulo_schedule_of, repeating_mapping
from parapipe.solvers.problem import NANO

MOST_THRESHOLDS = 8  # of live bytes up to which stages may be cut
FEW_UNITS = 7  # of which all choices of boundaries are tried
MOST_STAGES = 5  # of a pipeline whose stages are joined in all ways

Stages = tuple[tuple[int, ...], ...]
ReplicaGroups = tuple[tuple[int, ...], ...]
"""Groups of processors that take turns on the frames of a stage."""


def variants(
    configuration: Configuration, graph: OperatorGraph, costs: CostTable
) -> Iterator[Configuration]:
    """Yield the same placement in orders of less memory, and with stages joined.

    Stages that processors take turns on are not joined; fewer of these may take turns.

    Parameters
    ----------
    graph, costs
        Those that the configuration is of.
    """
    if configuration.mapping.period_s is not None:
        return
    assignment, groups = assignment_of(configuration.mapping), configuration.mapping.replicated
    seen = {(assignment.stages, groups)}
    for replicated in _smaller_groups(groups):
        for joined in [assignment.stages] if replicated else _joined_stages(assignment.stages):
            for stages in (joined, tuple(low_memory_order(graph, stage) for stage in joined)):
                if (stages, replicated) not in seen:
                    seen.add((stages, replicated))
                    variant = Assignment(assignment.processors, stages, True)
                    yield _retimed(configuration, variant, graph, costs, replicated)


def _smaller_groups(groups: ReplicaGroups) -> Iterator[ReplicaGroups]:
    """Yield groups of processors that take turns, then with fewer in each, down to none."""
    for counts in product(*(range(len(group), 0, -1) for group in groups)):
        cut = (group[:count] for group, count in zip(groups, counts, strict=True))
        yield tuple(group for group in cut if len(group) > 1)


def moves(
    configuration: Configuration, tensors: Iterable[str], graph: OperatorGraph, costs: CostTable
) -> Iterator[Configuration]:
    """Yield the configuration with an operator, that makes or reads one of the tensors, elsewhere.

    That is on another processor of its stage, on one that is not used, or at the end of the stage
    before, or at the beginning of the one behind.

    Parameters
    ----------
    graph, costs
        Those that the configuration is of.
    """
    if configuration.mapping.period_s is not None or configuration.mapping.replicated:
        return
    assignment = assignment_of(configuration.mapping)
    sets = [{assignment.processors[v] for v in stage} for stage in assignment.stages]
    unused = {*range(len(costs.processors))}.difference(*sets)
    stage_of = {v: s for s, stage in enumerate(assignment.stages) for v in stage}
    ends = [(graph.producer.get(name), *graph.consumers.get(name, ())) for name in tensors]
    for v in dict.fromkeys(v for each in ends for v in each if v is not None):
        s = stage_of[v]
        choices = [(s, q) for q in sets[s] | unused]
        if s and all(stage_of[u] < s for u in graph.predecessors(v)):
            choices += [(s - 1, q) for q in sets[s - 1]]
        if s + 1 < len(sets) and all(stage_of[w] > s for w in graph.successors(v)):
            choices += [(s + 1, q) for q in sets[s + 1]]
        for to, q in choices:
            if (to, q) != (s, assignment.processors[v]) and costs.time_s(v, q) < inf:
                yield _retimed(
                    configuration, _with_moved_operator(assignment, v, s, to, q), graph, costs
                )


def _with_moved_operator(assignment: Assignment, v: int, s: int, to: int, q: int) -> Assignment:
    """Return an assignment with an operator of stage s in another stage and on a processor."""
    stages = list(assignment.stages)
    if to != s:
        stages[s] = tuple(w for w in stages[s] if w != v)
        stages[to] = (*stages[to], v) if to < s else (v, *stages[to])
    processors = tuple(q if w == v else p for w, p in enumerate(assignment.processors))
    return Assignment(processors, tuple(filter(None, stages)), ordered=True)


def _retimed(
    configuration: Configuration,
    assignment: Assignment,
    graph: OperatorGraph,
    costs: CostTable,
    replicated: ReplicaGroups = (),
) -> Configuration:
    """Return a configuration in another order; what is proven of the first one bounds its times."""
    mapping = mapping_of(graph, None, costs, assignment).with_replicas(replicated)
    evaluated = evaluate(mapping, graph, costs)
    before = configuration.evaluated
    slower = max(evaluated.latency_s / before.latency_s, evaluated.period_s / before.period_s, 1.0)
    proven, gap = configuration.proven and slower == 1, 1 - (1 - configuration.gap) / slower
    least = Least(configuration.least.period_s) if configuration.least is not None else None
    if least is not None:  # what else bounds it holds for the period of before
        gap = least.gap(evaluated)
        proven = not gap
    return replace(
        configuration, mapping=mapping, evaluated=evaluated, proven=proven, gap=gap, least=least
    )


def _joined_stages(stages: Stages) -> Iterator[Stages]:
    """Yield the stages as they are, then neighbours put together in all ways."""
    if len(stages) > MOST_STAGES:
        yield stages
        return
    for cuts in product((True, False), repeat=len(stages) - 1):
        joined: list[tuple[int, ...]] = [stages[0]]
        for cut, stage in zip(cuts, stages[1:], strict=True):
            if cut:
                joined.append(stage)
            else:
                joined[-1] += stage
        yield tuple(joined)


def low_memory_order(graph: OperatorGraph, operators: Sequence[int]) -> tuple[int, ...]:
    """Return a topological order in which few bytes are alive: a heuristic.

    Of the chains of operators that can run, one that leaves no more bytes alive than before goes
    first, that of the lowest peak; else the one whose peak is farthest above what it leaves alive:
    for trees, that is the best order (Liu, SIAM J. Algebraic Discrete Methods 8, 1987, p. 375).

    Parameters
    ----------
    operators
        Of a stage, in a topological order; of equals, the first is taken. What operators outside
        of it read, and graph outputs, stay alive.
    """
    return tuple(_LowMemoryOrder(graph, operators).order())


@dataclass(frozen=True, slots=True)
class _Chain:
    """Operators in a row, up to where fewest bytes are alive; bytes beside those before them."""

    operators: tuple[int, ...]
    peak_bytes: int
    left_bytes: int

    @property
    def urgency(self) -> tuple[bool, int]:
        """What goes first is least."""
        grows = self.left_bytes > 0
        return grows, self.left_bytes - self.peak_bytes if grows else self.peak_bytes


class _LowMemoryOrder:
    """A stage on its way: who waits for how many, and how often tensors are still read."""

    def __init__(self, graph: OperatorGraph, operators: Sequence[int]) -> None:
        inside = set(operators)
        self.graph = graph
        self.behind = {v: [w for w in graph.successors(v) if w in inside] for v in operators}
        self.waits = {v: len(inside.intersection(graph.predecessors(v))) for v in operators}
        self.size_bytes = {name: tensor.size_bytes for name, tensor in graph.tensors.items()}
        self.place = {v: i for i, v in enumerate(operators)}
        self.left = {name: len(readers) for name, readers in graph.consumers.items()}
        self.left.update({name: self.left.get(name, 0) + 1 for name in graph.outputs})

    def order(self) -> Iterator[int]:
        ready = [v for v in self.place if not self.waits[v]]
        while ready:
            chains = map(self.chain, ready)
            chosen = min(chains, key=lambda chain: (chain.urgency, self.place[chain.operators[0]]))
            ready.remove(chosen.operators[0])
            for v in chosen.operators:
                yield v
                for name in self.graph.reads(self.graph.operators[v]):
                    self.left[name] -= 1
                for w in self.behind[v]:
                    self.waits[w] -= 1
                    if not self.waits[w] and w not in chosen.operators:
                        ready.append(w)

    def chain(self, v: int) -> _Chain:
        """Return the chain that begins with an operator."""
        size = self.size_bytes
        read: Counter[str] = Counter()
        passed: list[int] = []
        alive = peak = 0
        best: _Chain | None = None
        while True:
            passed.append(v)
            operator = self.graph.operators[v]
            alive += sum(size[name] for name in operator.outputs if self.left.get(name))
            peak = max(peak, alive)
            for name in self.graph.reads(operator):
                read[name] += 1
                alive -= size[name] * (self.left[name] == read[name])
            if best is None or alive < best.left_bytes:
                best = _Chain(tuple(passed), peak, alive)
            following = self.behind[v]
            if len(following) != 1 or self.waits[following[0]] != 1:
                return best
            v = following[0]


def cheap_cuts(graph: OperatorGraph, partition: Partition) -> Iterator[list[int]]:
    """Yield boundaries at which stages may be cut: those of few live bytes, then of more.

    All choices of boundaries if there are few. Both ends are among them, and all boundaries are not
    yielded.
    """
    first, *inner, last = partition.cuts.line
    if len(inner) < FEW_UNITS:
        for chosen in product((False, True), repeat=len(inner)):
            if not all(chosen):
                yield [first, *compress(inner, chosen), last]
        return
    boundaries = partition.cuts.boundaries
    live = {at: sum(graph.tensors[name].size_bytes for name in boundaries[at]) for at in inner}
    levels = sorted(set(live.values()))[:-1]
    step = max(1, len(levels) / MOST_THRESHOLDS)
    for most in dict.fromkeys(
        levels[int(i * step)] for i in range(min(MOST_THRESHOLDS, len(levels)))
    ):
        yield [first, *(at for at in inner if live[at] <= most), last]


PIECES = 250_000  # of work whose starts are worked out, at each period
PERIODS = 4  # that are tried between the one that is given and one that is known to fit


@dataclass(frozen=True)
class FewerFrames:
    """Looks for interleaved configurations of one graph that need less memory.

    Parameters
    ----------
    storage, costs
        Of the graph.
    least_period_s
        No mapping of the graph has a shorter period.
    sized
        Gives a configuration its memory.
    seed
        Of all random choices.
    """

    storage: Storage
    costs: CostTable
    limit: MemoryLimit
    least_period_s: float
    sized: Callable[[Configuration], Configuration]
    seed: int

    def like(self, configuration: Configuration, longest_s: float) -> Iterator[Configuration]:
        """Yield configurations of the same assignment, until one keeps the limit at its period.

        Parameters
        ----------
        longest_s
            Shorter periods than this one are tried, down to that of what is given.
        """
        schedule = modulo_schedule_of(configuration.mapping, self.storage.graph)
        own = [*self._at_period_of(schedule, configuration)]
        yield from own
        if self.limit.size_bytes is None or any(map(self.limit.fits, own)):
            return
        jobs = Jobs.of(self.cyclic, schedule.processor)
        short, long = schedule.period, min(longest_s * NANO, sum(jobs.time))
        for _ in range(PERIODS):
            period = int((short * long) ** 0.5)
            if not short < period < long:
                return
            slower = schedule_jobs(jobs, period)
            at_period = [*self._at_period_of(slower, configuration)] if slower else []
            yield from at_period
            if any(map(self.limit.fits, at_period)):
                long = period
            else:
                short = period

    def _at_period_of(
        self, schedule: ModuloSchedule, configuration: Configuration
    ) -> Iterator[Configuration]:
        """Yield a schedule and those that hold less at its period, as configurations."""
        low_memory = less_buffered(self.cyclic, schedule, self.sizes, self.seed, PIECES)
        for each in (schedule, *low_memory):
            mapping = repeating_mapping(each, self.storage.graph, self.costs)
            if mapping is None:
                continue
            evaluated = evaluate(mapping, self.storage.graph, self.costs)
            least = Least(self.least_period_s)
            gap = least.gap(evaluated)
            yield self.sized(
                replace(
                    configuration,
                    mapping=mapping,
                    evaluated=evaluated,
                    proven=not gap,
                    gap=gap,
                    least=least,
                )
            )

    @cached_property
    def cyclic(self) -> CyclicProblem:
        """The network as its operators repeat every period."""
        return CyclicProblem(whole_problem(self.storage.graph, self.costs))

    @cached_property
    def sizes(self) -> Sizes:
        """What tensors count for: their bytes, by how scarce the memory is that they are in."""
        storage, names = self.storage, self.storage.system.names
        tensors = [name for name in storage.graph.consumers if name in storage.graph.producer]
        scarce = self.limit.scarcity(names)

        def size(flow: int, p: int) -> float:
            return storage.tensor_bytes(tensors[flow], p) * scarce[storage.memory_of(p)]

        return Sizes(size, lambda flow, p, q: storage.copies(tensors[flow], p, q))
