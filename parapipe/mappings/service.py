"""What each of several models gets of a mapping of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.co_run_times import FrameSpans, co_run_times
from parapipe.mappings.evaluate import Evaluated
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
        The same while processors slow each other down; None if the platform does not say how much.
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
    mapping: Mapping, graph: OperatorGraph, evaluated: Evaluated
) -> list[tuple[tuple[float, ...], float]]:
    """Return when each model's frames come, in seconds after a pattern begins, and its latency.

    Where processors slow each other down, frames come as they would without that, and latency is
    what they take with it, if that is more.
    """
    frames, period_s = frames_in(graph), evaluated.period_s
    placed = [mapping.at[v] for v in range(len(frames.of))]
    start = [round((each.lag * period_s + each.start_s) * NANO) for each in placed]
    end = [round((each.lag * period_s + each.end_s) * NANO) for each in placed]
    of_models = frames.served(round(period_s * NANO), frames.spans(start, end))
    served = [(tuple(at / NANO for at in come), latency / NANO) for come, latency in of_models]
    if (effect := evaluated.co_run) is None:
        return served
    slowed_s = _slowed_latencies_s(effect.frames, frames, [come_s for come_s, _ in served])
    return [
        (come_s, max(latency_s, slow_s))
        for (come_s, latency_s), slow_s in zip(served, slowed_s, strict=True)
    ]


def _slowed_latencies_s(
    patterns: FrameSpans, frames: Frames, come_s: Sequence[Sequence[float]]
) -> list[float]:
    """Return the latency of each model, of the frame that takes longest of all that recur.

    A frame that is begun before it comes has come by then.
    """
    comes_s = [at for each in come_s for at in each]
    latencies_s = [0.0] * len(come_s)
    for number in range(patterns.frames):
        begin_s = number * patterns.period_s
        starts, ends = zip(
            *(patterns.spans_s[v][number] for v in range(len(frames.of))), strict=True
        )
        for frame, (start_s, end_s) in enumerate(frames.spans(starts, ends)):
            took_s = end_s - min(start_s, begin_s + comes_s[frame])
            model = frames.model[frame]
            latencies_s[model] = max(latencies_s[model], took_s)
    return latencies_s


def service_of(
    mapping: Mapping,
    evaluated: Evaluated,
    graph: OperatorGraph,
    costs: CostTable,
    *,
    bound_s: float,
) -> Service:
    """Return what each model gets of a mapping.

    Parameters
    ----------
    evaluated
        With what processors cost each other, if the costs know of that.
    bound_s
        No pattern takes less.
    """
    effect, law = evaluated.co_run, costs.co_run
    period_s, sustained_s = evaluated.period_s, evaluated.sustained_period_s
    if effect:
        period_s, sustained_s = effect.free_period_s, effect.free_sustained_period_s
    least_s = min(period_s, sustained_s)
    contended = None
    if law is not None and effect is not None:
        # The least period at which patterns can come, in which all models get as much more
        frames = co_run_times(mapping, graph, costs, law, least_period_s=least_s).frames
        contended = period_s / max(frames.period_s, least_s)
        if evaluated.period_s > period_s:
            contended = min(contended, period_s / evaluated.period_s)
    of_models = service_of_frames(mapping, graph, evaluated)
    return Service(
        come_s=tuple(come_s for come_s, _ in of_models),
        latency_s=tuple(latency_s for _, latency_s in of_models),
        rate_factor=period_s / least_s,
        contended_rate_factor=contended,
        bound=period_s / bound_s,
    )
