"""`python -m benchmarks.ablation`: which devices of the exact mapper pay.

The problem is that of `mapping_time`: place operators on processors and order them so that the
makespan is least, with a proof. `fine` is CP-SAT with devices around it: bounds, heuristics,
constants. Each device costs code, so each has to show what it brings: it is replaced here, by
patching, with nothing or with the simplest thing that is still correct. Watched because what brings
nothing is to be deleted.

The instances, in three groups:

- `zoo`: every `EACH`th of the mapping problems that searches for fronts of a few models ask for;
- `families`: the registered instances of `mapping_registry`, and more seeds of the hard families;
- `public`: flexible job shops in a folder given on the command line, one file each in the format of
  Brandimarte (1993): jobs and machines, then for each job its operations, for each of these the
  number of machines and pairs of machine (from 0) and time. They are not part of this repository.

Measured is the processor time; the limit counts work (`deterministic`), so that a busy machine
changes no answer. Two baselines stand beside the devices: the plain CP-SAT model of a flexible job
shop (optional intervals, none of the devices) and the paper's big-M programme, `fine_milp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

import parapipe
from benchmarks.instances import decoder_like, irregular, parallel_series
from benchmarks.mapping_registry import Instance, instances
from benchmarks.mapping_time import cpu_s
from benchmarks.tables import markdown_table, write_csv
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.mapping.fine import bounds, cp_sat, mapper, placement
from parapipe.mapping.fine.integer_problem import IntegerProblem, integer_problem
from parapipe.mapping.fine_milp import map as fine_milp
from parapipe.mapping.lists import heft, peft
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.replay import by_start, replay
from parapipe.mapping.units import MICRO
from parapipe.pipeline.problems import requests

RESULTS = Path(__file__).parent / "results"
ZOO = ("squeezenet", "googlenet", "inception-v4", "bert-base", "unet", "gpt:12")
PLATFORMS = ("amlogic-a311d", "bst-a1000")
EACH = 7
LEAST = 6  # operators
HARD = ((decoder_like, 169, 16, 1), (parallel_series, 60, 8, 1), (irregular, 60, 8, 1))
UNIT_S = 1e-6  # seconds that a unit of time of a public instance stands for
EVERYTHING = "nothing left out"

Device = Mapping[str, Any]
Found = tuple[float, float, bool]  # makespan and bound in seconds, and whether it is proven


@dataclass(frozen=True, slots=True)
class Row:
    """What became of an instance with one device switched off, or of a baseline."""

    device: str
    group: str
    instance: str
    cpu_s: float
    makespan_s: float
    bound_s: float
    proven: bool

    @property
    def gap(self) -> float:
        """Relative optimality gap: 0 if proven."""
        return 0.0 if self.proven else 1 - self.bound_s / self.makespan_s


def devices() -> dict[str, Device]:
    """Return what to patch in place of each device, by its name."""
    search = "parapipe.mapping.fine.search."

    def releases(problem: IntegerProblem) -> bounds.Bounds:
        idle = [[0] * problem.processors for _ in problem.time_units]
        return bounds.Bounds(problem, [list(row) for row in problem.release_units], idle)

    def first_list(known: bounds.Bounds) -> placement.Placement:
        ways = [
            min(row[p] + tails[p] for p in choices)
            for row, tails, choices in zip(
                known.problem.time_units, known.tail_units, known.problem.choices, strict=True
            )
        ]
        return placement.list_schedule(known.problem, ways, known.tail_units)

    def strategy(**kept: bool) -> Callable[..., cp_sat.Strategy]:
        return lambda *given, **named: cp_sat.Strategy(*given, **{**named, **kept})

    def no_load(model: cp_sat.Model, p: int, eligible: Sequence[int]) -> None:
        model.model.add_no_overlap([model._interval(v, p) for v in eligible])

    def by_path(known: bounds.Bounds, _: Sequence[int]) -> int:
        return known.makespan_units()

    return {
        EVERYTHING: {},
        "first schedule: HEFT alone": {"parapipe.mapping.fine.mapper.QUICK": (heft,)},
        "first schedule: PEFT alone": {"parapipe.mapping.fine.mapper.QUICK": (peft,)},
        "four list schedules in units: one": {search + "best_list_schedule": first_list},
        "heads and tails by longest paths": {search + "path_bounds": releases},
        "choices beyond the limit left out": {search + "narrowed": lambda known, limit: known},
        "bound by loads": {search + "load_bound": by_path},
        "prices of loads: equal": {search + "worth": lambda problem, _: (1,) * problem.processors},
        "bounds raised at joins and forks": {search + "raise_bounds": lambda *_: None},
        "these for small problems too": {search + "SMALL": 0},
        "priced lists": {search + "LISTS": 0},
        "search near the best": {search + "Search._nearby": lambda _, known, answer, *__: answer},
        "linear relaxation": {search + "Strategy": strategy(linear=False)},
        "presolve always": {search + "Strategy": strategy(presolve=True)},
        "CP-SAT alone where few have a choice": {search + "FEW": 0},
        "hints": {"parapipe.mapping.fine.cp_sat.Model.hint": lambda *_: None},
        "loads in CP-SAT": {"parapipe.mapping.fine.cp_sat.Model._fill": no_load},
        "finer units for short problems": {
            "parapipe.mapping.fine.mapper.units_per_second": lambda _: MICRO
        },
        "chains without search": {"parapipe.mapping.fine.mapper._without_search": lambda *_: None},
    }


def plain_cp_sat(problem: MappingProblem, time_limit_s: float) -> Found:
    """Solve the plain model: optional intervals, no overlap, one processor each, delays."""
    from ortools.sat.python import cp_model

    whole = integer_problem(problem)
    model = cp_model.CpModel()
    horizon = sum(max(t for t in row if t < 1 << 50) for row in whole.time_units)
    horizon += sum(max(map(max, delay)) for inputs in whole.edges for _, delay in inputs)
    horizon += max(map(max, whole.release_units))
    start, end = ([model.new_int_var(0, horizon, "") for _ in whole.time_units] for _ in range(2))
    on = {(v, p): model.new_bool_var("") for v, row in enumerate(whole.choices) for p in row}
    makespan = model.new_int_var(0, horizon, "")
    busy: dict[int, list[Any]] = {}
    for (v, p), here in on.items():
        lasts = whole.time_units[v][p]
        interval = model.new_optional_interval_var(start[v], lasts, end[v], here, "")
        busy.setdefault(p, []).append(interval)
        model.add(start[v] >= whole.release_units[v][p]).only_enforce_if(here)
    for v, row in enumerate(whole.choices):
        model.add_exactly_one(on[v, p] for p in row)
        model.add(makespan >= end[v])
        for u, delay in whole.edges[v]:
            model.add(start[v] >= end[u])
            for p in whole.choices[u]:
                for q in row:
                    if delay[p][q]:
                        apart = model.add(start[v] >= end[u] + delay[p][q])
                        apart.only_enforce_if(on[u, p], on[v, q])
    for intervals in busy.values():
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = time_limit_s / cp_sat.WORK
    status = solver.solve(model)
    bound_s = solver.best_objective_bound / MICRO
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return inf, bound_s, False
    processor = [
        next(p for p in row if solver.value(on[v, p])) for v, row in enumerate(whole.choices)
    ]
    order = by_start([solver.value(s) for s in start], [solver.value(e) for e in end])
    return replay(problem, processor, order).makespan_s, bound_s, status == cp_model.OPTIMAL


def big_m(problem: MappingProblem, time_limit_s: float) -> Found:
    """Solve the paper's programme; CBC stops by the clock."""
    found = fine_milp(problem, time_limit_s=time_limit_s, seed=0)
    return found.makespan_s, found.certificate.bound_s, found.certificate.proven


