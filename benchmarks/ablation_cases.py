"""The instances of `benchmarks.ablation`, in groups.

- `zoo`: of the mapping problems that searches for fronts of some models ask for, those of every
  `EACH`th that list schedules and longest paths do not close;
- `petr`: such a problem of `LARGE` or more operators that PETR on the A311D asks for;
- `registered`: every third of `mapping_registry`, real subgraphs and families up to 20 operators;
- `hard`: another seed of the three hard families;
- `loads`: a larger problem of the second of these families, which loads bound;
- `public`: flexible job shops in a folder, one file each in the format of Brandimarte (1993): jobs
  and machines, then for each job its operations, for each of these the number of machines and pairs
  of machine (from 0) and time. They are not part of this repository;
- `few`: those of them in which fewer than a quarter of the operations have a choice and that are
  of `LARGE` operations;
- `occupied`: problems of `zoo` and seeded ones, in which a transfer keeps its sender busy;
- `energy`: problems of `zoo` with the energies of their operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from pathlib import Path

import parapipe
from benchmarks.instances import decoder_like, inception_like, irregular, parallel_series
from benchmarks.mapping_registry import instances
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.problems.problems import requests
from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Energies

ZOO = ("googlenet", "inception-v4", "bert-base", "unet", "gpt:12")
PLATFORMS = ("amlogic-a311d", "bst-a1000")
EACH = 8
SEVERAL = 80  # of a zoo model's problems one is taken for `occupied` and for `energy`
LEAST = 6  # operators
LARGE = 100
HARD = ((decoder_like, 169, 16), (parallel_series, 36, 6), (irregular, 36, 6))
UNIT_S = 1e-6  # seconds that a unit of time of a public instance stands for


@dataclass(frozen=True, slots=True)
class Case:
    """A problem to be solved, with energies if a trade of time for energy is asked for."""

    group: str
    name: str
    problem: MappingProblem
    energy_j: Energies | None = None


def cases(public: Path | None) -> Iterator[Case]:
    """Yield the instances, in a fixed order."""
    for model, platform in product(ZOO, PLATFORMS):
        yield from _of_zoo(model, platform)
    every = [each for each in _asked("petr", PLATFORMS[0], LARGE) if needs_search(each[0])]
    yield Case("petr", "petr", every[len(every) // 2][0])
    registered = [instance for instance in instances() if "width" not in instance.name]
    for instance in registered[::3]:
        yield Case("registered", instance.name, instance.build())
    for family, operators, width in HARD:
        name = f"{family.__name__.replace('_', '-')} {operators} width {width} seed 1"
        yield Case("hard", name, family(operators, width, seed=1))
    yield Case("loads", "parallel-series 60 width 8 seed 1", parallel_series(60, 8, seed=1))
    for operators in (11, 14, 17):
        name = f"inception-like {operators}"
        yield Case("occupied", name, busy_senders(inception_like(operators)))
    for path in sorted(public.glob("*.txt")) if public else ():
        problem = flexible_job_shop(path.read_text(encoding="utf-8"))
        free = sum(sum(s < inf for s in row) > 1 for row in problem.time_s)
        few = free < problem.operators / 4 and problem.operators >= LARGE
        yield Case("few" if few else "public", path.stem, problem)


def _of_zoo(model: str, platform: str) -> Iterator[Case]:
    every = list(_asked(model, platform, LEAST))
    where = f"{model} {platform}"
    for number, (problem, _) in enumerate(every):
        if number % EACH == 0 and needs_search(problem):
            yield Case("zoo", f"{where} {number}", problem)
    for number, (problem, energy_j) in enumerate(every[::SEVERAL]):
        yield Case("energy", f"{where} {number}", problem, energy_j)
        yield Case("occupied", f"{where} {number}", busy_senders(problem))


def needs_search(problem: MappingProblem) -> bool:
    """Tell whether list schedules and longest paths leave a problem open."""
    return not fine(problem, time_limit_s=0, seed=0, deterministic=True).certificate.proven


def busy_senders(problem: MappingProblem) -> MappingProblem:
    """Return the problem with transfers that keep their sender busy."""
    everyone = range(problem.processors)
    resource = tuple(tuple(None if p == q else p for q in everyone) for p in everyone)
    return replace(problem, transfer_resource=resource)


def _asked(model: str, platform: str, least: int) -> Iterator[tuple[MappingProblem, Energies]]:
    """Yield the problems that a search for a model's front asks for, each once."""
    graph = parapipe.load_model(f"zoo:{model}", granularity="fused")
    costs = build_cost_table(graph, parapipe.load_platform(platform))
    seen: set[MappingProblem] = set()
    for request in requests(graph, partition(graph), costs):
        problem = request.problem
        if problem.operators >= least and problem not in seen:
            seen.add(problem)
            rows = zip(request.operators, problem.time_s, strict=True)
            energy_j = tuple(
                tuple(costs.energy_j(v, p) if s < inf else inf for p, s in enumerate(row))
                for v, row in rows
            )
            yield problem, energy_j


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
