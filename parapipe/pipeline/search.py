"""Exact search over stages: which processors, which cut points, which schedules.

A stage is a contiguous run of units on a set of processors that no other stage uses. Labels are
kept per state as long as no other label of that state is at least as good in every objective, so
the answer is the exact Pareto front over all configurations that the units' options allow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum

from parapipe.pipeline.configuration import Kind, kind_of
from parapipe.pipeline.front import staircase
from parapipe.pipeline.fronts import Homes
from parapipe.pipeline.runs import Run, Runs


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage as the search sees it: which run, and which of its times and dynamic energies."""

    run: Run
    time_ns: int
    energy_nj: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration as the search sees it.

    `energy_nj` holds static energy, too: of the processors used, over one period.
    """

    stages: tuple[StageRun, ...]
    latency_ns: int
    period_ns: int
    energy_nj: float

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(stage.run.processors for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        parallel = any(mask.bit_count() > 1 for mask in self.processors)
        return kind_of(len(self.stages), parallel)

    @property
    def objectives(self) -> tuple[float, ...]:
        """What the front trades: latency, period, energy."""
        return (self.latency_ns, self.period_ns, self.energy_nj)


# Stages so far: latency, period, dynamic energy, the stages before the last, the last one.
_Label = tuple[int, int, int, "_Label | None", "Run | None"]
# Processors used so far, homes of live tensors, number of stages (2 = two or more), parallel.
_State = tuple[int, Homes, int, bool]


def search(
    units: int,
    runs: Runs,
    static_power_w: Sequence[float],
    tell: Callable[[int], None] = lambda _: None,
) -> list[Candidate]:
    """Find every Pareto-optimal configuration of each kind.

    Parameters
    ----------
    units
        Number of units.
    runs
        The options of the units, and whether the front trades energy, too. Without, energy is
        that of the labels found.
    static_power_w
        Static power of each processor while it belongs to a configuration.
    tell
        Told of each unit before which stages have been begun.

    Returns
    -------
    Candidates, for each kind at least the best in every lexicographic order of the objectives;
    those of one kind and one set of processors do not dominate each other. They are sorted by
    objectives; of those that differ in alike processors only, the platform's first lead.
    """
    everything = (1 << len(static_power_w)) - 1
    states: list[dict[_State, list[_Label]]] = [{} for _ in range(units + 1)]
    states[0] = {(0, (), 0, False): [(0, 0, 0, None, None)]}
    ending = runs.ending(units)
    for begin in range(units):
        inner = inner_stages({used for used, *_ in states[begin]}, everything)
        runs_from = cache(
            lambda homes, begin=begin, inner=inner: [
                *runs.beginning(begin, units - 1, homes, inner),
                *(
                    (Run(begin, units, homes, (), mask), front)
                    for mask, front in ending[begin][homes].items()
                ),
            ]
        )
        for (used, homes, stages, parallel), labels in states[begin].items():
            if used == everything:
                continue
            kept = staircase(labels, _figures)
            for run, front in runs_from(homes):
                mask = run.processors
                if mask & used or (used | mask == everything and run.end < units):
                    continue
                wide = parallel or mask.bit_count() > 1
                state = (used | mask, run.homes, min(stages + 1, 2), wide)
                states[run.end].setdefault(state, []).extend(
                    (label[0] + time_ns, max(label[1], time_ns), label[2] + energy_nj, label, run)
                    for time_ns, energy_nj in zip(
                        front.time_ns.tolist(), front.energy_nj.tolist(), strict=True
                    )
                    for label in kept
                )
        states[begin].clear()
        tell(begin)
    found = [
        _candidate(label, used, static_power_w, None if runs.energy else runs)
        for (used, *_), labels in states[units].items()
        for label in staircase(labels, _figures)
    ]
    return sorted(found, key=lambda candidate: (candidate.objectives, candidate.processors))


def inner_stages(used_before: Collection[int], everything: int) -> set[int]:
    """Return the sets of processors that stages can use that are not the last.

    They leave a processor to the next.

    Parameters
    ----------
    used_before
        Sets that the stages before may have used.
    """
    free = [everything & ~used for used in used_before if used != everything]
    return {m for m in range(everything) if any(not m & ~f and m != f for f in free)}


def _figures(label: _Label) -> tuple[int, int, int]:
    return label[:3]


def _candidate(
    label: _Label, used: int, static_power_w: Sequence[float], runs: Runs | None
) -> Candidate:
    static_w = fsum(power for p, power in enumerate(static_power_w) if used >> p & 1)
    stages: list[StageRun] = []
    step = label
    while step[3] is not None and step[4] is not None:
        before = step[3]
        stages.append(StageRun(step[4], step[0] - before[0], step[2] - before[2]))
        step = before
    stages.reverse()
    dynamic_nj = label[2]
    if runs is not None:  # the labels left energy out
        dynamic_nj = sum(
            o.energy_nj
            for stage in stages
            for o in runs.trace(stage.run, stage.time_ns, stage.energy_nj)
        )
    return Candidate(tuple(stages), label[0], label[1], dynamic_nj + static_w * label[1])
