"""The back ends of the native runner: the libraries that compute a processor's operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan, Processor

BackendName: TypeAlias = Literal["neon", "opencl", "onednn", "xnnpack", "plain"]


@dataclass(frozen=True, slots=True)
class Backend:
    """A library.

    Parameters
    ----------
    prefix
        How the `backend` of a processor begins, in a platform or plan, that is run by it.
    kind
        Kind of processor that it runs on.
    title
        Its name, for people.
    complete
        Whether the runner has a loop of its own for what the library lacks.
    channels_last
        Whether it keeps images pixel by pixel: then a plan's offsets do not hold.
    residual
        Whether its convolutions add a tensor to what they make.
    """

    prefix: str
    kind: str
    title: str
    complete: bool = False
    channels_last: bool = False
    residual: bool = False


BACKENDS: Mapping[BackendName, Backend] = {
    "neon": Backend("armcl-neon", "cpu", "ARM Compute Library on a CPU"),
    "opencl": Backend("armcl-opencl", "gpu", "ARM Compute Library on a GPU"),
    "onednn": Backend("onednn", "cpu", "oneDNN", complete=True, channels_last=True, residual=True),
    "xnnpack": Backend("xnnpack", "cpu", "XNNPACK", complete=True, channels_last=True),
    "plain": Backend(
        "plain", "cpu", "the runner's own loops", complete=True, channels_last=True, residual=True
    ),
}
"""By their names in `plan.json` of an exported folder."""
_OF_KIND: Mapping[str, BackendName] = {"cpu": "neon", "gpu": "opencl"}


def backend_of(processor: Processor) -> BackendName | None:
    """Return what runs a processor's operators: what its `backend` names, or else ARM's library.

    None if nothing does.
    """
    for name, each in BACKENDS.items():
        if processor.kind == each.kind and processor.backend.startswith(each.prefix):
            return name
    return _OF_KIND.get(processor.kind)


def backends_of(plan: Plan, chosen: BackendName | None = None) -> dict[str, BackendName]:
    """Return the back ends of those processors of a plan that one can run, by their names.

    Parameters
    ----------
    chosen
        What runs all of them, in place of what they name.
    """
    found = {each.name: chosen or backend_of(each) for each in plan.processors}
    return {name: backend for name, backend in found.items() if backend}


def library_notes(plan: Plan) -> tuple[str, ...]:
    """Say which CPUs get ARM's library since the platform names a back end of ONNX Runtime."""
    found = [
        each.name
        for each in plan.processors
        if each.kind == "cpu" and each.backend.startswith("onnxruntime")
    ]
    note = (
        f"{listed(found)}: ARM Compute Library computes, as for every CPU whose platform names no "
        "back end of the native runner; on x86-64 write `backend: onednn-cpu` in the platform's "
        "file and map again"
    )
    return (note,) if found else ()
