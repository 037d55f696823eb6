"""What the native runner's engine takes beside kernels and waiting, for `benchmarks.native_here`.

Of a processor, the time between the end of one task and the beginning of its next is

- *waiting* until all that the next one reads has been made,
- *frames* if the next one reads an input of the graph, or the one before makes an output: a frame
  is admitted, its inputs are brought into place, results are taken, and
- *engine* else: notes are taken, what is next is decided, tensors are bound, a processor wakes up.

What a task spends beside its operators, where it has several, belongs to the engine as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

import parapipe
from parapipe.api.load import load_model, load_platform
from parapipe.api.plan import Plan
from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.runtime.record import Record, Span

WIDTH, LENGTH, CHAINS = 192, 24, 2
TASKS_S = (1e-3, 1e-4, 2e-5)
STRATEGIES = ("plan", "ready-pool", "steal")
RUN_S = 1.2  # of work in a run
TRIAL_ROWS = 64
MICRO = 1e6
HEAD = ("what decides", "task, µs", "engine, µs", "engine", "waiting", "frames")


@dataclass(frozen=True, slots=True)
class Shares:
    """What processors did, in seconds; of so many tasks."""

    tasks: int
    work_s: float
    engine_s: float
    waiting_s: float
    frames_s: float


def shares_by_frame(
    record: Record, producers: Mapping[str, Sequence[str]], results: frozenset[str]
) -> Iterator[Shares]:
    """Yield what processors did for each frame, and before it since their task before.

    Parameters
    ----------
    record
        Of a run of the native runner.
    producers
        Of each task, those that make what it reads.
    results
        Tasks that make an output of the graph.
    """
    ended_s = {(span.name, span.frame): span.end_s for span in record.spans}
    own: defaultdict[str, list[Span]] = defaultdict(list)
    for span in record.spans:
        own[span.resource].append(span)
    found: defaultdict[int, list[tuple[float, float, float, float]]] = defaultdict(list)
    for spans in own.values():
        for before, span in pairwise(sorted(spans, key=lambda each: each.start_s)):
            made_s = [ended_s.get((name, span.frame), 0.0) for name in producers[span.name]]
            ready_s = min(max([before.end_s, *made_s]), span.start_s)
            gap_s, work_s = span.start_s - ready_s, span.work_s or 0.0
            at_border = not made_s or before.name in results
            found[span.frame].append((
                work_s, (0.0 if at_border else gap_s) + span.end_s - span.start_s - work_s,
                ready_s - before.end_s, gap_s if at_border else 0.0,
            ))  # fmt: skip
    for each in found.values():
        yield Shares(len(each), *map(sum, zip(*each, strict=True)))


def engine_shares(plan: Plan, model: Path, strategy: str, frames: int) -> list[Shares]:
    """Run a plan as fast as it goes; return what its processors did, frame by frame."""
    run = parapipe.run_plan(
        plan, model=model, frames=frames, saturate=True, runtime="native", strategy=strategy
    )
    return shares_of(plan, run.record)


def shares_of(plan: Plan, record: Record) -> list[Shares]:
    """Return what a plan's processors did in a run, frame by frame."""
    maker = {name: each.id for each in plan.operators for name in each.outputs}
    producers = {
        each.id: sorted({maker[name] for name in each.inputs if name in maker})
        for each in plan.operators
    }
    results = frozenset(maker[name] for name in plan.outputs)
    return list(shares_by_frame(record, producers, results))


def engine_rows(
    platform: Path, place: Path, rounds: int, strategies: Sequence[str] = STRATEGIES
) -> Iterator[Sequence[object]]:
    """Yield the rows of the engine's table: chains of equal tasks, each on a core of its own."""
    row_s = trial_row_s(platform, place)
    for task_s in TASKS_S:
        rows = max(1, round(task_s / row_s))
        model = place / f"chains-{rows}.onnx"
        write_chains(model, rows)
        plan = chains_plan(model, platform)
        frames = max(4, round(RUN_S / (task_s * LENGTH)))
        found: dict[str, list[Shares]] = {name: [] for name in strategies}
        for _ in range(rounds):
            for name in strategies:
                found[name] += engine_shares(plan, model, name, frames)
        for name in strategies:
            yield name, *figures(found[name])


def figures(found: Sequence[Shares]) -> Sequence[str]:
    """Return a task's microseconds, those of the engine, and shares of the work: medians."""
    task_us = median(each.work_s / each.tasks for each in found) * MICRO
    engine_us = median(each.engine_s / each.tasks for each in found) * MICRO
    shares = (
        median(getattr(each, name) / each.work_s for each in found)
        for name in ("engine_s", "waiting_s", "frames_s")
    )
    return f"{task_us:.0f}", f"{engine_us:.2f}", *(f"{each:.1%}" for each in shares)


def trial_row_s(platform: Path, place: Path) -> float:
    """Return what a row of a matrix takes here."""
    model = place / "trial.onnx"
    write_chains(model, TRIAL_ROWS)
    found = engine_shares(chains_plan(model, platform), model, "plan", 100)
    return median(each.work_s / each.tasks for each in found) / TRIAL_ROWS


def write_chains(path: Path, rows: int) -> None:
    """Write chains of products of a matrix of so many rows with the identity."""
    shape = [rows, WIDTH]
    nodes, ends = [], []
    for chain in range(CHAINS):
        names = ["x", *(f"c{chain}t{at}" for at in range(LENGTH))]
        nodes += [helper.make_node("MatMul", [a, "w"], [b], name=b) for a, b in pairwise(names)]
        ends.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, shape))
    weight = numpy_helper.from_array(np.eye(WIDTH, dtype=np.float32), "w")
    begin = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, path.stem, [begin], ends, [weight])
    opset = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def chains_plan(model: Path, platform: Path, *, in_turn: bool = False) -> Plan:
    """Return the plan that has each chain on a processor of its own, as far as there are any.

    In turn, each task reads what another processor has made.
    """
    graph, target = load_model(model, note=lambda _: None), load_platform(platform)
    costs = build_cost_table(graph, target, profiles=[], precision="model")
    cores = len(target.processors)
    numbers = [each.outputs[0].removeprefix("c").split("t") for each in graph.operators]
    places = tuple((int(chain) + in_turn * int(at)) % cores for chain, at in numbers)
    assignment = Assignment(places, (tuple(range(len(places))),), ordered=True)
    return Plan.of(build_plan(graph, target, costs, mapping_of(graph, target, costs, assignment)))


def native_platform(platform: Path) -> Path:
    """Return a description beside a detected one with the hand-overs of the native runner.

    Those that were detected are ONNX Runtime's, from session to session. Here a tensor stays where
    it is, and is read as fast as memory is.
    """
    described = platform.with_name("native.yaml")
    if not described.exists():
        model = platform.with_name("in-turn.onnx")
        write_chains(model, TRIAL_ROWS)
        plan = chains_plan(model, platform, in_turn=True)
        found = engine_shares(plan, model, "plan", 100)
        hand_over_s = median(each.engine_s / each.tasks for each in found)
        content = yaml.safe_load(platform.read_text(encoding="utf-8"))
        for link in content.get("links", ()):
            link["bandwidth_bytes_per_s"] = content["memory"]["bandwidth_bytes_per_s"]
            link["synchronisation"] = {"overhead_s": hand_over_s, "source": link["source"]}
        described.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return described
