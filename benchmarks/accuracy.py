"""How far predictions are from whole runs on the board: python -m benchmarks.accuracy.

For each of the three calibration networks, parameters are fitted to the runs of the other two, and
its own runs are predicted; errors are pooled over the three,

    RMSPE = √(mean over runs of (predicted / measured − 1)²).

Why this exists: docs/accuracy.md is what it writes, so that no number there is typed by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import mean

from benchmarks import energy_corrections
from benchmarks.energy_corrections import METHODS, lag_of
from benchmarks.tables import markdown_table
from benchmarks.time_corrections import CORRECTIONS, big_slower, left_out
from benchmarks.whole_runs import PLATFORM, WholeRun, priced, whole_runs
from parapipe.documents.comparison import METRICS, Errors, Pair, compare, errors_of
from parapipe.platform.load import load_platform
from tools.block_power import by_network, power_seen
from tools.states_amlogic_a311d import BIG_SLOWER_IN_2025, IDLE_W, RUN_2024, RUN_2025, STATES

PAGE = Path(__file__).parents[1] / "docs/accuracy.md"
TEXT = Path(__file__).parent / "accuracy.txt"


def pooled(pairs: Sequence[Pair]) -> dict[tuple[str, str | None], Errors]:
    """Return errors by metric and network, None for all."""
    return {(each.metric, each.model): each for each in errors_of(pairs)}


@cache
def shipped(name: str = PLATFORM) -> list[Pair]:
    """Return what `evaluate` says of each run with a shipped platform, all networks fitted."""
    platform = load_platform(name)
    runs = [run.measured for run in whole_runs()]
    orders = dict.fromkeys((run.model, run.order) for run in runs)
    return list(compare([priced(platform, *order) for order in orders], runs).pairs)


@cache
def held_out() -> list[Pair]:
    """Return what is predicted of each network by what is kept and fitted to the others."""
    times, _ = left_out(CORRECTIONS[0], whole_runs())
    return times + energy_corrections.left_out(energy_corrections.equation_8, whole_runs())


@cache
def plain() -> list[Pair]:
    """Return the plain sums of blocks."""
    times, _ = left_out(CORRECTIONS[0], whole_runs())
    return times + energy_corrections.left_out(energy_corrections.as_metered, whole_runs())


def page() -> str:
    """Return docs/accuracy.md, the text beside this file with its tables."""
    lag_s = lag_of(whole_runs())
    tables = {
        "summary": summary(),
        "times": times_tried(),
        "energies": energies_tried(),
        "networks": networks(),
        "lag": f"{1e3 * lag_s:.2f}",
        "lags": ", ".join(f"{1e3 * each:.2f}" for each in lags()),
        "googlenet": googlenet(lag_s),
        "spread": f"{100 * spread():.0f}",
        "states": states(),
        **joules(lag_s),
        "factor": f"{BIG_SLOWER_IN_2025:g}",
        "fitted_factor": f"{big_slower(whole_runs()):.3f}",
        "idle_2024": f"{IDLE_W[RUN_2024]:g}",
        "idle_2025": f"{IDLE_W[RUN_2025]:g}",
    }
    return TEXT.read_text(encoding="utf-8").format(**tables)


def _percent(errors: Errors) -> str:
    return f"{100 * errors.rmspe:.2f}"


def _networks(runs: Sequence[WholeRun]) -> list[str]:
    return list(dict.fromkeys(run.measured.model for run in runs))


def summary() -> str:
    """Return the pooled errors, beside those of the plain sum and of the paper."""
    ours, theirs = pooled(held_out()), pooled(plain())
    paper = {"latency": "15.33", "longest stage": "15.25", "energy": "6.40"}
    rows = [
        [
            metric,
            _percent(theirs[metric, None]),
            _percent(ours[metric, None]),
            f"{100 * ours[metric, None].worst:+.1f}",
            ours[metric, None].worst_run,
            paper[metric],
        ]
        for metric in METRICS
    ]
    head = ["", "plain sum, RMSPE %", "left out, RMSPE %", "worst, %", "of", "the paper's, RMSPE %"]
    return markdown_table(head, rows)


def networks() -> str:
    """Return the errors of `evaluate` by network."""
    rows = [
        [
            each.metric,
            each.model or "all",
            each.runs,
            _percent(each),
            f"{100 * each.mean:+.2f}",
            f"{100 * each.worst:+.1f}",
            "" if each.rank_correlation is None else f"{each.rank_correlation:.3f}",
        ]
        for each in errors_of(shipped())
    ]
    head = ["", "network", "runs", "RMSPE %", "mean %", "worst %", "rank correlation"]
    return markdown_table(head, rows)


def states() -> str:
    """Return the errors of `evaluate` with the platform of each state."""
    errors = {name: pooled(shipped(name)) for name in STATES}
    rows = [
        [metric, model or "all", *(_percent(errors[name][metric, model]) for name in STATES)]
        for metric, model in errors[PLATFORM]
    ]
    return markdown_table(["RMSPE %", "network", *STATES], rows)


def times_tried() -> str:
    """Return every correction of times with its errors."""
    runs = whole_runs()
    rows = []
    for each in CORRECTIONS:
        pairs, fits = left_out(each, runs)
        found = pooled(pairs)
        fitted = "; ".join(" ".join(f"{x:.3g}" for x in fit) for fit in fits)
        errors = [_percent(found["latency", name]) for name in (*_networks(runs), None)]
        stage = _percent(found["longest stage", None])
        rows.append([each.name, each.reading, *errors, stage, fitted])
    head = ["correction", "reading", *(f"{name} left out" for name in _networks(runs))]
    return markdown_table([*head, "latency, pooled", "longest stage, pooled", "fitted θ"], rows)


def energies_tried() -> str:
    """Return every method of energies with its errors."""
    runs = whole_runs()
    rows = []
    for name, method in METHODS.items():
        found = pooled(energy_corrections.left_out(method, runs))
        rows.append([name, *(_percent(found["energy", n]) for n in (*_networks(runs), None))])
    head = ["method", *(f"{name} left out" for name in _networks(runs)), "pooled"]
    return markdown_table(head, rows)


def lags() -> list[float]:
    """Return the lags fitted with each network left out."""
    runs = whole_runs()
    return [lag_of([r for r in runs if r.measured.model != name]) for name in _networks(runs)]


def googlenet(lag_s: float) -> str:
    """Return GoogLeNet's joules above idle on each processor, as metered and as they are."""
    rows = []
    for processor in load_platform(PLATFORM).processors:
        blocks = energy_corrections.metered_blocks()[processor.name]
        metered_j = by_network(blocks, blocks.power_w * blocks.time_s)["GoogLeNet"]
        lagless = power_seen({"": blocks}, lag_s)[""]
        true_j = by_network(blocks, lagless * blocks.time_s)["GoogLeNet"]
        letters = processor.name[0].upper() * 11
        alone = priced(load_platform(PLATFORM), "GoogLeNet", letters)
        figures = (metered_j, true_j, alone.sequential.energy_j)
        rows.append([processor.name, *(f"{1e3 * each:.1f}" for each in figures)])
    head = ["", "metered by block, mJ", "lag taken back, mJ", "parapipe evaluate, mJ"]
    return markdown_table(head, rows)


def joules(lag_s: float) -> dict[str, str]:
    """Return GoogLeNet's millijoules above idle on big: of its blocks in 2024, of runs in 2025."""
    blocks = energy_corrections.metered_blocks()["big"]
    before_j = by_network(blocks, power_seen({"": blocks}, lag_s)[""] * blocks.time_s)["GoogLeNet"]
    runs = [run.measured for run in whole_runs() if run.measured.label == f"GoogLeNet {'B' * 11}"]
    after_j = mean((run.energy_j or 0) - IDLE_W[RUN_2025] * run.latency_s for run in runs)
    found = (before_j, after_j, before_j * BIG_SLOWER_IN_2025)
    names = ("joules_2024", "joules_2025", "joules_same_power")
    return {name: f"{1e3 * each:.0f}" for name, each in zip(names, found, strict=True)}


def spread() -> float:
    """Return by how much the latencies of one order differ on the board, at most."""
    seen: dict[str, list[float]] = {}
    for run in whole_runs():
        seen.setdefault(run.measured.label, []).append(run.measured.latency_s)
    return max(max(times) / min(times) - 1 for times in seen.values())


def main() -> None:
    """Write the page, and the predictions beside the other results."""
    text = page()
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
