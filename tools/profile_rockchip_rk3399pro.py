"""Make armcl-f32.csv, the profile of the RK3399Pro at all its operating points.

    python -m tools.profile_rockchip_rk3399pro [--out FOLDER]

Only blocks of networks were timed. A block's time at a frequency is shared out over its operators
in proportion to what the same operators take at the highest frequency of the same kind of processor
of the A311D (its profile, from the same networks and library), each scaled to the frequency by the
compute share of its class (clock.scaling of the platform, fitted to these blocks). A signature's
time is the lower median of its rows, as in the A311D's profile; where that would make a higher
frequency slower, which is measurement noise, the lower frequency takes the higher one's time.

It prints how far the profile, summed over a block's rows, is from the block's measured time, and
how many times were raised to keep the order.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median_low

from parapipe.cost.profile import Measurement, Profile, read_profile, write_profile
from parapipe.cost.signature import Signature
from parapipe.platform.load import load_platform
from parapipe.platform.processor import Processor

HERE = Path(__file__).parents[1] / "profiles/rockchip-rk3399pro"
A311D = HERE.parent / "amlogic-a311d-2024"  # times as they were measured
HOST_HZ = 1.8e9  # of the GPU's host: its highest

Block = tuple[str, int]
Times = dict[float, dict[Block, float]]
Key = tuple[Signature, float]


@dataclass(frozen=True, slots=True)
class Row:
    """An operator of a network, and what is known of its signature from the A311D."""

    block: Block
    like: Measurement
    weight_s: float


def main() -> None:
    """Build the profile and print the residuals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    out: Path = parser.parse_args().out
    platform = load_platform("rockchip-rk3399pro")
    known = read_profile(A311D / "armcl-f32.csv")
    found: list[Measurement] = []
    for processor in platform.processors:
        times = block_times(processor.name)
        rows = list(rows_of(processor.name, known, set(times[max(times)])))
        made = list(measurements(processor, rows, times))
        found += made
        print_residuals(processor.name, rows, times, made)
    order = list(platform.names)
    found.sort(key=lambda m: (str(m.signature), order.index(m.processor), m.frequency_hz))
    write_profile(out / "armcl-f32.csv", found)


def block_times(processor: str) -> Times:
    """Return the seconds of each block by frequency, the GPU's with its host at the highest."""
    times: Times = defaultdict(dict)
    for cells in read_table(HERE / "measured/blocks.csv"):
        hosted = float(cells["host_frequency_hz"] or HOST_HZ)
        if (cells["processor"], cells["metric"], hosted) == (processor, "task", HOST_HZ):
            block = cells["model"], int(cells["block"])
            times[float(cells["frequency_hz"])][block] = float(cells["time_ms"]) / 1e3
    return times


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the lines of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows_of(processor: str, known: Profile, blocks: set[Block]) -> Iterator[Row]:
    """Yield the operators of these blocks with their times on the A311D."""
    for cells in read_table(A311D / "armcl-f32.rows.csv"):
        block = cells["model"], int(cells["block"])
        if block in blocks:
            names = ("type", "kernel", "strides", "attributes", "inputs", "output", "dtype")
            like = known.lookup(Signature(**{name: cells[name] for name in names}), processor)
            if like is None:
                raise SystemExit(f"{cells['layer']} of {block} is not in the A311D's profile")
            yield Row(block, like, float(cells[f"{processor}_s"]))


def measurements(processor: Processor, rows: list[Row], times: Times) -> Iterator[Measurement]:
    """Yield one measurement per signature and frequency."""
    shared: dict[Key, list[float]] = defaultdict(list)
    for hz, blocks in times.items():
        at = processor.at(hz)
        weights = [row.weight_s * slowdown(at, row) for row in rows]
        total: dict[Block, float] = defaultdict(float)
        for row, weight in zip(rows, weights, strict=True):
            total[row.block] += weight
        for row, weight in zip(rows, weights, strict=True):
            shared[row.like.signature, hz].append(blocks[row.block] * weight / total[row.block])
    example = {row.like.signature: row.like for row in rows}
    raised = 0
    for signature, like in example.items():
        least_s = 0.0
        for hz in sorted(times, reverse=True):
            group = shared[signature, hz]
            middle = median_low(group)
            raised += middle < least_s
            least_s = max(least_s, middle)
            spread = (max(group) - min(group)) / middle
            yield replace(
                like, processor=processor.name, frequency_hz=hz, time_s=least_s,
                rows=len(group), spread=spread, method="apportioned", line=0,
            )  # fmt: skip
    print(f"{processor.name}: {raised} of {len(shared)} times raised to that of a higher frequency")


def slowdown(at: Processor, row: Row) -> float:
    """Return how much longer the row takes at the point than at the processor's default one."""
    factor = at.slowdown(row.like.operator_class, at.clock.default_frequency_hz)
    if factor is None:
        raise SystemExit(f"the platform states no clock.scaling of '{at.name}'")
    return factor.value


def print_residuals(processor: str, rows: list[Row], times: Times, made: list[Measurement]) -> None:
    """Print what the profile makes of blocks and networks."""
    time_s: Mapping[Key, float] = {(m.signature, m.frequency_hz): m.time_s for m in made}
    blocks: list[float] = []
    networks: list[float] = []
    for hz, measured in times.items():
        summed: dict[Block, float] = defaultdict(float)
        for row in rows:
            summed[row.block] += time_s[row.like.signature, hz]
        blocks += [abs(summed[block] / true - 1) for block, true in measured.items()]
        for network in {name for name, _ in measured}:
            both = [
                sum(t for (name, _), t in side.items() if name == network)
                for side in (summed, measured)
            ]
            networks.append(abs(both[0] / both[1] - 1))
    for what, errors in (("block", blocks), ("network", networks)):
        print(f"{processor}: a {what} is missed by {mean(errors):.1%}, at most {max(errors):.1%}")


if __name__ == "__main__":
    main()
