"""What to take from a front, in a few rows and in a sentence; made from the document front.json."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.cli.figure_cells import ends, sampled_figure
from parapipe.cli.front_table import NOTEWORTHY
from parapipe.cli.output import Row
from parapipe.digits import plain

if TYPE_CHECKING:
    from parapipe.api.checked import FigureEntry

MOST_ROWS = 12
NOISE = 0.05  # share that medians of a hundred or two draws are off by


def _less_text(gain: float) -> str:
    share = 100 - 100 / gain
    if share < 0.05:
        return "as much as"
    return f"{share:.{0 if share >= 1 else 1}f} % less than"


def _times_text(gain: float, what: str) -> str:
    """Return how many times as good it is; nothing where that is 1.00 times."""
    return f"{gain:.2f} times {what}" if f"{gain:.2f}" != "1.00" else ""


@dataclass(frozen=True, slots=True)
class _Objective:
    """How an objective reads.

    Parameters
    ----------
    figure
        Its entry in the table of figures.
    gain
        Says how many times as good as another figure it is; nothing where that is not worth it.
    sustained
        Whether a row's figure counts only as far as it can be sustained, as of throughput: where
        hand-overs keep the sender busy, frames may follow each other less often than once per
        longest stage.
    """

    figure: FigureEntry
    gain: Callable[[float], str]
    sustained: bool = False

    def text(self, row: Row) -> str:
        """Return the figure of a row."""
        longer = self._longer(row)
        figure = self.figure.text(row[self.figure.field] / longer)
        return f"{figure} sustained" if longer > 1 else figure

    def stated(self, row: Row) -> float:
        """Return what is to be least, by the stated costs."""
        return float(row[self.figure.compared]) * self._longer(row)

    def median(self, row: Row) -> float:
        """Return what is to be least, in the middle of the draws."""
        figure = sampled_figure(row, self.figure.compared)
        return (figure.median if figure else float(row[self.figure.compared])) * self._longer(row)

    def by_draws(self, row: Row, medians: Collection[str]) -> bool:
        """Tell whether draws say what a row takes: its figure is not in their middle.

        So it is of all rows where tables show medians. What is sustained in place of it has no
        draws.
        """
        figure = sampled_figure(row, self.figure.compared)
        sampled = figure is not None and (self.figure.field in medians or not figure.even)
        return sampled and self._longer(row) == 1

    def at_quantile(self, row: Row) -> Row:
        """Return the figures that a row keeps in the asked share of the draws."""
        figures = row["quantiles"]
        return {
            **figures,
            "throughput_fps": 1 / figures["period_s"],
            "sustained_period_s": figures["period_s"] * self._longer(row),
        }

    def _longer(self, row: Row) -> float:
        """Return how many times as long as a row's period the one that can be sustained is."""
        share = float(row["sustained_period_s"] / row["period_s"]) if self.sustained else 1.0
        return share if share > 1 + NOTEWORTHY else 1.0

    def interval(self, row: Row) -> str:
        """Return where the figure of a row lies in draws, and its median."""
        figure = sampled_figure(row, self.figure.field)
        assert figure is not None
        entry, median = self.figure, plain(figure.median * self.figure.scale)
        return f"{ends(figure, entry.scale)} {entry.unit}{entry.per}, median {median}"


_GAINS: Mapping[str, Callable[[float], str]] = {
    "latency": lambda gain: _times_text(gain, "as fast as"),
    "throughput": lambda gain: _times_text(gain, "that of"),
}
"""Says how many times as good a figure is, where it is not a share less."""


def _objective_of(name: str) -> _Objective:
    from parapipe.api.checked import BY_NAME

    return _Objective(BY_NAME[name], _GAINS.get(name, _less_text), sustained=name == "throughput")


def headline_rows(configurations: Sequence[Row], objectives: Sequence[str]) -> list[Row]:
    """Return what answers first: the best in each objective, then what has a name.

    At most `MOST_ROWS`; processors alone are left out first, the slowest of them before others. Of
    identical processors alone, one row has the names of all.
    """
    from parapipe.api.checked import medians_of

    medians = medians_of(configurations)
    named = [row for row in configurations if row["names"]]
    first = [best(configurations, objective, medians) for objective in objectives]
    alone = [row for row in named if all(name.endswith("-alone") for name in row["names"])]
    twins = _twins(named, [row for row in alone if row not in first])
    others = {row["id"] for each in twins.values() for row in each}
    first += [row for row in named if row not in alone]
    first += sorted(alone, key=lambda row: row["latency_s"])
    shown = {row["id"]: row for row in first if row["id"] not in others}
    return [
        _with_names_of(row, twins.get(row["id"], ())) for row in list(shown.values())[:MOST_ROWS]
    ]


