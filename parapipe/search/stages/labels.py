"""What stages so far take, as columns of arrays, and lower bounds for the rest.

A relaxed mapping may use the processors of a set as it likes: in one unit, and again in a later
stage. What it takes is a shortest path through the units and the locations of live tensors, for all
sets at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.pareto import staircase
from parapipe.problems.time_energy import cells
from parapipe.search.stages.stage_table import StageShape

if TYPE_CHECKING:
    from parapipe.search.stages.stage_table import StageTable


AT_ONCE = 1 << 22  # numbers, of all that begin somewhere and go on by any of a unit's options

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _UnitSteps:
    """Options of one unit that run equally many units, as columns, by place before it."""

    length: int
    place: Integers
    out: Integers
    processors: Integers
    time_ns: Numbers
    energy_nj: Numbers


class Bounds:
    """What is left to do behind each boundary, and what stages between boundaries take.

    Times and energies are exact whole numbers as doubles, infinite where nothing is possible. The
    last axis of every array is the set of processors that may be used, as a bit mask.

    Parameters
    ----------
    units, stages
        What the units' options allow.
    processors
        Number of processors.
    replicas
        Sets of processors that may take turns on a stage of one, by the bit mask of their first.
    alone
        Likewise, on a stage that is the whole network.
    """

    def __init__(
        self,
        units: int,
        stages: StageTable,
        processors: int,
        replicas: Mapping[int, Sequence[int]] = MappingProxyType({}),
        alone: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> None:
        self._places = stages.places(units)
        self._sets = np.arange(1 << processors)
        self.within = (self._sets[:, None] & ~self._sets) == 0  # [used, allowed]
        self._steps = [list(self._list_steps(unit, stages)) for unit in range(units)]
        self.after_ns = self._least_to_end("time_ns")
        self.after_nj = self._least_to_end("energy_nj")
        self.least_after_ns = self.after_ns.min(axis=1)
        """[boundary, set]: likewise, wherever tensors are."""
        self.least_after_nj = self.after_nj.min(axis=1)
        self.stage_ns = self._least_between("time_ns")
        """[boundary, boundary, set]: least time from one to another."""
        self.stage_nj = (
            self._least_between("energy_nj") if stages.energy else np.zeros_like(self.stage_ns)
        )
        """Likewise, dynamic energy."""
        self._replica_shares = [*_list_replica_shares(self.stage_ns, replicas, alone)]
        self.every_ns = self.stage_ns.copy() if self._replica_shares else self.stage_ns
        """Likewise, time between frames, for exactly these processors: of replicas their share."""
        for _, mask, share_ns in self._replica_shares:
            self.every_ns[:, :, mask] = np.minimum(self.every_ns[:, :, mask], share_ns)
        backwards = self.every_ns[::-1, ::-1].swapaxes(0, 1)
        self.period_after_ns = np.array(self._least_by_stages(backwards, np.maximum)[::-1])
        """[boundary, set]: least time of the longest stage behind; stages share no processor."""

    def least_periods_ns(self, *, every_cut: bool) -> Numbers:
        """Return the least time of the longest stage by the processors that may be used.

        Parameters
        ----------
        every_cut
            Whether stages begin and end between units alone, and not inside of them, too. If not,
            of a unit at the end of a stage any share may be another's.
        """
        if every_cut:
            return self._least_by_stages(self.every_ns, np.maximum)[-1]
        # a stage from inside unit k - 1, or from unit k on, to inside unit j runs k to j - 1 whole
        count = len(self.stage_ns)
        inner = np.zeros((count + 1, count + 1, len(self._sets)))
        inner[:count, 1:] = self.every_ns
        begin, end = np.indices(inner.shape[:2])
        inner[end == begin + 1] = 0.0
        inner[:, :, 0] = np.inf  # it needs a processor all the same
        return self._least_by_stages(inner, np.maximum)[-1]

    def least_latency_ns(self, most_ns: float) -> float:
        """Return what no latency falls below of stages between units, none longer than a limit.

        Of those that processors take turns on, their share of the time is limited.
        """
        time_ns = np.where(self.stage_ns <= most_ns, self.stage_ns, np.inf)
        for first, mask, share_ns in self._replica_shares:
            own_ns = np.where(share_ns <= most_ns, self.stage_ns[:, :, first], np.inf)
            time_ns[:, :, mask] = np.minimum(time_ns[:, :, mask], own_ns)
        return float(self._least_by_stages(time_ns, np.add)[-1][-1])

    def _list_steps(self, unit: int, stages: StageTable) -> Iterator[_UnitSteps]:
        number = [{at: i for i, at in enumerate(places)} for places in self._places]
        rows = sorted(
            (o.units, i, number[unit + o.units][o.locations], o.processors, o.time_ns, o.energy_nj)
            for i, at in enumerate(self._places[unit])
            for o in stages.options(unit, at)
        )
        for length, some in groupby(rows, key=lambda row: row[0]):
            columns = np.array([row[1:] for row in some], np.float64).T
            place, out, used = columns[:3].astype(np.int64)
            energy_nj = columns[4] if stages.energy else np.zeros_like(columns[4])
            yield _UnitSteps(length, place, out, used, columns[3], energy_nj)

    def _least_to_end(self, figure: str) -> Numbers:
        behind: list[Numbers] = [np.zeros((1, len(self._sets)))]
        for unit in reversed(range(len(self._steps))):
            here = np.full((len(self._places[unit]), len(self._sets)), np.inf)
            for steps in self._steps[unit]:
                added = behind[-steps.length][steps.out] + getattr(steps, figure)[:, None]
                added[~self.within[steps.processors]] = np.inf
                first = first_of_each(steps.place)
                at = steps.place[first]
                here[at] = np.minimum(here[at], np.minimum.reduceat(added, first))
            behind.append(here)
        most = max(map(len, self._places))
        return np.array(
            [
                np.pad(each, ((0, most - len(each)), (0, 0)), constant_values=np.inf)
                for each in reversed(behind)
            ]
        )

    def _least_between(self, figure: str) -> Numbers:
        units = len(self._steps)
        least = np.full((units + 1, units + 1, len(self._sets)), np.inf)
        ahead: dict[int, Numbers] = {}  # [begin, place, set] by boundary
        for unit in range(units + 1):
            shape = (units + 1, len(self._places[unit]), len(self._sets))
            here = ahead.pop(unit, np.full(shape, np.inf))
            least[:, unit] = here.min(axis=1)
            here[unit] = 0.0
            for steps in self._steps[unit] if unit < units else ():
                by_out = np.argsort(steps.out, kind="stable")
                out = steps.out[by_out]
                first = first_of_each(out)
                end = unit + steps.length
                shape = (units + 1, len(self._places[end]), len(self._sets))
                there = ahead.setdefault(end, np.full(shape, np.inf))
                at = out[first]
                rows = max(1, AT_ONCE // (len(out) * len(self._sets)))
                for low in range(0, unit + 1, rows):
                    some = slice(low, min(low + rows, unit + 1))
                    added = here[some, steps.place[by_out]]
                    added += getattr(steps, figure)[by_out][:, None]
                    added[:, ~self.within[steps.processors[by_out]]] = np.inf
                    reached = np.minimum.reduceat(added, first, axis=1)
                    there[some, at] = np.minimum(there[some, at], reached)
        return least

    def _least_by_stages(self, stage_ns: Numbers, join: np.ufunc) -> list[Numbers]:
        """Return the least that stages come to before each boundary, by set: longest, or sum."""
        # all sets of stages, with what they are taken from
        allowed, mask = np.argwhere(self.within.T).T
        first = first_of_each(allowed)
        least = np.zeros((len(stage_ns), len(self._sets)))
        for end in range(1, len(stage_ns)):
            both = join(stage_ns[:end, end][:, mask], least[:end, allowed & ~mask])
            least[end] = np.minimum.reduceat(both.min(axis=0), first)
        return [*least]


def _list_replica_shares(
    stage_ns: Numbers, replicas: Mapping[int, Sequence[int]], alone: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, Numbers]]:
    """Yield who takes turns: the first, all, and their shares of stages between boundaries."""
    network_ns = np.full_like(stage_ns, np.inf)
    network_ns[0, -1] = stage_ns[0, -1]
    for time_ns, groups in ((stage_ns, replicas), (network_ns, alone)):
        for first, masks in groups.items():
            for mask in masks:
                yield first, mask, time_ns[:, :, first] / mask.bit_count()


def first_of_each(numbers: Integers) -> Integers:
    """Return where each value begins in a sorted array."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))


