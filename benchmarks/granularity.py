"""`python -m benchmarks.granularity [MODEL]`: what whole branches, single operators and both give.

For each set of two or more processors of the Amlogic A311D, the least latency of the model as one
stage: units u = 1 … U in order, each with a schedule that starts when all its tensors have arrived,

    min Σ_u makespan(u, P_u, locations before u, locations behind u),   P_u ⊆ P, locations meeting,

where the makespan is that of the mapper's schedule. It is found for `coarse`, `fine` and `auto`,
once without and once with the synchronisation overhead of each hand-over. The last column takes
the fine schedules that were made without overhead and replays them with it, as the board would
run plans that do not know of it.

Watched because the paper's fine plans beat its coarse ones on the board by 3.35 % on the two CPU
clusters, and lost 21.7 % (big and GPU) or 4.7 % (with little) to synchronisation.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.partition import partition
from parapipe.platform.platform import Platform
from parapipe.problems.problems import Request, requests
from parapipe.problems.time_energy import Locations
from parapipe.solvers.registry import mapper
from parapipe.solvers.replay import replay
from parapipe.solvers.schedule import Schedule

PLATFORM = "amlogic-a311d-2024"  # of the paper's networks
MAPPERS = ("coarse", "fine", "auto")
LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of one set of processors.

    Parameters
    ----------
    without_ms, with_ms
        By mapper, without and with synchronisation.
    unaware_ms
        Fine schedules made without synchronisation, replayed with it.
    """

    processors: str
    without_ms: tuple[float, ...]
    with_ms: tuple[float, ...]
    unaware_ms: float


def rows(model: str, sets: Iterable[Collection[str]] | None = None) -> list[Row]:
    """Measure the sets of processors that are named, or all of two or more."""
    platform = parapipe.load_platform(PLATFORM)
    free, dear = (_asked(model, each) for each in (_without_overhead(platform), platform))
    names = [processor.name for processor in platform.processors]
    if sets is None:
        sets = [c for size in range(2, len(names) + 1) for c in combinations(names, size)]
    return [_row(free, dear, [names.index(name) for name in each], names) for each in sets]


def _without_overhead(platform: Platform) -> Platform:
    links = [link.model_copy(update={"synchronisation": None}) for link in platform.links]
    return platform.model_copy(update={"links": tuple(links)})


def _asked(model: str, platform: Platform) -> list[Request]:
    graph = parapipe.load_model(model)
    return list(requests(graph, partition(graph), build_cost_table(graph, platform)))


def _row(
    free: Sequence[Request], dear: Sequence[Request], inside: Collection[int], names: Sequence[str]
) -> Row:
    """Map the requests that stay inside a set of processors; both lists are in the same order."""
    kept = [i for i, request in enumerate(free) if _within(request, inside)]
    free, dear = ([each[i] for i in kept] for each in (free, dear))
    without, aware = ([_schedules(name, each) for name in MAPPERS] for each in (free, dear))
    way = _shortest(free, [schedule.makespan_s for schedule in without[1]])
    return Row(
        "+".join(names[p] for p in inside),
        tuple(_latency_ms(free, schedules) for schedules in without),
        tuple(_latency_ms(dear, schedules) for schedules in aware),
        1e3 * sum(_replayed_s(dear[i], without[1][i]) for i in way),
    )


def _within(request: Request, inside: Collection[int]) -> bool:
    locations = {
        p for location in (*request.locations_in, *request.locations_out) for p in location
    }
    allowed = {p for row in request.problem.time_s for p, s in enumerate(row) if s < float("inf")}
    return locations | allowed <= set(inside)


def _schedules(name: str, asked: Sequence[Request]) -> list[Schedule]:
    solve = mapper(name)
    known = {
        problem: solve(problem, time_limit_s=LIMIT_S, seed=0)
        for problem in dict.fromkeys(request.problem for request in asked)
    }
    return [known[request.problem] for request in asked]


def _latency_ms(asked: Sequence[Request], schedules: Sequence[Schedule]) -> float:
    times_s = [schedule.makespan_s for schedule in schedules]
    return 1e3 * sum(times_s[i] for i in _shortest(asked, times_s))


def _shortest(asked: Sequence[Request], times_s: Sequence[float]) -> list[int]:
    """Return requests that make up the network in the least time, by index."""
    units = max(request.end for request in asked)
    best: list[dict[Locations, tuple[float, list[int]]]] = [{} for _ in range(units + 1)]
    best[0][()] = (0.0, [])
    for i, request in sorted(enumerate(asked), key=lambda entry: entry[1].begin):
        if request.locations_in not in best[request.begin]:
            continue
        before_s, way = best[request.begin][request.locations_in]
        end_s = before_s + times_s[i]
        behind = best[request.end]
        if request.locations_out not in behind or end_s < behind[request.locations_out][0]:
            behind[request.locations_out] = (end_s, [*way, i])
    return min(best[-1].values())[1]


def _replayed_s(request: Request, schedule: Schedule) -> float:
    """Seconds of a schedule's placement and order in another problem's times."""
    order = sorted(
        range(len(schedule.start_s)), key=lambda v: (schedule.start_s[v], schedule.end_s[v], v)
    )
    return replay(request.problem, schedule.processor, order).makespan_s


def main() -> None:
    """Print the table in Markdown."""
    model = sys.argv[1] if len(sys.argv) > 1 else "zoo:googlenet"
    print(table(rows(model)))


def table(found: Iterable[Row]) -> str:
    """Write rows as a Markdown table."""
    columns = " coarse | fine | auto | fine better by |"
    lines = [
        f"| processors |{columns * 2} fine, unaware | longer by |",
        "|---|" + "---:|" * 10,
        "| | *without* | | | | *with overhead* | | | | | |",
    ]
    return "\n".join([*lines, *map(line, found)])


def line(row: Row) -> str:
    """Write a row in Markdown: milliseconds and percents."""
    cells = [row.processors]
    for times_ms in (row.without_ms, row.with_ms):
        cells += [f"{ms:.2f}" for ms in times_ms]
        cells.append(f"{100 * (1 - times_ms[1] / times_ms[0]):.2f} %")
    cells.append(f"{row.unaware_ms:.2f}")
    cells.append(f"{100 * (row.unaware_ms / row.without_ms[1] - 1):.1f} %")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
