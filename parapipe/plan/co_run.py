"""What a plan says of processors that slow each other down, and the law that it states."""

from __future__ import annotations

from collections.abc import Mapping as ByKey
from collections.abc import Sequence
from statistics import fmean

from parapipe.cost.co_run import (
    CoRunLaw,
    Draw,
    LinearContention,
    Running,
    SharedMemoryLaw,
    SlowdownTable,
)
from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.co_run_times import WAITING, CoRunEffect, Slowdowns, seconds
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.mappings.frame_replay import Admission
from parapipe.mappings.mapping import Mapping
from parapipe.mappings.steady_state import recurrence
from parapipe.plan import records
from parapipe.plan.memory_traffic import moved_bytes
from parapipe.plan.program import Program
from parapipe.plan.schema import Plan
from parapipe.platform.co_run import MEMORY_SHARE, Slowdown

MOST_FRAMES = 16  # whose starts and ends a plan holds


def co_run_of(
    mapping: Mapping, graph: OperatorGraph, costs: CostTable, effect: CoRunEffect
) -> records.CoRun:
    """Return what a plan says of its processors' law, and when all runs.

    Parameters
    ----------
    effect
        What the law costs the mapping.
    """
    names = {costs.processors[p]: costs.wholes[p] for p in mapping.processors}
    frames = effect.frames
    shown = frames.exact and frames.frames <= MOST_FRAMES
    moved = (each for each in enumerate(mapping.transfers) if each[1].resource is not None)
    law, used = costs.co_run, {*names.values()}
    stated: dict[str, object] = {}
    if isinstance(law, SlowdownTable):
        rows = (row for row in law.rows if {row.processor, *row.busy} <= used)
        stated = {"slowdowns": tuple(map(_factor, rows)), "memory_share": law.memory_share}
    elif isinstance(law, SharedMemoryLaw):
        stated = {"bandwidth_bytes_per_s": law.bandwidth_bytes_per_s}
    elif isinstance(law, LinearContention):
        stated = {"contention_s_per_byte": law.s_per_byte}
    draws = law.draws if isinstance(law, SlowdownTable | SharedMemoryLaw) else {}
    return records.CoRun.model_validate(
        {
            **stated,
            "draws": {
                name: records.Draw(
                    most_bytes_per_s=draws[name].most_bytes_per_s,
                    cache_bytes=draws[name].cache_bytes,
                )
                for name in used & draws.keys()
            },
            "names": {name: whole for name, whole in names.items() if name != whole},
            "free": records.PredictedTimes(
                latency_s=effect.free_latency_s,
                period_s=effect.free_period_s,
                sustained_period_s=effect.free_sustained_period_s,
            ),
            "exact": frames.exact,
            "spans_s": {
                graph.operators[v].id: spans for v, spans in frames.spans_s.items() if v >= 0
            }
            if shown
            else {},
            "transfers": tuple(
                records.TransferSpans.model_validate(
                    {
                        "tensor": each.tensor,
                        "from": costs.processors[each.source],
                        "to": costs.processors[each.target],
                        "spans_s": frames.spans_s[-1 - number],
                    }
                )
                for number, each in moved
            )
            if shown
            else (),
        }
    )


def _factor(row: Slowdown) -> records.CoRunFactor:
    return records.CoRunFactor.model_validate(
        {
            "processor": row.processor,
            "busy": tuple(row.busy),
            "class": row.operator_class,
            "busy_class": row.busy_class,
            "factor": row.factor,
        }
    )


def law_of(plan: Plan) -> CoRunLaw | None:
    """Return the law that a plan states; None if it states none."""
    stated = plan.co_run
    if stated is None:
        return None
    if stated.contention_s_per_byte is not None:
        return LinearContention(stated.contention_s_per_byte)
    draws = {
        name: Draw(each.most_bytes_per_s, each.cache_bytes) for name, each in stated.draws.items()
    }
    if stated.bandwidth_bytes_per_s is not None:
        return SharedMemoryLaw(stated.bandwidth_bytes_per_s, draws)
    rows = tuple(
        Slowdown.model_validate(
            {**row.model_dump(by_alias=True, exclude={"busy"}), "busy": tuple(row.busy)}
        )
        for row in stated.slowdowns
    )
    share = MEMORY_SHARE if stated.memory_share is None else stated.memory_share
    return SlowdownTable(rows, draws, share)


def slowdowns_of(plan: Plan, program: Program, law: CoRunLaw) -> Slowdowns:
    """Return by how much tasks of a plan's program slow each other down."""
    moved, names = moved_bytes(plan), plan.co_run.names if plan.co_run else {}
    work: list[Sequence[Running]] = []
    for task, time_ps in zip(program.tasks, program.graph.time_ps, strict=True):
        moved_here = sum(moved[v] for v in task.operators)
        turns = program.processors(task) if task.operators else ()
        work.append(
            [Running(names.get(name, name), moved_here, time_ps / PICOSECONDS) for name in turns]
        )
    return Slowdowns(law, work)


def operator_times_s(plan: Plan) -> ByKey[str, float]:
    """Return the seconds that operators take beside what runs at the same time, by operator.

    They are means over the frames whose spans a plan states. Empty where it states none: nothing
    slows anything down, or what runs beside what does not recur soon.
    """
    stated = plan.co_run.spans_s if plan.co_run else {}
    return {name: fmean(end - start for start, end in spans) for name, spans in stated.items()}


def busy_times_s(plan: Plan) -> ByKey[str, float]:
    """Return the seconds of operators of a frame by processor, beside what runs at the same time.

    Empty where the plan does not state when all runs.
    """
    times_s = operator_times_s(plan)
    busy_s: dict[str, float] = {}
    for stage in plan.stages if times_s else ():
        for each in stage.processors:
            turns = (each.name, *(each.replicas or ()))
            own_s = sum(times_s[at.operator] for at in each.operators) / len(turns)
            for name in turns:
                busy_s[name] = busy_s.get(name, 0.0) + own_s
    return busy_s


def sustained_co_run_s(plan: Plan, program: Program) -> float:
    """Return the seconds between frames that come as fast as they are taken, by the plan's law.

    0 if it states none.
    """
    if (law := law_of(plan)) is None:
        return 0.0
    admission = Admission(frozenset(program.first), None, WAITING)
    slowdowns = slowdowns_of(plan, program, law)
    return seconds(recurrence(program.graph, admission, slowdowns.of).period_ps)
