"""The split search against every choice of ways, on small problems at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest

from parapipe.split_search.choice import shortest
from parapipe.split_search.problem import (
    ExecutionMode,
    Piece,
    Region,
    SplitProblem,
    SplitTensor,
    between,
    ends_s,
    makespan_s,
)

CHANNELS, ROWS = 4, 8
WHOLE: Region = ((0, CHANNELS), (0, ROWS))


def rows(begin: int, end: int) -> Region:
    return ((0, CHANNELS), (max(begin, 0), min(end, ROWS)))


def channels(begin: int, end: int) -> Region:
    return ((begin, end), (0, ROWS))


class Drawn:
    """A network at random: each operator may run whole, in parts, or in a run with the next."""

    def __init__(self, seed: int, *, operators: int, processors: int, chain: bool) -> None:
        self.draw = random.Random(seed)
        self.count, self.processors = operators, processors
        self.before = [
            [v - 1] * (v > 0)
            if chain
            else sorted(self.draw.sample(range(v), min(v, self.draw.choice([1, 1, 2]))))
            for v in range(operators)
        ]
        self.chain = chain
        speeds = [self.draw.uniform(1, 6) for _ in range(processors)]
        self.power_w = [4 / speed for speed in speeds]
        self.times_s = [[self.draw.uniform(0.5, 1.5) * s for s in speeds] for _ in self.before]

    def problem(self) -> SplitProblem:
        readers = [[w for w, b in enumerate(self.before) if v in b] for v in range(self.count)]
        return SplitProblem(
            self.count,
            self.processors,
            tuple(self.tensor() for _ in self.before),
            tuple(max(each, default=-1) for each in readers),
            tuple(tuple(self.modes(v)) for v in range(self.count)),
        )

    def tensor(self) -> SplitTensor:
        def matrix() -> tuple[tuple[float, ...], ...]:
            count = range(self.processors)
            return tuple(tuple(0.0 if p == q else self.draw.random() for q in count) for p in count)

        copies = tuple(0.3 * self.draw.random() for _ in range(self.processors))
        return SplitTensor((CHANNELS, ROWS), matrix(), matrix(), copies)

    def modes(self, v: int) -> Iterator[ExecutionMode]:
        everywhere = range(self.processors)
        reads = tuple((u, WHOLE) for u in self.before[v])
        for p in everywhere:
            time_s = self.times_s[v][p]
            yield ExecutionMode(
                v, v + 1, (Piece(p, time_s, reads, ((v, WHOLE),), time_s * self.power_w[p]),)
            )
        for cuts in ((0, 2, ROWS), (0, 4, ROWS), (0, 6, ROWS)):
            yield self.split(v, v + 1, ROWS, cuts, halo=1)
        yield self.split(v, v + 1, CHANNELS, (0, 1, CHANNELS), halo=None)
        if self.processors > 2:
            yield self.split(v, v + 1, ROWS, (0, 2, 5, ROWS), halo=1)
        if self.chain and v + 2 <= self.count:
            yield self.split(v, v + 2, ROWS, (0, 4, ROWS), halo=2)
            yield self.side_by_side(v)

    def split(
        self, begin: int, end: int, extent: int, cuts: tuple[int, ...], halo: int | None
    ) -> ExecutionMode:
        pieces = []
        for p, (first, last) in enumerate(pairwise(cuts)):
            need = WHOLE if halo is None else rows(first - halo, last + halo)
            made = channels(first, last) if halo is None else rows(first, last)
            share = (last - first) / extent + 0.1 * (end - begin)
            time_s = share * sum(self.times_s[v][p] for v in range(begin, end))
            reads = tuple((u, need) for u in self.before[begin])
            made_there = ((end - 1, made),)
            pieces.append(Piece(p, time_s, reads, made_there, time_s * self.power_w[p]))
        return ExecutionMode(begin, end, tuple(pieces))

    def side_by_side(self, v: int) -> ExecutionMode:
        """Return two operators as a schedule that takes both processors and ends on the second."""
        time_s = 0.8 * max(self.times_s[v][0], self.times_s[v][1])
        reads = tuple((u, WHOLE) for u in self.before[v])
        first = Piece(0, time_s, reads, (), self.times_s[v][0] * self.power_w[0])
        second = Piece(1, time_s, (), ((v + 1, WHOLE),), self.times_s[v][1] * self.power_w[1])
        return ExecutionMode(v, v + 2, (first, second), joint=True)


def choices(problem: SplitProblem, at: int = 0) -> Iterator[tuple[ExecutionMode, ...]]:
    """Yield all choices of ways."""
    if at == problem.operators:
        yield ()
    else:
        for way in problem.modes[at]:
            yield from ((way, *rest) for rest in choices(problem, way.end))


def least_s(problem: SplitProblem) -> float:
    """Return the least makespan of all choices of ways."""
    return min(makespan_s(problem, ways) for ways in choices(problem))


def energy_j(ways: tuple[ExecutionMode, ...]) -> float:
    return sum(piece.energy_j for way in ways for piece in way.pieces)


@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_shortest_choice(seed, chain):
    drawn = Drawn(seed, operators=4, processors=2 + seed % 2, chain=chain)
    problem = drawn.problem()
    found, best_s = shortest(problem), least_s(problem)
    assert found is not None
    assert found.proven
    assert found.makespan_s == pytest.approx(best_s)
    assert found.makespan_s == makespan_s(problem, found.modes)
    assert problem.rest_s[0] <= best_s * (1 + 1e-9), "loads shared freely bound every choice"


@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_search_trades_time_for_energy(seed, chain):
    problem = Drawn(seed, operators=4, processors=2 + seed % 2, chain=chain).problem()
    made = {ways: (makespan_s(problem, ways), energy_j(ways)) for ways in choices(problem)}
    for s_per_j in (0.1, 1.0, 1e6):
        found = shortest(replace(problem, s_per_j=s_per_j))
        best_s = min(time_s + s_per_j * joules for time_s, joules in made.values())
        assert found is not None
        assert found.proven
        assert found.cost_s == pytest.approx(best_s)
        assert (found.makespan_s, found.energy_j) == pytest.approx(made[found.modes])
        narrow = shortest(replace(problem, s_per_j=s_per_j), width=2)
        assert narrow is not None
        assert narrow.bound_s <= best_s * (1 + 1e-9)
        assert best_s <= narrow.cost_s * (1 + 1e-9)
        known_s = best_s * (1 - 1e-9)
        assert shortest(replace(problem, s_per_j=s_per_j), limit_s=known_s) is None
    assert found.energy_j == pytest.approx(min(joules for _, joules in made.values()))


@pytest.mark.parametrize("seed", range(8))
def test_a_narrow_search_states_an_honest_bound(seed):
    problem = Drawn(seed, operators=4, processors=2, chain=bool(seed % 2)).problem()
    found, best_s = shortest(problem, width=2), least_s(problem)
    assert found is not None
    assert found.bound_s <= best_s * (1 + 1e-9)
    assert best_s <= found.makespan_s * (1 + 1e-9)
    assert found.proven == (found.bound_s == found.makespan_s)


@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_a_stage_is_a_problem_of_its_own(seed, chain):
    problem = Drawn(seed, operators=5, processors=2, chain=chain).problem()
    assert least_s(between(problem, 0, 5)) == pytest.approx(least_s(problem))
    stage = between(problem, 1, 4)
    found = shortest(stage)
    assert found is not None
    assert found.makespan_s == pytest.approx(least_s(stage))
    assert found.makespan_s <= least_s(problem) + 1e-12  # more is there from the start
    marks = [way.mark for way in found.modes]
    assert [way.begin for way in marks] == [way.begin + 1 for way in found.modes]
    assert marks[-1].end == 4
    assert all(way in problem.modes[way.begin] for way in marks)


def test_the_seconds_until_each_way_has_ended_rise_to_the_makespan():
    problem = Drawn(1, operators=5, processors=2, chain=False).problem()
    found = shortest(problem)
    assert found is not None
    places, times_s = zip(*ends_s(problem, found.modes), strict=True)
    assert places == tuple(way.end for way in found.modes)
    assert list(times_s) == sorted(times_s)
    assert times_s[-1] == found.makespan_s


def test_nothing_is_found_that_is_no_better_than_what_is_known():
    problem = Drawn(3, operators=4, processors=2, chain=True).problem()
    best_s = least_s(problem)
    assert shortest(problem, limit_s=best_s * 0.999) is None
    assert shortest(problem, limit_s=best_s * 1.001) is not None
    assert shortest(problem, stop=lambda: True) is None


def moved(rest: float, copy: float = 0.0) -> SplitTensor:
    away = ((0.0, 1.0), (1.0, 0.0))
    return SplitTensor((1, CHANNELS, ROWS), away, ((0.0, rest), (rest, 0.0)), (copy, copy))


def test_a_halo_takes_the_delay_and_its_share_of_the_bytes():
    """Two operators in halves of rows, by hand: each needs one row more of the other's half."""

    def half(begin: int, end: int, *, halo: int) -> Region:
        return ((0, 1), (0, CHANNELS), (max(begin - halo, 0), min(end + halo, ROWS)))

    ways = []
    for v in range(2):
        reads = [((0, half(b, e, halo=1)),) if v else () for b, e in ((0, 4), (4, 8))]
        pieces = [Piece(p, 2.0, reads[p], ((v, half(4 * p, 4 * p + 4, halo=0)),)) for p in range(2)]
        whole = tuple((0, extent) for extent in (1, CHANNELS, ROWS))
        alone = Piece(0, 100.0, ((0, whole),) if v else (), ((v, whole),))
        ways.append((ExecutionMode(v, v + 1, tuple(pieces)), ExecutionMode(v, v + 1, (alone,))))
    problem = SplitProblem(2, 2, (moved(8.0, copy=0.8), moved(8.0)), (1, -1), tuple(ways))
    found = shortest(problem)
    assert found is not None
    # 2 of the first, 1 + 8/8 for the row, 0.8 · 5/8 to put five rows together, 2 of the second
    assert found.makespan_s == pytest.approx(2 + 2 + 0.5 + 2)
    assert found.proven
    assert problem.tensors[0].gathered_s([half(0, 4, halo=0)], half(0, 4, halo=0), 0) == 0


