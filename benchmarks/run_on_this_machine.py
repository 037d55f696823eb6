"""`python -m benchmarks.run_on_this_machine`: plans run on this machine, against their predictions.

The machine is described as a platform of processors of one core each and profiled; three networks
are mapped onto it. Of each front the configurations run in the executor, interleaved: a burst of
one, then of the next, round after round, and in each round also the whole network in one ONNX
Runtime session, of one thread on one core and of as many threads as there are cores. A burst of a
configuration holds two runs: saturated, where the period T is the mean distance of the frames'
ends, the first few left out; and with a frame let in every 1.25 predicted periods, so that none
queues, where the latency L is the median.

With x̂ predicted and x measured: RMSPE = √ mean ((x̂ − x) / x)², and Spearman's rank correlation,
of T and of L over all configurations. And the throughput of the best configuration over that of one
core, both of them medians over the same rounds. Watched because a plan is worth only what runs.

Other programs spoil a burst. Those that took more than a twentieth of the machine while it lasted
do not count where there are three others; a burst waits for a quiet moment, for a while.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from benchmarks.machine import description, load
from benchmarks.run_page import page
from benchmarks.tables import write_csv
from parapipe import api, measuring
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.loading import located_model
from parapipe.report.pareto_front import ParetoFront
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import random_frames
from parapipe.runtime.sessions import pin

NETWORKS = ("googlenet", "inception-v3", "mobilenet-v2")
RESULTS = Path(__file__).parent / "results"
BURST_S = 1.0
SPARE = 1.25  # of the predicted period, between frames that must not queue
FILLING = 3  # frames until a pipeline of two stages is full
QUIET = 0.05  # share of the machine that other programs may take
ENOUGH = 3
MOST_CONFIGURATIONS = 7


@dataclass(frozen=True, slots=True)
class Burst:
    """What one burst gave, and the share of the machine that other programs took meanwhile."""

    period_s: float
    latency_s: float
    others: float


@dataclass(slots=True)
class Case:
    """A configuration, or a whole network in one session, and its bursts."""

    network: str
    name: str
    kind: str
    stages: str
    predicted_period_s: float | None
    predicted_latency_s: float | None
    burst: Callable[[], tuple[float, float]]
    bursts: list[Burst] = field(default_factory=list)

    @property
    def counted(self) -> list[Burst]:
        """The quiet bursts; the quietest three where there are fewer."""
        quiet = [each for each in self.bursts if each.others <= QUIET]
        by_quiet = sorted(self.bursts, key=lambda each: each.others)
        return quiet if len(quiet) >= ENOUGH else by_quiet[:ENOUGH]

    def record(self) -> dict[str, Any]:
        """Return it as a row of the table."""
        counted = self.counted
        return {
            "network": self.network,
            "configuration": self.name,
            "kind": self.kind,
            "stages": self.stages,
            "predicted_period_s": self.predicted_period_s,
            "period_s": median(each.period_s for each in counted),
            "predicted_latency_s": self.predicted_latency_s,
            "latency_s": median(each.latency_s for each in counted),
            "bursts": len(counted),
            "others": median(each.others for each in counted),
        }


def busy_s() -> tuple[float, float]:
    """Return seconds of cores that all programs have used, and this one."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, fields)
    own = os.times()
    ticks = user + nice + system + irq + soft + steal
    return ticks / os.sysconf("SC_CLK_TCK"), own.user + own.system


def watched(work: Callable[[], tuple[float, float]]) -> Burst:
    """Do a burst; see what others took meanwhile."""
    (all_s, own_s), begin_s = busy_s(), time.perf_counter()
    period_s, latency_s = work()
    (all_end_s, own_end_s), took_s = busy_s(), time.perf_counter() - begin_s
    others_s = (all_end_s - all_s) - (own_end_s - own_s)
    return Burst(period_s, latency_s, max(others_s, 0.0) / (took_s * (os.cpu_count() or 1)))


def wait_for_quiet(deadline_s: float) -> None:
    """Return when other programs leave the machine alone, or at the deadline."""
    while time.monotonic() < deadline_s:
        before_s, own_s = busy_s()
        time.sleep(0.3)
        after_s, own_after_s = busy_s()
        if (after_s - before_s) - (own_after_s - own_s) <= QUIET * 0.3 * (os.cpu_count() or 1):
            return


def executed(executor: Executor) -> Callable[[], tuple[float, float]]:
    """Return what runs a burst of a configuration: period and latency in seconds."""
    predicted = executor.folder.predicted
    count = FILLING + max(8, round(BURST_S / 2 / predicted["period_s"]))
    frames = list(random_frames(executor.folder, count))

    def burst() -> tuple[float, float]:
        for _ in executor.run(frames):
            pass
        done_s = [frame.done_s for frame in executor.record.frames[FILLING:]]
        period_s = (done_s[-1] - done_s[0]) / (len(done_s) - 1)
        for _ in executor.run(frames, period_s=SPARE * predicted["period_s"]):
            pass
        passed = executor.record.frames[FILLING:]
        return period_s, median(frame.done_s - frame.admitted_s for frame in passed)

    return burst


