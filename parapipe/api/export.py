"""Writes plans for runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import Model, PlanLike, checked
from parapipe.api.load import located_model, opened_plan
from parapipe.search.options import FilePath

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
    """
    from parapipe.export.targets import TARGETS, plan_target, refuse_others
    from parapipe.export.targets import target as export_of
    from parapipe.plan.verify import verify_plan

    export = export_of(target)
    loaded = opened_plan(plan)
    verify_plan(loaded)
    place = None if destination is None else Path(destination)
    if place is not None and not force:
        refuse_others(target, place)
    if export is None:
        with TARGETS.failures_of(target):
            return plan_target(target)(loaded, place)
    with located_model(loaded, model) as path, TARGETS.failures_of(target):
        return export(loaded, path, place)
