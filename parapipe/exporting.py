"""The part of the API that writes plans for runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api import load_plan
from parapipe.arguments import check_arguments
from parapipe.loading import located_model

if TYPE_CHECKING:
    from parapipe.export.exported import Exported


def export_targets() -> tuple[str, ...]:
    """Names of the runtimes that plans can be written for."""
    from parapipe.export.targets import target_names

    return target_names()


def check_target(name: str) -> None:
    """Raise an ArgumentError if there is no such runtime."""
    from parapipe.export.targets import target

    target(name)


def export_plan(
    plan: str | Path,
    target: str,
    destination: str | Path | None = None,
    *,
    model: str | Path | None = None,
) -> Exported:
    """Write a plan for a runtime, with the weights of its model.

    Parameters
    ----------
    plan
        A plan file.
    target
        One of `export_targets`.
    destination
        Folder or file to write; what is there from an earlier export is replaced.
    model
        The ONNX file, or `zoo:NAME`; what the plan names if not given. It must be the very model
        that the plan was made for. Targets that need none don't look for it.

    Raises
    ------
    ParapipeError
        With what is wrong, where, and what to do.
    """
    check_arguments("export_plan", {"model": model} if model is not None else {})
    from parapipe.export.targets import plan_target
    from parapipe.export.targets import target as found
    from parapipe.plan.verify import verify_plan

    export = found(target)
    loaded = load_plan(plan)
    verify_plan(loaded)
    place = None if destination is None else Path(destination)
    if export is None:
        return plan_target(target)(loaded, place)
    with located_model(loaded, model) as path:
        return export(loaded, path, place)
