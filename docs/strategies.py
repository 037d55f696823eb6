"""Simulates strategies on the A311D, and writes the tables of strategies.md.

python docs/strategies.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import parapipe
from parapipe import Plan
from parapipe.cost.cost_table import build_cost_table
from parapipe.files.atomic import write_atomically
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan

if TYPE_CHECKING:
    from parapipe import Run

PAGE = Path(__file__).with_name("strategies.md")
MARK = "<!-- Written by python docs/strategies.py. -->\n"
BOARD = "amlogic-a311d"
MODELS = ("googlenet", "inception-v3", "resnet-50")
JITTERS = (0.0, 0.05, 0.1, 0.2)
DISTURBED = 0.5
JOINING = (("big",), ("big", "little"), ("big", "little", "gpu"))
FRAMES = 200
LATE = 1.005  # of the time between frames


def plan_of(model: str) -> Plan:
    """Return the plan with the most frames per second, with proven schedules."""
    front = parapipe.map(f"zoo:{model}", BOARD, objectives="latency-throughput", interleave="none")
    return front.best("period").plan()


def cell(plan: Plan, strategy: str, jitter: float) -> str:
    """Return frames per second, saturated, and milliseconds of frames once a predicted period."""
    full = simulated(plan, strategy, jitter=jitter, saturate=True)
    paced = simulated(plan, strategy, jitter=jitter)
    observed_s = paced.document.period.observed_s or 0.0
    keeps_up = observed_s < plan.predicted.period_s * LATE
    latency = f"{paced.document.latency.median_s * 1e3:.0f} ms" if keeps_up else "too slow"
    return f"{fps(full):.2f} fps, {latency}"


def simulated(
    plan: Plan,
    strategy: str,
    *,
    jitter: float = 0.0,
    saturate: bool = False,
    disturb: dict[str, float] | None = None,
) -> Run:
    """Return a run of a plan as a strategy decides."""
    return parapipe.simulate_plan(
        plan,
        strategy=strategy,
        frames=FRAMES,
        jitter=jitter,
        saturate=saturate,
        disturb=disturb,
        seed=1,
    )


def fps(run: Run) -> float:
    """Return frames per second."""
    return 1 / (run.document.period.observed_s or float("inf"))


def page(text: str, lines: Sequence[str]) -> str:
    """Return the page's text with its tables replaced."""
    return text.partition(MARK)[0] + MARK + "\n".join(["", *lines, ""])


def tables(plans: dict[str, Plan]) -> Iterator[str]:
    """Yield the lines of the tables."""
    names = parapipe.strategy_names()
    order = ("plan", *(name for name in ("steal", "ready-pool", "barriers") if name in names))
    yield f"| model | jitter | {' | '.join(f'`{name}`' for name in order)} |"
    yield "|---|---|" + "---|" * len(order)
    for model, plan in plans.items():
        for jitter in JITTERS:
            cells = (cell(plan, name, jitter) for name in order)
            yield f"| {model} | {jitter * 100:g} % | {' | '.join(cells)} |"
    yield ""
    yield "One processor disturbed in half of the frames: frames per second, saturated, and the"
    yield "share that is left of those of the same strategy with all processors undisturbed:"
    yield ""
    yield f"| model | disturbed | {' | '.join(f'`{name}`' for name in order)} |"
    yield "|---|---|" + "---|" * len(order)
    for model, plan in plans.items():
        for processor in plan.processors:
            cells = (_kept(plan, name, processor.name) for name in order)
            yield f"| {model} | {processor.name} | {' | '.join(cells)} |"


def joined(models: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table of processors that join."""
    yield ""
    yield "Frames per second, saturated, as processors join (figure 9 of ASPEN). Both strategies"
    yield "decide all at run time; the plan only says which processors there are:"
    yield ""
    yield f"| model | strategy | {' | '.join('+'.join(names) for names in JOINING)} |"
    yield "|---|---|" + "---|" * len(JOINING)
    for model in models:
        plans = [plan_on(model, names) for names in JOINING]
        for strategy in ("ready-pool", "barriers"):
            cells = (f"{fps(simulated(plan, strategy, saturate=True)):.2f}" for plan in plans)
            yield f"| {model} | `{strategy}` | {' | '.join(cells)} |"


def plan_on(model: str, names: Sequence[str]) -> Plan:
    """Return a plan whose operators are dealt out to some processors in turn."""
    graph, board = parapipe.load_model(f"zoo:{model}"), parapipe.load_platform(BOARD)
    costs, count = build_cost_table(graph, board), len(graph.operators)
    placed = tuple(board.index(names[v % len(names)]) for v in range(count))
    assignment = Assignment(placed, (tuple(range(count)),), ordered=True)
    return Plan.of(build_plan(graph, board, costs, mapping_of(graph, board, costs, assignment)))


def _kept(plan: Plan, strategy: str, processor: str) -> str:
    whole = fps(simulated(plan, strategy, saturate=True))
    left = fps(simulated(plan, strategy, saturate=True, disturb={processor: DISTURBED}))
    return f"{left:.2f} fps, {left / whole:.0%}"


if __name__ == "__main__":
    found = {model: plan_of(model) for model in MODELS}
    for told in found.values():
        print(told)
    simulated_lines = (*tables(found), *joined(MODELS))  # takes minutes
    write_atomically(PAGE, page(PAGE.read_text(encoding="utf-8"), simulated_lines).encode())
