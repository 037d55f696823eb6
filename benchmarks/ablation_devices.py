"""What `benchmarks.ablation` switches off or changes: each device and constant of the mapper.

Of a device stands here the simplest thing that is still correct, of a constant its half, its
double or 0. `benchmarks/results/ablation.md` names those without a row, each with why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from parapipe.solvers.energy import energy_model, trade_offs
from parapipe.solvers.fine import (
    busy_transfers,
    constraint_model,
    integer_problem,
    list_schedules,
    mapper,
)
from parapipe.solvers.fine import integer_problem as units
from parapipe.solvers.fine.integer_problem import IntegerProblem
from parapipe.solvers.lists import heft_table

MAKESPAN = ("zoo", "registered", "petr", "hard", "public")
OCCUPIED = ("occupied",)
ENERGY = ("energy",)


@dataclass(frozen=True, slots=True)
class Device:
    """Something to be left out or changed, and the groups of instances that it can matter to.

    Parameters
    ----------
    patches
        Owner, attribute and what to put in its place.
    """

    name: str
    groups: Sequence[str]
    patches: Sequence[tuple[Any, str, Any]]


def devices() -> Iterator[Device]:
    """Yield all, those of the search for the makespan first."""
    yield from _of_makespan()
    yield from _of_occupied()
    yield from _of_energy()
    for owner, name, factors, groups in CONSTANTS:
        value = getattr(owner, name)
        for factor in factors:
            other = type(value)(value * factor)
            label = f"{owner.__name__.rpartition('.')[2]}.{name} {value:g}: {other:g}"
            yield Device(label, groups, [(owner, name, other)])


LARGE = ("petr", "hard", "public")  # what holds problems of more than `mapper.SMALL` operators
LOADS = (*LARGE, "loads")  # and where loads bound the makespan
FEW = ("public", "few")  # what holds problems of which few operators have a choice
CONSTANTS: Sequence[tuple[Any, str, Sequence[float], Sequence[str]]] = (
    (mapper, "FEW", (0,), FEW),
    (mapper, "SMALL", (0.5, 2), MAKESPAN),
    (mapper, "LISTS", (0,), LOADS),
    (mapper, "ROUNDS", (0,), LOADS),
    (mapper, "MANY_ROUNDS", (0,), LOADS),
    (mapper, "FIRST_S", (2,), LARGE),
    (mapper, "NEARBY_S", (0.25,), FEW),
    (mapper, "SMALL_S", (0.5,), LARGE),
    (mapper, "WINDOW", (0.5,), LARGE),
    (units, "STEP", (0.5,), LOADS),
    (units, "UNITS", (0,), ("zoo", "registered", "hard", "public")),
    (busy_transfers, "RELAXED_SHARE", (0, 0.5, 1.5), OCCUPIED),
    (energy_model, "LONG_S", (0.5, 2), ENERGY),
    (trade_offs, "PROOF", (0, 2), ENERGY),
)


def _of_makespan() -> Iterator[Device]:
    model = constraint_model.Model
    for name, *patches in (
        ("small problems by enumeration", (mapper, "enumerated", lambda *_: None)),
        ("first schedule: HEFT alone", (mapper, "QUICK", (heft_table,))),
        ("heads and tails by longest paths", (mapper, "path_bounds", _releases)),
        ("choices beyond the limit left out", (mapper, "narrowed", _all_choices)),
        ("bound by loads", (mapper, "load_bound", lambda known, _: known.makespan_units())),
        ("prices of loads: equal", (mapper, "worth", lambda whole, _: (1,) * whole.processors)),
        ("heads and tails raised at joins and forks", (mapper, "raise_bounds", lambda *_: None)),
        ("tails raised at forks", (mapper, "raise_bounds", _heads_only)),
        ("search near the best", (mapper.Search, "_nearby", lambda _, known, answer, *__: answer)),
        ("linear relaxation", (mapper, "Strategy", _strategy(linear=False))),
        ("hints", (model, "hint", lambda *_: None)),
        ("loads in CP-SAT", (model, "_fill", _no_load)),
        ("idle time beside loads in CP-SAT", (model, "_fill", _load_alone)),
        ("chains without search", (mapper, "_without_search", lambda *_: None)),
        (
            "priced_lists.WEIGHTS: every second",
            (list_schedules, "WEIGHTS", list_schedules.WEIGHTS[::2]),
        ),
    ):
        yield Device(name, (*MAKESPAN, "loads"), patches)


def _of_occupied() -> Iterator[Device]:
    moves = busy_transfers._Moves
    for name, *patches in (
        ("occupied: choices left out", (busy_transfers, "narrowed", _all_choices)),
        ("occupied: hints", (moves, "hint", lambda *_: None)),
        ("occupied: loads in CP-SAT", (constraint_model.Model, "_fill", _no_load)),
        ("occupied: loads of links", (moves, "fill_links", _links_without_load)),
    ):
        yield Device(name, OCCUPIED, patches)


def _of_energy() -> Iterator[Device]:
    model, walk = energy_model.EnergyModel, trade_offs._Search
    quick = SimpleNamespace(map=lambda *given, **named: mapper.map(*given, **named | NO_TIME))
    for name, *patches in (
        ("energy: enumeration", (trade_offs, "enumerated_set", lambda *_, **__: None)),
        ("energy: hints", (model, "_hint", lambda *_: None)),
        ("energy: heads and tails", (energy_model, "path_bounds", _releases)),
        ("energy: deadline in the middle: the last", (walk, "_deadline_us", _last)),
        ("energy: geometric middle: arithmetic", (walk, "_deadline_us", _middle)),
        ("energy: worst slab first: the oldest", (walk, "refine", _in_turn)),
        ("energy: shortest of least energy: lists", (trade_offs, "fine", quick)),
    ):
        yield Device(name, ENERGY, patches)


NO_TIME: Mapping[str, float] = {"time_limit_s": 0.0}


def _releases(problem: IntegerProblem) -> integer_problem.Bounds:
    idle = [[0] * problem.processors for _ in problem.time_units]
    return integer_problem.Bounds(problem, [list(row) for row in problem.release_units], idle)


def _all_choices(bounds: integer_problem.Bounds, limit_units: int) -> integer_problem.Bounds | None:
    """Leave out no choice; that an operator has none is still said, as the model needs one."""
    return bounds if integer_problem.narrowed(bounds, limit_units) else None


def _heads_only(
    known: integer_problem.Bounds, known_units: int, limit_units: int, solve: mapper.Solve
) -> None:
    mapper._Heads(known, known_units, limit_units, solve).raise_all()
    known.propagate_tails()


def _strategy(**kept: bool) -> Callable[..., constraint_model.Strategy]:
    return lambda *given, **named: constraint_model.Strategy(*given, **{**named, **kept})


def _no_load(model: constraint_model.Model, p: int, eligible: Sequence[int]) -> None:
    others = [busy.interval for busy in model.busy.get(p, [])]
    model.model.add_no_overlap([*(model._interval(v, p) for v in eligible), *others])


def _load_alone(model: constraint_model.Model, p: int, eligible: Sequence[int]) -> None:
    _no_load(model, p, eligible)
    time_units = [model.problem.time_units[v][p] for v in eligible]
    load = constraint_model.weighted([model.runs[v, p] for v in eligible], time_units)
    model.model.add(model.makespan >= load)


def _links_without_load(moves: busy_transfers._Moves) -> None:
    filled = {p for choices in moves.model.problem.choices for p in choices}
    for resource, busy in moves.model.busy.items():
        if resource not in filled:
            moves.model.model.add_no_overlap([each.interval for each in busy])


def _last(_: trade_offs._Search, slab: trade_offs._Slab) -> int:
    return slab.last_us


def _middle(walk: trade_offs._Search, slab: trade_offs._Slab) -> int:
    if not walk.resolution or slab.last_us <= slab.first_us * (1 + walk.resolution):
        return slab.last_us
    return (slab.first_us + slab.last_us) // 2


def _in_turn(walk: trade_offs._Search, limit: int) -> None:
    """Split the oldest slab first."""
    if not walk.open:
        return
    longest_us = max(slab.last_us for slab in walk.open)
    gap = walk.resolution * trade_offs.PROOF
    model = energy_model.EnergyModel(walk.rounded, walk.energy_j, longest_us, gap)
    while walk.open and len(walk._front()) < limit and walk.budget.left_s:
        walk._split(walk.open.pop(0), model)
