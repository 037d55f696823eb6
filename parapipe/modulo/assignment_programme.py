"""Assignments of operators to processors as an integer programme, its relaxation and CP-SAT.

Variables, for operators v, processors p and q, and tensors f:

- x_vp: v runs on p; Σ_p x_vp = 1. Operators with the same times (and energies) of which no transfer
  counts are one group g, and x_gp says how many of them run on p.
- y_fpq: f, made on p, is moved to q, once for all who read it there. For every reader v and the
  maker u: y_fpq ≥ x_up + x_vq - 1. That alone lets a fraction of everything stand everywhere, so
  there also stand Σ_p y_fpq ≥ x_vq - x_uq and Σ_q y_fpq ≥ x_up - x_vp, which hold as well.
- the load of a resource: Σ w_vp x_vp of a processor, and Σ c_fpq y_fpq of what transfers keep busy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from parapipe.solvers.cp_sat import Budget, run_cp_sat
from parapipe.solvers.problem import Flow, MappingProblem, floor_units

# Which transfers are stated: by flow, p and q.
Counts = Callable[[Flow, int, int], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """Σ factor · variable ≥ `least`, or = `least`."""

    terms: tuple[tuple[int, int], ...]
    least: int
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Operators of the same times; `runs[p]` is the variable that counts those on p."""

    operators: tuple[int, ...]
    runs: Mapping[int, int]


@dataclass(slots=True)
class Programme:
    """The variables and what holds of them.

    Parameters
    ----------
    most
        Variable j takes integers from 0 to `most[j]`.
    rows
        What holds of them.
    groups
        Every operator is in one.
    moved
        The variable of a transfer, by index of the flow, p and q.
    load_s
        By resource: seconds of each variable's unit.
    """

    problem: MappingProblem
    most: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    moved: dict[tuple[int, int, int], int] = field(default_factory=dict)
    load_s: list[list[tuple[int, float]]] = field(default_factory=list)

    def processors(self, values: Sequence[int]) -> tuple[int, ...]:
        """Return the processor of each operator; neighbours in a group stay together."""
        processor: dict[int, int] = {}
        for group in self.groups:
            operators = iter(group.operators)
            for p, j in group.runs.items():
                for _ in range(values[j]):
                    processor[next(operators)] = p
        return tuple(processor[v] for v in range(len(processor)))

    def values(self, processor: Sequence[int]) -> list[int]:
        """Return the values of the variables for an assignment."""
        values = [0] * len(self.most)
        for group in self.groups:
            for v in group.operators:
                values[group.runs[processor[v]]] += 1
        for (f, p, q), j in self.moved.items():
            flow = self.problem.flows[f]
            source = flow.location if flow.producer is None else processor[flow.producer]
            values[j] = int(source == p and any(processor[v] == q for v in flow.consumers))
        return values


def state_programme(
    problem: MappingProblem, counts: Counts, *, marks: Sequence[Hashable] = ()
) -> Programme:
    """State where operators can run and what that moves.

    Parameters
    ----------
    counts
        Which transfers have a variable, of those that take time.
    marks
        By operator: operators of one group have the same, besides their times.
    """
    stated = Programme(problem)
    pairs = [(p, q) for p in range(problem.processors) for q in range(problem.processors) if p != q]
    counted = [
        f
        for f, flow in enumerate(problem.flows)
        if any(flow.transfer_s[p][q] and counts(flow, p, q) for p, q in pairs)
    ]
    runs = _state_groups(stated, counted, marks or (None,) * problem.operators)
    for f in counted:
        _state_flow(stated, f, runs)
    _state_loads(stated)
    return stated


def _variable(stated: Programme, most: int) -> int:
    stated.most.append(most)
    return len(stated.most) - 1


def _state_groups(
    stated: Programme, counted: Sequence[int], marks: Sequence[Hashable]
) -> dict[int, Mapping[int, int]]:
    problem = stated.problem
    joined: set[int] = set()
    for f in counted:
        flow = problem.flows[f]
        joined |= {*flow.consumers, *(() if flow.producer is None else (flow.producer,))}
    members: dict[Hashable, list[int]] = {}
    for v, row in enumerate(problem.time_s):
        members.setdefault(v if v in joined else (row, marks[v]), []).append(v)
    for operators in members.values():
        able = [p for p, time_s in enumerate(problem.time_s[operators[0]]) if time_s < inf]
        runs = {p: _variable(stated, len(operators)) for p in able}
        stated.groups.append(Group(tuple(operators), runs))
        stated.rows.append(Row(tuple((j, 1) for j in runs.values()), len(operators), True))
    return {v: group.runs for group in stated.groups for v in group.operators}


