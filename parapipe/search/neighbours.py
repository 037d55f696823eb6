"""Assignments that differ a little from one: what a local search looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assignment import Assignment

STEPS = (1, 2, 4, 8, 16, 32)  # operators that a border between stages moves by


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Changes of assignments in stages, none of which share a processor.

    Parameters
    ----------
    most_stages
        Of an assignment; any number if it is None.
    """

    graph: OperatorGraph
    costs: CostTable
    most_stages: int | None = None

    def of(self, own: Assignment) -> Iterator[Assignment]:
        """Yield assignments with an operator, a border, a stage or a processor changed.

        First those that change much: processors left out or exchanged, stages joined or cut; then
        borders by some operators, single operators on other processors, and orders.
        """
        for each in (
            *self._other_processors(own),
            *self._joined_stages(own),
            *self._parted_stages(own),
            *self._cut_stages(own),
            *self._moved_borders(own),
            *self._moved_operators(own),
            *self._other_orders(own),
        ):
            if self._is_possible(each):
                yield each

    def _is_possible(self, own: Assignment) -> bool:
        costs, places = self.costs, own.processors
        if self.most_stages is not None and len(own.stages) > self.most_stages:
            return False
        return all(costs.time_s(v, p) < inf for v, p in enumerate(places))

    def _used(self, own: Assignment) -> list[set[int]]:
        return [{own.processors[v] for v in stage} for stage in own.stages]

    def _other_processors(self, own: Assignment) -> Iterator[Assignment]:
        """Exchange two processors, or put all that one does on another one."""
        used = sorted({*own.processors})
        stage_of = {p: s for s, some in enumerate(self._used(own)) for p in some}
        for p in used:
            for q in range(len(self.costs.processors)):
                if q != p:
                    exchanged = {p: q, q: p}
                    yield _placed(own, [exchanged.get(at, at) for at in own.processors])
                    if stage_of.get(q, stage_of[p]) == stage_of[p]:
                        yield _placed(own, [q if at == p else at for at in own.processors])

    def _joined_stages(self, own: Assignment) -> Iterator[Assignment]:
        """Make one stage of two, on all their processors or on one of them."""
        used = self._used(own)
        for s, (one, other) in enumerate(pairwise(own.stages)):
            stages = (*own.stages[:s], (*one, *other), *own.stages[s + 2 :])
            yield Assignment(own.processors, stages, ordered=True)
            for p in sorted(used[s] | used[s + 1]):
                places = [*own.processors]
                for v in (*one, *other):
                    places[v] = p
                yield Assignment(tuple(places), stages, ordered=True)

    def _parted_stages(self, own: Assignment) -> Iterator[Assignment]:
        """Make two stages of one, each with some of its processors, where data flows one way."""
        for s, stage in enumerate(own.stages):
            used = sorted({own.processors[v] for v in stage})
            for count in range(1, len(used)):
                for some in combinations(used, count):
                    one = tuple(v for v in stage if own.processors[v] in some)
                    other = tuple(v for v in stage if own.processors[v] not in some)
                    if not any(u in other for v in one for u in self.graph.predecessors(v)):
                        stages = (*own.stages[:s], one, other, *own.stages[s + 1 :])
                        yield Assignment(own.processors, stages, ordered=True)

    def _cut_stages(self, own: Assignment) -> Iterator[Assignment]:
        """Give the first or the last part of a stage to a processor that has nothing to do."""
        free = [p for p in range(len(self.costs.processors)) if p not in own.processors]
        for s, stage in enumerate(own.stages):
            parts = min(len(stage), 8)
            for cut in sorted({len(stage) * k // parts for k in range(1, parts)} - {0}):
                stages = (*own.stages[:s], stage[:cut], stage[cut:], *own.stages[s + 1 :])
                halves = [{own.processors[v] for v in some} for some in (stage[:cut], stage[cut:])]
                if not halves[0] & halves[1]:
                    yield Assignment(own.processors, stages, ordered=True)
                for q in free:
                    for some in (stage[:cut], stage[cut:]):
                        places = [*own.processors]
                        for v in some:
                            places[v] = q
                        kept = halves[1] if some == stage[:cut] else halves[0]
                        if kept:
                            yield Assignment(tuple(places), stages, ordered=True)

    def _moved_borders(self, own: Assignment) -> Iterator[Assignment]:
        """Move some operators over the border between two stages."""
        used = self._used(own)
        for s, (one, other) in enumerate(pairwise(own.stages)):
            for step in STEPS:
                if step < len(one):
                    kept, moved = one[:-step], one[-step:]
                    yield from self._with_border(
                        own, s, (kept, (*moved, *other)), moved, used[s + 1]
                    )
                if step < len(other):
                    moved, kept = other[:step], other[step:]
                    yield from self._with_border(own, s, ((*one, *moved), kept), moved, used[s])

    def _with_border(
        self,
        own: Assignment,
        s: int,
        pair: tuple[tuple[int, ...], tuple[int, ...]],
        moved: Sequence[int],
        processors: set[int],
    ) -> Iterator[Assignment]:
        for p in sorted(processors):
            places = [*own.processors]
            for v in moved:
                places[v] = p
            stages = (*own.stages[:s], *pair, *own.stages[s + 2 :])
            if {places[v] for v in pair[0]} & {places[v] for v in pair[1]}:
                continue
            yield Assignment(tuple(places), stages, ordered=True)

    def _moved_operators(self, own: Assignment) -> Iterator[Assignment]:
        """Put one operator on another processor of its stage, or on one with nothing to do."""
        used = self._used(own)
        busy = set().union(*used)
        free = {p for p in range(len(self.costs.processors)) if p not in busy}
        for s, stage in enumerate(own.stages):
            for v in stage:
                for q in sorted((used[s] | free) - {own.processors[v]}):
                    places = [*own.processors]
                    places[v] = q
                    yield _placed(own, places)

    def _other_orders(self, own: Assignment) -> Iterator[Assignment]:
        """Exchange two operators of a processor that follow each other and do not read each other.

        What stands between them stays where it is.
        """
        for s, stage in enumerate(own.stages):
            for i, u in enumerate(stage):
                for j in range(i + 1, len(stage)):
                    v = stage[j]
                    if own.processors[u] == own.processors[v]:
                        order = [*stage[:i], *stage[i + 1 : j + 1], u, *stage[j + 1 :]]
                        if self._keeps_order(order):
                            stages = (*own.stages[:s], tuple(order), *own.stages[s + 1 :])
                            yield Assignment(own.processors, stages, ordered=True)
                        break

    def _keeps_order(self, order: Sequence[int]) -> bool:
        place = {v: i for i, v in enumerate(order)}
        return all(
            place.get(u, -1) < i for v, i in place.items() for u in self.graph.predecessors(v)
        )


def _placed(own: Assignment, places: Sequence[int]) -> Assignment:
    return Assignment(tuple(places), own.stages, ordered=True)
