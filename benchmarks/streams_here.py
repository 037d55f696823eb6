"""`python -m benchmarks.streams_here --work DIR`: clusters of operators on streams, as in PPD.

A stream is a thread with ONNX Runtime sessions of one thread. The machine is described as
processors of one core each: one stream is the first of them, two are the first two. Where there are
fewer cores than streams, each core has two streams, which take turns. For each network, every
operator is measured by itself, Algorithm 1 makes clusters (M = 1, the default, and 10, as in the
paper's experiments), Algorithm 2 gives them streams, and the strategy `streams` runs the plan that
this makes. *single* is the same with M = 0: every operator is launched by itself. All runs in turn,
some rounds, beside the whole network in one session with as many threads as there are cores. Three
questions:

*Streams.* One frame at a time: what do more streams gain, with clusters and without? PPD's Table 4
has it for a GPU: networks with wide branches gain most, chains nothing, and clusters help where
launches are many.

*Loads.* How far do the streams' times of a frame differ, as a share of the longest?

*Overhead.* With one stream, what share of a frame's time is not spent in ONNX Runtime? PPD states
at most 2.3 %.

On two cores at rest it takes about 20 minutes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click
import yaml

import parapipe
from benchmarks.machine import description
from benchmarks.run_cases import detected, whole
from benchmarks.tables import markdown_table
from parapipe.api.load import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import read_profile
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.platform.divided import variants
from parapipe.platform.platform import Platform
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import random_frames
from parapipe.solvers.streams import assign_streams, cluster_readers, clusters
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.strategy_executor import StrategyExecutor
from parapipe.strategies.streams import Streams
from parapipe.zoo.registry import write

NETWORKS = ("mobilenet-v1", "resnet-50", "inception-v3", "inception-v4", "bert-base")
COUNTS = (1, 2, 4)
ROUNDS = 5
BURST_S = 2.0
FEWEST, FIRST = 6, 2  # frames of a burst, the first of which are not counted
PACE = 1.5  # of the time of a frame on one stream, between frames: none waits for another
ON_ONE_CORE = {
    "slowdown": [1.0, 2.0],
    "hand_over": {"latency_s": 0.0},
    "source": "one-core",
}
PAGE = Path(__file__).parent / "results" / "streams_here.md"


class Single(Streams):
    """Every operator is launched by itself."""

    most = 0


class Large(Streams):
    """Clusters of the time of ten mean operators, as in PPD's experiments."""

    most = 10


STRATEGIES = {"M = 10": Large, "M = 1": Streams, "single": Single}


@dataclass(slots=True)
class Case:
    """A network on some streams, and what came of it.

    Parameters
    ----------
    executor
        None of the whole network in one session.
    pieces
        How many are launched for a frame.
    latencies_s, busy_s
        Of each burst: the median frame, and what each stream was busy for it.
    """

    executor: StrategyExecutor | None
    run: Callable[[float], None]
    pieces: int = 1
    latencies_s: list[float] = field(default_factory=list)
    busy_s: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def latency_s(self) -> float:
        """The median of the bursts."""
        return median(self.latencies_s)

    @property
    def loads_s(self) -> list[float]:
        """Busy seconds of a frame by stream, medians of the bursts."""
        return [median(each) for each in zip(*self.busy_s, strict=True)]


def with_streams(platform: Path, folder: Path) -> Path:
    """Write the machine's description with two streams on each core; return the file."""
    document = yaml.safe_load(platform.read_text(encoding="utf-8"))
    for processor in document["processors"]:
        if processor["kind"] == "cpu":
            processor["streams"] = deepcopy(ON_ONE_CORE)  # YAML would write an alias
    document["sources"]["one-core"] = {
        "provenance": "nominal",
        "title": "Two threads on one core take turns",
    }
    file = folder / "streams.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return file


