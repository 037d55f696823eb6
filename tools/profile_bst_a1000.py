"""Make stated-int8.csv, the profile of the Black Sesame A1000, from operator times of its maker.

    python -m tools.profile_bst_a1000 OPERATORS [--out FOLDER]

OPERATORS is the table of profiles/SOURCES.md: network, operator, type, successors and nanoseconds
(read, write, NPU, DSP). `tools/stated_networks.py` finds its operators in the zoo's graphs, whose
shapes give the signatures, in int8. A signature's time is the lower median of its operators. A
DSP's time holds for all of the chip's four. measured/unmatched.csv lists what gave no time.

It prints what platforms/bst-a1000.yaml takes from the same table: hand-overs, loading and storing
of frames, the rates of convolutions and the shortest operators.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median, median_low

import parapipe
from parapipe.cost.measured_source import Subject, subject_of
from parapipe.cost.profile import STATED, Measurement, write_profile
from parapipe.cost.signature import Signature
from parapipe.graph.data_types import convert_graph
from tools.stated_networks import NETWORKS, StatedOperator, match, read_stated

HERE = Path(__file__).parents[1] / "profiles/bst-a1000"
DSPS = ("dsp0", "dsp1", "dsp2", "dsp3")
FREQUENCY_HZ = 800e6  # the platform's default: the source says nothing of clocks
DTYPE = "int8"
CONVOLUTIONS = ("conv1x1", "conv3x3", "conv-other")
NO_OPERATOR = "no operator of the zoo's graph is like it"
NO_TIME = "100 ns for all that it states: merged with another operator or a view"
NOT_ON_NPU = "no time on the NPU, which runs the type"


@dataclass(frozen=True, slots=True)
class Matched:
    """An operator of the source, and what the zoo's graph says of it; None if it has none."""

    stated: StatedOperator
    subject: Subject | None


def main() -> None:
    """Write the profile and the list of what is not in it, and print the platform's numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", type=Path, help="the source's table")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    given = parser.parse_args()
    stated = read_stated(given.operators)
    found = list(chain.from_iterable(matched(stated[name], zoo) for name, zoo in NETWORKS.items()))
    (given.out / "measured").mkdir(parents=True, exist_ok=True)
    made = list(measurements(found))
    write_profile(given.out / "stated-int8.csv", made)
    write_unmatched(given.out / "measured/unmatched.csv", found)
    print(f"{sum(each.subject is not None for each in found)} of {len(found)} operators matched")
    print(f"{len({m.signature for m in made})} signatures")
    print_platform(found, stated)


def matched(stated: Sequence[StatedOperator], zoo: str) -> Iterator[Matched]:
    """Yield a network's operators with their counterparts in the zoo's graph, in int8."""
    graph = convert_graph(parapipe.load_model(f"zoo:{zoo}", granularity="onnx"), DTYPE)
    of = match(stated, graph)
    for each in stated:
        yield Matched(each, subject_of(of[each.name], graph) if each.name in of else None)


def measurements(found: Sequence[Matched]) -> Iterator[Measurement]:
    """Yield one measurement for each signature and processor, sorted."""
    groups: dict[Signature, list[Matched]] = defaultdict(list)
    for each in found:
        if each.subject and not each.stated.is_placeholder:
            groups[each.subject.signature].append(each)
    for signature, group in sorted(groups.items(), key=lambda item: str(item[0])):
        times_of = {"npu": [each.stated.npu_s for each in group]}
        times_of |= {dsp: [each.stated.dsp_s for each in group] for dsp in DSPS}
        for processor, stated in times_of.items():
            if times := [time for time in stated if time is not None]:
                yield _measurement(signature, group[0].subject, processor, times)


def _measurement(
    signature: Signature, subject: Subject | None, processor: str, times_s: Sequence[float]
) -> Measurement:
    assert subject is not None
    work, middle_s = subject.operator.work, median_low(times_s)
    return Measurement(
        signature=signature,
        operator_class=subject.operator_class,
        macs=work.macs,
        size_bytes=work.read_bytes + work.written_bytes,
        processor=processor,
        frequency_hz=FREQUENCY_HZ,
        time_s=middle_s,
        rows=len(times_s),
        spread=(max(times_s) - min(times_s)) / middle_s,
        method=STATED,
    )


def write_unmatched(path: Path, found: Sequence[Matched]) -> None:
    """Write every operator of which the profile lacks a time that one might look for, and why."""
    on_npu = {each.stated.type for each in found if each.stated.npu_s is not None}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["network", "operator", "type", "why"])
        for each in found:
            of = each.stated
            reasons = {
                NO_OPERATOR: each.subject is None,
                NO_TIME: of.is_placeholder,
                NOT_ON_NPU: of.npu_s is None and of.type in on_npu,
            }
            if why := "; ".join(reason for reason, holds in reasons.items() if holds):
                writer.writerow([of.network, of.name, of.type, why])


def print_platform(
    found: Sequence[Matched], stated: Mapping[str, Sequence[StatedOperator]]
) -> None:
    """Print the numbers that the platform's file takes from the table."""
    real = [each for each in found if not each.stated.is_placeholder]
    by_name = {(each.stated.network, each.stated.name): each.stated for each in real}
    moves = [
        each.stated.write_s + by_name[each.stated.network, name].read_s
        for each in real
        for name in each.stated.successors
        if (each.stated.network, name) in by_name
    ]
    print(f"hand-over: median {median(moves) * 1e6:.1f} µs of {len(moves)}")
    first = [stated[name][0].read_s for name in NETWORKS]
    last = [[each for each in stated[name] if not each.is_placeholder][-1] for name in NETWORKS]
    print(f"loading a frame {median(first) * 1e6:.1f} µs")
    print(f"storing the result {median(each.write_s for each in last) * 1e6:.1f} µs")
    for name in ("npu_s", "dsp_s"):
        times = [(each, t) for each in real if (t := getattr(each.stated, name)) is not None]
        least = min(time for _, time in times)
        both = [
            (each.subject.operator.work.macs, time)
            for each, time in times
            if each.subject and each.subject.operator_class in CONVOLUTIONS
        ]
        macs, time_s = (sum(column) for column in zip(*both, strict=True))
        print(f"{name}: {macs:.4g} MACs in {time_s * 1e3:.1f} ms, {macs / time_s:.4g} a second")
        print(f"{name}: shortest operator {least * 1e6:.2f} µs")


if __name__ == "__main__":
    main()
