"""The split problem: which operators run whole, which in parts, where, and in which runs.

Plain arrays, free of ONNX, of YAML and of pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, inf, prod
from typing import NamedTuple

ROUNDS = 80
STEP, STEP_ROUNDS = 1.0, 10

Region = tuple[tuple[int, int], ...]
"""A part of a tensor: begin and end along each axis."""
Regions = tuple[tuple[int, Region], ...]
"""Processors, each with the region of a tensor that it has made."""


class Fetched(NamedTuple):
    """What a piece waits for: numbers of the regions that are held, with the seconds of transfers.

    `gather_s`: seconds to put them together, once all of them are there.
    """

    waits: tuple[tuple[int, float], ...]
    gather_s: float


@dataclass(frozen=True, slots=True)
class SplitTensor:
    """What moving a tensor costs: t = delay + share of the elements × rest.

    Parameters
    ----------
    shape
        Extents; all of them 1 or more.
    delay_s, rest_s
        `delay_s[p][q]`: seconds from processor p to q for no bytes at all; `rest_s[p][q]`: how much
        more the whole tensor takes. 0 on the diagonals.
    copy_s
        `copy_s[p]`: seconds to copy the whole tensor on processor p.
    """

    shape: tuple[int, ...]
    delay_s: tuple[tuple[float, ...], ...]
    rest_s: tuple[tuple[float, ...], ...]
    copy_s: tuple[float, ...]

    def moved_s(self, p: int, q: int, region: Region) -> float:
        """Return the seconds to move a region from processor p to q."""
        if p == q:
            return 0.0
        return self.delay_s[p][q] + self._share_of_elements(region) * self.rest_s[p][q]

    def gathered_s(self, present: Iterable[Region], need: Region, p: int) -> float:
        """Return the seconds that p takes to put together what it needs, once all of it is there.

        None where that is a tensor as it was made, or slices of a buffer that lie one behind the
        other: cut along the outermost axis.
        """
        outermost = next((axis for axis, extent in enumerate(self.shape) if extent > 1), 0)
        regions = [*present, need]
        uncut = all(
            bounds == (0, extent)
            for region in regions
            for axis, (bounds, extent) in enumerate(zip(region, self.shape, strict=True))
            if axis != outermost
        )
        return (
            0.0 if uncut or need in regions[:-1] else self._share_of_elements(need) * self.copy_s[p]
        )

    def _share_of_elements(self, region: Region) -> float:
        return _element_count(region) / prod(self.shape)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one processor does of a step.

    Parameters
    ----------
    processor
        Who does it.
    time_s
        Seconds that it takes.
    reads
        Regions of tensors that it needs, by the tensors' numbers. Graph inputs are left out: once
        loaded, they are everywhere.
    makes
        Regions of tensors that it makes.
    energy_j
        Joules that it takes.
    """

    processor: int
    time_s: float
    reads: tuple[tuple[int, Region], ...]
    makes: tuple[tuple[int, Region], ...]
    energy_j: float = 0.0


@dataclass(frozen=True, slots=True)
class ExecutionMode:
    """One mode to run the operators `begin` to `end` (exclusive): whole, or in pieces.

    Parameters
    ----------
    begin, end
        Places in the order of operators; more than one of them is a run that is cut the same way.
    pieces
        On different processors. Together they make all that the operators make for later ones.
    mark
        What the caller needs to know it by.
    joint
        Whether all pieces begin together: they are one schedule of parallel operators.
    """

    begin: int
    end: int
    pieces: tuple[Piece, ...]
    mark: object = None
    joint: bool = False

    @property
    def is_split(self) -> bool:
        """Whether several processors share an operator."""
        return len(self.pieces) > 1 and not self.joint

    @property
    def energy_j(self) -> float:
        """Joules of all pieces."""
        return sum(piece.energy_j for piece in self.pieces)


