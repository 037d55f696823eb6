"""`python -m benchmarks.native_here`: the native runner on this machine, against ONNX Runtime.

The machine is described as a platform of processors of one core each. In each round run in turn:
the whole network in one ONNX Runtime session of one thread on the first core, and of as many
threads as there are cores; and with the native runner a plan that has all on the first core, one
whose operators are cut along rows in equal parts, half of them on each of two cores, and one that
`map --interleave auto` finds for throughput with times of `profile --runtime native`.

*one core*: ONNX Runtime's time with one thread over the native runner's on one core; below 1 its
kernels are slower. *split* and *interleaved*: time from a frame's end to the next one's on one core
over that on two. A gain of 2 is all that two cores have. Figures of a case are medians
of all its frames; those in brackets are of its fastest frames (the fastest tenth, on average),
which other programs disturb least. Watched because a native runtime is only worth its compiler if
its kernels are as fast, and its processors share tensors where sessions copy them.

Other programs spoil the figures, most of all of split plans, whose cores wait for each other at
every operator: run this on a machine at rest, or under `chrt -f 10`. The page says its load.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import perf_counter

import click

import parapipe
from benchmarks.machine import description, load
from benchmarks.run_cases import detected, pinned
from benchmarks.split_here import cut_plan
from benchmarks.tables import markdown_table
from parapipe.api.load import load_model, load_platform, split_file
from parapipe.api.plan import Plan
from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.profiling.measure import bind_tensors, session
from parapipe.zoo.registry import write

ONE_CORE = (
    *("squeezenet", "mobilenet-v1", "mobilenet-v2", "googlenet", "resnet-50", "densenet-121"),
    *("inception-v3", "bert-base", "vit-b16", "unet"),
)
SPLIT = ("resnet-50", "mobilenet-v2", "unet", "vit-b16")
INTERLEAVED = ("googlenet", "squeezenet", "mobilenet-v2", "resnet-50")
ROUNDS, FRAMES, PARTS = 5, 20, 2
PAGE = Path(__file__).parent / "results" / "native_here.md"
HEAD = (
    "network",
    "ONNX Runtime, ms",
    "native, ms",
    "one core",
    "threads",
    "split",
    "interleaved",
    "predicted",
)


@dataclass
class Times:
    """Seconds of a case, frame by frame."""

    frames_s: list[float] = field(default_factory=list)
    predicted_s: float = 0.0

    @property
    def typical_s(self) -> float:
        """The median."""
        return median(self.frames_s)

    @property
    def undisturbed_s(self) -> float:
        """Mean of the fastest tenth."""
        return fmean(sorted(self.frames_s)[: max(1, len(self.frames_s) // 10)])


def one_core_plan(file: Path, platform: Path) -> Plan:
    """Return a plan with all operators on the first processor, with nominal times."""
    graph, target = load_model(file, note=lambda _: None), load_platform(platform)
    costs = build_cost_table(graph, target, profiles=[], precision="model")
    count = len(graph.operators)
    alone = Assignment((0,) * count, (tuple(range(count)),), ordered=True)
    return Plan.of(build_plan(graph, target, costs, mapping_of(graph, target, costs, alone)))


def session_times(file: Path, cores: Sequence[int]) -> list[float]:
    """Run the whole network in a session, a thread for each core; return seconds of each frame."""
    times_s = []
    with pinned(cores):
        opened = session(file, len(cores), "CPUExecutionProvider")
        binding = bind_tensors(opened)
        for _ in range(FRAMES + 2):
            begin_s = perf_counter()
            opened.run_with_iobinding(binding)
            times_s.append(perf_counter() - begin_s)
    return times_s[2:]


def native_times(plan: Plan, file: Path) -> tuple[list[float], list[float]]:
    """Run a plan as fast as it goes; return seconds of each frame, and between frames' ends."""
    run = parapipe.run_plan(plan, model=file, frames=FRAMES, saturate=True, runtime="native")
    frames = run.record.frames
    ends = sorted(each.done_s for each in frames)
    between = [later - one for one, later in pairwise(ends)]
    return [each.done_s - each.admitted_s for each in frames], between


