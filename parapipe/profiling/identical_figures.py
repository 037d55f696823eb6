"""Processors of a machine that are identical get the same figures: short tests scatter."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import median

from parapipe.profiling.figures import Figures
from parapipe.profiling.fork_joins import HandOver

SAME = 0.2  # share by which figures of identical processors may differ; else something is wrong

HandOvers = Mapping[tuple[int, int], HandOver]


def same_figures(
    kinds: Sequence[Hashable], cpus: Sequence[Figures], moved: HandOvers
) -> tuple[tuple[Figures, ...], HandOvers]:
    """Return the figures of processors, and of hand-overs between them: the medians of each kind.

    What differs by more than `SAME` stays as it was measured.

    Parameters
    ----------
    kinds
        Of each processor: equal for those that are identical.
    """
    made = list(cpus)
    for kind in dict.fromkeys(kinds):
        same = [p for p, each in enumerate(kinds) if each == kind]
        if _are_close([_numbers(cpus[p]) for p in same]):
            for p in same:
                made[p] = _median([cpus[q] for q in same])
    # Processors whose own figures differ are not identical after all.
    group = [(kind, made.index(figures)) for kind, figures in zip(kinds, made, strict=True)]
    found = dict(moved)
    for ends in dict.fromkeys((group[p], group[q]) for p, q in moved):
        pairs = [(p, q) for p, q in moved if (group[p], group[q]) == ends]
        times_s = [[moved[each].overhead_s] for each in pairs]
        if _are_close(times_s):
            found |= dict.fromkeys(pairs, _median_of_moves([moved[each] for each in pairs]))
    return tuple(made), found


def _numbers(figures: Figures) -> list[float]:
    peaks = [figures.peak_macs_per_s[each] for each in sorted(figures.peak_macs_per_s)]
    return [*peaks, figures.launch_s, figures.bandwidth_bytes_per_s, figures.run_s]


def _are_close(rows: Sequence[Sequence[float]]) -> bool:
    return all(max(each) <= min(each) * (1 + SAME) for each in zip(*rows, strict=True))


def _median(some: Sequence[Figures]) -> Figures:
    return Figures(
        {name: median(f.peak_macs_per_s[name] for f in some) for name in some[0].peak_macs_per_s},
        median(each.launch_s for each in some),
        median(each.bandwidth_bytes_per_s for each in some),
        median(each.run_s for each in some),
    )


def _median_of_moves(some: Sequence[HandOver]) -> HandOver:
    return HandOver(
        median(each.overhead_s for each in some),
        median(each.bandwidth_bytes_per_s for each in some),
        max(each.spread for each in some),
        2 * sum(each.works for each in some) >= len(some),
    )
