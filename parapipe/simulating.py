"""The part of the API that simulates plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from parapipe.api import load_plan
from parapipe.arguments import check_arguments
from parapipe.errors import PlatformError, SimulationError
from parapipe.loading import load_platform

if TYPE_CHECKING:
    from parapipe.formats.run import SimulationRow
    from parapipe.front.run import Run
    from parapipe.plan.schema import Plan
    from parapipe.platform.platform import Platform
    from parapipe.simulate.contention import Memory
    from parapipe.simulate.simulation import Simulation

MOST_SPANS = 5_000_000  # some minutes, and some hundred bytes each


def simulate_plan(
    path: str | Path,
    *,
    frames: int = 100,
    queue: int | None = None,
    jitter: float = 0.0,
    seed: int = 0,
    saturate: bool = False,
    contention: float | bool = False,
    platform: str | Path | None = None,
    unit: Literal["operator", "segment"] = "operator",
) -> Run:
    """Send frames through a plan as an executor would, event by event.

    Parameters
    ----------
    path
        A plan file.
    queue
        Slots of every channel between processors, in place of the plan's.
    jitter
        Standard deviation of the times of operators and transfers, as a share of them.
    seed
        Of the jitter.
    saturate
        Let frames in as fast as they are taken; otherwise one each predicted period.
    contention
        Lengthening of an operator, as a share of its time, while other processors together move as
        many bytes as the memory can; True for that of the platform, False for none.
    platform
        As for `load_platform`: whose memory is contended; the plan's platform by its name if not
        given.
    unit
        What a processor runs at one go: an operator, or a segment as ONNX Runtime compiles it.

    Raises
    ------
    PlanError, VerificationError
        It is not a plan, or breaks rules.
    SimulationError
        Frames would wait for each other for ever, or are too many, or no contention is known.
    """
    check_arguments("simulate_plan", {k: v for k, v in locals().items() if k != "platform" or v})
    from parapipe.formats.run import run_document
    from parapipe.front.run import Run
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.simulation import simulate

    plan = load_plan(path)
    verify_plan(plan)
    _check_size(plan, frames)
    target = None if contention is False else _platform(plan, platform)
    memory = None if target is None else _memory(target, contention)
    found = simulate(
        plan,
        frames=frames,
        queue=queue,
        jitter=jitter,
        seed=seed,
        saturate=saturate,
        memory=memory,
        unit=unit,
    )
    document = run_document(
        plan,
        found.program,
        found.record,
        how="simulation",
        saturated=saturate,
        simulation=_row(found, unit=unit, queue=queue, jitter=jitter, seed=seed, memory=memory),
    )
    notes = []
    if target is not None and target.name != plan.platform:
        notes.append(
            f"the memory is that of platform '{target.name}', and the plan was made for "
            f"'{plan.platform}'"
        )
    return Run(document, found.record, tuple(notes))


def _check_size(plan: Plan, frames: int) -> None:
    tasks = len(plan.operators) + len(plan.transfers)
    if frames * tasks > MOST_SPANS:
        raise SimulationError(
            f"{frames} frames of {tasks} operators and transfers are too many to simulate; at most "
            f"{MOST_SPANS // tasks} frames of '{plan.model.name}' can be"
        )


def _platform(plan: Plan, platform: str | Path | None) -> Platform:
    """Return the platform whose memory is contended."""
    if platform is not None:
        return load_platform(platform)
    try:
        return load_platform(plan.platform)
    except PlatformError as error:
        raise SimulationError(
            f"contention needs the memory of platform '{plan.platform}', which the plan was made "
            "for and which is none of the shipped ones: give its file by --platform FILE"
        ) from error


def _memory(target: Platform, contention: float | bool) -> Memory:
    from parapipe.simulate.contention import Memory

    if contention is True:
        known = target.evaluation.contention if target.evaluation else 0.0
        if not known:
            raise SimulationError(
                f"platform '{target.name}' does not say how much processors slow each other down; "
                "give `contention` in its section `evaluation`, or a share, as in --contention 0.3"
            )
        contention = known
    return Memory(target.memory.bandwidth_bytes_per_s, float(contention))


def _row(
    found: Simulation,
    *,
    unit: Literal["operator", "segment"],
    queue: int | None,
    jitter: float,
    seed: int,
    memory: Memory | None,
) -> SimulationRow:
    from parapipe.formats.run import SimulationRow, SteadyRow
    from parapipe.pipeline.sustained import PICOSECONDS

    steady = found.steady
    return SimulationRow(
        unit=unit,
        queue=queue,
        jitter=jitter,
        seed=seed,
        contention=memory.contention if memory else None,
        steady=SteadyRow(
            period_s=float(steady.period_ps / PICOSECONDS),
            frames=steady.frames,
            since=steady.since,
        )
        if steady
        else None,
    )