def _state_flow(stated: Programme, f: int, runs: Mapping[int, Mapping[int, int]]) -> None:
    """State where a tensor goes; one from outside is on its location, whatever is chosen."""
    flow = stated.problem.flows[f]
    makes = {} if flow.producer is None else runs[flow.producer]
    sources = [flow.location] if flow.location is not None else list(makes)
    targets = sorted({q for v in flow.consumers for q in runs[v]})
    moved = {(p, q): _variable(stated, 1) for p in sources for q in targets if p != q}
    stated.moved |= {(f, p, q): j for (p, q), j in moved.items()}
    add = stated.rows.append
    for v in flow.consumers:
        reads = runs[v]
        for (p, q), j in moved.items():
            if q in reads and p in makes:
                add(Row(((j, 1), (makes[p], -1), (reads[q], -1)), -1))
        for q in set(reads) - {flow.location}:
            into = [(j, 1) for (_, target), j in moved.items() if target == q]
            add(Row((*into, *_term(makes, q, 1), (reads[q], -1)), 0))
        for p, j in makes.items():
            out = [(k, 1) for (source, _), k in moved.items() if source == p]
            add(Row((*out, *_term(reads, p, 1), (j, -1)), 0))


def _term(variables: Mapping[int, int], p: int, factor: int) -> tuple[tuple[int, int], ...]:
    return ((variables[p], factor),) if p in variables else ()


def _state_loads(stated: Programme) -> None:
    problem = stated.problem
    stated.load_s = [[] for _ in range(problem.resources)]
    for group in stated.groups:
        for p, j in group.runs.items():
            if time_s := problem.time_s[group.operators[0]][p]:
                stated.load_s[p].append((j, time_s))
    for (f, p, q), j in stated.moved.items():
        resource = problem.resource_of(p, q)
        if resource is not None and (time_s := problem.flows[f].transfer_s[p][q]):
            stated.load_s[resource].append((j, time_s))


ROUNDING = 1e-9  # share of a bound that sums of doubles may be off


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised: Σ cost · variable with no load above `limit_s`, or the greatest load.

    Parameters
    ----------
    cost
        Of a unit of each variable, at least 0.
    limit_s
        None to minimise the greatest load, whatever the cost.
    """

    cost: Sequence[float] = ()
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A solution in fractions.

    Parameters
    ----------
    bound
        No integer solution takes less, in seconds or what the costs are in; infinite if not even
        fractions solve it.
    values
        Of the variables; empty if there is none.
    """

    bound: float
    values: tuple[float, ...]


def solve_relaxation(stated: Programme, aim: Objective) -> Relaxed:
    """Solve the relaxation.

    The bound is not the solver's objective, which is right to its tolerances only, but what the
    prices of the rows prove, whatever they are: with prices π of rows Σ a x ≥ b and μ of loads, no
    solution takes less than Σ π b - Σ μ limit + Σ_j min(0, cost_j + Σ μ load_j - Σ π a_j) · most_j,
    and without a limit as much with Σ μ = 1.
    """
    from ortools.linear_solver.python import model_builder  # heavy

    def total(terms: Iterable[tuple[int, float]]) -> model_builder.LinearExpr:
        pairs = list(terms)
        chosen = [values[j] for j, _ in pairs]
        return model_builder.LinearExpr.weighted_sum(chosen, [factor for _, factor in pairs])

    scale = aim.limit_s or max(sum(s for _, s in load) for load in stated.load_s) or 1.0
    greatest_cost = max(aim.cost, default=0.0) or 1.0
    costs = [cost / greatest_cost for cost in aim.cost] or [0.0] * len(stated.most)
    loads = [[(j, time_s / scale) for j, time_s in load] for load in stated.load_s]
    # OR-Tools gives this constructor no types
    model = model_builder.Model()  # type: ignore[no-untyped-call]
    values = [model.new_num_var(0, most, "") for most in stated.most]
    greatest = model.new_num_var(0, inf if aim.limit_s is None else 1, "")
    rows = [
        model.add_linear_constraint(total(row.terms), row.least, row.least if row.equal else inf)
        for row in stated.rows
    ]
    within = [model.add_linear_constraint(greatest - total(load), 0, inf) for load in loads]
    model.minimize(greatest if aim.limit_s is None else total(enumerate(costs)))
    solver = model_builder.Solver("GLOP")
    status = solver.solve(model)
    if status == model_builder.SolveStatus.INFEASIBLE:
        return Relaxed(inf, ())
    if status != model_builder.SolveStatus.OPTIMAL:
        return Relaxed(0.0, ())
    prices = [max(0.0, float(solver.dual_value(each))) for each in within]
    if aim.limit_s is None:  # where no load has a price, all loads are 0
        prices = [each / (sum(prices) or 1.0) for each in prices]
    bound = 0.0 if aim.limit_s is None else -sum(prices)
    reduced = costs
    for load, each in zip(loads, prices, strict=True):
        for j, time_s in load:
            reduced[j] += each * time_s
    for row, constraint in zip(stated.rows, rows, strict=True):
        dual = float(solver.dual_value(constraint))
        price = dual if row.equal else max(0.0, dual)
        bound += price * row.least
        for j, factor in row.terms:
            reduced[j] -= price * factor
    bound += sum(min(0.0, each) * most for each, most in zip(reduced, stated.most, strict=True))
    proven = max(0.0, bound - ROUNDING * (1 + abs(bound)))
    fractions = tuple(float(solver.value(value)) for value in values)
    return Relaxed(proven * (scale if aim.limit_s is None else greatest_cost), fractions)


