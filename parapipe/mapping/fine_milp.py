"""The fine-grained mapper of the Para-Pipe paper as it stands there: a big-M model, solved by CBC.

`big_m_model` is the model, equations (3) to (7). It is the reference for other exact mappers and
the baseline of the benchmark, so nothing is done to help the solver: no bounds, no hints, no
splitting. Expect optima up to a dozen operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import ceil, floor, inf
from time import perf_counter

from parapipe.errors import MappingError
from parapipe.mapping.big_m_model import MICRO, Variables, big_m_model
from parapipe.mapping.cbc import Answer, run_cbc
from parapipe.mapping.heft import map as heft
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.ranks import readers_of
from parapipe.mapping.replay import replay
from parapipe.mapping.schedule import Certificate, Schedule
from parapipe.mapping.simple_bound import simple_bound_s
from parapipe.mapping.verify import verify

ROUNDING_US = 1e-6  # a picosecond, so that 0.009 s, as a double a little less, counts 9000
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
    if problem.carrier:
        raise MappingError(
            "the mapper 'fine_milp' is the paper's model as it stands, where a transfer keeps "
            "nothing busy, and this platform has links that do; choose the mapper 'fine'"
        )
    rounded = rounded_down(problem)
    quick = heft(rounded, time_limit_s=time_limit_s, seed=seed)
    candidates = {"HEFT": (quick.processor, _order(rounded, quick.start_s, quick.end_s))}
    answer, placed = _solve(rounded, began_s + time_limit_s, seed)
    if answer and placed:
        candidates = {answer.solver: placed} | candidates
    lengths_us = {solver: _makespan_us(rounded, *found) for solver, found in candidates.items()}
    chosen = min(lengths_us, key=lengths_us.__getitem__)
    bound_us = ceil(simple_bound_s(rounded) * MICRO - ROUNDING_US)
    claimed_us = answer.whole_bound if answer else None
    if claimed_us is not None and claimed_us <= lengths_us[chosen]:
        bound_us = max(bound_us, claimed_us)
    processor, order = candidates[chosen]
    start_s, end_s = replay(problem, processor, order)
    certificate = Certificate(
        proves="makespan",
        objective_s=max(end_s),
        bound_s=min(bound_us / MICRO, max(end_s)),
        proven=bound_us >= lengths_us[chosen],
        wall_s=perf_counter() - began_s,
        seed=seed,
        solver=", ".join(sorted({chosen, *([answer.solver] if answer else [])})),
    )
    schedule = Schedule(processor, start_s, end_s, certificate)
    verify(problem, schedule)
    return schedule


def rounded_down(problem: MappingProblem) -> MappingProblem:
    """Return the problem with every time rounded down to whole microseconds."""
    return replace(
        problem,
        time_s=tuple(tuple(_rounded_s(s) for s in row) for row in problem.time_s),
        flows=tuple(
            replace(
                flow,
                transfer_s=tuple(tuple(_rounded_s(s) for s in row) for row in flow.transfer_s),
            )
            for flow in problem.flows
        ),
    )


def _rounded_s(time_s: float) -> float:
    return inf if time_s == inf else floor(time_s * MICRO + ROUNDING_US) / MICRO


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
    readers = readers_of(problem)
    waits = [0] * problem.operators
    for edges in readers:
        for v in edges:
            waits[v] += 1
    ready = [(start[v], end[v], v) for v, count in enumerate(waits) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        u = heappop(ready)[2]
        order.append(u)
        for v in readers[u]:
            waits[v] -= 1
            if not waits[v]:
                heappush(ready, (start[v], end[v], v))
    return tuple(order)


def _makespan_us(rounded: MappingProblem, processor: Sequence[int], order: Sequence[int]) -> int:
    return round(max(replay(rounded, processor, order)[1]) * MICRO)
