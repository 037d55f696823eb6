"""The fine-grained mapper of the Para-Pipe paper as it stands there: a big-M model, solved by CBC.

It is the reference for other exact mappers and the baseline of the benchmark, so nothing is done to
help the solver: no bounds, no hints, no splitting. Expect optima up to a dozen operators. The
model, equations (3) to (7):

Of an operator v, w_vp is its time on processor p, and c_uv,pq the time until what v reads of u has
got from p to q: 0 on one processor, else the longest transfer among the tensors that go from u to
v. Variables: x_vp = 1 where v runs on p, s_v the start of v, y_uv = 1 if u runs before v, C the
makespan. M is the sum of all operators' longest times and all tensors' longest transfers: no
schedule without needless waiting is longer.

    minimise C

    (3)  Σ_p x_vp = 1                                         every v, over p that support it
    (4)  s_v ≥ s_u + Σ_p w_up x_up                            every edge from u to v
         s_v ≥ s_u + Σ_p w_up x_up + c_uv,pq (x_up + x_vq − 1)     and every p ≠ q
         s_v ≥ Σ_q c_hq x_vq                                  every tensor read from location h
    (5)  s_v ≥ s_u + w_up − M (3 − x_up − x_vp − y_uv)        every p, u and v that no path orders
    (6)  s_u ≥ s_v + w_vp − M (2 − x_up − x_vp + y_uv)        likewise
    (7)  C ≥ s_v + Σ_p w_vp x_vp                              every v

The numbers follow the paper as we read it: one processor each (3); precedence with transfers as
pure delays (4); of two operators on one processor either u before v (5) or v before u (6); the
makespan (7). Beside them stand, as ours, tensors that are located on a processor h at the start.
For the product of x_up and x_vq in (4) stands the tightest single row, which needs no M; s_v and C
are continuous. Other models (a variable for each product, rows relaxed by M, integer start times)
took CBC longer on random instances of 8 to 12 operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import ceil, inf
from time import perf_counter
from typing import TYPE_CHECKING

from parapipe.errors import MappingError
from parapipe.solvers.cbc import Answer, import_pulp, run_cbc
from parapipe.solvers.lists import heft
from parapipe.solvers.paths import by_priority, readers_of, simple_bound_s
from parapipe.solvers.problem import MICRO, ROUNDING, MappingProblem, rounded_down
from parapipe.solvers.replay import certified, replay
from parapipe.solvers.schedule import Schedule

if TYPE_CHECKING:
    import pulp

WRITING = 1 / 3  # of the time to build a model PuLP takes again to write it for CBC, or less

# With its cuts CBC 2.10.3 took a schedule for optimal that was not in 4 of 300 random instances of
# 8 operators, by up to 8 %; without, in none of 1800, and it was as fast on the whole.
OPTIONS = ("cuts off",)

Placed = tuple[tuple[int, ...], tuple[int, ...]]  # the processor of each operator, and an order


def map(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place and order the operators so that the makespan is least; replayed exactly and verified.

    The model's times are whole microseconds, rounded down, so its bound holds for exact times too.
    `objective_s` is the exact makespan. `proven` says that in rounded times no schedule is
    shorter: then `bound_s` and `objective_s` differ by less than a microsecond for each operator
    and each transfer in a chain of those that wait for each other.

    The proof is CBC's, which reckons in doubles. If a schedule at hand is shorter than an optimum
    or bound that CBC claims, the claim is dropped.

    Parameters
    ----------
    time_limit_s
        For the whole call. If CBC has not found a better one by then, the schedule is that of
        HEFT; the bound is the better of CBC's and `simple_bound_s`. CBC looks at its clock
        between steps only, so a large model may outlast the limit somewhat.
    seed
        Of CBC's random choices.

    Raises
    ------
    MappingError
        If CBC cannot be run, or transfers keep something busy.
    """
    began_s = perf_counter()
    if problem.transfer_resource:
        raise MappingError(
            "the mapper 'fine_milp' is the paper's model as it stands, where a transfer keeps "
            "nothing busy, and this platform has links that do; choose the mapper 'fine'"
        )
    rounded = rounded_down(problem)
    quick = heft(rounded, time_limit_s=time_limit_s, seed=seed)
    candidates = {"HEFT": (quick.processor, _order(rounded, quick.start_s, quick.end_s))}
    answer, best = _solve(rounded, began_s + time_limit_s, seed)
    if answer and best:
        candidates = {answer.solver: best} | candidates
    lengths_us = {
        solver: round(replay(rounded, *placed).makespan_s * MICRO)
        for solver, placed in candidates.items()
    }
    chosen = min(lengths_us, key=lengths_us.__getitem__)
    bound_us = ceil(simple_bound_s(rounded) * MICRO - ROUNDING)
    claimed_us = answer.rounded_bound if answer else None
    if claimed_us is not None and claimed_us <= lengths_us[chosen]:
        bound_us = max(bound_us, claimed_us)
    processor, order = candidates[chosen]
    return certified(
        problem,
        processor,
        replay(problem, processor, order),
        bound_s=bound_us / MICRO,
        proven=bound_us >= lengths_us[chosen],
        solver=", ".join(sorted({chosen, *([answer.solver] if answer else [])})),
        seed=seed,
        began_s=began_s,
    )