def streams_on(platform: Platform, count: int) -> tuple[Platform, tuple[int, ...]]:
    """Return the platform with so many streams on its first cores, and which processors they are.

    Two streams are on one core where there are more of them than cores.
    """
    *_, divided = variants(platform)
    if count <= len(platform.processors):
        return platform, tuple(range(count))
    lanes = [p for p, each in enumerate(divided.processors) if each.stream_of]
    in_turn = [*lanes[::2], *lanes[1::2]]  # a core after the other, as with fewer streams
    return divided, tuple(in_turn[:count])


def plan_on(
    graph: OperatorGraph, platform: Platform, lanes: Sequence[int], profile: Path, most: float
) -> Plan:
    """Return the plan that Algorithms 1 and 2 make for some streams."""
    costs = build_cost_table(graph, platform, profiles=[read_profile(profile)], precision="model")
    readers = [graph.successors(v) for v in range(len(graph.operators))]
    times_ns = [round(costs.time_s(v, lanes[0]) * 1e9) for v in range(len(graph.operators))]
    found = clusters(times_ns, readers, most)
    streams = assign_streams(cluster_readers(found, readers), len(lanes))
    lane = {v: lanes[s] for cluster, s in zip(found, streams, strict=True) for v in cluster}
    assignment = Assignment(
        tuple(lane[v] for v in range(len(graph.operators))),
        (tuple(v for cluster in found for v in cluster),),
        ordered=True,
    )
    return build_plan(graph, platform, costs, mapping_of(graph, platform, costs, assignment))


def case_of(plan: Plan, model: Path, folder: Path, strategy: type[Streams]) -> Case:
    """Open a plan's sessions, to be run by a strategy."""
    folder.mkdir(parents=True)
    write_session_folder(plan, model, folder, pieces=pieces_of(plan, strategy.cut))
    executor = StrategyExecutor(open_folder(folder), strategy, "streams")
    frames = list(random_frames(executor.folder, FEWEST))
    executor.measure(frames[:2])
    case = Case(executor, lambda _: None, len(executor.folder.segments))

    def run(pace_s: float) -> None:
        count = max(FEWEST, round(BURST_S / pace_s)) if pace_s else FEWEST
        given = (frames[n % len(frames)] for n in range(count))
        for _ in executor.run(given, period_s=pace_s or None):
            pass
        passed = executor.record.frames[FIRST:]
        busy: defaultdict[str, float] = defaultdict(float)
        for span in executor.record.spans:
            if span.frame >= FIRST:
                busy[span.resource] += (span.end_s - span.start_s) / len(passed)
        case.latencies_s.append(median(each.done_s - each.admitted_s for each in passed))
        case.busy_s.append(tuple(busy[each.name] for each in executor.folder.processors))

    case.run = run
    return case


def threads_case(model: Path) -> Case:
    """Return the whole network in one session on all cores."""
    burst = whole(model, sorted(os.sched_getaffinity(0)))
    case = Case(None, lambda _: None)

    def run(_pace_s: float) -> None:
        case.latencies_s.append(burst().latency_s)

    case.run = run
    return case


def measured(
    network: str, platform: Path, work: Path, scratch: Path, rounds: int
) -> dict[tuple[str, int], Case]:
    """Run a network on all numbers of streams, with clusters and without, round after round."""
    model, profile = scratch / f"{network}.onnx", work / f"{network}.csv"
    write(network, model)
    parapipe.profile(model, platform, out=profile, operators_only=True)
    graph = load_model(model, note=lambda _: None)
    cases: dict[tuple[str, int], Case] = {
        ("threads", len(os.sched_getaffinity(0))): threads_case(model)
    }
    for mode, strategy in STRATEGIES.items():
        for count in COUNTS:
            on, lanes = streams_on(load_platform(platform), count)
            plan = plan_on(graph, on, lanes, profile, strategy.most)
            folder = scratch / f"{network}-{strategy.__name__}-{count}"
            cases[mode, count] = case_of(plan, model, folder, strategy)
    first = cases["M = 1", 1]
    first.run(0.0)  # as fast as frames are taken: so it is known how long a frame takes
    assert first.executor is not None
    ends = [frame.done_s for frame in first.executor.record.frames]
    pace_s = PACE * (ends[-1] - ends[FIRST]) / (len(ends) - 1 - FIRST)
    first.latencies_s.clear()
    first.busy_s.clear()
    for _ in range(rounds):
        for case in cases.values():
            case.run(pace_s)
    return cases


