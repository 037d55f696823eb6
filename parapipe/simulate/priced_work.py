"""What a plan has to do for every frame, priced on every processor of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from parapipe.cost.co_run import Running
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.digits import plain
from parapipe.errors import SimulationError
from parapipe.files.mistakes import listed
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.launch_rules import graph_launches_s
from parapipe.plan.mapped import mapping_view, network_of, route_of
from parapipe.plan.program import Program, Task
from parapipe.plan.schema import Plan
from parapipe.platform.divided import variant_with
from parapipe.platform.platform import Platform
from parapipe.strategies.registry import PLAN
from parapipe.strategies.work import Order, Tensor, Work

LEAST_SLOTS = 2
NEAR = 0.005  # share by which frames may come sooner than a power budget allows, untold


@dataclass(frozen=True, slots=True)
class Costs:
    """A cost table, and where the plan's operators and processors stand in it.

    Parameters
    ----------
    place
        Index of each processor in the table, by its name.
    row
        Index of each operator, by its id.
    """

    table: CostTable
    place: Mapping[str, int]
    row: Mapping[str, int]


NOT_SPLIT: Mapping[int, Costs] = MappingProxyType({})


def frequencies_hz(plans: Iterable[Plan]) -> dict[str, float]:
    """Return the frequencies of the processors of some plans.

    Raises
    ------
    SimulationError
        If plans have a processor at different operating points.
    """
    frequency_of: dict[str, float] = {}
    for each in (processor for plan in plans for processor in plan.processors):
        hz = each.operating_point.frequency_hz
        if frequency_of.setdefault(each.name, hz) != hz:
            raise SimulationError(
                f"plans have '{each.name}' at {frequency_of[each.name] / 1e9:g} GHz and at "
                f"{hz / 1e9:g} GHz: simulate plans together that agree"
            )
    return frequency_of


def price_operators(
    plan: Plan, platform: Platform, points: Mapping[str, float] | None = None
) -> Costs:
    """Price a plan's operators on all of its processors, at the plan's operating points.

    Parameters
    ----------
    points
        Frequencies of other processors that may run them, too, by name; the plan's among them.

    Raises
    ------
    SimulationError
        If the platform lacks one of the processors, or its operating point.
    CostError
        If an operator cannot be priced.
    """
    wanted_hz = dict(points or frequencies_hz([plan]))
    divided = variant_with(platform, wanted_hz)
    available_hz = {
        each.name: [point.frequency_hz for point in each.operating_points]
        for each in divided.processors
    }
    lacking = [
        f"'{name}' at {hz / 1e9:g} GHz"
        for name, hz in wanted_hz.items()
        if hz not in available_hz.get(name, ())
    ]
    if lacking:
        raise SimulationError(
            f"platform '{platform.name}' lacks processors of the plan, or their operating points "
            f"({listed(lacking)}): give the platform that it was made for by `platform`"
        )
    at = divided.at([wanted_hz.get(p.name, p.point.frequency_hz) for p in divided.processors])
    graph = network_of(plan)
    table = build_cost_table(graph, at, precision=plan.precision)
    return Costs(
        table,
        {name: at.index(name) for name in wanted_hz},
        {each.id: v for v, each in enumerate(graph.operators)},
    )


def with_delays(plan: Plan) -> Plan:
    """Return a plan whose transfers take time and keep nothing busy, as strategies know them."""
    nothing = {"occupies": None, "start_s": None, "end_s": None}
    moved = (each.model_copy(update=nothing) for each in plan.transfers)
    return plan.model_copy(update={"transfers": tuple(moved)})


def simulation_notes(
    plan: Plan,
    target: Platform | None,
    strategy: str,
    period_s: float | None,
    *,
    contends: bool = False,
) -> Iterator[str]:
    """Yield what is to be known of a simulation that is priced on a platform, if it is.

    Parameters
    ----------
    period_s
        Seconds between frames in it; None if there was one frame only.
    """
    power = plan.predicted.power
    if power and period_s and period_s < power.period_s * (1 - NEAR):
        yield (
            f"frames end every {plain(period_s * 1e3)} ms, as the simulation does not keep to the "
            f"power budget of {plain(power.budget_w)} W: that allows one every "
            f"{plain(power.period_s * 1e3)} ms"
        )
    if target is not None and target.name != plan.platform:
        subject = "memory is that" if contends else "times elsewhere are those"
        origin = f"and the plan was made for '{plan.platform}'"
        yield f"the {subject} of platform '{target.name}', {origin}"
    if strategy != PLAN and any(each.occupies for each in plan.transfers):
        yield (
            f"with the strategy '{strategy}', transfers take time and keep nothing busy, other "
            "than in the plan: throughput may be lower"
        )


def work_of(
    plan: Plan,
    program: Program,
    costs: Costs,
    *,
    queue: int | None = None,
    batch: int = 1,
    sized: Mapping[int, Costs] = NOT_SPLIT,
    follows_plan: bool = False,
) -> Work:
    """Return what a plan has to do for every frame.

    What a processor of the plan takes for its own tasks is what the plan says. But if it captures
    graphs, each task is a graph of its own, which whoever decides at run time starts as a whole.

    Parameters
    ----------
    program
        The plan's tasks.
    follows_plan
        Whether graphs are those of the plan instead.
    queue
        Slots of channels between processors, in place of the plan's.
    batch, sized
        What a frame is, and prices by the size of micro-batches.
    """
    names = tuple(costs.place)
    number = {name: p for p, name in enumerate(names)}
    at = {operator: i for i, task in enumerate(program.tasks) for operator in task.operators}
    tensors, reads = _task_tensors(plan, at, costs, names)
    every = range(len(program.tasks))
    time_s = [[_task_time_s(program, i, name, costs) for name in names] for i in every]
    if not follows_plan:
        _start_tasks_alone(time_s, plan, program, names)
    return Work(
        processors=names,
        tasks=tuple(task.name for task in program.tasks),
        time_s=tuple(map(tuple, time_s)),
        tensors=tensors,
        reads=reads,
        room=tuple(_slots_between_tasks(program, tensors, reads, queue)),
        orders=tuple(
            Order(order, tuple(number[p] for p in program.processors(program.tasks[order[0]])))
            for order in program.graph.orders
        ),
        lag=program.graph.lag,
        first=frozenset(program.first),
        batch=batch,
        sized_s={
            size: tuple(
                tuple(
                    time_s[i][p] * _micro_batch_share(program.tasks[i], name, small, costs)
                    for p, name in enumerate(names)
                )
                for i in every
            )
            for size, small in sized.items()
        },
    )


def running_work(program: Program, work: Work, costs: Costs) -> tuple[tuple[Running, ...], ...]:
    """Return what each task is to a law of co-runs, on each processor of the work."""
    return tuple(
        tuple(
            Running(
                costs.table.wholes[costs.place[name]],
                sum(_moved_bytes(costs, operator, name) for operator in task.operators),
                time_s,
            )
            for name, time_s in zip(work.processors, times_s, strict=True)
        )
        for task, times_s in zip(program.tasks, work.time_s, strict=True)
    )


def _moved_bytes(costs: Costs, operator: str, processor: str) -> int:
    """Return what an operator moves on a processor; 0 where that cannot run it."""
    cost = costs.table.cost(costs.row[operator], costs.place[processor])
    return cost.moved_bytes if cost else 0


def _task_time_s(program: Program, i: int, processor: str, costs: Costs) -> float:
    task = program.tasks[i]
    if processor in program.processors(task):
        return program.graph.time_ps[i] / PICOSECONDS
    return _table_time_s(task, processor, costs)


def _table_time_s(task: Task, processor: str, costs: Costs) -> float:
    p, table = costs.place[processor], costs.table
    time_s = sum(table.time_s(costs.row[operator], p) for operator in task.operators)
    launches_s = table.graph_launch_s
    return time_s + (launches_s[p] or 0.0) if launches_s and time_s else time_s


def _start_tasks_alone(
    time_s: list[list[float]], plan: Plan, program: Program, names: Sequence[str]
) -> None:
    """Make each task a captured graph on its own processors, in place of the plan's graphs."""
    view = mapping_view(plan)
    launch_s = {each.name: each.graph_launch_s for each in plan.processors}
    begins_s = graph_launches_s(view)
    for i, task in enumerate(program.tasks):
        taken_s = sum(begins_s.get(operator, 0.0) for operator in task.operators)
        for name in program.processors(task):
            p = names.index(name)
            if (start_s := launch_s.get(name)) is not None and time_s[i][p]:
                time_s[i][p] += start_s - taken_s


