"""Make armcl-f32.csv, the profiles of the Amlogic A311D, from what was measured on the board.

    python -m tools.profile_amlogic_a311d [--out FOLDER]

One profile for each state of the board (tools/states_amlogic_a311d.py). A block's time is the
measured one, times the state's factor for the run that measured it. Then two steps. First every
measured operator (a row) gets an adjusted time, written to armcl-f32.rows.csv, such that the rows
of a block add up to the time of the block:

- CPU clusters: the rows' own times, all of a block scaled by one factor. (They come from another
  run than the block times where a network was measured twice, see profiles/SOURCES.md.)
- GPU: its kernels are enqueued and waited for at the end of a block, so only the blocks' times are
  true. They are shared out over the rows in proportion to weights. The first weights are a small
  model fitted to the block times; then, again and again, a signature's weight is the median of its
  rows, so that rows of equal work in different blocks come to agree.

Second, a signature's time in the profile is the median of its rows; of an even number the lower of
the two middle ones. That is always the time of a row, and interference only adds: the first block
of ResNet-50 on the big cluster took 18.78 ms in one run and 17.33 ms in the next. A time of a
scaled row has the method `scaled`, and the rows' table has the factor.

It prints how far the profile, summed over a block's rows, is from the block's time.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from statistics import mean, median_low
from typing import TypeVar

import numpy as np

from parapipe.cost.least_squares import robust_nonnegative
from parapipe.cost.measured_rows import APPORTIONED
from parapipe.cost.profile import SCALED, Measurement, write_profile
from parapipe.cost.signature import Signature, extents_text
from tools.states_amlogic_a311d import MEASURED, PROFILES, STATES, State

FREQUENCY_HZ = {"big": 2208e6, "little": 1800e6, "gpu": 800e6}
DTYPE = "float32"
ITEM_BYTES = 4
ROUNDS = 20
# Elementwise rate of the GPU found by an independent fit (../SOURCES.md). The block times alone do
# not tell an activation from the convolution before it; they are met as well by 6 as by 13 GB/s.
GPU_BYTES_PER_S = 8.9e9

T = TypeVar("T")
Shape = tuple[int, ...]
Block = tuple[str, int]
ByBlock = Mapping[str, Mapping[Block, float]]
"""A number for each block, by processor."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured operator of a network; `own_s` are the CPU clusters' times."""

    model: str
    block: int
    index: int
    layer: str
    signature: Signature
    operator_class: str
    macs: int
    size_bytes: int
    own_s: Mapping[str, float]

    @property
    def key(self) -> Block:
        """Network and block."""
        return self.model, self.block


