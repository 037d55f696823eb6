"""Where the doubt in a configuration's figures comes from, and what measuring would take away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.formats.explanation import DoubtRow, ExplanationDocument, ReasonRow
from parapipe.formats.front import ConfigurationRow
from parapipe.formats.front_inputs import Options
from parapipe.formats.shown import ShownFigure, shown_figure
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.contributions import Doubt
from parapipe.pipeline.uncertain import HAND_OVERS, Draws, uncertain
from parapipe.plan.mapped import mapped
from parapipe.plan.schema import Plan

MEASURED = 3  # operators that are proposed
LEAST = 0.05  # share by which measuring them has to narrow an interval
SHOWN = 3  # causes that are named
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
    found = {"reasons": (*document.reasons, *texts), "doubt": doubt_rows(doubt)}
    return document.model_copy(update=found)


def doubt_of(plan: Plan, graph: OperatorGraph, costs: CostTable, options: Options) -> Doubt:
    """Return a plan as a mapping with uncertain costs."""
    view = mapped(plan)
    number = {operator.id: v for v, operator in enumerate(graph.operators)}
    links = iter(range(len(costs.processors), len(costs.processors) + len(view.resources)))
    place = {name: p for p, name in enumerate(costs.processors)}
    mapping = view.mapping.renumbered(
        [number[operator.id] for operator in plan.operators],
        [place[name] if name in place else next(links) for name in view.resources],
    )
    names = [operator.id for operator in graph.operators]
    return Doubt(
        mapping,
        uncertain(mapping, costs, names),
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
        told = ", ".join(f"{share:.0%} comes from {name}" for name, share in sources(doubt, figure))
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
            f"{beside} Of this "
            f"doubt, {told}. {_measuring(doubt, figure, graph, costs)}"
        )


def sources(doubt: Doubt, figure: int) -> Iterator[tuple[str, float]]:
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
    for name in sorted(shares, key=lambda name: -shares[name])[:SHOWN]:
        if shares[name] >= NOTEWORTHY:
            yield name, shares[name]


def _measuring(doubt: Doubt, figure: int, graph: OperatorGraph, costs: CostTable) -> str:
    """Say which operators to measure first, and what that brings."""
    found = doubt.most_useful(figure, MEASURED)
    before = doubt.ends(figure)
    after = doubt.measured(found).ends(figure) if found else before
    if after[2] - after[0] > (before[2] - before[0]) * (1 - LEAST):
        of_links = doubt.shares[doubt.costs.causes.index(HAND_OVERS), figure]
        return (
            "Measuring the links would take away most of it."
            if of_links > 0.5
            else "Measuring a few operators would hardly narrow it."
        )
    at = doubt.mapping.at
    names = ", ".join(
        f"{graph.operators[v].name or graph.operators[v].id} on {costs.processors[at[v].processor]}"
        for v in found
    )
    return f"Measuring {names} would narrow it {_narrowed(before, after)}."


def _narrowed(before: tuple[float, float, float], after: tuple[float, float, float]) -> str:
    """Say from what to what: with ± if that says where both intervals are."""
    shown = [ShownFigure(stated, low, high, stated) for low, stated, high in (before, after)]
    if all(each.even for each in shown):
        return " ".join(
            f"{word} ±{plain(100 * each.half_width, 2)} %"
            for word, each in zip(("from", "to"), shown, strict=True)
        )
    return f"to {plain(after[0] * 1e3)} to {plain(after[2] * 1e3)} ms"