def exact(problem: MappingProblem, time_limit_s: float) -> Found:
    """Solve by `fine`, with what is patched."""
    found = mapper.map(problem, time_limit_s=time_limit_s, seed=0, deterministic=True)
    return found.makespan_s, found.certificate.bound_s, found.certificate.proven


def flexible_job_shop(text: str) -> MappingProblem:
    """Read a flexible job shop; machines are processors, transfers take no time."""
    lines = [[float(word) for word in line.split()] for line in text.splitlines() if line.strip()]
    machines = int(lines[0][1])
    free = ((0.0,) * machines,) * machines
    rows: list[tuple[float, ...]] = []
    flows: list[Flow] = []
    for job in lines[1 : 1 + int(lines[0][0])]:
        numbers = iter(job[1:])
        for operation in range(int(job[0])):
            if operation:
                flows.append(Flow(len(rows) - 1, (len(rows),), free))
            row = [inf] * machines
            for _ in range(int(next(numbers))):
                machine = int(next(numbers))
                row[machine] = next(numbers) * UNIT_S
            rows.append(tuple(row))
    return MappingProblem(tuple(rows), tuple(flows), tuple(range(len(rows))))


def zoo_problems(model: str, platform: str) -> Iterator[MappingProblem]:
    """Yield some of the problems that a search for a model's front asks for."""
    graph = parapipe.load_model(f"zoo:{model}", granularity="fused")
    costs = build_cost_table(graph, parapipe.load_platform(platform))
    asked = requests(graph, partition(graph), costs)
    distinct = dict.fromkeys(request.problem for request in asked)
    yield from [problem for problem in distinct if problem.operators >= LEAST][::EACH]