def main() -> None:
    """Build both tables of each state and print the residuals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=PROFILES, help="folder to write the profiles' folders to"
    )
    out: Path = parser.parse_args().out
    for state in STATES.values():
        print(f"\n{state.platform}")
        make(state, out / state.platform)


def make(state: State, folder: Path) -> None:
    """Build both tables of a state and print the residuals."""
    rows = [read_row(cells) for cells in read_table("operators.csv")]
    blocks, factors = read_blocks(state)
    adjusted = {p: scaled(rows, blocks[p], p) for p in ("big", "little")}
    adjusted["gpu"] = apportioned(rows, blocks["gpu"])
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "armcl-f32.rows.csv", rows, adjusted, factors)
    measurements = profile_of(rows, adjusted, factors)
    write_profile(folder / "armcl-f32.csv", measurements)
    print_residuals(rows, blocks, measurements)


def read_table(name: str) -> list[dict[str, str]]:
    """Return the lines of a table of measured/."""
    with (MEASURED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_blocks(state: State) -> tuple[ByBlock, ByBlock]:
    """Return the seconds of each block by processor, and the factors that are in them."""
    times: dict[str, dict[Block, float]] = defaultdict(dict)
    factors: dict[str, dict[Block, float]] = defaultdict(dict)
    for line in read_table("blocks.csv"):
        if line["metric"] == "task":
            key, processor = (line["model"], int(line["block"])), line["processor"]
            factors[processor][key] = state.factor(line["run"], processor)
            times[processor][key] = float(line["time_ms"]) / 1e3 * factors[processor][key]
    return times, factors


def read_row(cells: Mapping[str, str]) -> Row:
    """Return the row with its mistakes corrected and its work worked out."""
    op, kernel = corrected(cells)
    read, written = shape_of(cells["input0_shape_chw"]), shape_of(cells["output_shape_chw"])
    count = int(cells["n_inputs_incl_weights"])
    window = tuple(map(int, kernel.split("x"))) if kernel else ()
    macs, weights = work_of(op, window, read, written)
    activations = prod(written) if op == "Concat" else (2 if op == "Add" else 1) * prod(read)
    moved = activations + weights + prod(written) if class_of(op, window) != "view" else 0
    return Row(
        model=cells["model"],
        block=int(cells["block"]),
        index=int(cells["op_index"]),
        layer=cells["layer"],
        signature=signature_of_row(op, window, read, written, count),
        operator_class=class_of(op, window),
        macs=macs,
        size_bytes=ITEM_BYTES * moved,
        own_s={p: float(cells[f"{p}_ms"]) / 1e3 for p in ("big", "little")},
    )


def corrected(cells: Mapping[str, str]) -> tuple[str, str]:
    """Return type and kernel, right where the table is wrong (../SOURCES.md says why)."""
    op, kernel, layer = cells["op"], cells["kernel"], cells["layer"]
    reduction = ("Mixed_6a/Branch_0/Conv2d_1a_1x1", "Mixed_6a/Branch_1/Conv2d_1a_1x1")
    if cells["model"] == "Inception-v3" and op == "Conv" and layer.startswith(reduction):
        kernel = "3x3"
    if op == "Softmax" and layer.endswith("/Reshape"):
        op = "Reshape"
    if op == "AveragePool" and not kernel:  # a global one
        kernel = extents_text(shape_of(cells["input0_shape_chw"])[1:])
    return op, kernel


def shape_of(text: str) -> Shape:
    """Return `64x56x56` as numbers."""
    return tuple(map(int, text.split("x")))


def work_of(op: str, window: Shape, read: Shape, written: Shape) -> tuple[int, int]:
    """Return multiply-accumulates and the number of weights and biases."""
    if op == "Gemm":
        return prod(read) * prod(written), (prod(read) + 1) * prod(written)
    if op in ("Conv", "DepthwiseConv"):
        per_output = prod(window) * (read[0] if op == "Conv" else 1)
        return prod(written) * per_output, written[0] * (per_output + 1)
    if op == "BatchNormalization":
        return 0, 4 * written[0]
    return 0, 1 if op == "Mul" else 0


def class_of(op: str, window: Shape) -> str:
    """Return the operator class."""
    if op == "Conv":
        return {"1x1": "conv1x1", "3x3": "conv3x3"}.get(extents_text(window), "conv-other")
    return {
        "DepthwiseConv": "depthwise", "Gemm": "gemm", "AveragePool": "pool", "MaxPool": "pool",
        "BatchNormalization": "norm", "LRN": "norm", "Softmax": "softmax", "Concat": "concat",
        "Flatten": "view", "Reshape": "view",
    }.get(op, "elementwise")  # fmt: skip


def signature_of_row(op: str, window: Shape, read: Shape, written: Shape, count: int) -> Signature:
    """Return the signature that an operator graph's operator would have."""
    inputs = {
        "Concat": " ".join("?" * count),
        "Gemm": str(prod(read)),
        "Add": " ".join([extents_text(read)] * 2),
    }
    sizes = ((*shape[1:], 1, 1) for shape in (read, written))
    strides = [stride_of(*axis) for axis in zip(window, *sizes, strict=False)]
    return Signature(
        type={"DepthwiseConv": "Conv", "Relu6": "Clip", "Flatten": "Reshape"}.get(op, op),
        kernel=extents_text(window),
        strides=extents_text(strides),
        attributes=f"group={read[0]}" if op == "DepthwiseConv" else "",
        inputs=inputs.get(op, extents_text(read)),
        output=extents_text(written),
        dtype=DTYPE,
    )


