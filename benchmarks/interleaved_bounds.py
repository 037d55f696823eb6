"""How much throughput whole stages leave on the table: the least period that loads allow.

    python -m benchmarks.interleaved_bounds [--fronts FOLDER] [MODEL ...]

If operators of several frames take turns on every processor, the greatest load of a processor is
what limits the period: min T, Σ_p x_vp = 1, load_p ≤ T. It is solved for each model of the zoo on
both boards, twice: with hand-overs as the platform has them, which on both are pure delays, and
with every hand-over as work of the processor that receives it. Beside it stands the best throughput
of what `map` finds where a processor belongs to one stage; `--fronts` takes that from a folder of
`python -m benchmarks.same_fronts map FOLDER` where it is there.

The page is written after each row, and the rows of models that are not named stay as they are.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, log
from pathlib import Path
from time import process_time

import click

import parapipe
from benchmarks.machine import description
from benchmarks.same_fronts import BOTH, PLATFORMS, path_of
from parapipe.api.load import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.modulo.least_period import least_period
from parapipe.problems.problems import whole_problem
from parapipe.solvers.problem import MappingProblem
from parapipe.zoo.registry import examples

RESULTS = Path(__file__).with_name("results")
ROWS, PAGE = RESULTS / "interleaved_bounds.json", RESULTS / "interleaved_bounds.md"
WORK_S = 30.0  # of counted work, for each problem

Row = dict[str, float]


def stages_fps(model: str, platform: str, fronts: Path | None) -> float:
    """Return the best throughput of mappings to stages."""
    kept = path_of(fronts, (model, platform, BOTH)) if fronts else None
    if kept and kept.exists():
        found = json.loads(kept.read_text(encoding="utf-8"))["configurations"]
        staged = (each for each in found if each["kind"] != "interleaved" and not each.get("least"))
        stages = [each["period_s"] for each in staged]
    else:
        front = parapipe.map(
            f"zoo:{model}",
            platform,
            objectives="latency-throughput",
            interleave="none",
            note=lambda _: None,
        )
        stages = [each.period_s for each in front.configurations]
    return 1 / min(map(float, stages))


def measured(model: str, platform: str, fronts: Path | None) -> Row:
    """Solve a model with both kinds of hand-overs; return frames per second and gaps."""
    graph = load_model(f"zoo:{model}")
    problem = whole_problem(graph, build_cost_table(graph, load_platform(platform)))
    row = {"operators": problem.operators, "stages": stages_fps(model, platform, fronts)}
    for kind, posed in (("given", problem), ("work", received(problem))):
        begin_s = process_time()
        found = least_period(posed, time_limit_s=WORK_S, seed=0, deterministic=True)
        row[kind] = 1 / found.period_s
        row[f"{kind} bound"] = 1 / found.bound_s
        row[f"{kind} gap"] = found.gap
        row[f"{kind} s"] = process_time() - begin_s
    return row


def received(problem: MappingProblem) -> MappingProblem:
    """Return the problem with every hand-over as work of the processor that receives it."""
    everyone = range(problem.processors)
    receiver = tuple(tuple(None if p == q else q for q in everyone) for p in everyone)
    return replace(problem, transfer_resource=receiver)


def page(rows: dict[str, dict[str, Row]]) -> str:
    """Return the page with a table for each board."""
    tables = "\n".join(
        _table(platform, rows[platform]) for platform in PLATFORMS if platform in rows
    )
    return f"""# The least period of interleaved frames

Written by `python -m benchmarks.interleaved_bounds` on {description()["CPU"]}. Frames per second;
*stages* is the best that `map` finds where a processor belongs to one stage, or found when kept
fronts were made (`--fronts`). *As given* has
hand-overs as the platform does, *as work* has each of them as work of the receiving processor, once
for each tensor and processor. *Found* is the busiest processor's load of the best assignment of
whole operators, *bound* what no assignment exceeds, *gap* how far they are apart (0: proven to a
millionth), × *found* over *stages*. As pure delays, a modulo schedule exists for what is found; as
work, what is found is a bound on schedules. Each problem has {WORK_S:g} s of counted work for
CP-SAT; *s* is processor time of both, relaxations included.

{tables}"""


def _table(platform: str, rows: dict[str, Row]) -> str:
    lines = [
        f"| `{model}` | {row['operators']:.0f} | {row['stages']:.4g} "
        + "".join(
            f"| {row[kind]:.4g} | {row[f'{kind} bound']:.4g} | {row[f'{kind} gap']:.2%} "
            f"| {row[kind] / row['stages']:.2f} "
            for kind in ("given", "work")
        )
        + f"| {row['given s'] + row['work s']:.0f} |"
        for model, row in sorted(rows.items())
    ]
    means = {
        kind: exp(sum(log(row[kind] / row["stages"]) for row in rows.values()) / len(rows))
        for kind in ("given", "work")
    }
    return f"""## {platform}

Geometric means of {len(rows)} models: {means["given"]:.2f} × the throughput of stages as given,
{means["work"]:.2f} × as work.

| model | operators | stages | as given | bound | gap | × | as work | bound | gap | × | s |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{chr(10).join(lines)}
"""


@click.command()
@click.option("--fronts", type=click.Path(path_type=Path, file_okay=False), help="Kept fronts.")
@click.argument("models", nargs=-1)
def main(fronts: Path | None, models: tuple[str, ...]) -> None:
    """Solve the models that are named, or all, and write the page after each row."""
    rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    for model in models or examples():
        for platform in PLATFORMS:
            row = measured(model, platform, fronts)
            rows.setdefault(platform, {})[model] = row
            ROWS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            PAGE.write_text(page(rows), encoding="utf-8")
            click.echo(f"{model} {platform} {row}")


if __name__ == "__main__":
    main()
