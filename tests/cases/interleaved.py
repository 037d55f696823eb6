"""Plans whose processors work on several frames: drawn by hand, and any number at random."""

from __future__ import annotations

import json
import random
from itertools import accumulate
from math import ceil

from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.build import plan_operators, plan_tensors
from parapipe.plan.program import program
from parapipe.plan.schema import Plan
from tests.cases.plan_cases import graph_of, operator, platform_of


def chain(names):
    """Operators one behind the other; the first reads x."""
    reads = ["x", *names]
    return graph_of(
        [operator(name, reads[i]) for i, name in enumerate(names)],
        inputs=["x"],
        outputs=[names[-1]],
    )


def interleaved(graph, stages, period_s, *, moved_s=0.0, occupies=None):
    """The document of a plan of stages, each {processor: [(operator, start, end, lag)]}.

    `occupies` tells of transfers what they keep busy, and from when to when, by tensor and target.
    """
    platform = platform_of(5)
    at = {v: (name, start, end, lag, index) for index, stage in enumerate(stages)
          for name, order in stage.items() for v, start, end, lag in order}  # fmt: skip
    used = [p for p in platform.processors if any(p.name in stage for stage in stages)]
    document = {
        "schema": "parapipe/plan/1",
        "model": {"name": graph.source.name, "sha256": graph.source.sha256},
        "platform": "board",
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "tensors": {name: each.model_dump() for name, each in plan_tensors(graph).items()},
        "operators": [
            each.model_dump(by_alias=True, exclude_none=True) for each in plan_operators(graph)
        ],
        "processors": [
            {
                "name": p.name,
                "kind": p.kind,
                "backend": p.backend,
                "cores": p.cores,
                "operating_point": {"frequency_hz": 1e9, "voltage_v": 0.8},
            }
            for p in used
        ],
        "stages": [
            {
                "index": index,
                "time_s": _time_s(stage, period_s),
                "processors": [
                    {
                        "name": name,
                        "operators": [
                            {"operator": v, "start_s": start, "end_s": end, "lag": lag}
                            for v, start, end, lag in order
                        ],
                    }
                    for name, order in stage.items()
                ],
            }
            for index, stage in enumerate(stages)
        ],
        "transfers": list(_transfers(graph, at, period_s, moved_s, occupies or {})),
        "predicted": {
            "latency_s": max(lag * period_s + end for _, _, end, lag, _ in at.values())
            - min(lag * period_s + start for _, start, _, lag, _ in at.values()),
            "period_s": period_s,
            "sustained_period_s": period_s,
            "throughput_fps": 1 / period_s,
            "energy_j": 0.5,
            "board_energy_j": 0.75,
            "input_s": 0.0,
            "output_s": 0.0,
        },
    }
    plan = plan_of(document)
    limit_ps = program(plan).graph.period_ps()
    document["predicted"]["sustained_period_s"] = float(limit_ps / PICOSECONDS)
    return json.loads(json.dumps(document))


def _time_s(stage, period_s):
    lags = {lag for order in stage.values() for *_, lag in order}
    ends = [end for order in stage.values() for _, _, end, _ in order]
    return period_s if len(lags) > 1 else max(ends)


def _transfers(graph, at, period_s, moved_s, occupies):
    routes: dict = {}
    for name, producer in sorted(graph.producer.items()):
        maker = graph.operators[producer].id
        for reader in graph.consumers.get(name, ()):
            user = graph.operators[reader].id
            if at[user][0] != at[maker][0]:
                routes.setdefault((name, at[maker][0], at[user][0]), []).append((maker, user))
    for (name, source, target), users in routes.items():
        held = [(at[v][2] - at[u][1]) / period_s + at[v][3] - at[u][3] for u, v in users]
        busy = occupies.get((name, target))
        yield {
            "tensor": name,
            "from": source,
            "to": target,
            "kind": "within-stage" if all(at[u][4] == at[v][4] for u, v in users) else "stage",
            "size_bytes": graph.tensors[name].size_bytes,
            "time_s": busy[2] - busy[1] if busy else moved_s,
            "queue_depth": max(2, *(ceil(each - 1e-9) for each in held)),
            **(dict(zip(("occupies", "start_s", "end_s"), busy, strict=True)) if busy else {}),
        }


def plan_of(document) -> Plan:
    """The plan that a document describes."""
    return Plan.model_validate_json(json.dumps(document))