def stride_of(window: int, read: int, written: int) -> int:
    """Return the only stride that gives the output's extent with some padding below the window."""
    if written == 1:
        return 1
    fits = [
        s for s in range(1, read + 1)
        if any((read + pad - window) // s + 1 == written for pad in range(window))
    ]  # fmt: skip
    if len(fits) != 1:
        raise SystemExit(f"stride of {window} from {read} to {written} is one of {fits}")
    return fits[0]


def scaled(rows: Sequence[Row], blocks: Mapping[Block, float], processor: str) -> list[float]:
    """Return the rows' own times, scaled so that each block's sum is its measured time."""
    return shared_out(rows, blocks, [row.own_s[processor] for row in rows])


def shared_out(
    rows: Sequence[Row], blocks: Mapping[Block, float], weights: Sequence[float]
) -> list[float]:
    """Return each block's time shared out over its rows in proportion to the weights."""
    total: dict[Block, float] = defaultdict(float)
    for row, weight in zip(rows, weights, strict=True):
        total[row.key] += weight
    return [
        blocks[row.key] * weight / total[row.key] for row, weight in zip(rows, weights, strict=True)
    ]


def apportioned(rows: Sequence[Row], blocks: Mapping[Block, float]) -> list[float]:
    """Return each block's time shared out such that rows of equal work agree."""
    weights = first_weights(rows, blocks)
    for _ in range(ROUNDS):
        middle = medians(rows, shared_out(rows, blocks, weights))
        weights = [middle[row.signature] for row in rows]
    return shared_out(rows, blocks, weights)


def first_weights(rows: Sequence[Row], blocks: Mapping[Block, float]) -> list[float]:
    """Return seconds of each row by a model fitted to the blocks: launch + bytes + products."""
    terms = [terms_of(row) for row in rows]
    names = sorted({name for term in terms for name in term})
    keys = sorted(blocks)
    design = np.zeros((len(keys), len(names)))
    offset = np.zeros(len(keys))
    for row, term in zip(rows, terms, strict=True):
        for name, amount in term.items():
            design[keys.index(row.key), names.index(name)] += amount
        offset[keys.index(row.key)] += row.size_bytes / GPU_BYTES_PER_S
    found = robust_nonnegative(design, np.array([blocks[key] for key in keys]), offset)
    # Rounded, so that the last bits of a linear algebra library don't reach the files.
    rates = {name: float(f"{x:.3e}") for name, x in zip(names, found, strict=True)}
    print("gpu, first weights:", ", ".join(f"{name} {x:g}" for name, x in rates.items()))
    return [
        row.size_bytes / GPU_BYTES_PER_S + sum(rates[name] * x for name, x in term.items())
        for row, term in zip(rows, terms, strict=True)
    ]


def terms_of(row: Row) -> dict[str, float]:
    """Return what a row contributes to the coefficients of the GPU's model."""
    terms = {"launch s": 1.0}
    if row.operator_class in ("gemm", "depthwise") or row.signature.type == "LRN":
        terms[f"{row.signature.type} {row.operator_class} s/GB"] = row.size_bytes / 1e9
    elif row.macs:
        # A 3×3 window moved by 1 is computed by Winograd's algorithm, others are not.
        strided = row.operator_class == "conv3x3" and row.signature.strides != "1x1"
        terms[f"{'conv-other' if strided else row.operator_class} s/GMAC"] = row.macs / 1e9
    return terms


def medians(rows: Sequence[Row], times: Sequence[float]) -> dict[Signature, float]:
    """Return the (lower) median of each signature's rows."""
    grouped = by_signature(rows, times)
    return {signature: median_low(group) for signature, group in grouped.items()}


def by_signature(rows: Sequence[Row], values: Sequence[T]) -> dict[Signature, list[T]]:
    """Return the values of each signature's rows."""
    grouped: dict[Signature, list[T]] = defaultdict(list)
    for row, value in zip(rows, values, strict=True):
        grouped[row.signature].append(value)
    return grouped


def profile_of(
    rows: Sequence[Row], adjusted: Mapping[str, Sequence[float]], factors: ByBlock
) -> list[Measurement]:
    """Return one measurement per signature and processor, sorted."""
    example = {row.signature: row for row in rows}
    found = []
    for processor, times in adjusted.items():
        as_measured = [factors[processor][row.key] == 1 for row in rows]
        both = list(zip(times, as_measured, strict=True))
        for signature, pairs in by_signature(rows, both).items():
            middle, timed = median_low(pairs)
            group = [time_s for time_s, _ in pairs]
            work = example[signature]
            found.append(
                Measurement(
                    signature=signature,
                    operator_class=work.operator_class,
                    macs=work.macs,
                    size_bytes=work.size_bytes,
                    processor=processor,
                    frequency_hz=FREQUENCY_HZ[processor],
                    time_s=middle,
                    rows=len(group),
                    spread=(max(group) - min(group)) / middle,
                    method=method_of(processor, as_measured=timed),
                )
            )
    order = list(adjusted)
    return sorted(found, key=lambda m: (str(m.signature), order.index(m.processor)))


def method_of(processor: str, *, as_measured: bool) -> str:
    """Return how a time was got: a share of a block's, scaled to another state, or timed."""
    if processor == "gpu":
        return APPORTIONED
    return "timed" if as_measured else SCALED


def write_rows(
    path: Path, rows: Sequence[Row], adjusted: Mapping[str, Sequence[float]], factors: ByBlock
) -> None:
    """Write the adjusted time of every row, and factors where a processor has any but 1."""
    names = [field.name for field in fields(Signature)]
    changed = [p for p in adjusted if any(factor != 1 for factor in factors[p].values())]
    columns = [*(f"{p}_s" for p in adjusted), *(f"{p}_factor" for p in changed)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "block", "index", "layer", *names, *columns])
        for i, row in enumerate(rows):
            signature = [getattr(row.signature, name) for name in names]
            times = [f"{adjusted[p][i]:.9f}" for p in adjusted]
            scale = [f"{f:g}" if (f := factors[p][row.key]) != 1 else "" for p in changed]
            cells = [*signature, *times, *scale]
            writer.writerow([row.model, row.block, row.index, row.layer, *cells])


