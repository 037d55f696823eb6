"""`python -m benchmarks.mapping_time`: the exact mapper against the literal integer programme.

Given operators v, processors p, times w_vp, and for each edge uv times c_uv,pq from p to q, find
for each v a processor p_v and a start s_v so that

    C = max_v (s_v + w_v,p_v) is least,
    s_v ≥ s_u + w_u,p_u + c_uv,p_u,p_v on each edge, and
    operators on one processor do not overlap.

V operators on P processors have up to P^V placements, each with as many orders as the graph leaves
open; job-shop scheduling is a special case, so the problem is strongly NP-hard. The Para-Pipe paper
states it as equations (3) to (7), with big-M rows for each unordered pair on each processor, and
reports minutes for an Inception and hours for its largest network. Watched because to be exact and
fast is what this package is for.

Measured in wall time, and in processor time as well, which other processes on the machine change
less, for each instance of `mapping_registry`, one after the other in one process, or in
`--jobs` processes side by side:

- `fine`: the whole call, proof and verification included; the median of three runs, or a single run
  if that takes more than 10 s. Nothing is kept from one run to the next, and libraries are loaded
  before the first.
- `fine_milp`: the whole call, once, by CBC with its cuts off, as the mapper runs it: with them it
  has taken schedules for optimal that are not.
- the same programme by CBC as it comes, cuts on: once, model and solver, where `fine_milp` closes
  it. An "optimum" that is longer than a schedule at hand is told as false.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter, process_time

import click

from benchmarks.instances import inception_like
from benchmarks.machine import description, load
from benchmarks.mapping_registry import Instance, instances
from benchmarks.mapping_time_report import Row, write_report
from parapipe.reference_mappers.fine_milp import big_m_model
from parapipe.reference_mappers.fine_milp import map as fine_milp
from parapipe.solvers.cbc import run_cbc
from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.problem import MICRO, MappingProblem, rounded_down
from parapipe.solvers.replay import order_by_start, replay
from parapipe.solvers.schedule import Schedule

RESULTS = Path(__file__).parent / "results"
RUNS = 3
LONG_S = 10.0
LIMIT_S = 60.0
QUICK_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class WithCuts:
    """What CBC as it comes says of the literal programme.

    Parameters
    ----------
    objective_us
        Of the best schedule it found, if any.
    claimed
        Whether it holds that for optimal.
    """

    wall_s: float
    objective_us: float | None
    claimed: bool


def measured(instance: Instance, *, time_limit_s: float, cuts: bool) -> Row:
    """Solve an instance by `fine` and by the literal programme."""
    problem = instance.build()
    exact, fine_s, fine_cpu_s = _fine(problem, time_limit_s)
    began_s, began_cpu_s = perf_counter(), cpu_s()
    literal = fine_milp(problem, time_limit_s=time_limit_s, seed=0)
    milp_s, milp_cpu_s = perf_counter() - began_s, cpu_s() - began_cpu_s
    compared = cuts and literal.certificate.proven
    default = with_cuts(problem, time_limit_s=time_limit_s) if compared else None
    claimed_us = default.objective_us if default and default.claimed else None
    least_us = min(rounded_us(problem, schedule) for schedule in (exact, literal))
    return Row(
        instance=instance.name,
        operators=problem.operators,
        processors=problem.processors,
        fine_s=fine_s,
        fine_cpu_s=fine_cpu_s,
        fine_makespan_s=exact.makespan_s,
        fine_gap=exact.certificate.gap,
        fine_proven=exact.certificate.proven,
        milp_s=milp_s,
        milp_cpu_s=milp_cpu_s,
        milp_makespan_s=literal.makespan_s,
        milp_gap=literal.certificate.gap,
        milp_proven=literal.certificate.proven,
        cuts_s=default.wall_s if default else None,
        cuts_claims=default.claimed if default else None,
        cuts_excess=claimed_us / least_us - 1 if claimed_us and least_us else None,
    )


def with_cuts(problem: MappingProblem, *, time_limit_s: float) -> WithCuts:
    """Run CBC with its default options on equations (3) to (7)."""
    began_s = perf_counter()
    written = big_m_model(rounded_down(problem), deadline_s=began_s + time_limit_s)
    if written is None:
        return WithCuts(perf_counter() - began_s, None, False)
    model, _ = written
    left_s = max(began_s + time_limit_s - perf_counter(), 1.0)
    answer = run_cbc(model, time_limit_s=left_s, seed=0)
    objective_us = model.objective.value() if answer.found else None
    return WithCuts(perf_counter() - began_s, objective_us, answer.optimal)


def rounded_us(problem: MappingProblem, schedule: Schedule) -> float:
    """Return the makespan of a schedule in times that are rounded down to microseconds."""
    order = order_by_start(schedule.start_s, schedule.end_s)
    return replay(rounded_down(problem), schedule.processor, order).makespan_s * MICRO


def cpu_s() -> float:
    """Return the processor's seconds that this process and what it has run and ended took."""
    ended = getrusage(RUSAGE_CHILDREN)
    return process_time() + ended.ru_utime + ended.ru_stime