def chosen(public: Path | None) -> Iterator[tuple[str, Instance]]:
    """Yield the instances, each with its group."""
    for model in ZOO:
        for platform in PLATFORMS:
            for number, problem in enumerate(zoo_problems(model, platform)):
                yield "zoo", Instance(f"{model} {platform} {number}", partial(_itself, problem))
    for instance in instances():
        if "169" not in instance.name:
            yield "families", instance
    for family, operators, width, seed in HARD:
        name = f"{family.__name__.replace('_', '-')} {operators} width {width} seed {seed}"
        yield "families", Instance(name, partial(family, operators, width, seed=seed))
    for path in sorted(public.glob("*.txt")) if public else ():
        text = path.read_text(encoding="utf-8")
        yield "public", Instance(path.stem, partial(flexible_job_shop, text))


def _itself(problem: MappingProblem) -> MappingProblem:
    return problem


def measured(
    solve: Callable[[MappingProblem, float], Found],
    name: str,
    device: Device,
    case: tuple[str, Instance],
    time_limit_s: float,
) -> Row:
    """Solve an instance without a device, or by a baseline."""
    group, instance = case
    problem = instance.build()
    with ExitStack() as stack:
        for target, replacement in device.items():
            stack.enter_context(patch(target, replacement))
        began_s = cpu_s()
        makespan_s, bound_s, proven = solve(problem, time_limit_s)
    return Row(name, group, instance.name, cpu_s() - began_s, makespan_s, bound_s, proven)


def table(rows: Sequence[Row]) -> str:
    """Return a line for each device: what it changes in each group, against `EVERYTHING`."""
    whole = {row.instance: row for row in rows if row.device == EVERYTHING}
    groups = list(dict.fromkeys(row.group for row in rows))
    lines = []
    for device in dict.fromkeys(row.device for row in rows):
        line: list[object] = [device]
        for group in groups:
            some = [(r, whole[r.instance]) for r in rows if (r.device, r.group) == (device, group)]
            line += _compared(some) if some else [""] * 4
        lines.append(line)
    head = [f"{group} {what}" for group in groups for what in ("time", "longer", "open", "gap")]
    return markdown_table(["switched off", *head], lines)


def _compared(some: Sequence[tuple[Row, Row]]) -> list[object]:
    time = sum(row.cpu_s for row, _ in some) / sum(base.cpu_s for _, base in some)
    longer = sum(row.makespan_s > base.makespan_s * (1 + 1e-9) for row, base in some)
    still_open = sum(not row.proven for row, _ in some)
    return [f"{time:.2f}", longer, still_open, f"{sum(row.gap for row, _ in some):.3f}"]


@click.command()
@click.option("--public", type=click.Path(path_type=Path, exists=True), help="Folder of job shops.")
@click.option("--time-limit", default=10.0, show_default=True, help="Seconds for one solve.")
@click.option("--only", default="", help="Devices whose name holds this text.")
@click.option("--group", default="", help="Only this group of instances.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
def main(public: Path | None, time_limit: float, only: str, group: str, out: Path) -> None:
    """Switch off one device of the exact mapper after the other."""
    cases = [case for case in chosen(public) if group in case[0]]
    every: list[tuple[Callable[[MappingProblem, float], Found], str, Device]] = [
        (exact, name, device) for name, device in devices().items()
    ]
    every += [(plain_cp_sat, "plain CP-SAT", {}), (big_m, "big-M programme", {})]
    rows: list[Row] = []
    for solve, name, device in every:
        if only in name or name == EVERYTHING:
            click.echo(name, err=True)
            rows += [measured(solve, name, device, case, time_limit) for case in cases]
    write_csv([asdict(row) for row in rows], out / "ablation.csv")
    click.echo(table(rows))


if __name__ == "__main__":
    main()