def print_residuals(
    rows: Sequence[Row],
    blocks: Mapping[str, Mapping[Block, float]],
    measurements: Iterable[Measurement],
) -> None:
    """Print, in milliseconds and percent, what the profile makes of each block and network."""
    time_s = {(m.signature, m.processor): m.time_s for m in measurements}
    summed: dict[str, dict[Block, float]] = {p: defaultdict(float) for p in blocks}
    for row in rows:
        for processor in blocks:
            summed[processor][row.key] += time_s[row.signature, processor]
    print("\nprofile against measured block times")
    print(f"{'network':<20}{'block':>5}", *(f"{p:>27}" for p in sorted(blocks)))
    for key in sorted(blocks["gpu"]):
        cells = [residual(summed[p][key], blocks[p][key]) for p in sorted(blocks)]
        print(f"{key[0]:<20}{key[1]:>5}", *cells)
    for model in sorted({model for model, _ in blocks["gpu"]}):
        cells = [
            residual(*(sum(t for k, t in times.items() if k[0] == model) for times in both))
            for both in ((summed[p], blocks[p]) for p in sorted(blocks))
        ]
        print(f"{model:<20}{'all':>5}", *cells)
    for processor in sorted(blocks):
        errors = [abs(summed[processor][key] / time - 1) for key, time in blocks[processor].items()]
        print(f"{processor}: mean {mean(errors):.2%}, largest {max(errors):.2%} of a block")


def residual(profile_s: float, measured_s: float) -> str:
    """Return both times in milliseconds and the difference in percent."""
    percent = (profile_s / measured_s - 1) * 100
    return f"{profile_s * 1e3:9.2f} {measured_s * 1e3:9.2f} {percent:+6.2f}%"


if __name__ == "__main__":
    main()
