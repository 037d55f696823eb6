"""`python -m benchmarks.native_here`: the native runner on this machine, against ONNX Runtime.

The machine is described as a platform of processors of one core each, with hand-overs of the native
runner: what its engine takes where every task reads what the other core has made. Six questions;
what is compared runs in turn, round after round, in bursts of about a second.

*One core.* The whole network in an ONNX Runtime session of one thread, over the native runner on
one core; below 1 its kernels are slower. Asked for: 0.95, the geometric mean of ten networks.

*Split.* The plan of least latency of `map --split auto`, with times of operators and parts by
`profile --runtime native`; of U-Net and ViT-B/16 halves of all operators, whose parts are measured
in the same way, and of MobileNet-v2 both. Frames of which each is alone; beside two threads of
ONNX Runtime and of OpenVINO (`pip install openvino`; the page says if it is missing), each over its
own one thread.
Asked for: 1.6 and 1.75, predicted within 8 %.

*Engine.* Two chains of equal tasks, one on each core; `benchmarks/native_engine.py` says what is
the engine's. Asked for: 0.5, 3 and 10 % of tasks of 1 ms, 100 µs and 20 µs.

*Parts.* Every operator in parts, against the same parts on one core. With the speedup psi and N = 2
cores, p_e = 1 - (1/psi - 1/N) / (1 - 1/N) by Karp and Flatt. Asked for: 0.97. ResNet-50 is cut
along rows. BERT-base is cut so that each part of a product has its own weights, along channels, and
attention by heads: in halves of tokens, both cores read all weights of each frame. Where the cores'
time goes is told by the same words as for chains.

*Disturbed.* Beside a program that takes the second core half of the time, at random: what is kept
of the throughput; `benchmarks/native_disturbed.py` says how. Asked for: more with `steal` than with
`plan`.

*Interleaved.* The plan of most throughput of `map --interleave auto`. Asked for: 1.9, predicted
within 5 %.

Figures are medians of all frames; those in brackets are of the fastest frames (the fastest tenth,
on average), which other programs disturb least. Watched because a native runtime is only worth its
compiler if its kernels are as fast, and its processors share tensors where sessions copy them.

Other programs spoil the figures, most of all of split plans, whose cores wait for each other at
every operator: run this on a machine at rest, or under `chrt -f 10`. Tables that are in the folder
of `--work` are not measured again, but for those that `--table` names: the page, which is written
after each table, says when each was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.machine import description, load
from benchmarks.native_disturbed import HEAD as DISTURBED_HEAD
from benchmarks.native_disturbed import NETWORK, disturbed_rows
from benchmarks.native_engine import HEAD as ENGINE_HEAD
from benchmarks.native_engine import engine_rows, native_platform
from benchmarks.native_runs import (
    CORES,
    Times,
    frames_for,
    milliseconds,
    model_file,
    native_times,
    one_core_plan,
    ratio,
    session_times,
)
from benchmarks.native_split import (
    AUTO,
    INTERLEAVED,
    INTERLEAVED_HEAD,
    PARTS_HEAD,
    SPLIT,
    SPLIT_HEAD,
    interleaved_rows,
    parts_rows,
    split_rows,
)
from benchmarks.run_cases import detected
from benchmarks.tables import markdown_table

ONE_CORE = (
    *("squeezenet", "mobilenet-v1", "mobilenet-v2", "googlenet", "resnet-50", "densenet-121"),
    *("inception-v3", "bert-base", "vit-b16", "unet"),
)
PARTS: Mapping[str, Sequence[int]] = {"resnet-50": (2, 4), "bert-base": (2,)}
ROUNDS = 2
PAGE = Path(__file__).parent / "results" / "native_here.md"
ONE_CORE_HEAD = ("network", "ONNX Runtime, ms", "native, ms", "one core")
HEADS: Mapping[str, Sequence[str]] = {
    "one-core": ONE_CORE_HEAD,
    "engine": ENGINE_HEAD,
    "interleaved": INTERLEAVED_HEAD,
    "split": SPLIT_HEAD,
    "parts": PARTS_HEAD,
    "disturbed": DISTURBED_HEAD,
}
"""Of the tables, by their names, in the order in which they are measured."""
MEAN = "geometric mean"


def one_core_rows(
    networks: Sequence[str], platform: Path, folder: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the rows of the table of one core; the last is the geometric mean of the others."""
    pairs = []
    for network in networks:
        file = model_file(network, folder)
        plan = one_core_plan(file, platform)
        session, native = Times(), Times()
        for _ in range(rounds):
            session.frames_s += session_times(file, CORES[:1])
            frames = frames_for(session.typical_s)
            native.frames_s += native_times(plan, file, frames)[0]
        pairs.append((session, native))
        click.echo(f"{network}: {ratio(session, native)} of ONNX Runtime")
        told = (milliseconds(each.typical_s) for each in (session, native))
        yield network, *told, ratio(session, native)
    yield MEAN, "", "", mean_ratio(pairs)


