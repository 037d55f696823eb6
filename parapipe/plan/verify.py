"""The independent verifier: checks a plan by itself, knowing nothing of how it was made."""

from __future__ import annotations

from collections.abc import Iterator
from math import ulp

from parapipe.errors import VerificationError
from parapipe.plan.covered import cover_violations
from parapipe.plan.data_types import type_violations
from parapipe.plan.mapped import MappedPlan, mapped
from parapipe.plan.memory_rules import memory_violations
from parapipe.plan.models import model_violations
from parapipe.plan.placement import placement_violations
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.schema import Plan
from parapipe.plan.structure import structure_violations
from parapipe.plan.transfers import serves_several_stages, transfer_violations, work_s

# The sustained period is exact for times rounded to picoseconds (parapipe.pipeline.sustained).
PICOSECOND_S = 1e-12
# What a quotient or a sum of a thousand doubles may be off by, with room to spare.
RELATIVE = 1e-12


def verify_plan(plan: Plan, like: Plan | None = None, lives: PlanLives | None = None) -> None:
    """Check every rule that a runtime relies on; return if all hold.

    The rules stand with the functions that check them: `structure_violations` (operators and
    tensors), `cover_violations` (parts of split operators), `placement_violations` (stages and
    times), `transfer_violations` (transfers), `type_violations` (data types, and the bytes that
    they make), `model_violations` (frames of several models), `memory_violations` (offsets; only
    where all else holds), and here the predictions:
    the period is the longest stage, one that r processors take turns on counting 1 / r, and the
    throughput its reciprocal; the latency is the sum of the stages, or where a stage works on
    several frames, the time from a frame's first start to its last end; the sustained period lies
    between the work of the busiest processor or link and the longest stage, beyond which it goes
    only if several stages need the same processor or link; the board takes at least the energy of
    the processors; shares of coverage add up to one.

    Times are sums of doubles, and different orders of summation round differently: comparisons
    of times allow one unit in the last place of the largest for each operator.

    Parameters
    ----------
    like
        A plan that keeps the rules; those on the network hold for every plan of the same one.
    lives
        Of the plan's tensors, if they are at hand, with its mapping; they know nothing of offsets.

    Raises
    ------
    VerificationError
        If a rule is broken; `violations` lists every one, and tracebacks show them as notes.
    """
    view = lives.view if lives else mapped(plan)
    times = [at.end_s for at in view.placements.values()]
    tolerance_s = (len(plan.operators) + 2) * ulp(max(0.0, *times, plan.predicted.latency_s))
    found = [
        *network_violations(plan, like),
        *cover_violations(plan),
        *placement_violations(view, tolerance_s),
        *transfer_violations(view, tolerance_s),
        *type_violations(plan),
        *model_violations(view),
        *_predictions(view, tolerance_s),
    ] or [*memory_violations(plan, lives)]  # lives follow from a right schedule only
    if found:
        count = "a rule" if len(found) == 1 else f"{len(found)} rules"
        error = VerificationError(
            f"the plan of '{plan.model.name}' for '{plan.platform}' breaks {count} that runtimes "
            "rely on; write it again with `parapipe map`",
            found,
        )
        for violation in found:
            error.add_note(violation)
        raise error


def network_violations(plan: Plan, like: Plan | None = None) -> Iterator[str]:
    """Yield breaches of the rules on the network; `like` keeps them, as do plans with the same."""
    if like is None or _network(like) != _network(plan):
        yield from structure_violations(plan)


def _network(plan: Plan) -> tuple[object, ...]:
    """Return what `structure_violations` looks at."""
    return plan.inputs, plan.outputs, plan.tensors, plan.operators


def _predictions(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    plan, predicted = view.plan, view.plan.predicted
    longest_s = max(
        stage.time_s / (1 + len(stage.processors[0].replicas or ())) for stage in plan.stages
    )
    if abs(predicted.period_s - longest_s) > tolerance_s:
        yield (f"the period is {predicted.period_s:.9g} s, and the longest stage {longest_s:.9g} s")
    latency_s = (
        view.mapping.elapsed_s if view.interleaved else sum(stage.time_s for stage in plan.stages)
    )
    if abs(predicted.latency_s - latency_s) > tolerance_s:
        yield f"the latency is {predicted.latency_s:.9g} s, and the stages take {latency_s:.9g} s"
    if abs(predicted.throughput_fps * predicted.period_s - 1) > RELATIVE:
        yield (
            f"the throughput is {predicted.throughput_fps:.9g} frames per second, and the period "
            f"{predicted.period_s:.9g} s"
        )
    yield from _sustained(view, longest_s, tolerance_s)
    if predicted.board_energy_j < predicted.energy_j * (1 - RELATIVE):
        yield (
            f"the board takes {predicted.board_energy_j:.9g} J, less than its processors' "
            f"{predicted.energy_j:.9g} J"
        )
    if predicted.coverage is not None:
        shares = predicted.coverage
        total = shares.measured + shares.fitted + shares.nominal
        if abs(total - 1) > RELATIVE:
            yield f"the shares of coverage add up to {total:.9g}, not to 1"


def _sustained(view: MappedPlan, longest_s: float, tolerance_s: float) -> Iterator[str]:
    sustained_s = view.plan.predicted.sustained_period_s
    margin_s = tolerance_s + len(view.plan.operators) * PICOSECOND_S
    if sustained_s > longest_s + margin_s and not serves_several_stages(view):
        yield (
            f"the sustained period is {sustained_s:.9g} s, and the longest stage takes "
            f"{longest_s:.9g} s"
        )
    processors = {processor.name for processor in view.plan.processors}
    for name, busy_s in work_s(view).items():
        if sustained_s < busy_s - margin_s:
            what = "processor" if name in processors else "link"
            yield (
                f"the sustained period is {sustained_s:.9g} s, and {what} '{name}' is busy for "
                f"{busy_s:.9g} s a frame"
            )
