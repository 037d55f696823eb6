"""Memory and doubt of a configuration in sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.documents.explanation_schema import DoubtRow, ExplanationDocument, ReasonRow
from parapipe.documents.front_records import MemoryRow, Options
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.documents.shown import ShownFigure, shown_figure
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.memory import AliveRow
from parapipe.plan.mapped import mapping_view
from parapipe.plan.records import Arena
from parapipe.plan.schema import Plan
from parapipe.uncertainty.causes import HAND_OVERS, Draws, uncertain_costs
from parapipe.uncertainty.contributions import Doubt

LARGEST = 4  # tensors that are named
ROUNDING = 1e-9  # share of a period


def memory_texts(row: ConfigurationRow, plan: Plan) -> Iterator[str]:
    """Yield a sentence for each memory, and one for all if there are several."""
    if row.peak_memory_bytes is not None and len(row.memories) > 1:
        yield f"It needs at most {_mb(row.peak_memory_bytes)} at one moment in all memories."
    for each in row.memories:
        yield _memory_text(each, running_operators(plan, each.at_s))
    if plan.memory is not None:
        yield from (_arena_text(arena, plan) for arena in plan.memory.arenas if arena.size_bytes)


def segment_texts(row: ConfigurationRow) -> Iterator[str]:
    """Yield how many segments there are and how long they load, where the front states it."""
    if row.most_segments is None:
        return
    counts = [f"{each.name} {each.segments}" for each in row.processors]
    total = sum(each.segments or 0 for each in row.processors)
    files = "segment, one file" if total == 1 else f"segments, {total} files"
    loading = "" if row.load_s is None else f"; to load them takes {plain(row.load_s * 1e3)} ms"
    yield f"It has {total} {files} when exported ({', '.join(counts)}){loading}."


def running_operators(plan: Plan, at_s: float) -> list[str]:
    """Return the ids of the operators that run at a moment of the period."""
    view, period_s = mapping_view(plan), plan.predicted.period_s
    late_s = period_s * ROUNDING

    def runs(start_s: float, end_s: float) -> bool:
        since_s = (at_s - start_s + late_s) % period_s
        return since_s < end_s - start_s - late_s

    return [name for name, at in view.placements.items() if runs(at.start_s, at.end_s)]


def _memory_text(memory: MemoryRow, operators: list[str]) -> str:
    activations_bytes = memory.peak_bytes - memory.constant_bytes
    beginning = (
        f"Memory ({memory.name}): at most {_mb(memory.peak_bytes)}, of which "
        f"{_mb(memory.weights_bytes)} are weights"
    )
    if memory.segments_bytes:
        beginning += f" and {_mb(memory.segments_bytes)} what segments take by themselves"
    if not memory.alive:
        return f"{beginning}."
    largest = ", ".join(map(_tensor_text, memory.alive[:LARGEST]))
    hidden = len(memory.alive) - LARGEST
    others = f" and {hidden} more" if hidden > 0 else ""
    verb = "runs" if len(operators) == 1 else "run"
    during = f", while {listed(operators)} {verb}" if operators else ""
    return (
        f"{beginning}. The other {_mb(activations_bytes)} are in use {plain(memory.at_s * 1e3)} ms "
        f"after the start of the period{during}: {largest}{others}."
    )


def _arena_text(arena: Arena, plan: Plan) -> str:
    """Say how large an arena is, beside what it takes at least, and how much is shared in it."""
    here = [each for each in plan.buffers if each.processors[0] in arena.processors]
    over, within = (
        sum(getattr(each, kind) is not None for each in here) for kind in ("over", "within")
    )
    above = arena.size_bytes / max(1, arena.bound_bytes) - 1
    best = "no arena is smaller" if arena.proven else f"{above:.1%} above its bound"
    return (
        f"The plan's {len(here)} buffers in this memory lie in an arena of "
        f"{_mb(arena.size_bytes)} ({best}); {over} of them replace an input of their operator, and "
        f"{within} are parts of other buffers."
    )


def _tensor_text(row: AliveRow) -> str:
    what = {"tensor": "", "copy": "copy of ", "queue": "queue of "}[row.content]
    many = f" ({row.frames} frames)" if row.frames > 1 else ""
    return f"{what}{row.name} {_mb(row.size_bytes)}{many}"


def _mb(size_bytes: float) -> str:
    return f"{plain(size_bytes / 1e6)} MB"


MOST_PROPOSED = 3  # operators that are proposed
LEAST_NARROWING = 0.05  # share by which measuring them has to narrow an interval
MOST_CAUSES = 3  # causes that are named
NOTEWORTHY = 0.005  # share of the variance
FIGURES = (("latency_s", "Latency"), ("period_s", "The period"))


def with_doubt(
    document: ExplanationDocument,
    row: ConfigurationRow,
    plan: Plan,
    *,
    graph: OperatorGraph,
    costs: CostTable,
    options: Options,
) -> ExplanationDocument:
    """Return an explanation with where the doubt comes from; as it is if nothing was drawn.

    Parameters
    ----------
    options
        Of the front.
    """
    if row.intervals is None or not options.draws:
        return document
    doubt = doubt_of(plan, graph, costs, options)
    texts = (ReasonRow(about="doubt", text=text) for text in doubt_texts(row, doubt, graph, costs))
    fields = {"reasons": (*document.reasons, *texts), "doubt": doubt_rows(doubt)}
    return document.model_copy(update=fields)


def doubt_of(plan: Plan, graph: OperatorGraph, costs: CostTable, options: Options) -> Doubt:
    """Return a plan as a mapping with uncertain costs."""
    view = mapping_view(plan)
    links = iter(range(len(costs.processors), len(costs.processors) + len(view.resources)))
    place = {name: p for p, name in enumerate(costs.processors)}
    mapping = view.mapping.renumbered(
        [graph.producer[operator.id] for operator in plan.operators],
        [place[name] if name in place else next(links) for name in view.resources],
    )
    names = [operator.id for operator in graph.operators]
    return Doubt(
        mapping,
        uncertain_costs(mapping, costs, names),
        Draws(options.draws, options.seed),
        plan.predicted.latency_s,
        plan.predicted.period_s,
    )


def doubt_rows(doubt: Doubt) -> tuple[DoubtRow, ...]:
    """Return what each cause brings, those left out that bring next to nothing."""
    rows = [
        DoubtRow(cause=cause, latency=latency, period=period, energy=energy)
        for cause, (latency, period, energy) in zip(
            doubt.costs.causes, doubt.shares.tolist(), strict=True
        )
        if max(latency, period, energy) >= NOTEWORTHY
    ]
    return tuple(sorted(rows, key=lambda row: (-row.latency, -row.period, row.cause)))


def doubt_texts(
    row: ConfigurationRow, doubt: Doubt, graph: OperatorGraph, costs: CostTable
) -> Iterator[str]:
    """Yield for latency and period what their intervals are and come from."""
    assert row.intervals is not None
    count = 1 if row.intervals.latency_s == row.intervals.period_s else len(FIGURES)
    for figure, (key, what) in enumerate(FIGURES[:count]):
        parts = (f"{share:.0%} comes from {name}" for name, share in largest_sources(doubt, figure))
        low, high = (end * 1e3 for end in getattr(row.intervals, key))
        shown = shown_figure(row.model_dump(include={key, "intervals", "medians"}), key)
        skewed = shown is not None and not shown.even
        middle = f", with a median of {plain(shown.median * 1e3)} ms" if shown and skewed else ""
        beside = (
            f" The stated costs give {plain(getattr(row, key) * 1e3)} ms, which is outside: the "
            "slowest of several loads counts, and in most draws one is slower than stated."
            if shown and not shown.inside
            else ""
        )
        yield (
            f"{what} is {plain(low)} to {plain(high)} ms in nine of ten draws of the costs{middle}."
            f"{beside} Of this doubt, {', '.join(parts)}. "
            f"{_measurement_advice(doubt, figure, graph, costs)}"
        )


def largest_sources(doubt: Doubt, figure: int) -> Iterator[tuple[str, float]]:
    """Yield what most of the doubt in a figure comes from, with its share, largest first.

    What single operators of a processor bring goes together.

    Parameters
    ----------
    figure
        0 for latency, 1 for period, 2 for energy.
    """
    shares: dict[str, float] = defaultdict(float)
    own = {*doubt.costs.operator.tolist()}
    brought = zip(doubt.costs.causes, doubt.shares[:, figure].tolist(), strict=True)
    for i, (cause, share) in enumerate(brought):
        on = cause.rpartition(" on ")[2]
        shares[f"single operators on {on}" if i in own else f"the {cause}"] += share
    for name in sorted(shares, key=lambda name: -shares[name])[:MOST_CAUSES]:
        if shares[name] >= NOTEWORTHY:
            yield name, shares[name]


def _measurement_advice(doubt: Doubt, figure: int, graph: OperatorGraph, costs: CostTable) -> str:
    """Say which operators to measure first, and what that brings."""
    operators = doubt.most_useful(figure, MOST_PROPOSED)
    before = doubt.ends(figure)
    after = doubt.measured(operators).ends(figure) if operators else before
    if after[2] - after[0] > (before[2] - before[0]) * (1 - LEAST_NARROWING):
        of_links = doubt.shares[doubt.costs.causes.index(HAND_OVERS), figure]
        return (
            "Measuring the links would take away most of it."
            if of_links > 0.5
            else "Measuring a few operators would hardly narrow it."
        )
    at = doubt.mapping.at
    names = ", ".join(
        f"{graph.operators[v].name or graph.operators[v].id} on {costs.processors[at[v].processor]}"
        for v in operators
    )
    return f"Measuring {names} would narrow it {_narrowing(before, after)}."


def _narrowing(before: tuple[float, float, float], after: tuple[float, float, float]) -> str:
    """Say from what to what: with ± if that says where both intervals are."""
    shown = [ShownFigure(stated, low, high, stated) for low, stated, high in (before, after)]
    if all(each.even for each in shown):
        return " ".join(
            f"{word} ±{plain(100 * each.half_width, 2)} %"
            for word, each in zip(("from", "to"), shown, strict=True)
        )
    return f"to {plain(after[0] * 1e3)} to {plain(after[2] * 1e3)} ms"