def _twins(named: Sequence[Row], alone: Sequence[Row]) -> dict[str, list[Row]]:
    """Return, by the id of a processor alone, those that follow with its figures on another one."""
    from parapipe.api.checked import DRAWN

    first: dict[tuple[object, ...], Row] = {}
    twins: dict[str, list[Row]] = {}
    for row in named:
        if row["kind"] == "sequential" and any(name.endswith("-alone") for name in row["names"]):
            figures = tuple(row[each.compared] for each in DRAWN)
            one = first.setdefault(figures, row)
            if row in alone and set(one["names"]).isdisjoint(row["names"]):
                twins.setdefault(one["id"], []).append(row)
    return twins


def _with_names_of(row: Row, twins: Sequence[Row]) -> Row:
    """Return a row with the names of others, behind which their ids stand."""
    names = [f"{name} ({each['id']})" for each in twins for name in each["names"]]
    return {**row, "names": [*row["names"], *names]} if names else row


def best(rows: Sequence[Row], objective: str, medians: Collection[str]) -> Row:
    """Return the row that is best in an objective, and of those equal in it in the others.

    Where the stated figure of the best one is not in the middle of its interval, medians of the
    draws are compared, and those that are equal to within `NOISE` by what is stated. So they are
    for the figures of which tables show `medians`. Several processors are no better than one that
    has a better median.
    """
    from parapipe.api.checked import TIE, TIES, least

    ties, figure = (TIES.get(objective, TIE),), _objective_of(objective)

    def stated(row: Row) -> tuple[float, ...]:
        return (figure.stated(row), row["latency_s"], row["period_s"], row["energy_j"])

    first = least(rows, stated, ties)
    if figure.by_draws(first, medians):
        most = min(map(figure.median, rows)) * (1 + NOISE)
        first = least([row for row in rows if figure.median(row) <= most], stated, ties)
        alone = [row for row in rows if row["kind"] == "sequential"]
        simplest = min(alone, key=figure.median, default=first)
        if first["kind"] != "sequential" and figure.median(simplest) < figure.median(first):
            return best(alone, objective, medians)
    return first


def advice_text(document: Row) -> str:
    """Say in one sentence what to take for each objective, and what it gains over one processor."""
    from parapipe.api.checked import medians_of

    rows = document["configurations"]
    medians = medians_of(rows)
    alone = [row for row in rows if row["kind"] == "sequential"]
    parts, any_sampled = [], False
    for objective in document["options"]["objectives"]:
        row, of = best(rows, objective, medians), _objective_of(objective)
        other = best(alone, objective, medians) if alone else row
        processor = other["stages"][0]["processors"][0]["name"]
        by_draws = of.by_draws(row, medians)
        gain_text = f", {processor} alone"
        if row["kind"] != "sequential":
            ratio = (
                of.median(other) / of.median(row) if by_draws else of.stated(other) / of.stated(row)
            )
            gain_text = f", {gain} {processor} alone" if alone and (gain := of.gain(ratio)) else ""
        text = of.interval(row) if by_draws else of.text(row)
        parts.append(f"for {objective} {row['id']} ({text}{gain_text})")
        any_sampled = any_sampled or by_draws
    why = (
        "Intervals hold nine of ten draws of the costs; where they stand, medians are compared, "
        f"and count as equal within {NOISE:.0%}."
    )
    return " ".join(
        [f"Take {', '.join(parts)}.", *[why] * any_sampled, *_robust_answer(document, medians)]
    )


def _robust_answer(document: Row, medians: Collection[str]) -> Iterator[str]:
    """Say what to take at the quantile of the draws that was asked for, and what that gains."""
    if not (robust := document.get("robust")):
        return
    rows, parts = document["configurations"], []
    for name, objective, word in (
        ("robust-L", "latency", "less"),
        ("robust-T", "throughput", "more"),
    ):
        row = next(row for row in rows if name in row["names"])
        nominal = best(rows, objective, medians)
        of = _objective_of(objective)
        figures = of.at_quantile(row)
        ratio = of.stated(of.at_quantile(nominal)) / of.stated(figures)
        share = 1 - 1 / ratio if word == "less" else ratio - 1
        gain = f", {share:.1%} {word} than {nominal['id']}" if row is not nominal else ""
        parts.append(f"for {objective} {row['id']} ({of.text(figures)}{gain})")
    yield f"In {robust['quantile'] * 100:g} % of the draws: {', '.join(parts)}."
