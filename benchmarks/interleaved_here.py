"""`python -m benchmarks.interleaved_here`: interleaved frames on this machine, against one core.

The machine is described as a platform of processors of one core each; networks are profiled and
mapped with `--interleave auto`. Taken are the configurations of most throughput: of stages; of
stages or interleaved (*kind* says which); and of those in which identical cores take turns on the
frames of a stage, *replicated*. In each round run in turn, as fast as they can: the whole network
in one ONNX Runtime session of one thread on the first core; one such session on each core, at once
and independent of each other; and the configurations. Queues have one slot more than the plans say,
as with `--queue`: threads that share cores with others do not keep time, and a queue of two is then
full or empty.

*gain* is the throughput over that of one core, medians over the rounds. Independent sessions share
nothing but the memory and its bus: what they gain is about what the machine has to give. Watched
because interleaving promises that no processor waits. Each frame's results are compared with those
of one session, and the memory of the process after the last round with that after the first.

Other programs spoil the figures: run this on a machine at rest. A real-time priority for all
threads (`chrt -f`) spoils them too: the thread that admits frames then waits for those that work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click

import parapipe
from benchmarks.machine import description
from benchmarks.run_cases import detected, whole
from benchmarks.run_equality import error
from benchmarks.tables import markdown_table
from parapipe.api.load import locate_model
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.plan.schema import Plan
from parapipe.profiling.measure import session
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import DISTINCT, random_frames

NETWORKS = ("googlenet", "squeezenet", "mobilenet-v2", "resnet-50")
ROUNDS, FRAMES = 5, 200
EDGE = 20  # frames at each end of a round in which not all lags are busy
PAGE = Path(__file__).parent / "results" / "interleaved_here.md"
PLANS = ("stages", "interleaved", "replicated")
HEAD = (
    *("network", "kind", "one core, ms", "sessions, ms", "gain"),
    *(title for name in PLANS for title in (f"{name}, ms", "gain", "predicted")),
    *("frames", "largest difference", "MB after the first round", "MB after the last"),
)

Period = Callable[[], float]


@dataclass(slots=True)
class Running:
    """A plan that is open, and how far its results were from those of one session."""

    plan: Plan
    period: Period
    worst: float = 0.0


def running(plan: Plan, model: Path, folder: Path) -> Running:
    """Export and open a plan; its period is measured over the frames of a round."""
    folder.mkdir()
    write_session_folder(plan, model, folder)
    opened = open_folder(folder)
    frames = list(random_frames(opened, FRAMES))
    alone = session(model, 1, "CPUExecutionProvider")
    names = [each.tensor for each in opened.outputs]
    expected = [
        dict(zip(names, alone.run(names, frame), strict=True)) for frame in frames[:DISTINCT]
    ]
    executor = Executor(opened, queue=1 + max(each.queue_depth for each in opened.channels))

    def period_s() -> float:
        made = list(executor.run(frames))
        errors = (error(each, expected[n % DISTINCT]) for n, each in enumerate(made))
        found.worst = max(found.worst, *errors)
        done_s = [frame.done_s for frame in executor.record.frames[EDGE:-EDGE]]
        return float((done_s[-1] - done_s[0]) / (len(done_s) - 1))

    found = Running(plan, period_s)
    return found


def sessions(model: Path, cores: Sequence[int]) -> Period:
    """Return what measures the time a frame takes if each core runs a session of its own."""
    bursts = [whole(model, [core]) for core in cores]

    def period_s() -> float:
        with ThreadPoolExecutor(len(bursts)) as pool:
            found = pool.map(lambda burst: burst(), bursts)
            return float(1 / sum(1 / each.period_s for each in found))

    return period_s


def resident_mb() -> float:
    """Return the memory that this process has in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row(network: str, platform: Path, folder: Path, rounds: int) -> Iterator[object]:
    """Yield the cells of a network's row."""
    profile = platform.with_name(f"{network}.csv")
    if not profile.exists():
        parapipe.profile(f"zoo:{network}", platform, out=profile)
    front = parapipe.map(
        f"zoo:{network}",
        platform,
        interleave="auto",
        objectives="latency-throughput",
        profiles=[profile],
        note=lambda _note: None,
    )
    others = {
        "stages": ("interleaved", "replicated"),
        "interleaved": ("replicated",),
        "replicated": {each.kind for each in front} - {"replicated"},
    }
    best = {
        name: min((each for each in front if each.kind not in but), key=lambda row: row.period_s)
        for name, but in others.items()
    }
    cores = sorted(os.sched_getaffinity(0))
    with locate_model(best["stages"].plan()) as model:
        plans = {
            name: running(each.plan(), model, folder / f"{network}-{name}")
            for name, each in best.items()
        }
        alone = whole(model, cores[:1])
        cases: dict[str, Period] = {
            "one": lambda: alone().period_s,
            "sessions": sessions(model, cores),
            **{name: each.period for name, each in plans.items()},
        }
        taken: dict[str, list[float]] = {name: [] for name in cases}
        used_mb = []
        for _ in range(rounds):
            for name, period in cases.items():
                taken[name].append(period() * 1e3)
            used_mb.append(resident_mb())
    ms = {name: median(each) for name, each in taken.items()}
    yield network
    yield best["interleaved"].kind
    yield f"{ms['one']:.1f}"
    for name in list(ms)[1:]:
        yield f"{ms[name]:.1f}"
        yield f"{ms['one'] / ms[name]:.2f}"
        if name in plans:
            yield f"{plans[name].plan.predicted.period_s * 1e3 / ms[name] - 1:+.1%}"
    yield rounds * FRAMES
    yield f"{max(each.worst for each in plans.values()):.0e}"
    yield from (f"{each:.0f}" for each in (used_mb[0], used_mb[-1]))


@click.command()
@click.option("--network", "networks", multiple=True, default=NETWORKS, help="Of the zoo.")
@click.option("--rounds", default=ROUNDS, show_default=True, type=click.IntRange(1))
@click.option("--work", type=click.Path(path_type=Path), help="Folder of platform and profiles.")
def main(*, networks: Sequence[str], rounds: int, work: Path | None) -> None:
    """Profile, map and run networks on this machine; write the page."""
    about: dict[str, Any] = description() | {"ONNX Runtime": version("onnxruntime")}
    rows = []
    with TemporaryDirectory() as scratch:
        platform = detected(work or Path(scratch)).resolve()
        for network in networks:
            rows.append(list(row(network, platform, Path(scratch), rounds)))
            click.echo(" | ".join(map(str, rows[-1])))
            PAGE.write_text(page(rows, about), encoding="utf-8")


def page(rows: Sequence[Sequence[object]], about: Mapping[str, str]) -> str:
    """Return the page."""
    return (
        "# Interleaved frames on this machine\n\n"
        "Written by `python -m benchmarks.interleaved_here`; `benchmarks/interleaved_here.py` says "
        "how. Milliseconds a frame. *sessions*: one session on each core, independent of each "
        "other. Gains are over one core; *predicted*: by how much that was off.\n\n"
        f"{markdown_table(HEAD, rows)}\n\n"
        f"{markdown_table(['measured on', ''], list(about.items()))}\n"
    )


if __name__ == "__main__":
    main()
