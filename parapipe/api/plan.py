"""A plan and what can be done with it: checked, exported, run and simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import Model, PlanLike, checked
from parapipe.api.load import locate_model, open_plan
from parapipe.api.run import run_plan
from parapipe.api.simulate import simulate_plan
from parapipe.files.progress import Tell
from parapipe.plan import schema
from parapipe.plan.summary import Summary, plan_stages_title, summarize
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from parapipe.export.exported import Exported


def export_targets() -> tuple[str, ...]:
    """Names of the runtimes that plans can be written for."""
    from parapipe.export.targets import TARGETS

    return TARGETS.names()


def check_target(name: str) -> None:
    """Raise an ArgumentError if there is no such runtime."""
    from parapipe.export.targets import target

    target(name)


@checked
def export_plan(
    plan: PlanLike,
    target: str,
    destination: FilePath | None = None,
    *,
    model: Model | None = None,
    force: bool = False,
    calibration: FilePath | None = None,
    check: bool = False,
    token_plan: PlanLike | None = None,
    progress: Tell | None = None,
) -> Exported:
    """Write a plan for a runtime, with the weights of its model.

    Parameters
    ----------
    plan
        A plan, or its file.
    target
        One of `export_targets`.
    destination
        Folder or file to write; an earlier export there is replaced, and nothing else.
    model
        The ONNX file, or `zoo:NAME`; default: the one that the plan names. It must be the model
        that the plan was made for. Targets that need none don't look for it.
    force
        Replace a single file that no export has written, too. A folder that holds other files than
        an export's is never replaced.
    calibration
        Samples of the model's inputs, for segments in int8: a file `.npz` as `run` takes it for
        `input`, or a folder of such files. Segments of an NPU are in float16 without. For the
        target rknn.
    check
        Run a sample through all segments, those of the NPU in the compiler's simulator, and tell
        how far they agree with the float model. For the target rknn.
    token_plan
        A plan, or its file, of one token behind a cache, made for the same model: it runs the
        tokens after the prompt. For the target genai.
    progress
        Called with how many segments are compiled.
    """
    from parapipe.export.targets import (
        TARGETS,
        keywords_of,
        plan_export_function,
        refuse_other_files,
    )
    from parapipe.export.targets import target as export_of
    from parapipe.plan.verify import verify_plan

    export = export_of(target)
    for_tokens = None if token_plan is None else open_plan(token_plan)
    given = {
        "calibration": None if calibration is None else Path(calibration),
        "check": check,
        "token_plan": for_tokens,
        "progress": progress,
    }
    keywords = keywords_of(target, given)
    loaded = open_plan(plan)
    verify_plan(loaded)
    if for_tokens is not None:
        verify_plan(for_tokens)
    place = None if destination is None else Path(destination)
    if place is not None and not force:
        refuse_other_files(target, place)
    if export is None:
        with TARGETS.failures_of(target):
            return plan_export_function(target)(loaded, place)
    with locate_model(loaded, model) as path, TARGETS.failures_of(target):
        return export(loaded, path, place, **keywords)


@checked
def verify_plan(plan: PlanLike) -> Summary:
    """Check that a plan is consistent, and return its figures.

    Raises
    ------
    PlanError
        It is not a plan.
    VerificationError
        It breaks rules; the error lists every violation.
    """
    from parapipe.plan.verify import verify_plan as verify

    opened = open_plan(plan)
    verify(opened)
    return summarize(opened)


class Plan(schema.Plan):
    """A plan: a configuration written down for a runtime.

    Its methods are the functions `parapipe.run_plan` and so on, with the plan as first argument.
    """

    run = run_plan
    simulate = simulate_plan
    export = export_plan
    verify = verify_plan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, schema.Plan) and all(
            getattr(self, name) == getattr(other, name) for name in schema.Plan.model_fields
        )

    def __repr__(self) -> str:
        """Return a line: the whole plan would be long."""
        figures, stages = self.predicted, plan_stages_title(self)
        return (
            f"<Plan of {self.model.name} on {self.platform}, {stages}: "
            f"{figures.latency_s * 1e3:.1f} ms, {figures.throughput_fps:.2f} fps, "
            f"{figures.energy_j * 1e3:.1f} mJ>"
        )

    __hash__ = schema.Plan.__hash__

    @classmethod
    def of(cls, plan: schema.Plan) -> Plan:
        """Return a plan with these methods; the content is shared."""
        copy = cls.__new__(cls)
        copy.__setstate__(plan.__getstate__())
        return copy
