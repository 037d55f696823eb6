"""`python -m benchmarks.ablation`: which devices and constants of the exact mapper pay.

The problem is that of `mapping_time`: place operators on processors and order them so that the
makespan is least, with a proof. `fine` is CP-SAT with devices around it: bounds, heuristics,
constants; so are its relatives, the search where transfers occupy something and the trades of time
for energy. Each device costs code, so each has to show what it brings: it is replaced here, by
patching, with nothing or with the simplest thing that is still correct (`ablation_devices`); each
constant is halved, doubled or 0. Watched because what brings nothing is to be deleted.

The instances: `ablation_cases`. Two baselines stand beside the devices: the plain CP-SAT model of a
flexible job shop (optional intervals, none of the devices) and the paper's big-M programme,
`fine_milp`.

Measured is the processor time, and what CP-SAT did in its own measure of work, which no other
process changes. The limit counts that work (`deterministic`), so a busy machine changes no answer;
CBC alone stops by the clock, after `CBC` times that. One worker. Each cell is written to
`ablation.csv` as soon as it is measured, and cells that are there are not measured again.
`--part 0/2` measures every second device, so that two processes can share the work.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from benchmarks.ablation_cases import Case, cases
from benchmarks.ablation_devices import ENERGY, FEW, MAKESPAN, OCCUPIED, Device, devices
from benchmarks.mapping_time import cpu_s
from benchmarks.tables import markdown_table
from parapipe.reference_mappers.fine_milp import map as fine_milp
from parapipe.solvers.cp_sat import WORK, Budget, run_cp_sat
from parapipe.solvers.energy.trade_offs import trade_offs
from parapipe.solvers.fine import mapper
from parapipe.solvers.fine.integer_problem import integer_problem
from parapipe.solvers.problem import MICRO, MappingProblem
from parapipe.solvers.replay import order_by_start, replay

RESULTS = Path(__file__).parent / "results"
RESOLUTION = 0.025  # that `map` asks of the schedules of a unit
NEAR = 3e-4  # makespans that differ by less are equally long: what rounding to units leaves
LONG_S = 0.3
CBC = 4  # times the limit are CBC's by the clock, of which a busy machine leaves it a part
WHOLE = "nothing (the whole mapper)"
AGAIN = "nothing, measured again"
PLAIN = "plain CP-SAT"
BIG_M = "big-M programme"

Found = tuple[float, float, bool]  # objective and bound, and whether it is proven


@dataclass(frozen=True, slots=True)
class Row:
    """What became of an instance with one device switched off, or of a baseline.

    Parameters
    ----------
    cpu_s, whole_cpu_s
        Processor time, and that of the whole mapper on the same instance: measured right before,
        so that a busy machine slows both, unless that takes `LONG_S` or more.
    work_s
        CP-SAT's deterministic time.
    objective, bound
        Makespan and its bound in seconds; of `energy` the resolution reached and asked for.
    """

    device: str
    group: str
    instance: str
    cpu_s: float
    whole_cpu_s: float
    work_s: float
    objective: float
    bound: float
    proven: bool

    @property
    def gap(self) -> float:
        """Relative optimality gap: 0 if proven."""
        return 0.0 if self.proven else 1 - self.bound / self.objective


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
    outcome = run_cp_sat(model, most_s=time_limit_s / WORK)
    solver, bound_s = outcome.solver, outcome.bound / MICRO
    if not outcome.found:
        return inf, bound_s, False
    processor = [
        next(p for p in row if solver.value(on[v, p])) for v, row in enumerate(whole.choices)
    ]
    order = order_by_start([solver.value(s) for s in start], [solver.value(e) for e in end])
    return replay(problem, processor, order).makespan_s, bound_s, outcome.optimal


def big_m(problem: MappingProblem, time_limit_s: float) -> Found:
    """Solve the paper's programme; CBC stops by the clock."""
    found = fine_milp(problem, time_limit_s=time_limit_s, seed=0)
    return found.makespan_s, found.certificate.bound_s, found.certificate.proven


def exact(case: Case, time_limit_s: float) -> Found:
    """Solve by the exact mapper, or trade time for energy, with what is patched."""
    found = mapper.map(case.problem, time_limit_s=time_limit_s, seed=0, deterministic=True)
    if case.energy_j is None:
        return found.makespan_s, found.certificate.bound_s, found.certificate.proven
    reached = trade_offs(
        case.problem,
        case.energy_j,
        found,
        resolution=RESOLUTION,
        time_limit_s=time_limit_s,
        seed=0,
        deterministic=True,
    ).resolution
    # what is asked for holds in units; exact times may exceed it by less than `NEAR`
    reached = max(reached - NEAR, RESOLUTION)
    return reached, RESOLUTION, reached == RESOLUTION


