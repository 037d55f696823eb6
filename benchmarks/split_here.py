"""`python -m benchmarks.split_here`: split operators on this machine, against one core and threads.

The machine is described as a platform of processors of one core each. Three questions:

*Latency.* Each network is profiled with parts and mapped with `--split auto`. The configuration of
least latency runs in turn with the whole network in one ONNX Runtime session, of one thread on one
core and of as many threads as there are cores. Watched: predicted against measured latency, and
one core's latency over the split plan's.

*Unequal processors.* A program of higher priority takes a known share of the second core, in turns
of half a millisecond. One plan is made with that core's times divided by what is left of it, the
other for equal cores; both run beside that program. Watched: whether shares that follow the speeds
are faster than equal ones.

*More parts.* Each operator of a network that can be cut along rows is cut into k equal parts, the
first half of which run on the first core. With the speedup ψ over one core and N = 2 cores, the
parallel fraction by Karp and Flatt is p_e = 1 - (1/ψ - 1/N) / (1 - 1/N). ASPEN publishes 0.97 to
0.99, on 64 cores. Watched: more parts leave less to wait for, and cost more overhead.

Other programs spoil the figures: run this under `chrt -f 10` where they cannot be asked to wait.
The second question needs the right to raise a program's priority.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

import parapipe
from benchmarks.machine import description
from benchmarks.rival import rival
from benchmarks.run_cases import Case, detected, executed, whole
from benchmarks.tables import markdown_table
from parapipe.api.load import load_model, load_platform, locate_model, split_file
from parapipe.api.plan import Plan
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import read_profile, write_profile
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.part_marks import tensor_and_part
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.zoo.registry import write

NETWORKS = ("resnet-50", "mobilenet-v2", "unet", "vit-b16")
PARTS = (2, 4, 8, 16)
CURVE, UNEQUAL = "resnet-50", "resnet-50"
TAKEN = 0.5  # share of the second core that the other program takes
ROUNDS = 5
PAGE = Path(__file__).parent / "results" / "split_here.md"
LATENCY = (
    *("network", "one core", "threads", "split", "gain of threads", "gain of split"),
    *("predicted", "error"),
)
TURN_S = 1e-3  # of that program and what it leaves


def case_of(network: str, plan: Plan, model: Path, folder: Path) -> Case:
    """Return a plan, exported and opened, as something to run."""
    folder.mkdir(parents=True)
    write_session_folder(plan, model, folder)
    opened = open_folder(folder)
    segments = {segment.id: segment.operators for segment in opened.segments}
    return Case(network, folder.name, "", "", plan, segments, executed(Executor(opened), plan))


def planned(network: str, platform: Path, profile: Path, folder: Path, name: str) -> Case:
    """Map a network with split operators; return its configuration of least latency to run."""
    best = parapipe.map(
        f"zoo:{network}",
        platform,
        split="auto",
        interleave="none",
        objectives="latency-throughput",
        profiles=[profile],
        note=lambda _note: None,
    ).best("latency")
    plan = best.plan()
    with locate_model(plan) as path:
        return case_of(network, plan, path, folder / f"{network}-{name}")


def session_cases(network: str, folder: Path) -> Iterator[Case]:
    """Yield the whole network in one session: on one core, and on all."""
    model = folder / f"{network}.onnx"
    write(network, model)
    cores = sorted(os.sched_getaffinity(0))
    for used in (cores[:1], cores):
        yield Case(network, f"{len(used)} threads", "", "", None, {}, whole(model, used))


def latencies_ms(cases: Sequence[Case], rounds: int) -> list[float]:
    """Run all cases in turn, round after round; return the median latency of each."""
    for _ in range(rounds):
        for case in cases:
            case.bursts.append(case.run())
    return [median(each.latency_s for each in case.bursts) * 1e3 for case in cases]


def latency_rows(
    networks: Sequence[str], platform: Path, folder: Path, plans: Path, rounds: int
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the first table."""
    for network in networks:
        profile = folder / f"{network}.csv"
        parapipe.profile(f"zoo:{network}", platform, out=profile, parts=True)
        split = planned(network, platform, profile, plans, "split")
        assert split.plan is not None
        one, threads, found = latencies_ms([*session_cases(network, plans), split], rounds)
        predicted = split.plan.predicted.latency_s * 1e3
        yield (
            network,
            *(f"{each:.1f}" for each in (one, threads, found)),
            f"{one / threads:.2f}",
            f"{one / found:.2f}",
            f"{predicted:.1f}",
            f"{predicted / found - 1:+.1%}",
        )
        click.echo(f"{network}: {one:.1f}, {threads:.1f}, {found:.1f} ms")


