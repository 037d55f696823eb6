"""Derive the synchronisation overheads of amlogic-a311d.yaml, and print them.

The Para-Pipe paper gives averages for its fine-grained plans on this board: synchronisation made
them 21.7 % longer on big and GPU, and 4.7 % "with little". Which plans these were is not published.
Here they are parapipe's own fine plans of GoogLeNet as one stage, made without any overhead: with
the same placement and order they are replayed while each hand-over takes longer, until they are
that much longer. Of equally short plans the mapper may find another one some day, so the plans are
kept in synchronisation_plans.json.

The reading taken: 21.7 % is the pair big and GPU, 4.7 % the pair big and little.
The plans are those of the board in 2024, when the paper's networks were measured.
Were 4.7 % the cost of all hand-overs on the three processors together, the two figures would
exclude each other: the last lines show it. Little and GPU take what big and GPU take, because it
is the same queue that is drained.

As a check, the paper's fine plans on the two CPU clusters beat its coarse ones by 3.35 %.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

import parapipe
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.platform.platform import Platform
from parapipe.solvers.coarse import map as coarse
from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay
from parapipe.solvers.schedule import Certificate, Schedule
from parapipe.solvers.verify import verify

MODEL, PLATFORM = "zoo:googlenet", "amlogic-a311d-2024"
BIG_AND_GPU, WITH_LITTLE, FINE_OVER_COARSE = 0.217, 0.047, 0.0335  # the paper's figures
LIMIT_S = 60.0
PLANS = Path(__file__).with_name("synchronisation_plans.json")

Pair = frozenset[int]
Overheads = Mapping[Pair, float]  # seconds of each hand-over


def without_overhead(platform: Platform) -> Platform:
    """Return the platform with nothing said of synchronisation."""
    links = [link.model_copy(update={"synchronisation": None}) for link in platform.links]
    return platform.model_copy(update={"links": tuple(links)})


def googlenet() -> tuple[OperatorGraph, CostTable]:
    """Return the model, and what it costs without any overhead."""
    graph = parapipe.load_model(MODEL)
    return graph, build_cost_table(graph, without_overhead(parapipe.load_platform(PLATFORM)))


def whole_model(
    graph: OperatorGraph, costs: CostTable, processors: Collection[int]
) -> MappingProblem:
    """Return the mapping problem of the whole model on some of the processors."""
    everyone = range(len(costs.processors))
    rows = [
        tuple(costs.time_s(v, p) if p in processors else inf for p in everyone)
        for v in range(len(graph.operators))
    ]
    flows = [
        Flow(graph.producer[name], tuple(graph.consumers[name]), costs.transfer_matrix(name))
        for name in graph.tensors
        if name in graph.producer and graph.consumers.get(name)
    ]
    structure = tuple(step for unit in partition(graph).units for step in unit.structure)
    return MappingProblem(tuple(rows), tuple(flows), structure)


def kept_plan(problem: MappingProblem, pair: Collection[int], names: tuple[str, ...]) -> Schedule:
    """Return the plan on a pair of processors that the overheads rest on, verified."""
    plans = json.loads(PLANS.read_text(encoding="utf-8"))["plans"]
    plan = plans[" and ".join(names[p] for p in pair)]
    timed = replay(problem, plan["processor"], plan["order"])
    claim = Certificate("makespan", timed.makespan_s, 0.0, False, 0.0, 0, "kept")
    schedule = Schedule(tuple(plan["processor"]), timed.start_s, timed.end_s, claim)
    verify(problem, schedule)
    return schedule


def with_overheads(problem: MappingProblem, overheads: Overheads) -> MappingProblem:
    """Return the problem with longer transfers."""
    count = range(problem.processors)
    added = [[overheads.get(frozenset((p, q)), 0.0) if p != q else 0.0 for q in count]
             for p in count]  # fmt: skip
    flows = tuple(
        replace(
            flow,
            transfer_s=tuple(
                tuple(flow.transfer_s[p][q] + added[p][q] for q in count) for p in count
            ),
        )
        for flow in problem.flows
    )
    return replace(problem, flows=flows)


def replayed_s(problem: MappingProblem, schedule: Schedule, overheads: Overheads) -> float:
    """Return the makespan of a plan that knew of no overhead, with overhead."""
    order = sorted(
        range(problem.operators), key=lambda v: (schedule.start_s[v], schedule.end_s[v], v)
    )
    return replay(with_overheads(problem, overheads), schedule.processor, order).makespan_s


def hand_overs(problem: MappingProblem, schedule: Schedule) -> Counter[Pair]:
    """Count tensors that cross, once for each processor that receives them."""
    return Counter(
        frozenset((schedule.processor[flow.producer], q))
        for flow in problem.flows
        if flow.producer is not None
        for q in {schedule.processor[v] for v in flow.consumers}
        if q != schedule.processor[flow.producer]
    )


def root(longer: Callable[[float], float], share: float) -> float:
    """Return the overhead at which a plan is longer by that share, by bisection."""
    low_s, high_s = 0.0, 0.1
    for _ in range(40):
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (middle_s, high_s) if longer(middle_s) < share else (low_s, middle_s)
    return (low_s + high_s) / 2


def main() -> None:
    """Derive and print."""
    graph, costs = googlenet()
    big, little, gpu = (costs.processors.index(name) for name in ("big", "little", "gpu"))
    found: dict[Pair, float] = {}
    for pair, share in (((big, gpu), BIG_AND_GPU), ((big, little), WITH_LITTLE)):
        problem = whole_model(graph, costs, pair)
        plan = kept_plan(problem, pair, costs.processors)

        def longer(
            overhead_s: float,
            problem: MappingProblem = problem,
            plan: Schedule = plan,
            pair: Pair = frozenset(pair),
        ) -> float:
            return replayed_s(problem, plan, {pair: overhead_s}) / plan.makespan_s - 1

        found[frozenset(pair)] = overhead_s = root(longer, share)
        crossing = hand_overs(problem, plan)[frozenset(pair)]
        names = " and ".join(costs.processors[p] for p in pair)
        print(f"{names}: plan of {plan.makespan_s * 1e3:.2f} ms"
              f", {crossing} hand-overs; {share:.1%} longer with overhead_s "
              f"{overhead_s:.3g}")  # fmt: skip
    found[frozenset((little, gpu))] = found[frozenset((big, gpu))]

    clusters = whole_model(graph, costs, (big, little))
    rough = coarse(clusters, time_limit_s=LIMIT_S, seed=0)
    rough_s = replayed_s(clusters, rough, found)
    aware = fine(with_overheads(clusters, found), time_limit_s=LIMIT_S, seed=0)
    blind = fine(clusters, time_limit_s=LIMIT_S, seed=0)
    print(f"big and little: fine beats coarse by {1 - blind.makespan_s / rough.makespan_s:.2%} "
          f"without overhead, by {1 - replayed_s(clusters, blind, found) / rough_s:.2%} if neither "
          f"plan knows of it and by {1 - aware.makespan_s / rough_s:.2%} if fine does; the paper "
          f"has {FINE_OVER_COARSE:.2%}")  # fmt: skip

    everyone = whole_model(graph, costs, (big, little, gpu))
    plan = fine(everyone, time_limit_s=LIMIT_S, seed=0)
    without_little = {frozenset((big, gpu)): found[frozenset((big, gpu))]}
    crossing = hand_overs(everyone, plan)[frozenset((big, gpu))]
    for overheads, of in ((without_little, f"of big and gpu ({crossing})"), (found, "of all")):
        share = replayed_s(everyone, plan, overheads) / plan.makespan_s - 1
        print(f"three processors: {share:.1%} longer by the hand-overs {of}")


if __name__ == "__main__":
    main()
