"""The least period as a mixed-integer programme in PuLP, solved by CBC: the reference.

min T with Σ_p x_vp = 1, y_fpq ≥ x_up + x_vq - 1 for each reader v of what u makes, and
Σ_v w_vp x_vp + Σ c_fpq y_fpq ≤ T for each processor, for a link without the first sum.
"""

from __future__ import annotations

from math import inf

from parapipe.errors import MappingError
from parapipe.modulo.least_period import LeastPeriod, period_s
from parapipe.solvers.cbc import import_pulp, run_cbc
from parapipe.solvers.problem import MappingProblem


def least_period(problem: MappingProblem, *, time_limit_s: float, seed: int) -> LeastPeriod:
    """Return an assignment whose greatest load is least, as `loads.least_period` does.

    Raises
    ------
    MappingError
        If CBC finds nothing within the time, or cannot be run.
    """
    pulp = import_pulp()
    model = pulp.LpProblem("least_period", pulp.LpMinimize)
    scale = max(t for row in problem.time_s for t in row if t < inf) or 1.0
    greatest = pulp.LpVariable("T", lowBound=0)
    runs = {
        (v, p): pulp.LpVariable(f"x_{v}_{p}", cat="Binary")
        for v, row in enumerate(problem.time_s)
        for p, time_s in enumerate(row)
        if time_s < inf
    }
    loads = {resource: pulp.LpAffineExpression() for resource in range(problem.resources)}
    model += greatest
    for v in range(problem.operators):
        model += pulp.lpSum(x for (u, _), x in runs.items() if u == v) == 1
    for (v, p), x in runs.items():
        loads[p] += problem.time_s[v][p] / scale * x
    for f, flow in enumerate(problem.flows):
        for p in range(problem.processors):
            u = flow.producer
            made = int(flow.location == p) if u is None else runs.get((u, p), 0)
            for q in range(problem.processors):
                resource = problem.resource_of(p, q)
                if resource is None:
                    continue
                moved = pulp.LpVariable(f"y_{f}_{p}_{q}", lowBound=0)
                loads[resource] += flow.transfer_s[p][q] / scale * moved
                for v in flow.consumers:
                    model += moved >= made + runs.get((v, q), 0) - 1
    for load in loads.values():
        model += load <= greatest
    answer = run_cbc(model, time_limit_s=time_limit_s, seed=seed)
    if not answer.found:
        raise MappingError("CBC found no assignment within the time; allow more")
    processor = tuple(
        next(p for p in range(problem.processors) if (v, p) in runs and runs[v, p].value() > 0.5)
        for v in range(problem.operators)
    )
    least_s = period_s(problem, processor)
    bound_s = min((answer.bound or 0.0) * scale, least_s)
    return LeastPeriod(least_s, bound_s, answer.optimal, processor, answer.solver, seed)
