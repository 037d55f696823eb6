"""Packaged models on this machine: period and latency as predicted, and as measured.

A model is profiled, its operators and the whole, and mapped to two processors of one core each; two
plans are run: that of the least period and that of the least latency.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import parapipe
from docs.packaged_list import Packaged, random_frame
from parapipe.documents.comparison import Comparison

MAPPER = "heft_cpop"
"""List schedules: a minute for all models, where exact ones take an hour."""
ROUNDS = 3
RUN_S = 1.5
"""Seconds of a run, about."""
FRAMES = (12, 400)
SPARE = (1.5, 3.0, 6.0)
"""Times the period, between frames that must not queue: the first with which none does."""
WELL = 0.08
"""An error up to this needs no reason."""
TITLE = "Predicted and measured on this machine"
COLUMNS = (
    "file", "plan", "period, ms", "measured", "error", "latency, ms", "measured", "error",
    "where more than 8 %",
)  # fmt: skip

Row = Mapping[str, Any]


def measured(each: Packaged, path: Path, platform: Path, out: Path) -> list[Row]:
    """Return what plans were predicted to take and took.

    Parameters
    ----------
    platform
        Two processors of one core each, of this machine.
    out
        An empty folder.
    """
    graph = parapipe.load_model(path, shapes=each.shapes, note=lambda _: None)
    frame = random_frame(each, graph)
    np.savez(out / "frame.npz", **frame)  # type: ignore[arg-type]  # names are anything
    profile = out / "profile.csv"
    parapipe.profile(path, platform, out=profile, shapes=each.shapes)
    front = parapipe.map(
        path, platform, shapes=each.shapes, mapper=MAPPER, objectives="latency-throughput",
        interleave="none", profiles=[profile], note=lambda _: None,
    )  # fmt: skip
    chosen = {one: front.best(one) for one in ("period", "latency")}
    if chosen["period"].id == chosen["latency"].id:
        del chosen["period"]
    runs: dict[str, list[Path]] = {name: [] for name in chosen}
    for turn in range(ROUNDS):
        for name, configuration in chosen.items():
            place = out / f"{name}-{turn}"
            runs[name] += _burst(configuration.plan(), out / "frame.npz", place)
    return [_row(chosen[name].drawing, files) for name, files in runs.items()]


def _burst(plan: parapipe.Plan, frame: Path, place: Path) -> list[Path]:
    """Run a plan with frames as fast as they are taken, then so slowly that none waits."""
    full, paced = (place.with_name(f"{place.name}-{how}.json") for how in ("full", "paced"))
    frames = int(np.clip(ceil(RUN_S / plan.predicted.period_s), *FRAMES))
    run = parapipe.run_plan(plan, input=frame, frames=frames, saturate=True)
    full.write_text(json.dumps(run.to_json()), encoding="utf-8")
    period_s = run.document.period.observed_s or plan.predicted.period_s
    for times in SPARE:
        run = parapipe.run_plan(plan, input=frame, frames=frames, period_s=times * period_s)
        paced.write_text(json.dumps(run.to_json()), encoding="utf-8")
        if any(pair.metric == "latency" for pair in parapipe.compare(paced).pairs):
            return [full, paced]
    raise SystemExit(f"frames of '{plan.model.name}' queue: other programs have the processors")


def _row(drawing: str, files: Sequence[Path]) -> Row:
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    busy = max(each["machine"]["other_programs"] or 0.0 for each in documents)
    row: dict[str, Any] = {"plan": drawing, "others": busy}
    for metric, suffix in (("period", "full"), ("latency", "paced")):
        compared = [parapipe.compare(file) for file in files if file.stem.endswith(suffix)]
        row[metric] = _median(compared, metric)
        row[f"{metric} work"] = _work(compared, metric)
    return row


def _median(compared: Sequence[Comparison], metric: str) -> tuple[float, float]:
    """Return what was predicted of a metric, and the median of what was measured."""
    pairs = [pair for one in compared for pair in one.pairs if pair.metric == metric]
    return pairs[0].predicted, median(pair.measured for pair in pairs)


def _work(compared: Sequence[Comparison], metric: str) -> tuple[float, float]:
    """Return the work that a metric rests on: of the busiest processor, or of all of them."""
    taken = max if metric == "period" else sum
    works = []
    for one in compared:
        pairs = [pair for pair in one.pairs if pair.metric == "work of a processor"]
        works.append((taken(x.predicted for x in pairs), taken(x.measured for x in pairs)))
    return works[0][0], median(found for _, found in works)


def error(figure: Sequence[float]) -> float:
    """Return the relative error of a prediction."""
    predicted, found = figure
    return predicted / found - 1


def reason(row: Row) -> str:
    """Say what most of the errors of more than 8 % come from, out of what the runs measured."""
    return "; ".join(_reasons(row)) or "–"


def _reasons(row: Row) -> Iterator[str]:
    for metric in ("period", "latency"):
        (predicted, found), (expected, worked) = row[metric], row[f"{metric} work"]
        if abs(error(row[metric])) <= WELL:
            continue
        besides = found - predicted - (worked - expected)
        if abs(worked - expected) > abs(besides):
            more = worked / expected - 1
            than = "more" if more > 0 else "less"
            yield f"{metric}: segments take {abs(more):.0%} {than} than when profiled"
        else:
            yield f"{metric}: {besides * 1e6:.0f} µs a frame besides the segments' work"


def section(found: Mapping[str, Sequence[Row]], machine: str) -> str:
    """Return the part of the page that tells of these runs.

    Parameters
    ----------
    found
        What `measured` has returned, by the model's file.
    machine
        What was measured on.
    """
    rows = [row for each in found.values() for row in each]
    lines = [_line(file, row) for file, each in found.items() for row in each]
    head = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    return f"""
## {TITLE}

`make packaged-models-measured` describes this machine ({machine}) as two processors of one core
each, profiles each model, maps it, and runs two plans: that of the least period and that of the
least latency. The period is that of frames admitted as fast as they are taken; the latency is that
of frames of which none waits for another. Measured figures are medians of {ROUNDS} runs of at least
{FRAMES[0]} frames; an error is predicted ÷ measured − 1.
Other programs took at most {max(row["others"] for row in rows):.0%} of the machine during a run.

{_medians(rows, len(found))}

{head}
{chr(10).join(lines)}
"""


def _line(file: str, row: Row) -> str:
    cells = [f"`{Path(file).name}`", row["plan"]]
    for metric in ("period", "latency"):
        predicted, taken = row[metric]
        cells += [f"{predicted * 1e3:.2f}", f"{taken * 1e3:.2f}", f"{error(row[metric]):+.1%}"]
    return f"| {' | '.join([*cells, reason(row)])} |"


def _medians(rows: Sequence[Row], models: int) -> str:
    period, latency = (
        [abs(error(row[metric])) for row in rows] for metric in ("period", "latency")
    )
    return (
        f"Median error of {len(rows)} plans of {models} models: period {median(period):.1%}, "
        f"latency {median(latency):.1%}, both {median([*period, *latency]):.1%}."
    )
