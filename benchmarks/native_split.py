"""Split operators and interleaved frames on two cores, for `benchmarks.native_here`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

import parapipe
from benchmarks.native_engine import Shares, figures, shares_of
from benchmarks.native_runs import (
    CORES,
    Times,
    between_ends,
    error,
    frames_for,
    milliseconds,
    model_file,
    native_times,
    one_core_plan,
    openvino_times,
    profile_of,
    ratio,
    session_times,
)
from benchmarks.split_here import cut_plan
from benchmarks.strategy_runs import parallel_fraction
from parapipe.api.load import load_model, split_file
from parapipe.api.plan import Plan

AUTO = "auto"
SPLIT = (
    *(("resnet-50", AUTO), ("mobilenet-v2", AUTO), ("mobilenet-v2", "rows")),
    *(("unet", "rows"), ("vit-b16", "tokens")),
)
"""Networks and how they are split: as the search has it, or half of every operator on each core,
along an axis: large networks, and where the search's plan changes axes and the runner copies."""
INTERLEAVED = ("googlenet", "squeezenet", "mobilenet-v2", "resnet-50")
BY_HEADS = (
    *("*/split:2", "*attention/*/heads:heads"),
    *("*attention/scores:heads", "*attention/scaled:heads"),
    *("*attention/masked:heads", "*attention/shares:heads", "*attention/mixed:heads"),
    *("*attention/tokens:2", "*attention/*:channels", "*ffn/*:channels", "*:tokens"),
)
"""Along which axes operators are cut, so that no part reads all of a matrix of weights: products
with weights along channels, what lies between them by heads, and norms along tokens."""
IN_PARTS: Mapping[str, Sequence[str]] = {"resnet-50": ("*:rows",), "bert-base": BY_HEADS}
STRATEGIES = ("plan", "ready-pool", "steal")
SPLIT_HEAD = (
    *("network", "cut", "one core, ms", "split, ms", "split", "predicted, ms", "error"),
    *("ONNX Runtime, ms", "its threads", "OpenVINO, ms", "its threads"),
)
PARTS_HEAD = (
    *("network", "parts", "tasks", "one core, ms", "what decides", "period, ms", "gain", "p_e"),
    *("task, µs", "engine, µs", "engine", "waiting", "frames"),
)
INTERLEAVED_HEAD = ("network", "one core, ms", "period, ms", "gain", "predicted, ms", "error")
NOT_INSTALLED = "not installed"


@contextmanager
def split_plan(file: Path, cut: str, platform: Path) -> Iterator[tuple[Plan, Path]]:
    """Lend a plan of split operators, and its model, by times of the runner's kernels.

    That of least latency of `map --split auto`, or half of every operator on each core.
    """
    if cut == AUTO:
        front = parapipe.map(
            file, platform, profiles=[profile_of(file, platform, parts=True)], split="auto",
            interleave="none", objectives="latency-throughput", note=lambda _: None,
        )  # fmt: skip
        yield front.best("latency").plan(), file
        return
    with split_file(file, f"zoo:{file.stem}", [f"*:{cut}=2"], "fused", external=False) as cut_file:
        profile = file.with_name(f"{file.stem}-halves.csv")
        if not profile.exists():
            parapipe.profile_on_runtime(cut_file, platform, "native", out=profile)
        graph = load_model(cut_file, note=lambda _: None)
        yield cut_plan(graph, platform, profile, 2), cut_file


def interleaved_plan(file: Path, platform: Path) -> Plan:
    """Return the plan of most throughput, by times of the runner's kernels."""
    front = parapipe.map(
        file, platform, profiles=[profile_of(file, platform)], interleave="auto",
        objectives="latency-throughput", note=lambda _: None,
    )  # fmt: skip
    fitting = [each for each in front if each.kind != "replicated"]
    if not fitting:
        raise click.ClickException(f"{file.stem}: no configuration has a plan for the runner")
    return min(fitting, key=lambda row: row.sustained_period_s).plan()