def _solve(
    rounded: MappingProblem, deadline_s: float, seed: int
) -> tuple[Answer | None, Placed | None]:
    """CBC's answer and the schedule that it found; no answer if there is no time to ask."""
    began_s = perf_counter()
    written = big_m_model(rounded, deadline_s=deadline_s)
    if written is None:
        return None, None
    model, variables = written
    left_s = deadline_s - perf_counter() - WRITING * (perf_counter() - began_s)
    if left_s <= 0:
        return None, None
    answer = run_cbc(model, time_limit_s=left_s, seed=seed, options=OPTIONS)
    return answer, _placed(rounded, variables) if answer.found else None


def _placed(rounded: MappingProblem, variables: Variables) -> Placed:
    """Read a schedule out of the variables, which are whole but for CBC's tolerances."""
    processor = tuple(max(row, key=lambda p: row[p].value() or 0.0) for row in variables.runs_on)
    start_us = [round(start.value() or 0.0) for start in variables.start]
    end_us = [
        start + row[p] for start, row, p in zip(start_us, variables.time_us, processor, strict=True)
    ]
    return processor, _order(rounded, start_us, end_us)


def _order(
    problem: MappingProblem, start: Sequence[float], end: Sequence[float]
) -> tuple[int, ...]:
    """Operators by start; of those that start together, by end, so that one without length leads.

    Producers precede their readers even where rounding has set these earlier.
    """
    return tuple(by_priority(readers_of(problem), [*zip(start, end, strict=True)]))


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a model, all times in microseconds.

    Parameters
    ----------
    time_us
        w_vp of each operator v, by processors p that support it.
    runs_on
        x_vp of each operator, by processors that support it.
    start
        s_v of each operator.
    duration
        Σ_p w_vp x_vp of each operator.
    makespan
        C.
    """

    time_us: tuple[Mapping[int, int], ...]
    runs_on: tuple[Mapping[int, pulp.LpVariable], ...]
    start: tuple[pulp.LpVariable, ...]
    duration: tuple[pulp.LpAffineExpression, ...]
    makespan: pulp.LpVariable


def big_m_model(
    problem: MappingProblem, *, deadline_s: float = inf
) -> tuple[pulp.LpProblem, Variables] | None:
    """Write equations (3) to (7) for a problem whose times are whole microseconds.

    Parameters
    ----------
    deadline_s
        On the clock of `time.perf_counter`; a model that is not complete by then is given up.
    """
    pulp = import_pulp()
    variables = _variables(problem)
    model = pulp.LpProblem("fine", pulp.LpMinimize)
    model += variables.makespan
    for constraint in chain(
        _placement(variables),
        _precedence(problem, variables),
        _one_at_a_time(problem, variables),
        _length(variables),
    ):
        if perf_counter() > deadline_s:
            return None
        model += constraint
    return model, variables


def unordered_pairs(problem: MappingProblem) -> Iterator[tuple[int, int]]:
    """Yield the pairs u < v of operators that no path of tensors orders."""
    behind = [0] * problem.operators  # bit v of behind[u]: a path leads from u to v
    for u, readers in reversed(tuple(enumerate(readers_of(problem)))):
        for v in readers:
            behind[u] |= behind[v] | 1 << v
    for u, v in combinations(range(problem.operators), 2):
        if not behind[u] >> v & 1:
            yield u, v


def _variables(problem: MappingProblem) -> Variables:
    pulp = import_pulp()
    time_us = tuple(
        {p: _rounded_us(time_s) for p, time_s in enumerate(row) if time_s < inf}
        for row in problem.time_s
    )
    runs_on = tuple(
        {p: pulp.LpVariable(f"x_{v}_{p}", cat=pulp.LpBinary) for p in row}
        for v, row in enumerate(time_us)
    )
    return Variables(
        time_us=time_us,
        runs_on=runs_on,
        start=tuple(pulp.LpVariable(f"s_{v}", lowBound=0) for v in range(problem.operators)),
        duration=tuple(
            pulp.lpSum(row[p] * x[p] for p in row) for row, x in zip(time_us, runs_on, strict=True)
        ),
        makespan=pulp.LpVariable("C", lowBound=0),
    )


def _placement(variables: Variables) -> Iterator[pulp.LpConstraint]:
    """Equation (3)."""
    pulp = import_pulp()
    for row in variables.runs_on:
        yield pulp.lpSum(row.values()) == 1


def _precedence(problem: MappingProblem, variables: Variables) -> Iterator[pulp.LpConstraint]:
    """Equation (4)."""
    pulp = import_pulp()
    start, runs_on = variables.start, variables.runs_on
    for u, readers in enumerate(readers_of(problem)):
        end = start[u] + variables.duration[u]
        for v, delay_s in readers.items():
            yield start[v] >= end
            for p, on_p in runs_on[u].items():
                for q, on_q in runs_on[v].items():
                    if delay_s[p][q]:
                        yield start[v] >= end + _rounded_us(delay_s[p][q]) * (on_p + on_q - 1)
    for flow in problem.flows:
        if flow.location is not None:
            delays_s = flow.transfer_s[flow.location]
            for v in flow.consumers:
                yield start[v] >= pulp.lpSum(
                    _rounded_us(delays_s[q]) * x for q, x in runs_on[v].items()
                )


def _one_at_a_time(problem: MappingProblem, variables: Variables) -> Iterator[pulp.LpConstraint]:
    """Equations (5) and (6)."""
    pulp = import_pulp()
    big_m = _big_m_us(problem, variables)
    time_us, runs_on, start = variables.time_us, variables.runs_on, variables.start
    for u, v in unordered_pairs(problem):
        shared = time_us[u].keys() & time_us[v].keys()
        if shared:
            u_first = pulp.LpVariable(f"y_{u}_{v}", cat=pulp.LpBinary)
        for p in sorted(shared):
            both = runs_on[u][p] + runs_on[v][p]
            yield start[v] >= start[u] + time_us[u][p] - big_m * (3 - both - u_first)  # (5)
            yield start[u] >= start[v] + time_us[v][p] - big_m * (2 - both + u_first)  # (6)


def _length(variables: Variables) -> Iterator[pulp.LpConstraint]:
    """Equation (7)."""
    for start, duration in zip(variables.start, variables.duration, strict=True):
        yield variables.makespan >= start + duration


def _big_m_us(problem: MappingProblem, variables: Variables) -> int:
    """Sum of what each operator and each tensor takes at most."""
    longest_us = [max(row.values()) for row in variables.time_us]
    moved_us = [_rounded_us(max(chain(*flow.transfer_s))) for flow in problem.flows]
    return sum(longest_us) + sum(moved_us)


def _rounded_us(time_s: float) -> int:
    return round(time_s * MICRO)
