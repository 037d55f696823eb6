"""CP-SAT's model of transfers that keep a resource busy, on top of that of operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.mapping.budget import Budget
from parapipe.mapping.fine import cp_sat
from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.cp_sat import Busy, Model, Strategy
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.replay import Job, Timed, expanded
from parapipe.mapping.units import MICRO, whole

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass(frozen=True, slots=True)
class Ordered:
    """A placement and an order of operators and transfers."""

    processor: tuple[int, ...]
    order: tuple[Job, ...]


def search(
    problem: MappingProblem,
    bounds: Bounds,
    limit_units: int,
    hint: tuple[Sequence[int], Timed],
    *,
    strategy: Strategy,
    budget: Budget,
    seed: int,
) -> tuple[int, Ordered | None]:
    """Search for a shortest schedule of at most `limit_units` in which transfers occupy something.

    To the model of `cp_sat` come, for a flow from operator u on p to any processor q:

    - an optional interval (t_q, c_pq, y_pq) on what the transfer occupies, no two intervals there
      overlapping, those of operators included;
    - x_up ∧ x_vq ⇒ y_pq for every consumer v;
    - y_pq ⇒ t_q ≥ s_u + w_up, and y_pq ∧ x_vq ⇒ s_v ≥ t_q + c_pq.

    Parameters
    ----------
    problem
        In whole units, each written as a microsecond.
    bounds
        Of the same problem with pure delays.
    hint
        Where operators run, and when everything does.

    Returns
    -------
    tuple
        A lower bound in units, at most `limit_units` + 1; and the best schedule found.
    """
    from ortools.sat.python import cp_model  # heavy

    model = Model(bounds, limit_units, cp_model.CpModel())
    moves = _Moves(problem, model)
    moves.state()
    model.state()
    moves.fill_links()
    moves.hint(*hint)
    solver, bound_units = cp_sat.search(model, strategy=strategy, budget=budget, seed=seed)
    if solver is None:
        return bound_units, None
    processor = tuple(model.processors(solver))
    start_units = moves.starts(solver)
    jobs = expanded(problem, processor)
    ranked = []
    for i, (job, resource) in enumerate(zip(jobs.jobs, jobs.processor, strict=True)):
        time_units = whole(jobs.problem.time_s[i][resource])
        ranked.append((start_units[job], start_units[job] + time_units, i, job))
    order = tuple(job for *_, job in sorted(ranked, key=lambda entry: entry[:3]))
    return bound_units, Ordered(processor, order)


class _Moves:
    """Variables of the transfers that may occupy something."""

    def __init__(self, problem: MappingProblem, model: Model) -> None:
        self.problem = problem
        self.model = model
        self.start: dict[tuple[int, int], cp_model.IntVar] = {}
        self.present: dict[tuple[int, int, int], cp_model.IntVar] = {}

    def state(self) -> None:
        """State intervals, and how they stand to operators."""
        for f, flow in enumerate(self.problem.flows):
            for p, q, readers in self._pairs(flow):
                if (f, q) not in self.start:
                    last_units = self.model.limit_units
                    self.start[f, q] = self.model.model.new_int_var(0, last_units, "")
                self._move(f, p, q, readers)

    def _pairs(self, flow: Flow) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the ways of a flow that occupy something, with who may read it there."""
        choices = self.model.problem.choices
        if flow.producer is not None:
            sources = choices[flow.producer]
        else:
            sources = () if flow.location is None else (flow.location,)
        for q in range(self.problem.processors):
            readers = [v for v in flow.consumers if q in choices[v]]
            for p in sources:
                if readers and self.problem.resource_of(p, q) is not None:
                    yield p, q, readers

    def _move(self, f: int, p: int, q: int, readers: Sequence[int]) -> None:
        model, runs, flow = self.model.model, self.model.runs, self.problem.flows[f]
        resource = self.problem.resource_of(p, q)
        assert resource is not None
        made_by = [] if flow.producer is None else [runs[flow.producer, p]]
        present = self.present[f, p, q] = model.new_bool_var("")
        start, time_units = self.start[f, q], whole(flow.transfer_s[p][q])
        for literal in made_by:
            model.add_implication(present, literal)
        model.add_bool_or([present.negated(), *(runs[v, q] for v in readers)])
        for v in readers:
            absent = [literal.negated() for literal in (*made_by, runs[v, q])]
            model.add_bool_or([present, *absent])
            after = model.add(self.model.start[v] >= start + time_units)
            after.only_enforce_if([present, runs[v, q]])
        if flow.producer is not None:
            made = self.model.start[flow.producer] + self.model.problem.time_units[flow.producer][p]
            model.add(start >= made).only_enforce_if(present)
        interval = model.new_optional_fixed_size_interval_var(start, time_units, present, "")
        self.model.busy.setdefault(resource, []).append(Busy(interval, present, time_units))

    def fill_links(self) -> None:
        """Let nothing overlap where no operator can run: on links, on processors of others."""
        filled = {p for choices in self.model.problem.choices for p in choices}
        for resource, busy in self.model.busy.items():
            if resource not in filled:
                self.model.model.add_no_overlap([each.interval for each in busy])
                load = cp_sat.weighted(
                    [each.present for each in busy], [each.time_units for each in busy]
                )
                self.model.model.add(self.model.makespan >= load)

    def hint(self, processor: Sequence[int], timed: Timed) -> None:
        """Tell where a schedule has everything."""
        model = self.model.model
        for v, choices in enumerate(self.model.problem.choices):
            model.add_hint(self.model.start[v], whole(timed.start_s[v]))
            for p in choices if len(choices) > 1 else ():
                model.add_hint(self.model.runs[v, p], processor[v] == p)
        begun = {(moved.flow, moved.target): moved.start_s for moved in timed.transfers}
        for key, start in self.start.items():
            model.add_hint(start, round(begun.get(key, 0.0) * MICRO))

    def starts(self, solver: cp_model.CpSolver) -> dict[Job, int]:
        """Read when each operator and each transfer starts."""
        found: dict[Job, int] = {v: solver.value(start) for v, start in enumerate(self.model.start)}
        found |= {key: solver.value(start) for key, start in self.start.items()}
        return found