def stream_rows(found: Mapping[str, Mapping[tuple[str, int], Case]]) -> Iterator[Sequence[object]]:
    """Yield the rows of the first table."""
    for network, cases in found.items():
        ms = {key: case.latency_s * 1e3 for key, case in cases.items()}
        for mode in STRATEGIES:
            one = ms[mode, 1]
            yield (
                *(network, mode, cases[mode, 1].pieces),
                *(f"{ms[mode, count]:.1f}" for count in COUNTS),
                *(f"{one / ms[mode, count]:.2f}" for count in COUNTS[1:]),
                next(f"{each:.1f}" for (name, _), each in ms.items() if name == "threads"),
            )


def load_rows(found: Mapping[str, Mapping[tuple[str, int], Case]]) -> Iterator[Sequence[object]]:
    """Yield the rows of the second table."""
    for network, cases in found.items():
        cells = []
        for mode in STRATEGIES:
            for count in COUNTS[1:]:
                loads_s = cases[mode, count].loads_s
                cells.append(f"{1 - min(loads_s) / max(loads_s):.1%}")
        yield network, *cells


def overhead_rows(
    found: Mapping[str, Mapping[tuple[str, int], Case]],
) -> Iterator[Sequence[object]]:
    """Yield the rows of the third table."""
    for network, cases in found.items():
        for mode in STRATEGIES:
            case = cases[mode, 1]
            (busy_s,) = case.loads_s
            apart_s = case.latency_s - busy_s
            yield (
                *(network, mode, case.pieces),
                f"{busy_s / case.pieces * 1e3:.2f}",
                f"{apart_s / case.pieces * 1e6:.0f}",
                f"{apart_s / case.latency_s:.1%}",
            )


def page(found: Mapping[str, Mapping[tuple[str, int], Case]], about: Mapping[str, str]) -> str:
    """Return the page of results."""
    counts = [f"{count}, ms" for count in COUNTS]
    streams = ("network", "launched", "pieces", *counts)
    overhead = ("network", "launched", "pieces", "ms a piece", "µs a piece", "share")
    gains = [f"gain of {count}" for count in COUNTS[1:]]
    loads = [f"{mode}, {count}" for mode in STRATEGIES for count in COUNTS[1:]]
    return f"""# Streams on this machine

Written by `python -m benchmarks.streams_here`; `benchmarks/streams_here.py` says how.

## Streams

Milliseconds of one frame at a time on 1, 2 and 4 streams, medians; gains are over one stream.
*pieces*: what is launched for a frame. *threads*: the whole network in one session of ONNX Runtime,
with a thread for each core. A stream has one thread; four streams share two cores.

{markdown_table((*streams, *gains, "threads, ms"), [*stream_rows(found)])}

## Loads

How far the busy times of the streams differ, as a share of the longest.

{markdown_table(("network", *loads), [*load_rows(found)])}

## Overhead

With one stream: what a frame takes beyond the runs of its pieces, as microseconds for each and as a
share of the frame.

{markdown_table(overhead, [*overhead_rows(found)])}

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
    found: dict[str, Mapping[tuple[str, int], Case]] = {}
    with TemporaryDirectory() as scratch:
        folder = work or Path(scratch)
        platform = with_streams(detected(folder), folder)
        for network in networks:
            with TemporaryDirectory() as plans:
                cases = measured(network, platform, folder, Path(plans), rounds)
            for case in cases.values():  # weights of five networks at once would fill the memory
                case.executor, case.run = None, lambda _: None
            found[network] = cases
            click.echo(
                f"{network}: {', '.join(f'{c.latency_s * 1e3:.1f}' for c in cases.values())} ms"
            )
    text = page(found, about)
    out.write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
