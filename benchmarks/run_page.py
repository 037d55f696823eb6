"""The page of `benchmarks.run_on_this_machine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import markdown_table

MILLI = 1e3


def rmspe(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return √ mean ((predicted − measured) / measured)²."""
    ratio = np.asarray(predicted) / np.asarray(measured)
    return float(np.sqrt(np.mean((ratio - 1) ** 2)))


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return Spearman's rank correlation."""
    return float(pd.Series(predicted).rank().corr(pd.Series(measured).rank()))


def page(records: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> str:
    """Return the page: errors of predictions, speed-ups, and every configuration."""
    planned = [each for each in records if each["predicted_period_s"] is not None]
    errors = [
        [
            figure,
            len(planned),
            f"{100 * rmspe(*_pairs(planned, figure)):.1f}",
            f"{_median_error(planned, figure):.1f}",
            f"{rank_correlation(*_pairs(planned, figure)):.3f}",
        ]
        for figure in ("period", "latency")
    ]
    networks = list(dict.fromkeys(each["network"] for each in records))
    return (
        "# Plans run on this machine\n\n"
        + markdown_table(["machine", ""], list(about.items()))
        + "\n\nPredicted against measured, over all configurations of all networks:\n\n"
        + markdown_table(
            ["figure", "configurations", "RMSPE %", "median error %", "rank correlation"], errors
        )
        + "\n\nFrames per second, in the same rounds:\n\n"
        + markdown_table(
            [
                "network", "one session, one thread", "one session, all cores",
                "best sequential plan", "best plan", "stages", "best plan ÷ one thread",
                "all cores ÷ one thread",
            ],
            [_speeds(network, records) for network in networks],
        )
        + "\n\nEvery configuration; times in ms. *Others* is the share of the machine that other "
        "programs took during the bursts that count:\n\n"
        + markdown_table(
            [
                "network", "configuration", "kind", "stages", "period predicted", "measured",
                "latency predicted", "measured", "bursts", "others %",
            ],
            [_row(each) for each in records],
        )
        + "\n"
    )  # fmt: skip


def _pairs(planned: Sequence[Mapping[str, Any]], figure: str) -> tuple[list[float], list[float]]:
    return (
        [each[f"predicted_{figure}_s"] for each in planned],
        [each[f"{figure}_s"] for each in planned],
    )


def _median_error(planned: Sequence[Mapping[str, Any]], figure: str) -> float:
    predicted, measured = map(np.asarray, _pairs(planned, figure))
    return float(100 * np.median(np.abs(predicted / measured - 1)))


def _speeds(network: str, records: Sequence[Mapping[str, Any]]) -> list[object]:
    mine = [each for each in records if each["network"] == network]
    one, many = (each["period_s"] for each in mine if each["predicted_period_s"] is None)
    plans = [each for each in mine if each["predicted_period_s"] is not None]
    alone = min(each["period_s"] for each in plans if each["kind"] == "sequential")
    best = min(plans, key=lambda each: each["period_s"])
    return [
        network,
        *(f"{1 / period_s:.2f}" for period_s in (one, many, alone, best["period_s"])),
        best["stages"],
        f"{one / best['period_s']:.2f}",
        f"{one / many:.2f}",
    ]


def _row(each: Mapping[str, Any]) -> list[object]:
    def shown(time_s: float | None) -> str:
        return "" if time_s is None else f"{MILLI * time_s:.2f}"

    figures = ("predicted_period_s", "period_s", "predicted_latency_s", "latency_s")
    return [
        each["network"],
        each["configuration"],
        each["kind"],
        each["stages"],
        *(shown(each[name]) for name in figures),
        each["bursts"],
        f"{100 * each['others']:.0f}",
    ]