class Points(NamedTuple):
    """All that stages from one boundary may take, as columns; `shape` is a number of `shapes`.

    `mask` has all processors that a stage uses, `replicas` those that take turns on it, or none.
    """

    place: Integers
    mask: Integers
    end: Integers
    out: Integers
    time_ns: Integers
    energy_nj: Integers
    shape: Integers
    shapes: Sequence[StageShape]
    every_ns: Integers
    replicas: Integers


class Labels(NamedTuple):
    """What stages so far take, as columns; each is its row `row` at `begin` and a stage's point."""

    aim: Integers
    wide: Integers  # whether a stage uses several processors, where that counts
    stages: Integers  # their number, where that is limited
    used: Integers
    place: Integers
    latency_ns: Integers
    period_ns: Integers
    energy_nj: Integers
    begin: Integers
    row: Integers
    point: Integers

    def pick(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Labels:
        """Return some of the labels."""
        return Labels(*(column[chosen] for column in self))

    @property
    def state(self) -> Integers:
        """Numbers of states, equal where aim, wide, stages, used and place are."""
        places = int(self.place.max(initial=0)) + 1
        sets = int(self.used.max(initial=0)) + 1
        counts = int(self.stages.max(initial=0)) + 1
        kinds = (self.aim * 2 + self.wide) * counts + self.stages
        states: Integers = (kinds * sets + self.used) * places + self.place
        return states


def undominated(labels: Labels, share: float, *, energy: bool) -> Labels:
    """Return labels sorted by state, those left out that others of their state match.

    Parameters
    ----------
    share
        Of labels whose latency and period differ by less, the one of least energy is kept.
    energy
        Whether energy counts.
    """
    state = labels.state
    if share:
        latency, period = cells(labels.latency_ns, share), cells(labels.period_ns, share)
        order = np.lexsort((labels.latency_ns, labels.energy_nj, period, latency, state))
        cell = np.stack([state[order], latency[order], period[order]])
        new = np.append(True, (cell[:, 1:] != cell[:, :-1]).any(axis=0))
        labels = labels.pick(order[new])
        state = labels.state
    order = np.lexsort((labels.energy_nj, labels.period_ns, labels.latency_ns, state))
    labels, state = labels.pick(order), state[order]
    if not energy:
        return labels.pick(is_descending(state, labels.period_ns))
    columns = (labels.latency_ns, labels.period_ns, labels.energy_nj)
    figures = list(zip(*(column.tolist() for column in columns), strict=True))
    groups = (rows.tolist() for rows in groups_of_equal(state))
    rows = [row for group in groups for row in staircase(group, figures.__getitem__)]
    return labels.pick(np.array(rows, np.int64))


def least_of_each(labels: Labels) -> Labels:
    """Return a label for each set of used processors, with the least of each figure of theirs."""
    labels = labels.pick(np.argsort(labels.used, kind="stable"))
    if not len(labels.used):
        return labels
    first = first_of_each(labels.used)
    return labels.pick(first)._replace(
        latency_ns=np.minimum.reduceat(labels.latency_ns, first),
        period_ns=np.minimum.reduceat(labels.period_ns, first),
        energy_nj=np.minimum.reduceat(labels.energy_nj, first),
    )


def join_pairs(parts: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Put rows and points together."""
    rows, points = map(np.concatenate, zip(*parts, strict=True))
    return rows, points


def groups_of_equal(numbers: Integers) -> list[Integers]:
    """Return the places of each value of a sorted array."""
    return np.split(np.arange(len(numbers)), first_of_each(numbers)[1:]) if len(numbers) else []


def is_descending(state: Integers, period_ns: Integers) -> NDArray[np.bool_]:
    """Tell which periods are less than all before them of their state; states are sorted."""
    _, rank = np.unique(period_ns, return_inverse=True)
    number = np.cumsum(np.append(False, state[1:] != state[:-1]))
    shifted = rank - number * len(rank)  # every state begins below all that came before
    least = np.minimum.accumulate(shifted)
    descends: NDArray[np.bool_] = np.append(True, shifted[1:] < least[:-1])
    return descends