def measured(network: str, platform: Path, folder: Path, rounds: int) -> dict[str, Times]:
    """Run all cases of a network in turn, round after round."""
    file = folder / f"{network}.onnx"
    write(network, file)
    cores = sorted(os.sched_getaffinity(0))[:2]
    one = one_core_plan(file, platform)
    interleaved = interleaved_plan(file, platform, folder) if network in INTERLEAVED else None
    times: dict[str, Times] = {}

    def add(name: str, frames_s: list[float]) -> None:
        times.setdefault(name, Times()).frames_s += frames_s

    rules = [f"*:rows={PARTS}"] if network != "vit-b16" else [f"*:tokens={PARTS}"]
    with split_file(file, f"zoo:{network}", rules, "fused", external=False) as cut_file:
        graph = load_model(cut_file, note=lambda _: None)
        cut = cut_plan(graph, platform, None, PARTS) if network in SPLIT else None
        for _ in range(rounds):
            add("session", session_times(file, cores[:1]))
            add("threads", session_times(file, cores))
            frames, between = native_times(one, file)
            add("native", frames)
            add("paced", between)
            if cut is not None:
                add("split", native_times(cut, cut_file)[1])
            if interleaved is not None:
                add("interleaved", native_times(interleaved, file)[1])
                times["interleaved"].predicted_s = interleaved.predicted.sustained_period_s
    return times


def interleaved_plan(file: Path, platform: Path, folder: Path) -> Plan:
    """Return the plan of most throughput, by times of the native runner's kernels."""
    profile = folder / f"{file.stem}.csv"
    parapipe.profile_on_runtime(file, platform, "native", out=profile)
    front = parapipe.map(
        file, platform, profiles=[profile], interleave="auto", objectives="latency-throughput",
        note=lambda _: None,
    )  # fmt: skip
    fitting = [each for each in front if each.kind != "replicated"]
    if not fitting:
        raise click.ClickException(f"{file.stem}: no configuration has a plan for the runner")
    return min(fitting, key=lambda row: row.sustained_period_s).plan()


def ratio(over: Times | None, under: Times | None) -> str:
    """Return one time over another, that of undisturbed frames in brackets; empty without one."""
    if over is None or under is None:
        return ""
    least = over.undisturbed_s / under.undisturbed_s
    return f"{over.typical_s / under.typical_s:.2f} ({least:.2f})"


def period_error(times: Times | None) -> str:
    """Return how far a predicted period is off; empty without one."""
    return "" if times is None else f"{times.predicted_s / times.typical_s - 1:+.1%}"


def row(network: str, times: Mapping[str, Times]) -> tuple[object, ...]:
    """Return a network's row of the table."""
    return (
        network,
        *(f"{times[name].typical_s * 1e3:.1f}" for name in ("session", "native")),
        ratio(times["session"], times["native"]),
        ratio(times["session"], times["threads"]),
        ratio(times["paced"], times.get("split")),
        ratio(times["paced"], times.get("interleaved")),
        period_error(times.get("interleaved")),
    )


def page(rows: Sequence[tuple[object, ...]], mean: str, about: Mapping[str, str]) -> str:
    """Return the page of results."""
    return f"""# The native runner on this machine

Written by `python -m benchmarks.native_here`; `benchmarks/native_here.py` says how.

Medians, in brackets the frames that other programs disturbed least. *one core*: ONNX Runtime's time
with one thread over that of the native runner on one core; *threads*: ONNX Runtime's gain by two
threads. *split*, *interleaved*: the native runner's gain by two cores over one, of the time from
frame to frame; *predicted*: how far that plan's period is off. Mean of *one core* over the
networks, geometric: {mean}.

{markdown_table(HEAD, rows)}

{markdown_table(("measured on", ""), list(about.items()))}
"""


def _rows(
    networks: Sequence[str], folder: Path, rounds: int, means: list[tuple[float, float]]
) -> Iterator[tuple[object, ...]]:
    platform = detected(folder)
    for network in networks:
        times = measured(network, platform, folder, rounds)
        native, alone = times["native"], times["session"]
        typical = alone.typical_s / native.typical_s
        means.append((typical, alone.undisturbed_s / native.undisturbed_s))
        found = row(network, times)
        click.echo("  ".join(map(str, found)))
        yield found


@click.command()
@click.option("--network", "networks", multiple=True, default=ONE_CORE, help="Of the zoo.")
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
def main(*, networks: Sequence[str], rounds: int, out: Path) -> None:
    """Measure and write the page."""
    about = description()
    means: list[tuple[float, float]] = []
    with TemporaryDirectory() as scratch:
        rows = list(_rows(networks, Path(scratch), rounds, means))
    about["load when ended"] = load()
    typical, least = (prod(each) ** (1 / len(means)) for each in zip(*means, strict=True))
    text = page(rows, f"{typical:.2f} ({least:.2f})", about)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