@dataclass(frozen=True)
class SplitProblem:
    """Operators in an order that all processors keep, and the modes to run them.

    Parameters
    ----------
    operators
        How many; they are run in the order of their numbers.
    processors
        How many.
    tensors
        Tensors between operators.
    last_reader
        Of each tensor: the last operator that reads it, -1 if none does.
    modes
        Those that begin at each operator; at least one each that runs it alone.
    s_per_j
        Seconds of makespan that a joule is worth: makespan + s_per_j × energy is to be least.
    """

    operators: int
    processors: int
    tensors: tuple[SplitTensor, ...]
    last_reader: tuple[int, ...]
    modes: tuple[tuple[ExecutionMode, ...], ...]
    s_per_j: float = 0.0
    _fetched: dict[tuple[int, Regions, Region, int], Fetched] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if len(self.modes) != self.operators:
            raise ValueError(f"{len(self.modes)} rows of ways for {self.operators} operators")
        for v, modes in enumerate(self.modes):
            if not any(mode.end == v + 1 for mode in modes):
                raise ValueError(f"operator {v} cannot be run alone")
            for mode in modes:
                used = [piece.processor for piece in mode.pieces]
                if mode.begin != v or not v < mode.end <= self.operators:
                    raise ValueError(f"a way at operator {v} runs {mode.begin} to {mode.end}")
                if len(set(used)) != len(used) or not 0 <= min(used) <= max(used) < self.processors:
                    raise ValueError(f"a way at operator {v} has pieces on processors {used}")

    def fetched(self, tensor: int, present: Regions, need: Region, p: int) -> Fetched:
        """Return how processor p comes by a region of a tensor that is held so."""
        key = (tensor, present, need, p)
        if key not in self._fetched:
            of = self.tensors[tensor]
            waits = tuple(
                (i, of.moved_s(q, p, common))
                for i, (q, region) in enumerate(present)
                if (common := overlap(region, need)) is not None
            )
            regions = [region for _, region in present]
            self._fetched[key] = Fetched(waits, of.gathered_s(regions, need, p))
        return self._fetched[key]

    @cached_property
    def prices(self) -> tuple[float, ...]:
        """Weights of the processors, of sum 1, for which their loads bound the makespan best.

        All processors are busy for at most the makespan each. So it is at least the least weighted
        sum of loads, whatever the weights are: the dual of sharing all work freely. They are found
        by multiplicative weights, in a fixed number of rounds.
        """
        weights = [1.0 / self.processors] * self.processors
        best_s, best = 0.0, tuple(weights)
        for round_ in range(ROUNDS):
            rest_s, loads_s = self.shared_s(weights)
            if rest_s[0] > best_s:
                best_s, best = rest_s[0], tuple(weights)
            most_s = max(loads_s) or 1.0
            raised = [
                weight * exp(STEP * load_s / most_s / (1 + round_ / STEP_ROUNDS))
                for weight, load_s in zip(weights, loads_s, strict=True)
            ]
            weights = [weight / sum(raised) for weight in raised]
        return best

    @cached_property
    def rest_s(self) -> tuple[float, ...]:
        """From each operator on: the least sum of loads, weighted by `prices`, with the energy."""
        return self.shared_s(self.prices)[0]

    @cached_property
    def rest_energy_s(self) -> tuple[float, ...]:
        """From each operator on: the least energy, in the seconds that it is worth."""
        return self.shared_s([0.0] * self.processors)[0]

    @cached_property
    def waits(self) -> tuple[bool, ...]:
        """From each operator on: whether all that is left reads what others have made."""
        waiting = [True]
        for modes in reversed(self.modes):
            waiting.append(waiting[-1] and all(p.reads for mode in modes for p in mode.pieces))
        return tuple(reversed(waiting))

    def shared_s(self, prices: Sequence[float]) -> tuple[tuple[float, ...], list[float]]:
        """Return, from each operator on, the least weighted sums of loads and energy; all loads."""
        rest_s = [0.0] * (self.operators + 1)
        chosen: list[ExecutionMode] = []
        for v in reversed(range(self.operators)):
            priced = [
                sum(prices[piece.processor] * piece.time_s for piece in mode.pieces)
                + self.s_per_j * mode.energy_j
                + rest_s[mode.end]
                for mode in self.modes[v]
            ]
            rest_s[v] = min(priced)
            chosen.append(self.modes[v][priced.index(rest_s[v])])
        loads_s, at = [0.0] * self.processors, 0
        while at < self.operators:
            mode = chosen[self.operators - 1 - at]
            for piece in mode.pieces:
                loads_s[piece.processor] += piece.time_s
            at = mode.end
        return tuple(rest_s), loads_s

    @cached_property
    def tails_s(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Seconds that are left when a region of a tensor is there, by the tensor: least, expected.

        The longest path through the tensor's readers, each as fast as any mode with it is per
        operator. Least: only the shortest piece of a mode need read the region. Expected: all do,
        and there are no runs.
        """
        longest_run = max(mode.end - mode.begin for modes in self.modes for mode in modes)
        return self._tails_s(min, longest_run), self._tails_s(max, 1)

    def _tails_s(
        self, of_pieces: Callable[[Iterable[float]], float], longest: int
    ) -> tuple[float, ...]:
        fastest_s = [inf] * self.operators
        read: list[set[int]] = [set() for _ in range(self.operators)]
        written: list[set[int]] = [set() for _ in range(self.operators)]
        for v, modes in enumerate(self.modes):
            for mode in modes:
                time_s = of_pieces(piece.time_s for piece in mode.pieces) / (mode.end - v)
                for inside in range(v, mode.end if mode.end - v <= longest else v):
                    fastest_s[inside] = min(fastest_s[inside], time_s)
                if mode.end == v + 1:
                    read[v] |= {tensor for piece in mode.pieces for tensor, _ in piece.reads}
                    written[v] |= {tensor for piece in mode.pieces for tensor, _ in piece.makes}
        tails_s = [0.0] * len(self.tensors)
        for v in reversed(range(self.operators)):
            after_s = fastest_s[v] + max((tails_s[tensor] for tensor in written[v]), default=0.0)
            for tensor in read[v]:
                tails_s[tensor] = max(tails_s[tensor], after_s)
        return tuple(tails_s)


def overlap(one: Region, other: Region) -> Region | None:
    """Return what two regions share; None if that is nothing."""
    common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return common if all(begin < end for begin, end in common) else None


def makespan_s(problem: SplitProblem, modes: Sequence[ExecutionMode]) -> float:
    """Return the seconds that modes take: each piece as soon as its processor and its data allow.

    Processors take pieces in the order of `modes`. A mode runs operators one after the other;
    pieces of it know nothing of each other.

    Raises
    ------
    ValueError
        If the modes do not run every operator once, or a piece lacks data.
    """
    *_, (at, end_s) = ((0, 0.0), *ends_s(problem, modes))
    if at != problem.operators:
        raise ValueError(f"operator {at} is not run")
    return end_s


def ends_s(problem: SplitProblem, modes: Sequence[ExecutionMode]) -> Iterator[tuple[int, float]]:
    """Yield, after each mode, the operator that is next and the seconds until all so far has ended.

    Raises
    ------
    ValueError
        As for `makespan_s`.
    """
    at, free_s = 0, [0.0] * problem.processors
    present: dict[int, Regions] = {}
    ready_s: dict[int, list[float]] = {}
    for mode in modes:
        if mode.begin != at:
            raise ValueError(f"operator {at} is not run")
        at = mode.end
        starts_s = []
        for piece in mode.pieces:
            ready, gather_s = [free_s[piece.processor]], 0.0
            for tensor, need in piece.reads:
                regions = present.get(tensor, ())
                _check_covered(regions, need, mode)
                fetched = problem.fetched(tensor, regions, need, piece.processor)
                ready += [ready_s[tensor][i] + moved_s for i, moved_s in fetched.waits]
                gather_s += fetched.gather_s
            starts_s.append(max(ready) + gather_s)
        if mode.joint:
            starts_s = [max(starts_s)] * len(starts_s)
        for piece, start_s in zip(mode.pieces, starts_s, strict=True):
            end_s = start_s + piece.time_s
            free_s[piece.processor] = end_s
            for tensor, region in piece.makes:
                present[tensor] = (*present.get(tensor, ()), (piece.processor, region))
                ready_s.setdefault(tensor, []).append(end_s)
        yield at, max(free_s)


def between(problem: SplitProblem, begin: int, end: int) -> SplitProblem:
    """Return the problem of the operators `begin` to `end` (exclusive), as a stage of a pipeline.

    What operators before them make is there at once, as graph inputs are. The mark of each mode is
    the mode that it comes from.
    """
    before = {
        tensor
        for modes in problem.modes[:begin]
        for mode in modes
        if mode.end == mode.begin + 1
        for piece in mode.pieces
        for tensor, _ in piece.makes
    }

    def moved(mode: ExecutionMode) -> ExecutionMode:
        pieces = tuple(
            replace(piece, reads=tuple(each for each in piece.reads if each[0] not in before))
            for piece in mode.pieces
        )
        return ExecutionMode(
            mode.begin - begin, mode.end - begin, pieces, mark=mode, joint=mode.joint
        )

    return SplitProblem(
        end - begin,
        problem.processors,
        problem.tensors,
        tuple(min(last, end - 1) - begin for last in problem.last_reader),
        tuple(
            tuple(moved(mode) for mode in modes if mode.end <= end)
            for modes in problem.modes[begin:end]
        ),
        problem.s_per_j,
    )


def _check_covered(present: Regions, need: Region, mode: ExecutionMode) -> None:
    common = (overlap(region, need) for _, region in present)
    if sum(_element_count(region) for region in common if region) != _element_count(need):
        raise ValueError(f"operator {mode.begin} reads what is not there")


def _element_count(region: Region) -> int:
    return prod(end - begin for begin, end in region)