def measured(device: Device, case: Case, time_limit_s: float) -> Row:
    """Solve an instance without a device, or by a baseline."""
    work_s = 0.0

    def work(budget: Budget, deterministic_s: float) -> None:
        nonlocal work_s
        work_s += deterministic_s / WORK
        budget._worked_s += deterministic_s

    with ExitStack() as stack:
        stack.enter_context(patch.object(Budget, "work", work))
        for owner, name, replacement in device.patches:
            stack.enter_context(patch.object(owner, name, replacement))
        began_s = cpu_s()
        if device.name in (PLAIN, BIG_M):
            solve = plain_cp_sat if device.name == PLAIN else big_m
            limit_s = time_limit_s if device.name == PLAIN else CBC * time_limit_s
            objective, bound, proven = solve(case.problem, limit_s)
        else:
            objective, bound, proven = exact(case, time_limit_s)
        taken_s = cpu_s() - began_s
    return Row(
        device.name, case.group, case.name, taken_s, taken_s, work_s, objective, bound, proven
    )


def table(rows: Sequence[Row], groups: Sequence[str]) -> str:
    """Return a line for each device: what it changes in each group, against `WHOLE`."""
    whole = {(row.group, row.instance): row for row in rows if row.device == WHOLE}
    lines = []
    for device in dict.fromkeys(row.device for row in rows):
        some = [row for row in rows if row.device == device]
        if device == WHOLE or any(row.group in groups for row in some):
            found = [[row for row in some if row.group == group] for group in groups]
            lines.append([device, *(_compared(each, whole) for each in found)])
    return markdown_table(["switched off", *groups], lines)


def _compared(some: Sequence[Row], whole: dict[tuple[str, str], Row]) -> str:
    """Return times and work as shares, longer / shorter, open, and the sum of gaps."""
    if not some:
        return "-"
    pairs = [(row, whole[row.group, row.instance]) for row in some]
    time = sum(row.cpu_s for row in some) / sum(row.whole_cpu_s for row in some)
    worked_s = sum(base.work_s for _, base in pairs)
    work = f"{sum(row.work_s for row in some) / worked_s:.2f}" if worked_s else "0"
    longer = sum(row.objective > base.objective * (1 + NEAR) for row, base in pairs)
    shorter = sum(row.objective < base.objective * (1 - NEAR) for row, base in pairs)
    still_open = sum(not row.proven for row in some)
    gap = sum(row.gap for row in some)
    return f"{time:.2f}, {work}, {longer} / {shorter}, {still_open}, {gap:.3f}"


def kept(path: Path) -> list[Row]:
    """Read the cells that are measured already."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                record["device"],
                record["group"],
                record["instance"],
                float(record["cpu_s"]),
                float(record["whole_cpu_s"]),
                float(record["work_s"]),
                float(record["objective"]),
                float(record["bound"]),
                record["proven"] == "True",
            )
            for record in csv.DictReader(file)
        ]


def keep(row: Row, path: Path) -> None:
    """Write a cell behind the others."""
    record = asdict(row)
    record |= {name: f"{value:.6g}" for name, value in record.items() if type(value) is float}
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(record), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(record)


@click.command()
@click.option("--public", type=click.Path(path_type=Path, exists=True), help="Folder of job shops.")
@click.option("--time-limit", default=1.5, show_default=True, help="Seconds for one solve.")
@click.option("--only", default="", help="Devices whose name holds this text.")
@click.option("--group", default="", help="Only this group of instances.")
@click.option("--part", default="0/1", show_default=True, help="Which of how many parts.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
def main(
    *, public: Path | None, time_limit: float, only: str, group: str, part: str, out: Path
) -> None:
    """Switch off one device of the exact mapper after the other."""
    chosen = [case for case in cases(public) if group in case.group]
    path = out / "ablation.csv"
    known = {(row.device, row.group, row.instance): row for row in kept(path)}
    makespan = (*MAKESPAN, "loads", *FEW)
    whole = Device(WHOLE, (*makespan, *OCCUPIED, *ENERGY), [])
    measured(whole, chosen[0], time_limit)  # loads the solver
    for case in chosen:
        if (WHOLE, case.group, case.name) not in known:
            row = known[WHOLE, case.group, case.name] = measured(whole, case, time_limit)
            keep(row, path)
    every = [replace(whole, name=AGAIN), *devices()]
    every += [Device(PLAIN, makespan, []), Device(BIG_M, makespan, [])]
    number, parts = map(int, part.split("/"))
    for device in [each for each in every if only in each.name][number::parts]:
        click.echo(device.name, err=True)
        for case in chosen:
            if case.group in device.groups and (device.name, case.group, case.name) not in known:
                base = known[WHOLE, case.group, case.name]
                if base.cpu_s < LONG_S:
                    base = measured(whole, case, time_limit)
                row = measured(device, case, time_limit)
                keep(replace(row, whole_cpu_s=base.cpu_s), path)
    rows = kept(path)
    for groups in ((*MAKESPAN, "loads", "few"), (*OCCUPIED, *ENERGY)):
        click.echo(table(rows, groups) + "\n")


if __name__ == "__main__":
    main()