def _micro_batch_share(task: Task, processor: str, small: Costs, batch: Costs) -> float:
    """Return what a micro-batch of a task takes, as a share of the batch."""
    batch_s = _table_time_s(task, processor, batch)
    return _table_time_s(task, processor, small) / batch_s if 0 < batch_s < inf else 1.0


def _task_tensors(
    plan: Plan, at: Mapping[str, int], costs: Costs, names: tuple[str, ...]
) -> tuple[tuple[Tensor, ...], tuple[tuple[int, ...], ...]]:
    """Return what goes from task to task, and what each task reads of it."""
    view = mapping_view(plan)
    planned_s = {route_of(each): each.time_s for each in plan.transfers}
    number_of: dict[str, int] = {}
    tensors: list[Tensor] = []
    reads: list[dict[int, None]] = [{} for _ in set(at.values())]
    for edge in view.edges:
        maker, reader = at[view.id(edge.made)], at[view.id(edge.read)]
        if maker == reader:
            continue
        if edge.tensor not in number_of:
            number_of[edge.tensor] = len(tensors)
            moved = costs.table.transfer_matrix(edge.tensor)
            table_s = {(p, q): moved[costs.place[p]][costs.place[q]] for p in names for q in names}
            rows = (
                tuple(planned_s.get((edge.tensor, p, q), table_s[p, q]) for q in names)
                for p in names
            )
            tensors.append(Tensor(maker, tuple(rows), plan.tensors[edge.tensor].shape))
        reads[reader][number_of[edge.tensor]] = None
    return tuple(tensors), tuple(map(tuple, reads))


def _slots_between_tasks(
    program: Program,
    tensors: tuple[Tensor, ...],
    reads: tuple[tuple[int, ...], ...],
    queue: int | None,
) -> Iterator[tuple[int, int, int]]:
    """Yield the plan's channels, and as many slots between others as the plan's orders need."""
    graph = program.graph
    yield from graph.channels
    crossing = {(u, v) for u, v, _ in graph.channels}
    turns = [len(program.processors(task)) for task in program.tasks]
    within = {(tensors[t].producer, v) for v, read in enumerate(reads) for t in read} - crossing
    for u, v in sorted(within):
        yield u, v, max(queue or LEAST_SLOTS, graph.lag[v] - graph.lag[u] + turns[v])
