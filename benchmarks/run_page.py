"""The page of `benchmarks.run_on_this_machine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import markdown_table

MILLI = 1e3
MEASURED = {"measured": "", "by processor time": "work_"}

FIGURES = {
    "predicted_period": "period: longest stage",
    "sustained_period": "period: sustained by operators",
    "segment_period": "period: sustained by segments",
    "predicted_latency": "latency",
}

Row = Mapping[str, Any]


def rmspe(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return √ mean ((predicted − measured) / measured)²."""
    ratio = np.asarray(predicted) / np.asarray(measured)
    return float(np.sqrt(np.mean((ratio - 1) ** 2)))


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return Spearman's rank correlation."""
    return float(pd.Series(predicted).rank().corr(pd.Series(measured).rank()))


def page(records: Sequence[Row], about: Mapping[str, str]) -> str:
    """Return the page: errors of predictions, speed-ups, and every configuration."""
    planned = [each for each in records if each["predicted_period_s"] is not None]
    networks = list(dict.fromkeys(each["network"] for each in records))
    return (
        "# Plans run on this machine\n\n"
        + markdown_table(["machine", ""], list(about.items()))
        + "\n\nPredicted against measured, over all configurations of all networks. A "
        "saturated run overlaps the frames of a single stage too, so its period is what can be "
        "*sustained*, by the plan's operators or by the segments that ONNX Runtime runs at one go; "
        "it is the longest stage where each stage has one processor:\n\n"
        + markdown_table(
            ["figure", "", "configurations", "RMSPE %", "median error %", "rank correlation"],
            [
                _errors(planned, predicted, figure, how)
                for predicted, figure in (
                    ("predicted_period", "period"),
                    ("sustained_period", "period"),
                    ("segment_period", "period"),
                    ("predicted_latency", "latency"),
                )
                for how in MEASURED
            ],
        )
        + "\n\nFrames per second, in the same rounds:\n\n"
        + markdown_table(
            ["network", "", "one thread", "all cores", "best plan alone on a core", "best plan",
             "stages", "best plan ÷ one thread", "all cores ÷ one thread"],
            [_speeds(network, records, how) for network in networks for how in MEASURED],
        )
        + "\n\n*One thread* and *all cores* are one ONNX Runtime session on the whole network. "
        "Processor time is that of the thread that calls, so it says nothing of several."
        "\n\nEvery configuration; times in ms:\n\n"
        + markdown_table(
            ["network", "configuration", "kind", "stages", "period predicted", "measured",
             "by processor time", "latency predicted", "measured", "by processor time", "bursts",
             "without a core %"],
            [_row(each) for each in records],
        )
        + "\n"
    )  # fmt: skip


def _errors(planned: Sequence[Row], told: str, figure: str, how: str) -> list[object]:
    predicted = [each[f"{told}_s"] for each in planned]
    measured = [each[f"{MEASURED[how]}{figure}_s"] for each in planned]
    off = np.abs(np.asarray(predicted) / np.asarray(measured) - 1)
    return [
        FIGURES[told],
        how,
        len(planned),
        f"{100 * rmspe(predicted, measured):.1f}",
        f"{100 * float(np.median(off)):.1f}",
        f"{rank_correlation(predicted, measured):.3f}",
    ]


def _speeds(network: str, records: Sequence[Row], how: str) -> list[object]:
    key = f"{MEASURED[how]}period_s"
    mine = [each for each in records if each["network"] == network]
    one, many = (each[key] for each in mine if each["predicted_period_s"] is None)
    plans = [each for each in mine if each["predicted_period_s"] is not None]
    alone = min(each[key] for each in plans if each["kind"] == "sequential")
    best = min(plans, key=lambda each: each[key])
    together = how == "measured"
    return [
        network,
        how,
        f"{1 / one:.2f}",
        f"{1 / many:.2f}" if together else "",
        f"{1 / alone:.2f}",
        f"{1 / best[key]:.2f}",
        best["stages"],
        f"{one / best[key]:.2f}",
        f"{one / many:.2f}" if together else "",
    ]


def _row(each: Row) -> list[object]:
    def shown(time_s: float | None) -> str:
        return "" if time_s is None else f"{MILLI * time_s:.2f}"

    figures = (
        "predicted_period_s", "period_s", "work_period_s", "predicted_latency_s", "latency_s",
        "work_latency_s",
    )  # fmt: skip
    return [
        each["network"],
        each["configuration"],
        each["kind"],
        each["stages"],
        *(shown(each[name]) for name in figures),
        each["bursts"],
        f"{100 * each['waited']:.1f}",
    ]
