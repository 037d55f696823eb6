"""Times of operators out of those of blocks, where only blocks were timed.

On a GPU kernels are enqueued and waited for at the end of a block. One sum of amounts is fitted to
the blocks' times, all kinds of operators at once; each block's time is then shared out over its
operators in proportion. Rows of one signature come to agree, since each takes the (lower) median of
its rows as the weight of the next round.

Blocks do not tell what an activation behind a convolution takes: they are met as well if it takes
nothing. So every operator takes at least the launch, and every move at least the seconds per byte,
of the quickest processor of the profile whose operators have clocks of their own: it is a CPU that
enqueues kernels, and all share one memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median_low

import numpy as np

from parapipe.cost.amounts import BASIC, Amounts, amounts_of
from parapipe.cost.least_squares import robust_nonnegative
from parapipe.cost.measured_rows import Row, blocks_of, is_apportioned
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import Signature

_ROUNDS = 3
_LEAST_SHARE = 1e-3  # of a block's mean: nothing but a view takes no time at all

Weights = Mapping[Signature, float]


def apportioned(profile: Profile, rows: Sequence[Row], processor: str) -> tuple[Row, ...]:
    """Return the rows with the processor's times shared out anew, blocks' sums kept.

    Parameters
    ----------
    profile
        Says the work of each signature.
    """
    blocks = blocks_of(rows, processor)
    work = {m.signature: m for m in profile.measurements if m.processor == processor}
    blocks = {key: [r for r in block if r.signature in work] for key, block in blocks.items()}
    totals = {key: sum(r.times_s[processor] for r in block) for key, block in blocks.items()}
    weights = _fitted(blocks, totals, work, _least_of_moves(profile))
    for _ in range(_ROUNDS):
        shares: dict[Signature, list[float]] = defaultdict(list)
        for key, block in blocks.items():
            for row, time_s in zip(block, _shared(block, totals[key], weights), strict=True):
                shares[row.signature].append(time_s)
        weights = {signature: median_low(times) for signature, times in shares.items()}
    return tuple(
        replace(row, times_s={**row.times_s, processor: time_s})
        for key, block in blocks.items()
        for row, time_s in zip(block, _shared(block, totals[key], weights), strict=True)
    )


def _shared(block: Sequence[Row], total_s: float, weights: Weights) -> list[float]:
    parts = np.array([weights[row.signature] for row in block])
    views = np.array([row.signature.type == "Reshape" for row in block])
    if not views.all():
        parts = np.where(views, 0.0, np.maximum(parts, _LEAST_SHARE * parts.mean()))
    return [float(part) for part in total_s * parts / parts.sum()]


def _least_of_moves(profile: Profile) -> tuple[float, float]:
    """Return the least launch and the least seconds per byte of moves among timed processors."""
    found = []
    moving = [m for m in profile.measurements if not m.macs and m.operator_class != "view"]
    for processor in profile.processors:
        moves = [m for m in moving if m.processor == processor]
        if len(moves) > BASIC and not is_apportioned(profile, processor):
            amounts = [amounts_of(m.signature, m.macs, m.size_bytes)[:BASIC] for m in moves]
            times = np.array([m.time_s for m in moves])
            found.append(robust_nonnegative(np.array(amounts, dtype=float), times))
    if not found:
        return 0.0, 0.0
    launch_s, _, per_byte_s = np.min(found, axis=0)
    return float(launch_s), float(per_byte_s)


def _fitted(
    blocks: Mapping[tuple[str, int], Sequence[Row]],
    totals: Mapping[tuple[str, int], float],
    work: Mapping[Signature, Measurement],
    least: tuple[float, float],
) -> Weights:
    launch_s, per_byte_s = least
    terms = {signature: _terms(m) for signature, m in work.items()}
    floor = {
        signature: launch_s + (0 if m.macs else m.size_bytes * per_byte_s)
        if terms[signature]
        else 0.0
        for signature, m in work.items()
    }
    names = list(dict.fromkeys(name for found in terms.values() for name in found))
    column = {name: i for i, name in enumerate(names)}
    design = np.zeros((len(blocks), len(names)))
    for line, block in enumerate(blocks.values()):
        for row in block:
            for name, amount in terms[row.signature].items():
                design[line, column[name]] += amount
    offset = np.array([sum(floor[row.signature] for row in block) for block in blocks.values()])
    found = robust_nonnegative(design, np.array([totals[key] for key in blocks]), offset)
    return {
        signature: floor[signature]
        + float(sum(found[column[name]] * amount for name, amount in amounts.items()))
        for signature, amounts in terms.items()
    }


def _terms(m: Measurement) -> dict[str, float]:
    """Return what an operator adds to the amounts of its block, by kind and name.

    Moves share one rate: activations stand behind convolutions in nearly every block, so that their
    own rates cannot be told.
    """
    amounts = amounts_of(m.signature, m.macs, m.size_bytes)
    if m.operator_class == "view":
        return {}
    if m.macs:
        return _product(m, amounts)
    if m.operator_class == "pool":
        return {"operators": 1.0, "pool steps": amounts.steps, "move bytes": amounts.size_bytes}
    own = m.signature.type == "LRN"
    return {"operators": 1.0, "LRN bytes" if own else "move bytes": amounts.size_bytes}


def _product(m: Measurement, amounts: Amounts) -> dict[str, float]:
    kind = m.operator_class
    if kind in ("gemm", "depthwise"):
        return {"operators": 1.0, f"{kind} bytes": amounts.size_bytes}
    strided = kind == "conv3x3" and set(m.signature.strides) - set("1x")
    kind = f"{kind} strided" if strided else kind
    weights = max(0.0, amounts.steps / amounts.outputs) * amounts.steps / amounts.columns
    return {
        "operators": 1.0,
        f"{kind} steps": amounts.steps,
        f"{kind} columns": amounts.columns,
        f"{kind} outputs": amounts.outputs,
        f"{kind} depth": amounts.depth,
        f"{kind} spilled": amounts.spilled,
        "weights": weights,
    }
