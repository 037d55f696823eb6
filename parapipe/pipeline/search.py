"""Exact search over stages: which processors, which cut points, which schedules.

A stage is a contiguous run of units on a set of processors that no other stage uses. Labels are
kept per state as long as no other label of that state is at least as good in every objective, so
the answer is the exact Pareto front over all configurations that the units' options allow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from parapipe.pipeline.configuration import Kind, kind_of

Homes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a unit.

    Parameters
    ----------
    processors
        Bit mask of the processors that run at least one operator.
    homes
        Processor of each tensor that is live behind the unit.
    time_ns, energy_nj
        Makespan and dynamic energy. Integers, so that sums do not depend on their order.
    choice
        Whatever the caller needs to find the schedule again.
    """

    processors: int
    homes: Homes
    time_ns: int
    energy_nj: int
    choice: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration as the search sees it: the options of each stage's units.

    `energy_nj` holds static energy, too: of the processors used, over one period.
    """

    stages: tuple[tuple[Option, ...], ...]
    latency_ns: int
    period_ns: int
    energy_nj: float

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(_mask(stage) for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        parallel = any(mask.bit_count() > 1 for mask in self.processors)
        return kind_of(len(self.stages), parallel)

    @property
    def objectives(self) -> tuple[float, ...]:
        """What the front trades: latency, period, energy."""
        return (self.latency_ns, self.period_ns, self.energy_nj)


# A run of units on one stage: time, energy, the run without its last unit, that unit's option.
_Run = tuple[int, int, "_Run | None", Option]
# Stages so far: latency, period, dynamic energy, the stages before the last, the last one's run.
_Label = tuple[int, int, int, "_Label | None", "_Run | None"]
# Processors used so far, homes of live tensors, number of stages (2 = two or more), parallel.
_State = tuple[int, Homes, int, bool]


def search(
    units: int,
    options: Callable[[int, Homes], Sequence[Option]],
    static_power_w: Sequence[float],
    *,
    energy: bool = True,
) -> list[Candidate]:
    """Find every Pareto-optimal configuration of each kind.

    Parameters
    ----------
    units
        Number of units.
    options
        `options(u, homes)`: all ways to run unit u if the tensors that are live before it have
        these homes. Called once per reachable pair.
    static_power_w
        Static power of each processor while it belongs to a configuration.
    energy
        False: the front trades latency and period only (energy is that of the labels found).

    Returns
    -------
    Candidates, for each kind at least the best in every lexicographic order of the objectives;
    those of one kind and one set of processors do not dominate each other. They are sorted by
    objectives; of those that differ in alike processors only, the platform's first lead.
    """
    everything = (1 << len(static_power_w)) - 1
    states: list[dict[_State, list[_Label]]] = [{} for _ in range(units + 1)]
    states[0] = {(0, (), 0, False): [(0, 0, 0, None, None)]}
    for begin in range(units):
        runs_from: dict[Homes, list[tuple[int, int, Homes, list[_Run]]]] = {}
        for (used, homes, stages, parallel), labels in states[begin].items():
            if used == everything:
                continue
            if homes not in runs_from:
                runs_from[homes] = list(_runs(begin, units, homes, options, energy))
            kept = pareto(labels)
            for end, mask, homes_out, runs in runs_from[homes]:
                if mask & used or (used | mask == everything and end < units):
                    continue
                state = (
                    used | mask,
                    homes_out,
                    min(stages + 1, 2),
                    parallel or mask & (mask - 1) > 0,
                )
                target = states[end].setdefault(state, [])
                for label in kept:
                    for run in runs:
                        target.append(
                            (
                                label[0] + run[0],
                                max(label[1], run[0]),
                                label[2] + run[1],
                                label,
                                run,
                            )
                        )
    found = [
        _candidate(label, used, static_power_w)
        for (used, *_), labels in states[units].items()
        for label in pareto(labels)
    ]
    return sorted(found, key=lambda candidate: (candidate.objectives, candidate.processors))


def _runs(
    begin: int,
    units: int,
    homes: Homes,
    options: Callable[[int, Homes], Sequence[Option]],
    energy: bool,
) -> Iterable[tuple[int, int, Homes, list[_Run]]]:
    """All runs of units on one stage from `begin`: (end, processors used, homes behind, runs)."""
    front: dict[tuple[int, Homes], list[_Run]] = {}
    for unit in range(begin, units):
        behind: dict[tuple[int, Homes], list[_Run]] = {}
        if unit == begin:
            for option in options(unit, homes):
                run = (option.time_ns, option.energy_nj * energy, None, option)
                behind.setdefault((option.processors, option.homes), []).append(run)
        for (mask, at), runs in front.items():
            for option in options(unit, at):
                target = behind.setdefault((mask | option.processors, option.homes), [])
                time_ns, energy_nj = option.time_ns, option.energy_nj * energy
                target.extend((r[0] + time_ns, r[1] + energy_nj, r, option) for r in runs)
        front = {key: _pareto_runs(runs) for key, runs in behind.items()}
        for (mask, at), runs in front.items():
            yield unit + 1, mask, at, runs


def pareto(labels: Iterable[_Label]) -> list[_Label]:
    """Keep the labels that no other is at least as good as in all of their first three entries."""
    kept: list[_Label] = []
    seconds: list[float] = []  # ascending; thirds descend strictly
    thirds: list[float] = []
    for label in sorted(labels, key=lambda label: label[:3]):
        second, third = label[1], label[2]
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        stop = at
        while stop < len(thirds) and thirds[stop] >= third:
            stop += 1
        start = at - 1 if at and seconds[at - 1] == second else at
        seconds[start:stop] = [second]
        thirds[start:stop] = [third]
        kept.append(label)
    return kept


def _pareto_runs(runs: list[_Run]) -> list[_Run]:
    kept: list[_Run] = []
    for run in sorted(runs, key=lambda run: run[:2]):
        if not kept or run[1] < kept[-1][1]:
            kept.append(run)
    return kept


def _mask(stage: Iterable[Option]) -> int:
    mask = 0
    for option in stage:
        mask |= option.processors
    return mask


def _candidate(label: _Label, used: int, static_power_w: Sequence[float]) -> Candidate:
    # Exact, so that alike processors make the same sum wherever they stand in the order.
    static_w = fsum(power for p, power in enumerate(static_power_w) if used >> p & 1)
    stages: list[tuple[Option, ...]] = []
    step: _Label | None = label
    while step is not None and step[4] is not None:
        stage: list[Option] = []
        run: _Run | None = step[4]
        while run is not None:
            stage.append(run[3])
            run = run[2]
        stages.append(tuple(reversed(stage)))
        step = step[3]
    stages.reverse()
    dynamic_nj = sum(option.energy_nj for stage in stages for option in stage)
    return Candidate(tuple(stages), label[0], label[1], dynamic_nj + static_w * label[1])
