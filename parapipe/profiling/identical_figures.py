"""Figures that identical processors share, by networks whose branches meet again and again.

A network is a row of modules: a convolution, two branches that read it, and a concatenation of
both. Where one branch runs on another processor, a frame goes there and back in each module. What
that takes is the time of the row less that of a row in which the first branch stands for both,
which is one session on one processor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import NormalDist, median

import numpy as np
import onnx

from parapipe.cost.least_squares import nonnegative
from parapipe.profiling.figures import Figures, model_of

MODULES = 8
CHANNELS = 256
BRANCH_SHARE = 1 / 3  # of a module's convolutions that is the branch's
ELSEWHERE = "elsewhere"
LEAST = 0.1  # of what the fit says: noise may make hand-overs look as if they took no time


@dataclass(frozen=True, slots=True)
class Form:
    """How large the tensors of a row of modules are.

    Parameters
    ----------
    extent
        Rows and columns.
    outputs
        Tensors that the second branch makes; they are parts of its channels.
    """

    extent: int
    outputs: int = 1

    @property
    def size_bytes(self) -> float:
        """Bytes that a module moves one after the other: there all, back half of the channels."""
        return 1.5 * 4 * CHANNELS * self.extent**2

    def model(self, *, forks: bool) -> onnx.ModelProto:
        """Return the row; without forks, the first branch stands for both."""
        nodes, weights = [], {}
        for i in range(MODULES):
            channels_of = {f"trunk{i}": CHANNELS, f"here{i}": CHANNELS // 2}
            branch = [f"{ELSEWHERE}{i}x{j}" for j in range(self.outputs)]
            channels_of |= dict.fromkeys(branch, CHANNELS // 2 // self.outputs) if forks else {}
            for name, channels in channels_of.items():
                read = f"t{i}" if name.startswith("trunk") else f"trunk{i}"
                nodes.append(f"{name} = Conv({read}, {name}_w)")
                weights[f"{name}_w"] = (channels, CHANNELS, 1, 1)
            ends = [f"here{i}", *(branch if forks else [f"here{i}"])]
            nodes.append(f"t{i + 1} = Concat<axis=1>({', '.join(ends)})")
        shape = f"float[1,{CHANNELS},{self.extent},{self.extent}]"
        model = model_of(f"({shape} t0) => ({shape} t{MODULES}) {{ {' '.join(nodes)} }}")
        for name, shape_of in weights.items():
            array = np.full(shape_of, 1 / CHANNELS, np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return model


FORMS = (Form(7), Form(14), Form(14, outputs=2), Form(28))


@dataclass(frozen=True, slots=True)
class FrameTime:
    """What a frame takes in a row, or what hand-overs add to that.

    Parameters
    ----------
    latency_s
        Seconds until the frame is done.
    busy_s
        Seconds for which both processors work, together.
    """

    latency_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class HandOver:
    """What was measured of handing tensors from one processor to another, and back.

    Parameters
    ----------
    overhead_s
        Seconds of a hand-over, whatever the size.
    bandwidth_bytes_per_s
        Bytes a second beyond that.
    spread
        Standard deviation of the logarithm of what hand-overs take by what these two say.
    busy
        Whether processors work for at least half of what hand-overs take: the rest is waiting.
    """

    overhead_s: float
    bandwidth_bytes_per_s: float
    spread: float
    busy: bool = False


def trunk_and_branch(alone_s: Mapping[int, float]) -> tuple[int, int]:
    """Return which of two processors takes the trunk, and which the branch: the slower one.

    So the branch is not over before the other one, and what it waits for counts.
    """
    one, other = alone_s
    return (one, other) if alone_s[one] <= alone_s[other] else (other, one)


def hand_over_time(forked: FrameTime, trunk: FrameTime, branch: FrameTime) -> FrameTime:
    """Return what hand-overs add to a row.

    Parameters
    ----------
    forked
        The row.
    trunk, branch
        The row without forks on the processor of the trunk, and on that of the branches.
    """
    longer_s = max(branch.latency_s - trunk.latency_s, 0.0) * BRANCH_SHARE
    free = FrameTime(trunk.latency_s + longer_s, trunk.busy_s + branch.busy_s * BRANCH_SHARE)
    return FrameTime(forked.latency_s - free.latency_s, forked.busy_s - free.busy_s)


def hand_over_of(
    rounds: Mapping[Form, Sequence[FrameTime]], bandwidth_bytes_per_s: float
) -> HandOver:
    """Return what fits the hand-overs of some rows, by relative errors.

    Parameters
    ----------
    rounds
        What the hand-overs of a row add, round by round.
    bandwidth_bytes_per_s
        Of a copy: no noise makes a hand-over quicker.
    """
    times_s = {
        form: median(each.latency_s for each in row) / MODULES for form, row in rounds.items()
    }
    busy_s = sum(median(each.busy_s for each in row) / MODULES for row in rounds.values())
    positive = {form: time_s for form, time_s in times_s.items() if time_s > 0}
    least_s = 1 / bandwidth_bytes_per_s
    design = np.array([[2 / time_s, form.size_bytes / time_s] for form, time_s in positive.items()])
    fitted = nonnegative(design, np.ones(len(positive))) if positive else np.zeros(2)
    overhead_s, byte_s = fitted.tolist()
    byte_s = max(byte_s, least_s)
    spread = _log_spread(
        (each.latency_s / MODULES, 2 * overhead_s + form.size_bytes * byte_s)
        for form, row in rounds.items()
        for each in row
    )
    busy = 0 < sum(times_s.values()) <= 2 * busy_s
    return HandOver(overhead_s, 1 / byte_s, spread, busy)


def _log_spread(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the standard deviation of the logarithm of measured over fitted.

    From the median of its absolute values: a disturbed round says nothing of hand-overs.
    """
    deviations = [abs(log(max(taken_s / fitted_s, LEAST))) for taken_s, fitted_s in pairs]
    return median(deviations) / NormalDist().inv_cdf(0.75)


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
    shared = list(cpus)
    for kind in dict.fromkeys(kinds):
        members = [p for p, each in enumerate(kinds) if each == kind]
        if _are_close([_values(cpus[p]) for p in members]):
            for p in members:
                shared[p] = _median_figures([cpus[q] for q in members])
    # Processors whose own figures differ are not identical after all.
    group = [(kind, shared.index(figures)) for kind, figures in zip(kinds, shared, strict=True)]
    hand_overs = dict(moved)
    for ends in dict.fromkeys((group[p], group[q]) for p, q in moved):
        pairs = [(p, q) for p, q in moved if (group[p], group[q]) == ends]
        times_s = [[moved[each].overhead_s] for each in pairs]
        if _are_close(times_s):
            hand_overs |= dict.fromkeys(pairs, _median_hand_over([moved[each] for each in pairs]))
    return tuple(shared), hand_overs


def _values(figures: Figures) -> list[float]:
    peaks = [figures.peak_macs_per_s[each] for each in sorted(figures.peak_macs_per_s)]
    return [*peaks, figures.launch_s, figures.bandwidth_bytes_per_s, figures.run_s]


def _are_close(rows: Sequence[Sequence[float]]) -> bool:
    return all(max(each) <= min(each) * (1 + SAME) for each in zip(*rows, strict=True))


def _median_figures(some: Sequence[Figures]) -> Figures:
    return Figures(
        {name: median(f.peak_macs_per_s[name] for f in some) for name in some[0].peak_macs_per_s},
        median(each.launch_s for each in some),
        median(each.bandwidth_bytes_per_s for each in some),
        median(each.run_s for each in some),
    )


def _median_hand_over(some: Sequence[HandOver]) -> HandOver:
    return HandOver(
        median(each.overhead_s for each in some),
        median(each.bandwidth_bytes_per_s for each in some),
        max(each.spread for each in some),
        2 * sum(each.busy for each in some) >= len(some),
    )
