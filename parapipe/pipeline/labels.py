"""What stages so far take: labels as columns of arrays, and which of them to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.bounds import first_of_each
from parapipe.pipeline.dominance import staircase
from parapipe.pipeline.stage_table import StageShape
from parapipe.pipeline.tolerance import cells

Numbers = NDArray[np.int64]


class Points(NamedTuple):
    """All that stages from one boundary may take, as columns; `shape` is a number of `shapes`.

    `mask` has all processors that a stage uses, `replicas` those that take turns on it, or none.
    """

    place: Numbers
    mask: Numbers
    end: Numbers
    out: Numbers
    time_ns: Numbers
    energy_nj: Numbers
    shape: Numbers
    shapes: Sequence[StageShape]
    every_ns: Numbers
    replicas: Numbers


class Labels(NamedTuple):
    """What stages so far take, as columns; each is its row `row` at `begin` and a stage's point."""

    aim: Numbers
    wide: Numbers  # whether a stage uses several processors, where that counts
    used: Numbers
    place: Numbers
    latency_ns: Numbers
    period_ns: Numbers
    energy_nj: Numbers
    begin: Numbers
    row: Numbers
    point: Numbers

    def pick(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Labels:
        """Return some of the labels."""
        return Labels(*(column[chosen] for column in self))

    @property
    def state(self) -> Numbers:
        """Numbers of states, equal where aim, wide, used and place are."""
        places = int(self.place.max(initial=0)) + 1
        sets = int(self.used.max(initial=0)) + 1
        found: Numbers = ((self.aim * 2 + self.wide) * sets + self.used) * places + self.place
        return found


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
        return labels.pick(descending(state, labels.period_ns))
    figures = list(
        zip(
            *(
                column.tolist()
                for column in (labels.latency_ns, labels.period_ns, labels.energy_nj)
            ),
            strict=True,
        )
    )
    kept = [i for rows in runs(state) for i in staircase(rows.tolist(), figures.__getitem__)]
    return labels.pick(np.array(kept, np.int64))


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


def joined(parts: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Put rows and points together."""
    rows, points = map(np.concatenate, zip(*parts, strict=True))
    return rows, points


def runs(numbers: Numbers) -> list[Numbers]:
    """Return the places of each value of a sorted array."""
    return np.split(np.arange(len(numbers)), first_of_each(numbers)[1:]) if len(numbers) else []


def descending(state: Numbers, period_ns: Numbers) -> NDArray[np.bool_]:
    """Tell which periods are less than all before them of their state; states are sorted."""
    _, rank = np.unique(period_ns, return_inverse=True)
    number = np.cumsum(np.append(False, state[1:] != state[:-1]))
    shifted = rank - number * len(rank)  # every state begins below all that came before
    least = np.minimum.accumulate(shifted)
    found: NDArray[np.bool_] = np.append(True, shifted[1:] < least[:-1])
    return found
