"""Simulates plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from parapipe.api.checked import PlanGiven, PlatformFile, checked
from parapipe.api.load import load_platform, opened_plan
from parapipe.errors import PlatformError, SimulationError
from parapipe.files.checked_arguments import Count, FromZero, Must, Share

if TYPE_CHECKING:
    from parapipe.front.run import Run
    from parapipe.plan.schema import Plan
    from parapipe.platform.platform import Platform
    from parapipe.simulate.contention import Memory

MOST_TASKS = 5_000_000  # some minutes, and some hundred bytes each
_Positive = Annotated[float, Must("a positive finite number", gt=0)]
Contention = Annotated[bool | _Positive, Must("True, False or a positive finite number")]


@checked
def simulate_plan(
    plan: PlanGiven,
    *,
    frames: Count = 100,
    queue: Count | None = None,
    jitter: Share = 0.0,
    seed: FromZero = 0,
    saturate: bool = False,
    contention: Contention = False,
    platform: PlatformFile | None = None,
    unit: Literal["operator", "segment"] = "operator",
) -> Run:
    """Send frames through a plan as an executor would, event by event.

    Parameters
    ----------
    plan
        A plan, or its file.
    frames
        How many.
    queue
        Slots of every channel between processors, in place of the plan's.
    jitter
        How much times of operators and transfers vary: their standard deviation, as a share of
        them.
    seed
        Seed of the jitter.
    saturate
        Admit frames as fast as they are taken, not one each predicted period.
    contention
        Lengthening of an operator, as a share of its time, while other processors together move as
        many bytes as the memory can; True for that of the platform, False for none.
    platform
        Whose memory it is; the shipped platform that the plan names if not given.
    unit
        What a processor runs at one go; ONNX Runtime runs segments.

    Raises
    ------
    PlanError, VerificationError
        It is not a plan, or breaks rules.
    SimulationError
        Frames would wait for each other for ever, or are too many, or no contention is known.
    """
    from parapipe.formats.run import SimulationRow, SteadyRow
    from parapipe.formats.run_document import run_document
    from parapipe.front.run import Run
    from parapipe.pipeline.sustained import PICOSECONDS
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.simulation import simulate

    opened = opened_plan(plan)
    verify_plan(opened)
    tasks = len(opened.operators) + len(opened.transfers)
    if frames * tasks > MOST_TASKS:
        raise SimulationError(
            f"{frames} frames of {tasks} operators and transfers are too many to simulate; at most "
            f"{MOST_TASKS // tasks} frames of '{opened.model.name}' can be"
        )
    target = None if contention is False else _platform(opened, platform)
    memory = None if target is None else _memory(target, contention)
    found = simulate(
        opened,
        frames=frames,
        queue=queue,
        jitter=jitter,
        seed=seed,
        saturate=saturate,
        memory=memory,
        unit=unit,
    )
    steady = found.steady
    document = run_document(
        opened,
        found.program,
        found.record,
        how="simulation",
        saturated=saturate,
        simulation=SimulationRow(
            unit=unit,
            queue=queue,
            jitter=jitter,
            seed=seed,
            contention=memory.contention if memory else None,
            steady=None
            if steady is None
            else SteadyRow(
                period_s=float(steady.period_ps / PICOSECONDS),
                frames=steady.frames,
                since=steady.since,
            ),
        ),
    )
    if target is None or target.name == opened.platform:
        return Run(document, found.record, ())
    note = f"the memory is that of platform '{target.name}', and the plan was made for "
    return Run(document, found.record, (f"{note}'{opened.platform}'",))


def _platform(plan: Plan, platform: PlatformFile | None) -> Platform:
    """Return the platform whose memory is contended."""
    if platform is not None:
        return load_platform(platform)
    try:
        return load_platform(plan.platform)
    except PlatformError as error:
        raise SimulationError(
            f"contention needs the memory of platform '{plan.platform}', which the plan was made "
            "for and which is none of the shipped ones: give its file by `platform`"
        ) from error


def _memory(target: Platform, contention: float | bool) -> Memory:
    from parapipe.simulate.contention import Memory

    if contention is True:
        known = target.evaluation.contention if target.evaluation else 0.0
        if not known:
            raise SimulationError(
                f"platform '{target.name}' does not say how much processors slow each other down; "
                "give contention in its section evaluation, or a share, as in `contention` 0.3"
            )
        contention = known
    return Memory(target.memory.bandwidth_bytes_per_s, float(contention))
