"""Assignments of the first operators, extended one by one; what cannot matter is left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parapipe.mapping.assignments.best import Best
from parapipe.mapping.assignments.tables import Floats, Numbers, Tables

MOST = 300_000  # assignments at once
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of energy, of those that are looked at first


@dataclass(frozen=True, slots=True)
class Rows:
    """Assignments of the first operators, and lower bounds of what they lead to.

    The last axis of every array counts the assignments.

    Parameters
    ----------
    processor, end_s
        By operator; ends as if processors could run several operators at once.
    load_s
        By processor.
    time_s, energy_j
        Of all that they can be extended to, no schedule takes less.
    """

    processor: Numbers
    end_s: Floats
    load_s: Floats
    time_s: Floats
    energy_j: Floats

    def pick(self, chosen: Numbers) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.processor.take(chosen, -1),
            self.end_s.take(chosen, -1),
            self.load_s.take(chosen, -1),
            self.time_s[chosen],
            self.energy_j[chosen],
        )


def assignments(given: Tables, best: Best, most: int | None = None) -> Rows | None:
    """Return every assignment that can matter; None if there are too many to look at.

    Parameters
    ----------
    most
        Keep only about so many promising ones at every step.
    """
    rows = Rows(
        np.empty((0, 1), np.int64),
        np.empty((0, 1)),
        np.zeros((given.time_s.shape[1], 1)),
        np.zeros(1),
        np.full(1, best.least_j),
    )
    for v in range(given.operators):
        if len(rows.time_s) * len(given.choices[v]) > MOST:
            return None
        rows = _extended(given, rows, v, best)
        if not len(rows.time_s):
            break
        if given.passes[v]:
            rows = rows.pick(_undominated(rows))
        if most is not None and len(rows.time_s) > most:
            rows = rows.pick(_promising(rows, most))
    return rows


def _extended(given: Tables, rows: Rows, v: int, best: Best) -> Rows:
    """Place one more operator, wherever it can run and matters."""
    choices = np.array(given.choices[v])
    lasts_s, joules = given.time_s[v, choices, None], given.energy_j[v, choices, None]
    start_s = given.release_s[v, choices, None]
    for u, delay_s in given.edges[v]:
        moved_s = delay_s.T[choices].take(rows.processor[u], -1)
        start_s = np.maximum(start_s, rows.end_s[u] + moved_s)
    load_s = rows.load_s[choices] + lasts_s
    end_s = np.broadcast_to(start_s + lasts_s, load_s.shape)
    time_s = np.maximum(rows.time_s, end_s + given.tail_s[v, choices, None])
    np.maximum(time_s, load_s, out=time_s)
    energy_j = rows.energy_j + (joules - joules.min())
    left = np.flatnonzero(best.matter(time_s.ravel(), energy_j.ravel()))
    chosen, parent = np.divmod(left, len(rows.time_s))
    processor, loads_s = choices[chosen], rows.load_s.take(parent, -1)
    loads_s[processor, np.arange(len(left))] = load_s[chosen, parent]
    return Rows(
        np.concatenate((rows.processor.take(parent, -1), processor[None])),
        np.concatenate((rows.end_s.take(parent, -1), end_s[chosen, parent][None])),
        loads_s,
        time_s[chosen, parent],
        energy_j[chosen, parent],
    )


def _undominated(rows: Rows) -> Numbers:
    """Return, of operators one after the other, what ends first on each processor, or saves."""
    order = np.lexsort((rows.energy_j, rows.end_s[-1], rows.processor[-1]))
    last = rows.processor[-1, order]
    kept = []
    for own in np.split(order, np.flatnonzero(np.diff(last)) + 1):
        energy_j = rows.energy_j[own]
        least_j = np.minimum.accumulate(energy_j)
        kept.append(own[np.append(True, energy_j[1:] < least_j[:-1])])
    return np.concatenate(kept)


def _promising(rows: Rows, most: int) -> Numbers:
    """Return rows of little time, of little energy, and of little of both together."""
    time, energy = (
        (values - values.min()) / max(float(np.ptp(values)), 1e-300)
        for values in (rows.time_s, rows.energy_j)
    )
    some = max(1, most // len(WEIGHTS))
    return np.unique(
        np.concatenate([np.argpartition(time + weight * energy, some)[:some] for weight in WEIGHTS])
    )