def mean_ratio(pairs: Sequence[tuple[Times, Times]]) -> str:
    """Return the geometric mean of ratios, that of undisturbed frames in brackets."""
    typical = [one.typical_s / other.typical_s for one, other in pairs]
    least = [one.undisturbed_s / other.undisturbed_s for one, other in pairs]
    means = [prod(each) ** (1 / len(pairs)) for each in (typical, least)]
    return f"{means[0]:.2f} ({means[1]:.2f})"


def page(tables: Mapping[str, Sequence[Sequence[object]]], about: Mapping[str, str]) -> str:
    """Return the page of results."""

    def table(name: str) -> str:
        return markdown_table(HEADS[name], tables[name]) if name in tables else "Not measured."

    return f"""# The native runner on this machine

Written by `python -m benchmarks.native_here`; `benchmarks/native_here.py` says how.

Medians; in brackets the frames that other programs disturbed least.

## One core

Milliseconds of a frame with one thread of ONNX Runtime and of the native runner. *one core*: the
first over the second.

{table("one-core")}

## Split operators

Milliseconds of a frame that is alone. *split*: the native runner's gain by two cores over one, with
the plan of `map --split auto`, or with halves of all operators along an axis; *predicted*: of this
plan, and how much longer that is than measured. ONNX Runtime and OpenVINO: one thread, and what two
threads gain.

{table("split")}

## What the engine takes

Two chains of equal tasks, one on each core. A task's microseconds, those of the engine between two
tasks, and shares of the work: the engine's, of waiting for what a task reads, and of admitting
frames and taking results.

{table("engine")}

## Parts

Every operator in so many parts (ResNet-50 along rows, products of BERT-base along channels, its
attention by heads, its norms along tokens): milliseconds from frame to frame with all parts on one
core, and on two cores. *p_e*: the parallel fraction by Karp and Flatt. *engine*, *waiting*,
*frames*: of the two cores' work, as above.

{table("parts")}

## One core disturbed half of the time

`{NETWORK}`: milliseconds from frame to frame, on average, alone and beside a program that takes the
second core half of the time, at random; and what is kept of the throughput.

{table("disturbed")}

## Interleaved frames

Milliseconds from frame to frame, on one core and with the plan of `map --interleave auto` on two.

{table("interleaved")}

{markdown_table(("measured on", ""), list(about.items()))}
"""


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--work", type=click.Path(path_type=Path), help="Keeps models, profiles and tables.")
@click.option(
    "--table", "again", multiple=True, type=click.Choice([*HEADS]), help="Measure it again."
)
@click.option("--smallest", is_flag=True, help="One small network and one round, as a trial.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
def main(
    *, rounds: int, work: Path | None, again: Sequence[str], smallest: bool, out: Path
) -> None:
    """Answer the six questions and write the page."""
    about = description()
    about.pop("date")
    about.pop("load when begun")
    rounds = 1 if smallest else rounds
    parts = {"squeezenet": (2,)} if smallest else PARTS

    def networks(names: Sequence[str]) -> Sequence[str]:
        return ("squeezenet",) if smallest else names

    with TemporaryDirectory() as scratch:
        folder = work or Path(scratch)
        platform = native_platform(detected(folder))
        rows: Mapping[str, Callable[[], Iterator[Sequence[object]]]] = {
            "one-core": lambda: one_core_rows(networks(ONE_CORE), platform, folder, rounds),
            "split": lambda: split_rows(
                (("squeezenet", AUTO),) if smallest else SPLIT, platform, folder, rounds
            ),
            "engine": lambda: engine_rows(platform, Path(scratch), rounds),
            "parts": lambda: parts_rows(parts, platform, folder, rounds),
            "disturbed": lambda: disturbed_rows(networks((NETWORK,))[0], platform, folder, rounds),
            "interleaved": lambda: interleaved_rows(
                networks(INTERLEAVED), platform, folder, rounds
            ),
        }
        tables: dict[str, Sequence[Sequence[object]]] = {}
        for name in HEADS:
            kept = folder / f"{name}.json"
            if name in again or not kept.exists():
                now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
                measured = f"{now}, {rounds} rounds, load when begun {load()}"
                made = {"measured": measured, "rows": list(rows[name]())}
                kept.write_text(json.dumps(made), encoding="utf-8")
            found = json.loads(kept.read_text(encoding="utf-8"))
            about[f"*{name}*"], tables[name] = found["measured"], found["rows"]
            out.write_text(page(tables, about), encoding="utf-8")


if __name__ == "__main__":
    main()
