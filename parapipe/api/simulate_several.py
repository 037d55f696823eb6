"""Simulates several plans together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from parapipe.api.checked import PlanGiven, PlatformFile, StrategyGiven, checked
from parapipe.api.load import opened_plan
from parapipe.api.simulate import Disturbed, check_size, disturbed_of, platform_of
from parapipe.errors import SimulationError
from parapipe.files.checked_arguments import Count, FromZero, Seconds, Share
from parapipe.files.mistakes import listed
from parapipe.strategies import registry
from parapipe.strategies.failures import decided

if TYPE_CHECKING:
    from parapipe.front.run import Run
    from parapipe.simulate.simulation import Simulation


@checked
@decided
def simulate_plans(
    plans: Sequence[PlanGiven],
    *,
    frames: Count = 100,
    queue: Count | None = None,
    jitter: Share = 0.0,
    disturb: Disturbed | None = None,
    seed: FromZero = 0,
    saturate: bool = False,
    platform: PlatformFile | None = None,
    unit: Literal["operator", "segment"] = "operator",
    strategy: StrategyGiven = "ready-pool",
    patience_s: Seconds | None = None,
) -> tuple[Run, ...]:
    """Simulate several plans together: a strategy takes the work of all from one pool.

    A frame of each is admitted at a time, saturated or one per longest period that is predicted.
    Every processor of the plans may run the work of all.

    Parameters
    ----------
    plans
        Plans, or their files, for one platform, in the order in which runs are returned.
    frames, queue, jitter, disturb, seed, saturate, platform, unit, patience_s
        As of `simulate_plan`.
    strategy
        One that follows no plan: ready-pool, barriers, or a class of your own as MODULE:CLASS.

    Returns
    -------
    tuple
        A run of each plan.

    Raises
    ------
    PlanError, VerificationError, SimulationError, StrategyError
        As of `simulate_plan`; also if plans are for different platforms, or have a processor at
        different operating points, or the strategy follows a plan.
    """
    from parapipe.documents.build_run import run_document
    from parapipe.documents.run_schema import SimulationRow
    from parapipe.front.run import Run
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.priced_work import costs_of, notes_of, points_hz
    from parapipe.simulate.strategies import priced, simulate_decided
    from parapipe.simulate.variation import Luck
    from parapipe.strategies.failures import patient

    name, decides = registry.strategy(strategy)
    opened = [opened_plan(plan) for plan in plans]
    registry.check_several(name, decides, len(opened))
    for each in opened:
        verify_plan(each)
    check_size(opened, frames)
    if odd := {each.platform for each in opened} - {opened[0].platform}:
        raise SimulationError(
            f"plans are for different platforms ({listed(sorted({opened[0].platform, *odd}))}): "
            "simulate those together that are for one"
        )
    target, points = platform_of(opened[0], platform), points_hz(opened)
    luck = Luck(jitter, disturbed_of(opened, disturb or {}), seed)

    def as_decided() -> tuple[Simulation, ...]:
        return simulate_decided(
            [
                priced(plan, costs_of(plan, target, points), decides, queue=queue, unit=unit)
                for plan in opened
            ],
            decides,
            name,
            frames=frames,
            queue=queue,
            luck=None if luck.is_none else luck,
            saturate=saturate,
        )

    found = patient(as_decided, patience_s)
    how = SimulationRow(
        unit=unit,
        queue=queue,
        jitter=jitter,
        disturbed=dict(luck.disturbed) or None,
        seed=seed,
        contention=None,
        steady=None,
    )
    pace_s = max(each.predicted.period_s for each in opened)
    runs = []
    for each, one in zip(opened, found, strict=True):
        document = run_document(
            each,
            one.program,
            one.record,
            how="simulation",
            saturated=saturate,
            pace_s=pace_s,
            strategy=name,
            simulation=how,
        )
        runs.append(Run(document, one.record, tuple(notes_of(each, target, name))))
    return tuple(runs)