UNITS = 1e8  # in the greatest load that counts, and in the cost to beat
CLOSE = 1e-6  # share of the optimum within which a proof will do


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What the search found.

    Parameters
    ----------
    values
        Of the variables in the best solution found; empty if none was.
    bound
        No solution takes less.
    proven
        Whether nothing better is left: with values, to `CLOSE` of theirs; without, than `most`.
    """

    values: tuple[int, ...]
    bound: float
    proven: bool


def search(
    stated: Programme,
    aim: Objective,
    *,
    most: float,
    least: float,
    hint: Sequence[int],
    budget: Budget,
    seed: int,
) -> SearchResult:
    """Search for a solution that takes least.

    Times and costs count in hundred-millionths of `aim.limit_s` and `most`, rounded down. So bounds
    hold for exact ones; the loads of what is found may be above the limit by that much for each
    operator and each transfer.

    Parameters
    ----------
    most
        In seconds or what costs are in: at most so much is looked at.
    least
        A bound that is known.
    hint
        Values to begin with; empty if none are known.
    """
    from ortools.sat.python import cp_model  # heavy

    model = cp_model.CpModel()
    values = [model.new_int_var(0, each, "") for each in stated.most]

    def total(terms: Sequence[tuple[int, int]]) -> cp_model.LinearExpr:
        chosen = [values[j] for j, _ in terms]
        return cp_model.LinearExpr.weighted_sum(chosen, [factor for _, factor in terms])

    for row in stated.rows:
        if row.equal:
            model.add(total(row.terms) == row.least)
        else:
            model.add(total(row.terms) >= row.least)
    per_one = UNITS / most
    per_second = per_one if aim.limit_s is None else UNITS / aim.limit_s
    lost = len(stated.most) + sum(stated.most)  # by rounding, at most
    goal = model.new_int_var(max(0, floor_units(least, per_one) - lost), round(UNITS), "")
    limit = goal if aim.limit_s is None else round(UNITS)
    for load in stated.load_s:
        model.add(total([(j, floor_units(time_s, per_second)) for j, time_s in load]) <= limit)
    if aim.limit_s is not None:
        costs = [(j, floor_units(cost, per_one)) for j, cost in enumerate(aim.cost) if cost]
        model.add(total(costs) <= goal)
    model.minimize(goal)
    for value, hinted in zip(values, hint, strict=False):
        model.add_hint(value, hinted)
    outcome = run_cp_sat(
        model,
        budget=budget,
        seed=seed,
        interleave_search=True,  # proofs and searches near the best take turns
        linearization_level=2,
        relative_gap_limit=CLOSE,
    )
    if outcome.infeasible:
        return SearchResult((), most, True)
    bound = max(least, (outcome.bound - CLOSE) / per_one)
    if not outcome.found:
        return SearchResult((), bound, False)
    best = tuple(outcome.solver.value(value) for value in values)
    return SearchResult(best, bound, outcome.optimal)
