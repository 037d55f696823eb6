"""What each of several models gets of a mapping of all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.evaluate import Evaluated, moved_bytes
from parapipe.mappings.mapping import Mapping
from parapipe.modulo.cyclic_problem import Frames
from parapipe.solvers.problem import NANO


@dataclass(frozen=True, slots=True)
class Service:
    """What each model gets, at the rates that are asked.

    Parameters
    ----------
    come_s
        Of each model: when its frames come, in seconds after a pattern begins; the frames of a
        model come in equal steps.
    latency_s
        Of each model: from when a frame comes to its last end, of the one that takes longest.
    rate_factor
        By how much all rates could grow together, at most: the order of work stays.
    contended_rate_factor
        The same while processors slow each other down at the memory; None if the platform does not
        say how much.
    bound
        No mapping has a greater factor: by loads.
    """

    come_s: tuple[tuple[float, ...], ...]
    latency_s: tuple[float, ...]
    rate_factor: float
    contended_rate_factor: float | None
    bound: float

    @property
    def effective_factor(self) -> float:
        """The factor that counts, with contention if it is known."""
        contended = self.contended_rate_factor
        return self.rate_factor if contended is None else min(contended, self.rate_factor)


def frames_in(graph: OperatorGraph) -> Frames:
    """Return which frame each operator of several models is of."""
    members = graph.source.members
    sizes = tuple(sum(v.id.startswith(each.prefix(0)) for v in graph.operators) for each in members)
    counts = tuple(each.frames for each in members)
    return Frames(sizes, counts, (1.0,) * len(members))


def with_all_loaded(
    evaluated: Evaluated, mapping: Mapping, graph: OperatorGraph, costs: CostTable
) -> Evaluated:
    """Return figures in which every frame of a pattern is loaded and every result read."""
    input_s = output_s = 0.0
    for member in graph.source.members:
        for prefix in map(member.prefix, range(member.frames)):
            names = (name for name in graph.inputs if name.startswith(prefix))
            readers = [v for name in names for v in graph.consumers.get(name, ())]
            if readers:
                input_s += costs.input_s(mapping.at[min(readers)].processor)
            producers = [graph.producer[name] for name in graph.outputs if name.startswith(prefix)]
            output_s += costs.output_s(mapping.at[producers[-1]].processor)
    return replace(evaluated, input_s=input_s, output_s=output_s)


def service_of_frames(
    mapping: Mapping, graph: OperatorGraph, period_s: float
) -> list[tuple[tuple[float, ...], float]]:
    """Return when each model's frames come, in seconds after a pattern begins, and its latency."""
    frames = frames_in(graph)
    placed = [mapping.at[v] for v in range(len(frames.of))]
    start = [round((each.lag * period_s + each.start_s) * NANO) for each in placed]
    end = [round((each.lag * period_s + each.end_s) * NANO) for each in placed]
    of_models = frames.served(round(period_s * NANO), frames.spans(start, end))
    return [(tuple(at / NANO for at in come), latency / NANO) for come, latency in of_models]


def service_of(
    mapping: Mapping,
    evaluated: Evaluated,
    graph: OperatorGraph,
    costs: CostTable,
    *,
    contention: float,
    bound_s: float,
) -> Service:
    """Return what each model gets of a mapping.

    Parameters
    ----------
    contention
        Lengthening of work per byte a second that other processors move; 0 if it is not known.
    bound_s
        No pattern takes less.
    """
    period_s = evaluated.period_s
    of_models = service_of_frames(mapping, graph, period_s)
    least_s = min(period_s, evaluated.sustained_period_s)
    return Service(
        come_s=tuple(come_s for come_s, _ in of_models),
        latency_s=tuple(latency_s for _, latency_s in of_models),
        rate_factor=period_s / least_s,
        contended_rate_factor=period_s
        / max(least_s, _contended_period_s(mapping, costs, contention))
        if contention
        else None,
        bound=period_s / bound_s,
    )


def _contended_period_s(mapping: Mapping, costs: CostTable, contention: float) -> float:
    """Return the least period while processors use the memory together.

    A processor with load L beside others that move B bytes in a pattern works L (1 + c B / T) of
    the period T; the least T is the largest solution of T = L (1 + c B / T).
    """
    load_s: dict[int, float] = {}
    moved: dict[int, float] = {}
    for at in mapping.placements:
        load_s[at.processor] = load_s.get(at.processor, 0.0) + at.end_s - at.start_s
        moved[at.processor] = moved.get(at.processor, 0.0) + moved_bytes(at, costs)
    total = sum(moved.values())
    return max(
        (load + sqrt(load**2 + 4 * load * contention * (total - moved[p]))) / 2
        for p, load in load_s.items()
    )
