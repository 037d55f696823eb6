"""Random laws by which processors slow each other down."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise, permutations

import yaml

from parapipe.cost.co_run import (
    Draw,
    LinearContention,
    Running,
    SharedMemoryLaw,
    SlowdownTable,
)
from parapipe.cost.price import OperatorCost
from parapipe.platform.co_run import Slowdown
from parapipe.platform.fields import named_value
from parapipe.platform.load import find_platform
from parapipe.platform.support import Refusal


def random_table(rng, names, most=3.0):
    """Return a table with a factor for each processor, set of others and class."""
    rows = []
    for own in names:
        others = [name for name in names if name != own]
        for count in range(1, len(others) + 1):
            for busy in combinations(others, count):
                for kind in ("compute", "memory"):
                    less = (
                        row.factor
                        for row in rows
                        if row.processor == own
                        and row.operator_class == kind
                        and set(row.busy) <= set(busy)
                    )
                    factor = max(rng.uniform(1, most), *less, 1.0)
                    row = {"processor": own, "busy": busy, "class": kind, "factor": factor}
                    rows.append(Slowdown.model_validate(row))
    return SlowdownTable(tuple(rows), {name: Draw(rng.choice([1e8, 1e9, 1e10])) for name in names})


def random_law(rng, names):
    """Return a table, memory that is shared, or contention."""
    kind = rng.random()
    if kind < 0.6:
        return random_table(rng, names)
    if kind > 0.85:
        return LinearContention(10 ** rng.uniform(-10, -8.5))
    draws = {name: Draw(10 ** rng.uniform(8, 10)) for name in names}
    return SharedMemoryLaw(10 ** rng.uniform(8, 9.5), draws)


def with_law(costs, law):
    """Return costs of processors that slow each other down."""
    return replace(costs, co_run=law, wholes=costs.processors)


def with_random_law(costs, seed):
    """Return the same with a random law."""
    return with_law(costs, random_law(random.Random(f"law {seed}"), costs.processors))


def timed_costs(costs, times_s, moved_bytes=None):
    """Return costs with other times: a row of seconds for each operator, None where it cannot run.

    Hand-overs take no time.
    """
    entries = []
    for v, (row, own) in enumerate(zip(costs.entries, times_s, strict=True)):
        made = []
        for cost, time_s in zip(row, own, strict=True):
            if time_s is None:
                made.append(Refusal("it is not wanted there", "an option"))
                continue
            part = replace(cost.parts[0], time=named_value("time", time_s, "s"))
            moved = cost.moved_bytes if moved_bytes is None else moved_bytes[v]
            made.append(OperatorCost((part,), moved))
        entries.append(tuple(made))
    count = len(costs.processors)
    free = ((0.0,) * count,) * count
    return replace(costs, entries=tuple(entries), transfers=dict.fromkeys(costs.transfers, free))


def work_error_s(mapping, costs, frames):
    """Return the largest difference between an operator's time alone and its rates, added up."""
    length_s = frames.frames * frames.period_s
    intervals = [
        (at, start_s + turn * length_s, end_s + turn * length_s)
        for at in mapping.placements
        for start_s, end_s in frames.spans_s[at.operator]
        for turn in range(-3, 4)
    ]
    moments = sorted({moment for _, *ends in intervals for moment in ends})
    worst_s = 0.0
    for at in mapping.placements:
        for start_s, end_s in frames.spans_s[at.operator]:
            done_s = 0.0
            inner = [m for m in moments if start_s <= m <= end_s]
            for one, other in pairwise(inner):
                if other - one < 1e-13:
                    continue  # the same moment, reckoned in two ways
                middle_s = (one + other) / 2
                busy = [each for each, a, b in intervals if a < middle_s < b]
                running = [
                    Running(
                        costs.processors[each.processor],
                        costs.cost(each.operator, each.processor).moved_bytes,
                        costs.time_s(each.operator, each.processor),
                    )
                    for each in busy
                ]
                factors = costs.co_run.slowdowns(running)
                done_s += (other - one) / factors[busy.index(at)]
            worst_s = max(worst_s, abs(done_s - costs.time_s(at.operator, at.processor)))
    return worst_s


def disturbed_board(folder, factor):
    """Write the A311D as a file, every processor so many times as long beside any other one."""
    raw = yaml.safe_load(find_platform("amlogic-a311d").read_text())
    names = [each["name"] for each in raw["processors"]]
    rows = [
        {"processor": own, "busy": [other], "factor": factor}
        for own, other in permutations(names, 2)
    ]
    raw["sources"]["guess"] = {"provenance": "nominal", "title": "a guess", "reasoning": "a test"}
    raw["co_run"] = {"slowdowns": rows, "source": "guess"}
    file = folder / "board.yaml"
    file.write_text(yaml.safe_dump(raw))
    return file
