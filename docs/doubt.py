"""Writes the tables of doubt.md: whole runs on the A311D against intervals, and two fronts.

python docs/doubt.py                some minutes
python docs/doubt.py googlenet      one table, by the name in its mark
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median

import parapipe
from benchmarks.energy_corrections import equation_8, left_out
from benchmarks.whole_runs import PLATFORM, priced, whole_runs
from parapipe.documents.comparison import METRICS, compare
from parapipe.front.memory_and_doubt import largest_sources
from parapipe.platform.load import load_platform
from parapipe.search.options import DRAWS
from parapipe.uncertainty.causes import Draws, uncertain_costs
from parapipe.uncertainty.contributions import Doubt
from parapipe.uncertainty.samples import sampled_front

PAGE = Path(__file__).with_name("doubt.md")
MODELS = ("googlenet", "inception-v3")
LEAST = (
    ("latency_s", "latency", "ms"),
    ("period_s", "period", "ms"),
    ("energy_j", "energy", "mJ"),
)
FIGURE_OF = {"latency": "latency_s", "longest stage": "period_s", "energy": "energy_j"}
FITTED = "energy"
QUANTILE = 0.9
ROBUST = ("robust-L", "robust-T", "robust-E")
TIMED = ("alexnet", "googlenet", "inception-v3", "squeezenet")
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def runs() -> dict[str, tuple[list[bool], list[float]]]:
    """Return for each figure which whole runs lie in their intervals, and half their widths.

    Widths are shares of the figure. Energies are judged by what is predicted with the network left
    out: the shipped power is fitted to these very runs.
    """
    platform = load_platform(PLATFORM)
    measured = [run.measured for run in whole_runs()]
    orders = dict.fromkeys((run.model, run.order) for run in measured)
    documents = {each: priced(platform, *each) for each in orders}
    pairs = list(compare(list(documents.values()), measured).pairs)
    energies = left_out(equation_8, whole_runs())
    fitted = f"{FITTED}, fitted to these runs"
    found: dict[str, tuple[list[bool], list[float]]] = {}
    for metric, some in (
        *((metric, [p for p in pairs if p.metric == metric]) for metric in METRICS),
        (f"{FITTED}, each network left out", energies),
    ):
        inside, widths = found.setdefault(fitted if metric == FITTED else metric, ([], []))
        for pair in some:
            document, figure = documents[pair.model, pair.order], FIGURE_OF[pair.metric]
            ends = getattr(document.intervals, figure)
            low, high = (end / getattr(document, figure) for end in ends)
            inside.append(low <= pair.measured / pair.predicted <= high)
            widths.append((high - low) / 2)
    return found


def runs_table() -> str:
    """Return the table of whole runs."""
    rows = ["| figure | runs | in their intervals | median half width |", "|---|---:|---:|---:|"]
    for metric, (inside, widths) in runs().items():
        share = f"{sum(inside)} ({sum(inside) / len(inside):.0%})"
        rows.append(f"| {metric} | {len(inside)} | {share} | ±{100 * median(widths):.1f} % |")
    return "\n".join(rows)


def front_table(model: str) -> str:
    """Return the table of a model's configurations with a name."""
    front = parapipe.map(f"zoo:{model}", PLATFORM, interleave="none")
    head = ("named", "stages", "latency, ms", "frames/s", "mJ", "best of its kind", "on the front")
    rows = [f"| {' | '.join(head)} | most of the doubt in latency |"]
    rows += ["|---|---|---:|---:|---:|---|---:|---|"]
    return "\n".join([*rows, *_rows([each for each in front if each.names])])


