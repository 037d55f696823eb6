"""`python -m benchmarks.run_on_this_machine`: plans run on this machine, against their predictions.

The machine is described as a platform of processors of one core each and profiled; four networks
are mapped onto it. Of each front the configurations run in the executor, interleaved: a burst of
one, then of the next, round after round, and in each round also the whole network in one ONNX
Runtime session, of one thread on one core and of as many threads as there are cores. A burst of a
configuration holds two runs: saturated, where the period T is the mean distance of the frames'
ends, the first few left out; and with a frame let in every 1.25 predicted periods, so that none
queues, where the latency L is the median.

With x̂ predicted and x measured: RMSPE = √ mean ((x̂ − x) / x)², and Spearman's rank correlation,
of T and of L over all configurations. And the throughput of the best configuration over that of one
core, both of them medians over the same rounds. Watched because a plan is worth only what runs.

Other programs spoil a burst. Those in which threads were without a core for more than 2 % of the
segments' time do not count where there are three others; a burst waits for a quiet moment, for a
while. What stands while others have the core is the processor time that a segment's thread takes: T
and L *by processor time* are what the event graph of the plan gives with the measured processor
times of its segments, hand-overs as predicted. They are no substitute for a run on a machine at
rest, and stand beside it.

Where others can't be asked to wait, run this with priority over them: under `chrt -f 10`, say. A
burst is short enough for what Linux leaves to the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

import parapipe
from benchmarks.machine import description, load
from benchmarks.run_cases import ENOUGH, Case, detected, executed, wait_for_quiet, whole
from benchmarks.run_page import page
from benchmarks.tables import write_csv
from parapipe import Configuration, ParetoFront
from parapipe.api.load import locate_model
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder

NETWORKS = ("googlenet", "inception-v3", "mobilenet-v2", "squeezenet", "resnet-50", "inception-v4")
RESULTS = Path(__file__).parent / "results"
MOST_CONFIGURATIONS = 5


def cases_of(network: str, platform: Path, folder: Path) -> Iterator[Case]:
    """Profile and map a network; yield the whole of it in one session, and its configurations."""
    model = f"zoo:{network}"
    parapipe.profile(model, platform)
    front = parapipe.map(model, platform, note=lambda _note: None)
    lent = sorted(os.sched_getaffinity(0))
    with locate_model(front.configurations[0].plan()) as path:
        for cores in (lent[:1], lent):
            threads = f"threads: {len(cores)}"
            yield Case(network, "one session", threads, "", None, {}, whole(path, cores))
        for each in chosen(front):
            place = folder / f"{network}-{each.id}"
            place.mkdir()
            plan = each.plan()
            write_session_folder(plan, path, place)
            opened = open_folder(place)
            yield Case(
                network,
                each.id,
                each.kind,
                each.drawing,
                plan,
                {segment.id: segment.operators for segment in opened.segments},
                executed(Executor(opened), plan),
            )


def chosen(front: ParetoFront) -> list[Configuration]:
    """Return configurations of a front: those that have names, then others evenly spread."""
    named = [each for each in front.configurations if each.names]
    others = [each for each in front.configurations if not each.names]
    room = min(max(MOST_CONFIGURATIONS - len(named), 0), len(others))
    spread = [others[i * len(others) // room] for i in range(room)]
    return sorted([*named, *spread], key=lambda each: each.id)


def measure(
    cases: Sequence[Case], minutes: float, wait_s: float, told: Callable[[str], None]
) -> None:
    """Take rounds over all cases until each has quiet bursts enough, or the time is over."""
    deadline_s = time.monotonic() + minutes * 60
    rounds = 0
    while rounds < ENOUGH or time.monotonic() < deadline_s:
        rounds += 1
        for case in cases:
            wait_for_quiet(time.monotonic() + wait_s)
            case.bursts.append(case.run())
        quiet = [case.quiet for case in cases]
        told(f"round {rounds}: quiet bursts {min(quiet)} to {max(quiet)}, load {load()}")
        if min(quiet) >= ENOUGH:
            return


@click.command()
@click.option("--network", "networks", multiple=True, default=NETWORKS, help="Of the zoo.")
@click.option("--minutes", default=20.0, show_default=True, help="At most, for all rounds.")
@click.option("--wait", "wait_s", default=20.0, show_default=True, help="Of a burst, for quiet.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder of platform and profile.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="For the results.")
def main(
    *, networks: Sequence[str], minutes: float, wait_s: float, work: Path | None, out: Path
) -> None:
    """Profile, map and run networks on this machine; write tables of predicted and measured."""
    about = description()
    with TemporaryDirectory() as scratch:
        platform = detected(work or Path(scratch))
        cases = [case for name in networks for case in cases_of(name, platform, Path(scratch))]
        measure(cases, minutes, wait_s, click.echo)
        write([case.record() for case in cases], about, out)


def write(records: Sequence[Mapping[str, Any]], about: Mapping[str, str], out: Path) -> None:
    """Write the table and the page."""
    write_csv(list(records), out / "run_on_this_machine.csv")
    text = page(records, {**about, "load when ended": load()})
    (out / "run_on_this_machine.md").write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
