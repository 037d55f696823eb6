"""Which targets of `parapipe export` write a folder that runs a set of processors.

Each has its runner: ONNX Runtime's providers, what a vendor's compiler makes with its library, or
the runner on ARM Compute Library. What has no runner can be planned, and its figures are nominal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from parapipe.files.mistakes import join_with_and
from parapipe.profiling.providers import choice_of

_LIBRARY = "armcl"


class _CompilerTarget(Protocol):
    @property
    def name(self) -> str: ...


class Described(Protocol):
    """What a platform or a plan says of a processor."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kind(self) -> str:
        """What it is: cpu, gpu, npu, dsp."""

    @property
    def backend(self) -> str:
        """What its operators are timed with."""

    @property
    def cores(self) -> Sequence[int]:
        """Numbers of its CPU cores."""

    @property
    def options(self) -> Mapping[str, str] | None:
        """What a provider of ONNX Runtime is given."""

    @property
    def compiler(self) -> _CompilerTarget | None:
        """The compiler of its vendor."""


def has_provider(processor: Described) -> bool:
    """Tell whether a provider of ONNX Runtime runs a processor's operators."""
    chosen = choice_of(processor.kind, processor.backend, processor.cores, processor.options)
    return bool(chosen.provider)


def exports_of(
    processors: Sequence[Described], used: Collection[str], precision: str
) -> tuple[str, ...] | None:
    """Return the targets whose folder runs some processors, each by its own back end.

    Parameters
    ----------
    processors
        All of the platform.
    used
        Names of those that shall run.
    precision
        What the model is planned in.

    Returns
    -------
    Names of targets; None where no processor of the platform has a compiler.
    """
    if not any(each.compiler for each in processors):
        return None
    processors = [each for each in processors if each.name in used]
    targets = []
    if precision == "model" and all(each.backend.startswith(_LIBRARY) for each in processors):
        targets.append(_LIBRARY)
    if all(map(has_provider, processors)):
        targets.append("onnxruntime")
    names = sorted({each.compiler.name for each in processors if each.compiler})
    if len(names) == 1 and all(each.compiler or has_provider(each) for each in processors):
        targets += names
    return tuple(targets)


def runtime_note(processors: Sequence[Described]) -> str:
    """Return a sentence on processors that have no runtime beside an NPU; empty if all have one.

    Of platforms on which no processor has a compiler, nothing is said: `run` and `export` say what
    stands in for what.
    """
    compiled = [each.name for each in processors if each.compiler]
    bare = [each.name for each in processors if not each.compiler and not has_provider(each)]
    if not compiled or not bare:
        return ""
    leave_out = " ".join(f"--exclude {name}" for name in bare)
    have = "have" if len(bare) > 1 else "has"
    return (
        f"{join_with_and(bare)} of this board {have} no runtime here beside "
        f"{join_with_and(compiled)}: leave it out by `{leave_out}`, or take rows with it as nominal"
    )
