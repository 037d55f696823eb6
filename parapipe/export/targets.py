"""The targets of `parapipe export` by name.

A new one is one module, and a line here or an entry point of a package that names the module.

Its module holds `export(plan, model, destination) -> Exported`. The plan keeps all rules, the
model is the file that it was made for, and the destination is a path, or None where none was given.
It may take keywords of `export_plan`, which it names in a tuple `TAKES`: a user who gives others
gets an error.
What needs no model holds `export_plan(plan, destination) -> Exported` in its place.
A target that writes single files also holds `written(destination) -> Iterator[Written]`: which it
would replace, and how one that it has written is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from parapipe.errors import ArgumentError, OutputError
from parapipe.export.exported import Exported
from parapipe.files.mistakes import did_you_mean
from parapipe.files.plug_ins import Registry
from parapipe.plan.schema import Plan

Export = Callable[..., Exported]
ExportPlan = Callable[[Plan, Path | None], Exported]


def _misfit(module: ModuleType) -> str:
    fits = any(callable(getattr(module, each, None)) for each in ("export", "export_plan"))
    return "" if fits else "has neither a function `export` nor `export_plan`"


TARGETS = Registry(
    "target",
    "parapipe.export_targets",
    {
        "arm-co-up": "parapipe.targets.arm_co_up",
        "armcl": "parapipe.targets.native.folder",
        "cpp": "parapipe.targets.cpp.folder",
        "cuda": "parapipe.targets.cpp.cuda",
        "genai": "parapipe.targets.genai",
        "model-explorer": "parapipe.targets.model_explorer",
        "native": "parapipe.targets.native.folder",
        "ncnn": "parapipe.targets.ncnn.folder",
        "onnxruntime": "parapipe.export.onnxruntime.folder",
        "perfetto": "parapipe.targets.perfetto",
        "rknn": "parapipe.targets.rknn.folder",
        "segments": "parapipe.export.segment_files",
    },
    ArgumentError,
    _misfit,
)
_SEGMENTS = "segments"
_COMPILERS = frozenset(
    {
        "coral",
        "eiq",
        "hailo",
        "openvino",
        "qnn",
        "rknpu",
        "snpe",
        "tensorrt",
        "tflite",
        "trt",
    }
)
"""Names that stand for compilers of other vendors, see docs/segments.md."""


def target(name: str) -> Export | None:
    """Return what exports a plan and its model to a target; None if it needs the plan only.

    Raises
    ------
    ArgumentError
        If there is none of that name.
    """
    export: Export | None = getattr(_module(name), "export", None)
    return export


def plan_export_function(name: str) -> ExportPlan:
    """Return what exports to a target that needs the plan only."""
    export: ExportPlan = _module(name).export_plan
    return export


def takes_keyword(name: str, key: str) -> bool:
    """Tell whether a target's `export` takes a keyword."""
    return key in getattr(_module(name), "TAKES", ())


def keywords_of(name: str, given: Mapping[str, object]) -> dict[str, object]:
    """Return the keywords that a target's `export` is called with.

    Parameters
    ----------
    given
        Values by keyword of `export_plan`; those that are None or False are not given.

    Raises
    ------
    ArgumentError
        If a target does not take one, but for `progress`.
    """
    takes = getattr(_module(name), "TAKES", ())
    wanted = {key: value for key, value in given.items() if value not in (None, False)}
    odd = [key for key in wanted if key not in takes and key != "progress"]
    if odd:
        others = [each for each in TARGETS.names() if takes_keyword(each, odd[0])]
        raise ArgumentError(
            f"the target '{name}' takes no `{odd[0]}`, which is for {', '.join(others)}"
        )
    return {key: value for key, value in wanted.items() if key in takes}


def refuse_other_files(name: str, destination: Path) -> None:
    """Raise an OutputError if a file would be replaced that no export to the target has written."""
    written = getattr(_module(name), "written", None)
    for each in written(destination) if written else ():
        if each.path.is_file() and not each.is_own(each.path.read_bytes()):
            raise OutputError(
                f"{each.path}: is there already, and no export to {name} has written it; name "
                "another place, or replace it with `force`"
            )


def _module(name: str) -> ModuleType:
    if not TARGETS.has(name):
        names = TARGETS.names()
        meant = did_you_mean(name, names)
        if name.lower() in _COMPILERS:
            meant = f"; the compiler of {name} takes the ONNX models of the target '{_SEGMENTS}'"
        raise ArgumentError(f"there is no target '{name}': choose from {', '.join(names)}{meant}")
    module: ModuleType = TARGETS.load(name)
    return module