def split_rows(
    cases: Sequence[tuple[str, str]], platform: Path, folder: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the rows of the table of split operators: a frame at a time, on two cores."""
    for network, cut in cases:
        file = model_file(network, folder)
        with split_plan(file, cut, platform) as (plan, cut_file):
            one = one_core_plan(file, platform)
            cells = _split_cells(file, one, plan, cut_file, rounds)
        click.echo(f"{network}, {cut}: split {cells[2]}")
        yield network, cut, *cells


def _split_cells(file: Path, one: Plan, plan: Plan, cut_file: Path, rounds: int) -> Sequence[str]:
    predicted_s = plan.predicted.latency_s
    frames = frames_for(predicted_s)
    names = ("one", "split", "session", "threads", "openvino", "its threads")
    times = {name: Times() for name in names}
    installed = True
    for _ in range(rounds):
        times["one"].frames_s += native_times(one, file, frames)[0]
        times["split"].frames_s += native_times(plan, cut_file, frames, alone=True)[0]
        times["session"].frames_s += session_times(file, CORES[:1], frames)
        times["threads"].frames_s += session_times(file, CORES, frames)
        for name, cores in (("openvino", CORES[:1]), ("its threads", CORES)):
            found = openvino_times(file, cores, frames) if installed else None
            installed = found is not None
            times[name].frames_s += found or []
    gain = ratio(times["one"], times["split"])
    openvino = (
        (milliseconds(times["openvino"].typical_s), ratio(times["openvino"], times["its threads"]))
        if installed else (NOT_INSTALLED, "")
    )  # fmt: skip
    return (
        milliseconds(times["one"].typical_s),
        milliseconds(times["split"].typical_s),
        gain,
        milliseconds(predicted_s),
        error(predicted_s, times["split"]),
        milliseconds(times["session"].typical_s),
        ratio(times["session"], times["threads"]),
        *openvino,
    )


def interleaved_rows(
    networks: Sequence[str], platform: Path, folder: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the rows of the table of interleaved frames."""
    for network in networks:
        file = model_file(network, folder)
        plan, one = interleaved_plan(file, platform), one_core_plan(file, platform)
        predicted_s = plan.predicted.sustained_period_s
        frames = 2 * frames_for(predicted_s)
        times = Times(), Times()
        for _ in range(rounds):
            times[0].frames_s += native_times(one, file, frames)[1]
            times[1].frames_s += native_times(plan, file, frames)[1]
        click.echo(f"{network}: interleaved {ratio(*times)}")
        yield (
            network,
            *(milliseconds(each.typical_s) for each in times),
            ratio(*times),
            milliseconds(predicted_s),
            error(predicted_s, times[1]),
        )


def parts_rows(
    parts: Mapping[str, Sequence[int]], platform: Path, folder: Path, rounds: int
) -> Iterator[Sequence[object]]:
    """Yield the rows of the table of parts: both cores, against the same parts on one."""
    for network, counts in parts.items():
        file = model_file(network, folder)
        for count in counts:
            rules = [f"{each}={count}" for each in IN_PARTS.get(network, ("*:rows",))]
            with split_file(file, f"zoo:{network}", rules, "fused", external=False) as cut_file:
                yield from _rows_of_parts(network, count, platform, cut_file, rounds)


def _rows_of_parts(
    network: str, count: int, platform: Path, cut_file: Path, rounds: int
) -> Iterator[Sequence[object]]:
    one = one_core_plan(cut_file, platform)
    graph = load_model(cut_file, note=lambda _: None)
    both = cut_plan(graph, platform, None, count)
    frames = frames_for(one.predicted.latency_s / len(CORES))
    alone = Times()
    times = {name: Times() for name in STRATEGIES}
    shares: dict[str, list[Shares]] = {name: [] for name in STRATEGIES}
    for _ in range(rounds):
        alone.frames_s += native_times(one, cut_file, frames)[1]
        for name, each in times.items():
            run = parapipe.run_plan(
                both, model=cut_file, frames=2 * frames, saturate=True, runtime="native",
                strategy=name,
            )  # fmt: skip
            each.frames_s += between_ends(sorted(f.done_s for f in run.record.frames), len(CORES))
            shares[name] += shares_of(both, run.record)
    for name, each in times.items():
        gain = alone.typical_s / each.typical_s
        click.echo(f"{network} in {count} parts, {name}: {gain:.2f}")
        yield (
            network,
            count,
            len(graph.operators),
            milliseconds(alone.typical_s),
            name,
            milliseconds(each.typical_s),
            ratio(alone, each),
            f"{parallel_fraction(gain, len(CORES)):.3f}",
            *figures(shares[name]),
        )