def _fine(problem: MappingProblem, time_limit_s: float) -> tuple[Schedule, float, float]:
    walls_s: list[float] = []
    cpus_s: list[float] = []
    while True:
        began_s, began_cpu_s = perf_counter(), cpu_s()
        schedule = fine(problem, time_limit_s=time_limit_s, seed=0)
        walls_s.append(perf_counter() - began_s)
        cpus_s.append(cpu_s() - began_cpu_s)
        if walls_s[0] > LONG_S or len(walls_s) == RUNS:
            return schedule, median(walls_s), median(cpus_s)


def measure_all(
    chosen: Sequence[Instance], *, time_limit_s: float, cuts: bool, jobs: int, out: Path | None
) -> list[Row]:
    """Measure instances, so many at a time, each in one process; write what is known after each."""
    machine = description() | {"instances at a time": str(jobs)}
    rows: dict[str, Row] = {}
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=warm_up) as processes:
        futures = [
            processes.submit(measured, each, time_limit_s=time_limit_s, cuts=cuts)
            for each in chosen
        ]
        for future in as_completed(futures):
            row = future.result()
            rows[row.instance] = row
            click.echo(f"{len(rows)}/{len(chosen)} {row.told}", err=True)
            if out:
                machine["load when ended"] = load()
                ordered = [rows[each.name] for each in chosen if each.name in rows]
                write_report(ordered, machine, time_limit_s, out)
    return [rows[each.name] for each in chosen]


def warm_up() -> None:
    """Load the solvers, so that nobody waits for that while time is taken."""
    problem = inception_like(8)
    for mapper in (fine, fine_milp):
        mapper(problem, time_limit_s=5.0, seed=0)


@click.command()
@click.option("--quick", is_flag=True, help="A few small instances, to see that it runs.")
@click.option("--time-limit", default=LIMIT_S, show_default=True, help="Seconds for one solve.")
@click.option("--no-cuts", is_flag=True, help="Leave CBC with its cuts out.")
@click.option("--jobs", default=1, show_default=True, help="Instances at a time.")
@click.option("--only", default="", help="Instances whose name holds this text.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of mapping_time.csv and .md; none when quick.  [default: benchmarks/results]",
)
def main(
    *, quick: bool, time_limit: float, no_cuts: bool, jobs: int, only: str, out: Path | None
) -> None:
    """Measure the exact mapper against the literal integer programme."""
    chosen = [instance for instance in instances(quick=quick) if only in instance.name]
    if not chosen:
        raise click.UsageError(f"no instance has '{only}' in its name")
    limit_s = min(time_limit, QUICK_LIMIT_S) if quick else time_limit
    folder = out or (None if quick else RESULTS)
    measure_all(chosen, time_limit_s=limit_s, cuts=not no_cuts, jobs=jobs, out=folder)


if __name__ == "__main__":
    main()