def two_processors():
    """Each processor takes turns on two frames; T = 2.

    big:    a [0, 1]    c [1, 2] of the frame before
    little: d [0, 1] of the frame two before    b [1, 2]
    """
    orders = {
        "big": [("a", 0.0, 1.0, 0), ("c", 1.0, 2.0, 1)],
        "little": [("d", 0.0, 1.0, 2), ("b", 1.0, 2.0, 0)],
    }
    return interleaved(chain("abcd"), [orders], 2.0)


def wrapped():
    """The same with transfers of 0.25 s: b runs from 1.25 of a period to 0.25 of the next one."""
    orders = {
        "big": [("a", 0.0, 1.0, 0), ("c", 1.0, 2.0, 1)],
        "little": [("d", 0.25, 1.25, 2), ("b", 1.25, 2.25, 0)],
    }
    return interleaved(chain("abcd"), [orders], 2.0, moved_s=0.25)


def three_frames():
    """Three frames are under way on big; T = 3.

    big:    a [0, 1]    c [1, 2] of the frame before    e [2, 3] of the frame two before
    little: b [1, 2]    d [2, 3] of the frame before
    """
    orders = {
        "big": [("a", 0.0, 1.0, 0), ("c", 1.0, 2.0, 1), ("e", 2.0, 3.0, 2)],
        "little": [("b", 1.0, 2.0, 0), ("d", 2.0, 3.0, 1)],
    }
    return interleaved(chain("abcde"), [orders], 3.0)


def sending():
    """big sends `a` itself, for 0.25 s; T = 2.25."""
    orders = {
        "big": [("a", 0.0, 1.0, 0), ("c", 1.25, 2.25, 1)],
        "little": [("d", 0.25, 1.25, 2), ("b", 1.25, 2.25, 0)],
    }
    busy = {("a", "little"): ("big", 1.0, 1.25)}
    return interleaved(chain("abcd"), [orders], 2.25, moved_s=0.25, occupies=busy)


def between_stages():
    """Stages of one frame before and behind one of several; T = 2."""
    middle = {
        "big": [("b", 0.5, 1.5, 1), ("d", 1.5, 2.5, 2)],
        "little": [("c", 1.75, 2.75, 1)],
    }
    stages = [{"gpu": [("a", 0.0, 1.5, 0)]}, middle, {"npu": [("e", 0.25, 1.0, 4)]}]
    return interleaved(chain("abcde"), stages, 2.0, moved_s=0.25)


DRAWN = (two_processors, wrapped, three_frames, sending, between_stages)


def random_document(graph, seed, *, processors=3):
    """Any operator on any processor, in any order, as often as the busiest processor can.

    Every processor packs its operators into a window of the period that may wrap around it; a lag
    is the least at which an operator finds its inputs (the modulo schedule that always exists).
    None if every operator has the same lag.
    """
    rng = random.Random(seed)
    names = ["big", "little", "gpu"][:processors]
    place = [rng.choice(names) for _ in graph.operators]
    time_s = [rng.choice([0.125, 0.25, 0.75, 1.5]) for _ in graph.operators]
    loads = {p: sum(t for t, q in zip(time_s, place, strict=True) if q == p) for p in names}
    period_s, moved_s = max(loads.values()), rng.choice([0.0, 0.125])
    start_s = {}
    for p in sorted(set(place)):
        mine = [v for v, q in enumerate(place) if q == p]
        rng.shuffle(mine)
        offset_s = rng.randrange(16) * period_s / 16
        begins = accumulate((time_s[v] for v in mine), initial=offset_s)
        start_s |= {v: s % period_s for v, s in zip(mine, begins, strict=False)}
    lags: dict = {}
    for v, each in enumerate(graph.operators):
        lags[v] = 0
        for name in graph.reads(each):
            if (u := graph.producer.get(name)) is not None:
                ready_s = start_s[u] + time_s[u] + moved_s * (place[u] != place[v])
                later = ceil((ready_s - start_s[v]) / period_s - 1e-9)
                lags[v] = max(lags[v], lags[u] + max(0, later))
    if len(set(lags.values())) < 2:
        return None
    orders = {
        p: sorted((graph.operators[v].id, start_s[v], start_s[v] + time_s[v], lags[v])
                  for v, q in enumerate(place) if q == p)
        for p in names if p in place
    }  # fmt: skip
    for order in orders.values():
        order.sort(key=lambda each: each[1])
    return interleaved(graph, [orders], period_s, moved_s=moved_s)