def test_slices_along_the_outermost_axis_are_put_together_for_nothing():
    tensor = moved(8.0, copy=1.0)

    def part(begin: int, end: int) -> Region:
        return ((0, 1), (begin, end), (0, ROWS))

    assert tensor.gathered_s([part(0, 2), part(2, 4)], part(0, 4), 0) == 0
    assert tensor.gathered_s([part(0, 2), part(2, 4)], part(1, 3), 0) == 0


def test_what_is_no_problem_is_refused():
    piece = Piece(0, 1.0, (), ((0, WHOLE),))
    tensor = SplitTensor((CHANNELS, ROWS), ((0.0,),), ((0.0,),), (0.0,))
    with pytest.raises(ValueError, match="cannot be run alone"):
        SplitProblem(2, 1, (tensor,), (-1,), ((ExecutionMode(0, 2, (piece,)),), ()))
    with pytest.raises(ValueError, match="on processors"):
        SplitProblem(1, 1, (tensor,), (-1,), ((ExecutionMode(0, 1, (piece, piece)),),))
    with pytest.raises(ValueError, match="rows of ways"):
        SplitProblem(2, 1, (tensor,), (-1,), ((ExecutionMode(0, 1, (piece,)),),))
    problem = SplitProblem(1, 1, (tensor,), (-1,), ((ExecutionMode(0, 1, (piece,)),),))
    with pytest.raises(ValueError, match="is not run"):
        makespan_s(problem, ())
    reader = Piece(0, 1.0, ((0, WHOLE),), ())
    lacking = SplitProblem(1, 1, (tensor,), (0,), ((ExecutionMode(0, 1, (reader,)),),))
    with pytest.raises(ValueError, match="not there"):
        makespan_s(lacking, (ExecutionMode(0, 1, (reader,)),))
    assert shortest(problem, limit_s=inf) is not None