def whole(model: Path, cores: Sequence[int]) -> Callable[[], tuple[float, float]]:
    """Return what runs a burst of the whole network in one session, a thread for each core."""
    from parapipe.profiling.measure import bound, session

    with pinned(cores):
        opened = session(model, len(cores), "CPUExecutionProvider")
        binding = bound(opened)

    def burst() -> tuple[float, float]:
        times_s: list[float] = []
        with pinned(cores):
            while len(times_s) < FILLING + 8 or sum(times_s) < BURST_S:
                begin_s = time.perf_counter()
                opened.run_with_iobinding(binding)
                times_s.append(time.perf_counter() - begin_s)
        return float(np.mean(times_s[FILLING:])), median(times_s[FILLING:])

    return burst


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Bind this thread to some cores for a while."""
    before = os.sched_getaffinity(0)
    pin(cores)
    try:
        yield
    finally:
        pin(before)


def cases_of(network: str, platform: Path, folder: Path) -> Iterator[Case]:
    """Profile and map a network; yield its configurations, and the whole of it in one session."""
    model = f"{api.ZOO}{network}"
    measuring.profile_model(model, platform)
    front = api.map_model(model, platform, note=lambda _note: None)
    cores = sorted(os.sched_getaffinity(0))
    for number, each in enumerate(chosen(front)):
        place = folder / f"{network}-{each.row.id}"
        place.mkdir()
        plan = each.plan()
        with located_model(plan) as path:
            write_session_folder(plan, path, place)
            if number == 0:
                name = f"{len(cores)} threads"
                yield Case(
                    network, "one session", "one thread", "", None, None, whole(path, cores[:1])
                )
                yield Case(network, "one session", name, "", None, None, whole(path, cores))
        opened = open_folder(place)
        yield Case(
            network,
            each.row.id,
            each.row.kind,
            each.row.drawing,
            opened.predicted["period_s"],
            opened.predicted["latency_s"],
            executed(Executor(opened)),
        )


def chosen(front: ParetoFront) -> list[Any]:
    """Return configurations of a front: those that have names, then others evenly spread."""
    named = [each for each in front.configurations if each.row.names]
    others = [each for each in front.configurations if not each.row.names]
    room = max(MOST_CONFIGURATIONS - len(named), 0)
    step = max(len(others) / room, 1.0) if room else 1.0
    spread = [others[int(i * step)] for i in range(min(room, len(others)))]
    return sorted([*named, *spread], key=lambda each: each.row.id)


def measure(cases: Sequence[Case], minutes: float, told: Callable[[str], None]) -> None:
    """Take rounds over all cases until each has quiet bursts enough, or the time is over."""
    deadline_s = time.monotonic() + minutes * 60
    number = 0
    while number < ENOUGH or time.monotonic() < deadline_s:
        number += 1
        for case in cases:
            wait_for_quiet(min(deadline_s, time.monotonic() + 20))
            case.bursts.append(watched(case.burst))
        quiet = [sum(each.others <= QUIET for each in case.bursts) for case in cases]
        told(f"round {number}: quiet bursts {min(quiet)} to {max(quiet)}, load {load()}")
        if min(quiet) >= 2 * ENOUGH - 1:
            return


@click.command()
@click.option("--network", "networks", multiple=True, default=NETWORKS, help="Of the zoo.")
@click.option("--minutes", default=20.0, show_default=True, help="At most, for all rounds.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder of platform and profile.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="For the results.")
def main(*, networks: Sequence[str], minutes: float, work: Path | None, out: Path) -> None:
    """Profile, map and run networks on this machine; write tables of predicted and measured."""
    with TemporaryDirectory() as scratch:
        folder = work or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        platform = folder / "machine.yaml"
        about = description()
        if not platform.exists():
            cores = len(os.sched_getaffinity(0))
            measuring.detect_platform(name="machine", split=cores).write(platform)
        cases = [case for name in networks for case in cases_of(name, platform, Path(scratch))]
        measure(cases, minutes, click.echo)
    records = [case.record() for case in cases]
    write(records, about, out)


def write(records: Sequence[Mapping[str, Any]], about: Mapping[str, str], out: Path) -> None:
    """Write the table and the page."""
    out.mkdir(parents=True, exist_ok=True)
    write_csv(list(records), out / "run_on_this_machine.csv")
    text = page(records, {**about, "load when ended": load()})
    (out / "run_on_this_machine.md").write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
