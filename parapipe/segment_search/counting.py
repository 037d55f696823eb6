"""How many segments the processors of a stage have so far, unit by unit.

The units of a stage follow each other, so each processor's order is that of the units, and within a
unit that of its schedule. What a unit adds depends on little of what came before: whether the last
segment of a processor may go on, which live tensors have been received where, and whether the
operator that made a live tensor was the last of its processor, or followed by one in its segment:
then a reader on another processor ends that segment after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.search.stages.unit_schedules import Choice

LAST, FOLLOWED, ENDED = range(3)
"""What comes behind an operator on its processor: nothing, its segment goes on, another segment."""


@dataclass(frozen=True, slots=True)
class SegmentState:
    """What is known of the segments of a stage behind some of its units.

    Parameters
    ----------
    counts
        Of each processor with a limit: its number, its segments, and whether the last must end.
    makers
        Operators on such processors that made live tensors, with the processor and what comes
        behind them; in the order in which they run.
    received
        Live tensors and the processors of other makers that have read them.
    """

    counts: tuple[tuple[int, int, bool], ...] = ()
    makers: tuple[tuple[int, int, int], ...] = ()
    received: frozenset[tuple[str, int]] = frozenset()


START = 0
"""Number of the state in which a stage begins."""


@dataclass(slots=True)
class SegmentCounter:
    """Counts segments, by the rule of `parapipe.mappings.segments`, up to a limit.

    States have numbers, as a search compares very many of them.

    Parameters
    ----------
    boundaries
        Names of the tensors that are live before each unit.
    most
        The most segments by processor; None for no limit.
    """

    graph: OperatorGraph
    boundaries: Sequence[Sequence[str]]
    most: Sequence[int | None]
    states: list[SegmentState] = field(default_factory=lambda: [SegmentState()])
    _numbers: dict[SegmentState, int] = field(default_factory=lambda: {SegmentState(): START})
    _known: dict[tuple[int, int], int | None] = field(default_factory=dict)
    _choices: dict[int, Choice] = field(default_factory=dict)

    def after(self, state: int, choice: Choice) -> int | None:
        """Return the number of the state behind one more unit; None if a limit is exceeded."""
        key = (state, id(choice))
        if key not in self._known:
            self._choices[id(choice)] = choice  # so that its identity remains its own
            behind = _UnitSegments(self, self.states[state], choice).state()
            self._known[key] = None if behind is None else self._number_of(behind)
        return self._known[key]

    def _number_of(self, state: SegmentState) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self.states)
            self.states.append(state)
        return self._numbers[state]


class _UnitSegments:
    """The segments of one more unit."""

    def __init__(self, counter: SegmentCounter, state: SegmentState, choice: Choice) -> None:
        self.counter, self.choice = counter, choice
        request, schedule = choice.request, choice.schedule
        self.place = dict(zip(request.operators, schedule.processor, strict=True))
        times = zip(schedule.start_s, schedule.end_s, request.operators, strict=True)
        self.orders: dict[int, list[int]] = {}
        for _, _, v in sorted(times):
            self.orders.setdefault(self.place[v], []).append(v)
        self.counts = {p: (count, ends) for p, count, ends in state.counts}
        self.makers = {u: (p, behind) for u, p, behind in state.makers}
        self.received = set(state.received)

    def state(self) -> SegmentState | None:
        """Return what is known behind the unit; None if a limit is exceeded."""
        awaited = self._first_reads()
        ends = self._ended(awaited)
        for u in ends - self.place.keys():
            self._end_earlier(u)
        for p in self.orders:
            if self.counter.most[p] is not None:
                self._add_operators(p, awaited, ends)
        for p, (count, _) in self.counts.items():
            most = self.counter.most[p]
            if most is not None and count > most:
                return None
        graph, live = self.counter.graph, self.counter.boundaries[self.choice.request.end]
        makers = {graph.producer[name] for name in live if name in graph.producer}
        return SegmentState(
            tuple((p, *each) for p, each in sorted(self.counts.items())),
            tuple((u, *each) for u, each in self.makers.items() if u in makers),
            frozenset(each for each in self.received if each[0] in live),
        )

    def _first_reads(self) -> dict[int, list[int]]:
        """Return makers on other processors by the operator that is the first to wait for them."""
        graph, request = self.counter.graph, self.choice.request
        names = self.counter.boundaries[request.begin]
        made_on = {n: at[0] for n, at in zip(names, request.locations_in, strict=True)}
        awaited: dict[int, list[int]] = {}
        for p, order in self.orders.items():
            for v in order:
                for name in graph.reads(graph.operators[v]):
                    u = graph.producer.get(name)
                    if u is None or (name, p) in self.received:
                        continue
                    if (self.place[u] if u in self.place else made_on[name]) != p:
                        self.received.add((name, p))
                        awaited.setdefault(v, []).append(u)
        return awaited

    def _ended(self, awaited: dict[int, list[int]]) -> set[int]:
        """Return what others of the stage wait for: of each processor and reader, the last."""
        turn = {u: i for i, u in enumerate(self.makers)}
        for order in self.orders.values():
            turn |= {v: len(self.makers) + i for i, v in enumerate(order)}
        ends: set[int] = set()
        for makers in awaited.values():
            last: dict[int, int] = {}
            for u in makers:
                if u in turn:
                    p = self.place[u] if u in self.place else self.makers[u][0]
                    last[p] = max(last.get(p, u), u, key=turn.__getitem__)
            ends.update(last.values())
        return ends

    def _end_earlier(self, u: int) -> None:
        p, behind = self.makers[u]
        count, ends = self.counts[p]
        if behind == LAST:
            self.counts[p] = count, True
        elif behind == FOLLOWED:
            self.counts[p] = count + 1, ends
            self.makers[u] = p, ENDED

    def _add_operators(self, p: int, awaited: dict[int, list[int]], ends: set[int]) -> None:
        count, ended = self.counts.get(p, (0, True))
        for v in self.orders[p]:
            new = ended or v in awaited
            for u, (q, behind) in self.makers.items():
                if q == p and behind == LAST:
                    self.makers[u] = p, ENDED if new else FOLLOWED
            count += new
            self.makers[v] = p, LAST
            ended = v in ends
        self.counts[p] = count, ended
