"""Search over stages within a tolerance: for networks whose units have many schedules each.

Fronts of runs are sums of the units' fronts, and there are as many configurations as ways to
choose from these. So figures are compared on a grid: of labels that fall into one cell, the one of
least energy is kept. What a label loses by that is bounded by the cells it has passed through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.front import staircase
from parapipe.pipeline.fronts import Front, Homes
from parapipe.pipeline.grain import cells, coarsened
from parapipe.pipeline.runs import Run, Runs
from parapipe.pipeline.search import Candidate, StageRun, inner_stages

# Processors used so far, homes of live tensors.
_State = tuple[int, Homes]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By what share times may be off, each kind of thinning for itself.

    Parameters
    ----------
    stage
        The time of a stage, once it is chosen from all a run may take.
    label
        Latency and period, each time another stage is added.
    """

    stage: float
    label: float


@dataclass(frozen=True, slots=True)
class _Labels:
    """What stages so far take, and where each label comes from.

    `origin[i]` is a chunk's number in `chunks`, and `place[i]` the number of a pair of a label
    before the last stage and a point of that stage's front.
    """

    latency_ns: NDArray[np.int64]
    period_ns: NDArray[np.int64]
    energy_nj: NDArray[np.int64]
    origin: NDArray[np.int64]
    place: NDArray[np.int64]
    chunks: tuple[_Chunk, ...] = ()

    def pick(self, chosen: NDArray[np.int64]) -> _Labels:
        """Return some of the labels."""
        return _Labels(
            self.latency_ns[chosen],
            self.period_ns[chosen],
            self.energy_nj[chosen],
            self.origin[chosen],
            self.place[chosen],
            self.chunks,
        )


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Labels and a stage that was added to them."""

    before: _Labels
    run: Run
    front: Front


def search_within(
    units: int, runs: Runs, static_power_w: Sequence[float], tolerance: Tolerance
) -> list[Candidate]:
    """Find configurations that together match every one there is.

    For each configuration that the options allow, one is found whose latency, period and energy
    are at most (1 + stage) × (1 + label)^stages times as large, besides what the runs
    themselves are off by. With no tolerance at all this is the exact front.

    Parameters
    ----------
    units, runs, static_power_w
        As for `search`.

    Returns
    -------
    Candidates that do not dominate each other, sorted by objectives.
    """
    everything = (1 << len(static_power_w)) - 1
    nothing = np.zeros(1, np.int64)
    states: list[dict[_State, list[_Labels]]] = [{} for _ in range(units + 1)]
    states[0] = {(0, ()): [_Labels(nothing, nothing, nothing, nothing, nothing)]}
    ending = runs.ending(units)
    for begin in range(units):
        inner = inner_stages({used for used, _ in states[begin]}, everything)
        runs_from = cache(
            lambda homes, begin=begin, inner=inner: [
                (run, coarsened(front, tolerance.stage))
                for run, front in (
                    *runs.beginning(begin, units - 1, homes, inner),
                    *(
                        (Run(begin, units, homes, (), mask), front)
                        for mask, front in ending[begin][homes].items()
                    ),
                )
            ]
        )
        for (used, homes), parts in states[begin].items():
            if used == everything:
                continue
            labels = _joined(parts, tolerance.label)
            for run, front in runs_from(homes):
                mask = run.processors
                if mask & used or (used | mask == everything and run.end < units):
                    continue
                more = _extended(_Chunk(labels, run, front), tolerance.label)
                states[run.end].setdefault((used | mask, run.homes), []).append(more)
        states[begin].clear()
    found = [
        candidate
        for (used, _), parts in states[units].items()
        for candidate in _candidates(_joined(parts, 0.0), used, static_power_w)
    ]
    best = staircase(found, lambda c: (c.latency_ns, c.period_ns, c.energy_nj))
    return sorted(best, key=lambda candidate: (candidate.objectives, candidate.processors))


def _extended(chunk: _Chunk, share: float) -> _Labels:
    """Add a stage to labels, in every way its front allows."""
    before, front = chunk.before, chunk.front
    latency_ns = (before.latency_ns[:, None] + front.time_ns[None, :]).ravel()
    period_ns = np.maximum(before.period_ns[:, None], front.time_ns[None, :]).ravel()
    energy_nj = (before.energy_nj[:, None] + front.energy_nj[None, :]).ravel()
    count = len(latency_ns)
    every = _Labels(
        latency_ns,
        period_ns,
        energy_nj,
        np.zeros(count, np.int64),
        np.arange(count, dtype=np.int64),
        (chunk,),
    )
    # the same cells as later, so that this adds nothing to what is lost there
    return every.pick(_best_of_cells(every, share)) if share else every


def _joined(parts: Sequence[_Labels], share: float) -> _Labels:
    """Put labels of one state together and leave out those that others match."""
    sizes = np.cumsum([0, *(len(part.chunks) for part in parts)])
    every = _Labels(
        np.concatenate([part.latency_ns for part in parts]),
        np.concatenate([part.period_ns for part in parts]),
        np.concatenate([part.energy_nj for part in parts]),
        np.concatenate([part.origin + at for part, at in zip(parts, sizes, strict=False)]),
        np.concatenate([part.place for part in parts]),
        tuple(chunk for part in parts for chunk in part.chunks),
    )
    if share and len(every.latency_ns) > 1:
        every = every.pick(_best_of_cells(every, share))
    figures = list(
        zip(
            every.latency_ns.tolist(),
            every.period_ns.tolist(),
            every.energy_nj.tolist(),
            strict=True,
        )
    )
    kept = staircase(range(len(figures)), figures.__getitem__)
    return every.pick(np.array(kept, np.int64))


def _best_of_cells(labels: _Labels, share: float) -> NDArray[np.int64]:
    """Return, of each cell of latency and period, the label of least energy."""
    latency, period = cells(labels.latency_ns, share), cells(labels.period_ns, share)
    order = np.lexsort((labels.latency_ns, labels.energy_nj, period, latency))
    new = np.append(
        True,
        (latency[order][1:] != latency[order][:-1]) | (period[order][1:] != period[order][:-1]),
    )
    chosen: NDArray[np.int64] = order[new]
    return chosen


def _candidates(labels: _Labels, used: int, static_power_w: Sequence[float]) -> list[Candidate]:
    static_w = fsum(power for p, power in enumerate(static_power_w) if used >> p & 1)
    return [
        Candidate(
            _stages(labels, i),
            int(labels.latency_ns[i]),
            int(labels.period_ns[i]),
            int(labels.energy_nj[i]) + static_w * int(labels.period_ns[i]),
        )
        for i in range(len(labels.latency_ns))
    ]


def _stages(labels: _Labels, i: int) -> tuple[StageRun, ...]:
    """Walk back from a label to the first stage."""
    stages: list[StageRun] = []
    while labels.chunks:
        chunk = labels.chunks[labels.origin[i]]
        i, point = divmod(int(labels.place[i]), len(chunk.front.time_ns))
        time_ns, energy_nj = chunk.front.time_ns[point], chunk.front.energy_nj[point]
        stages.append(StageRun(chunk.run, int(time_ns), int(energy_nj)))
        labels = chunk.before
    return tuple(reversed(stages))