def robust_table() -> str:
    """Return the table of what is best as stated against what is best at the quantile."""
    share = f"{QUANTILE:.0%}"
    head = ("least of", "chosen by", "stages", "stated", f"kept in {share}", f"gain in {share}")
    rows = [f"| network | {' | '.join(head)} |", "|---|---|---|---|---:|---:|---:|"]
    for model in MODELS:
        front = parapipe.map(f"zoo:{model}", PLATFORM, interleave="none", robust=QUANTILE)
        for (key, what, unit), name in zip(LEAST, ROBUST, strict=True):
            stated, robust = min(front, key=lambda row: getattr(row, key)), front[name]
            kept = [getattr(row.quantiles, key) for row in (stated, robust)]
            for row, by in ((stated, "stated costs"), (robust, f"what is kept in {share}")):
                figures = (getattr(row, key) * 1e3, getattr(row.quantiles, key) * 1e3)
                gain = "" if row is stated else f"{1 - kept[1] / kept[0]:.1%}"
                told = " | ".join(f"{each:.4g} {unit}" for each in figures)
                stages = row.drawing.replace("│", "then")
                rows.append(f"| {model} | {what} | {by} | {stages} | {told} | {gain} |")
    return "\n".join(rows)


def draws_table() -> str:
    """Return what drawing takes of the processor time of a search, both in one run."""
    rows = ["| network | `--interleave` | search, s | 200 draws, s | share |"]
    rows += ["|---|---|---:|---:|---:|"]
    for model in TIMED:
        for way in ("auto", "none"):
            begin_s = _processor_s()
            options = {"cache": False, "draws": 0, "jobs": 1, "interleave": way}
            front = parapipe.map(f"zoo:{model}", PLATFORM, **options)  # type: ignore[arg-type]
            search_s = _processor_s() - begin_s
            draws_s = _drawing_s(front)
            told = f"{search_s:.1f} | {draws_s:.2f} | {draws_s / search_s:.1%}"
            rows.append(f"| {model} | {way} | {told} |")
    return "\n".join(rows)


def _processor_s() -> float:
    """Return the seconds that processors have worked for this process and those it has ended."""
    told = map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in told)


def _drawing_s(front: parapipe.ParetoFront) -> float:
    """Return the seconds that a processor takes to draw what a front takes."""
    costs = {id(each.configuration): each.costs for each in front}
    found = [each.configuration for each in front]
    begin_s = _processor_s()
    sampled_front(found, front[0].graph, lambda each: costs[id(each)], Draws(DRAWS, 0))
    return _processor_s() - begin_s


def _rows(named: Sequence[parapipe.Configuration]) -> Iterator[str]:
    for each in named:
        assert each.intervals
        assert each.chances
        latency = _range(each.latency_s, each.intervals.latency_s, 1e3)
        fps = _range(each.throughput_fps, [1 / s for s in each.intervals.period_s[::-1]], 1)
        energy = _range(each.energy_j, each.intervals.energy_j, 1e3)
        best = ", ".join(f"{name} {chance:.0%}" for name, chance in each.chances.names.items())
        names = [operator.id for operator in each.graph.operators]
        mapping = each.configuration.mapping
        known = uncertain_costs(mapping, each.costs, names)
        doubt = Doubt(mapping, known, Draws(DRAWS, 0), each.latency_s, each.period_s)
        most, share = next(largest_sources(doubt, 0))
        drawing = each.drawing.replace("│", "then")
        yield (
            f"| {', '.join(each.names)} | {drawing} | {latency} | {fps} | {energy} | {best} "
            f"| {each.chances.pareto:.0%} | {most} ({share:.0%}) |"
        )


def _range(value: float, ends: Sequence[float], scale: float) -> str:
    low, high = (end * scale for end in ends)
    return f"{value * scale:.4g} ({low:.4g} to {high:.4g})"


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found.get(match[2], match[0][len(match[1]) :]), text)


TABLES: dict[str, Callable[[], str]] = {
    "runs": runs_table,
    "draws": draws_table,
    "robust": robust_table,
    **{model.replace("-", "_"): partial(front_table, model) for model in MODELS},
}


if __name__ == "__main__":
    made = {name: TABLES[name]() for name in sys.argv[1:] or TABLES}
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
