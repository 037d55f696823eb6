"""Assignments of operators to processors, and what they load, as an integer programme.

Variables, for operators v, processors p and q, and tensors f:

- x_vp: v runs on p; Σ_p x_vp = 1. Operators with the same times (and energies) of which no transfer
  counts are one group g, and x_gp says how many of them run on p.
- y_fpq: f, made on p, is moved to q, once for all who read it there. For every reader v and the
  maker u: y_fpq ≥ x_up + x_vq - 1. That alone lets a fraction of everything stand everywhere, so
  there also stand Σ_p y_fpq ≥ x_vq - x_uq and Σ_q y_fpq ≥ x_up - x_vp, which hold as well.
- the load of a resource: Σ w_vp x_vp of a processor, and Σ c_fpq y_fpq of what transfers keep busy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from parapipe.mapping.problem import Flow, MappingProblem

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
        Variable j takes whole values from 0 to `most[j]`.
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
        found: dict[int, int] = {}
        for group in self.groups:
            rest = iter(group.operators)
            for p, j in group.runs.items():
                for _ in range(values[j]):
                    found[next(rest)] = p
        return tuple(found[v] for v in range(len(found)))

    def values(self, processor: Sequence[int]) -> list[int]:
        """Return the values of the variables for an assignment."""
        values = [0] * len(self.most)
        for group in self.groups:
            for v in group.operators:
                values[group.runs[processor[v]]] += 1
        for (f, p, q), j in self.moved.items():
            flow = self.problem.flows[f]
            made = flow.location if flow.producer is None else processor[flow.producer]
            values[j] = int(made == p and any(processor[v] == q for v in flow.consumers))
        return values


def programme(
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
    made = {} if flow.producer is None else runs[flow.producer]
    sources = [flow.location] if flow.location is not None else list(made)
    targets = sorted({q for v in flow.consumers for q in runs[v]})
    moved = {(p, q): _variable(stated, 1) for p in sources for q in targets if p != q}
    stated.moved |= {(f, p, q): j for (p, q), j in moved.items()}
    add = stated.rows.append
    for v in flow.consumers:
        read = runs[v]
        for (p, q), j in moved.items():
            if q in read and p in made:
                add(Row(((j, 1), (made[p], -1), (read[q], -1)), -1))
        for q in set(read) - {flow.location}:
            into = [(j, 1) for (_, target), j in moved.items() if target == q]
            add(Row((*into, *_term(made, q, 1), (read[q], -1)), 0))
        for p, j in made.items():
            out = [(k, 1) for (source, _), k in moved.items() if source == p]
            add(Row((*out, *_term(read, p, 1), (j, -1)), 0))


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