def unequal_rows(
    platform: Path, folder: Path, plans: Path, rounds: int
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the second table: what each core has to do, as its plan predicts."""
    profile, slowed = folder / f"{UNEQUAL}.csv", folder / f"{UNEQUAL}-slowed.csv"
    second = load_platform(platform).names[1]
    rows = read_profile(profile).measurements
    write_profile(
        slowed,
        [
            replace(each, time_s=each.time_s / (1 - TAKEN)) if each.processor == second else each
            for each in rows
        ],
    )
    cases = {
        name: planned(UNEQUAL, platform, at, plans, name)
        for name, at in (("equal", profile), ("by-speed", slowed))
    }
    with rival(1, TAKEN, TURN_S):
        found = latencies_ms(list(cases.values()), rounds)
    for (name, case), ms in zip(cases.items(), found, strict=True):
        assert case.plan is not None
        loads = (
            sum(each.end_s - each.start_s for each in processor.operators)
            for processor in case.plan.stages[0].processors
        )
        yield name, f"{ms:.1f}", " : ".join(f"{each * 1e3:.1f}" for each in loads)


def cut_plan(graph: OperatorGraph, platform: Path, profile: Path | None, parts: int) -> Plan:
    """Return the plan of a graph of parts: the first half of each operator on the first core.

    Without a profile, times are nominal.
    """
    target = load_platform(platform)
    profiles = [] if profile is None else [read_profile(profile)]
    costs = build_cost_table(graph, target, profiles=profiles, precision="model")
    found = [tensor_and_part(each.members[-1]) for each in graph.operators]
    count = len(graph.operators)
    placed = [2 * at[1] // parts if at else -1 for at in found]
    for v in reversed(range(count)):  # what cuts and joins stands with what reads it
        if placed[v] < 0:
            placed[v] = next((placed[w] for w in graph.successors(v) if placed[w] >= 0), 0)
    assignment = Assignment(tuple(placed), (tuple(range(count)),), ordered=True)
    return Plan.of(build_plan(graph, target, costs, mapping_of(graph, target, costs, assignment)))


def curve_rows(
    platform: Path, folder: Path, plans: Path, rounds: int
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the third table."""
    profile = folder / f"{CURVE}.csv"
    one, *_ = session_cases(CURVE, plans)
    cases, used = [one], len(os.sched_getaffinity(0))
    for parts in PARTS:
        rules, name = [f"*:rows={parts}"], f"zoo:{CURVE}"
        with split_file(plans / f"{CURVE}.onnx", name, rules, "fused", external=False) as file:
            plan = cut_plan(load_model(file, note=lambda _: None), platform, profile, parts)
            cases.append(case_of(CURVE, plan, file, plans / f"{CURVE}-{parts}-parts"))
    alone, *found = latencies_ms(cases, rounds)
    yield 1, f"{alone:.1f}", f"{1e3 / alone:.1f}", "1.00", ""
    for parts, ms in zip(PARTS, found, strict=True):
        gain = alone / ms
        serial = (1 / gain - 1 / used) / (1 - 1 / used)
        yield parts, f"{ms:.1f}", f"{1e3 / ms:.1f}", f"{gain:.2f}", f"{1 - serial:.2f}"


def page(tables: Mapping[str, Sequence[tuple[object, ...]]], about: Mapping[str, str]) -> str:
    """Return the page of results."""
    return f"""# Split operators on this machine

Written by `python -m benchmarks.split_here`; `benchmarks/split_here.py` says how.

## Latency

Milliseconds of one frame, medians. *one core*: one ONNX Runtime session of one thread. *threads*:
one session, ONNX Runtime's own threads on all cores. *split*: the plan of `map --split auto`, as
measured and as predicted. Gains are over one core.

{markdown_table(LATENCY, tables["latency"])}

## Unequal processors

`{UNEQUAL}`, beside a program of higher priority that takes {TAKEN:.0%} of the second core: the plan
for equal cores, and the one with that core's times divided by what is left of it.

{markdown_table(("shares", "ms", "predicted work of each core, ms"), tables["unequal"])}

## More parts

`{CURVE}`, every operator that can be cut along rows in so many parts, half of them on each core.
p_e: the parallel fraction by Karp and Flatt.

{markdown_table(("parts", "ms", "frames/s", "gain", "p_e"), tables["curve"])}

{markdown_table(("measured on", ""), list(about.items()))}
"""


@click.command()
@click.option("--network", "networks", multiple=True, default=NETWORKS, help="Of the zoo.")
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--work", type=click.Path(path_type=Path), help="Folder of platform and profiles.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
def main(*, networks: Sequence[str], rounds: int, work: Path | None, out: Path) -> None:
    """Answer the three questions and write the page."""
    about = description()
    with TemporaryDirectory() as scratch:
        folder = work or Path(scratch)
        platform = detected(folder)
        plans = Path(scratch) / "plans"
        plans.mkdir()
        tables = {
            "latency": list(latency_rows(networks, platform, folder, plans, rounds)),
            "unequal": list(unequal_rows(platform, folder, plans, rounds)),
            "curve": list(curve_rows(platform, folder, plans, rounds)),
        }
    text = page(tables, about)
    out.write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
