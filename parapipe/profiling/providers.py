"""Which of ONNX Runtime's execution providers runs a processor, and with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from parapipe.errors import RuntimeMissingError
from parapipe.files.telemetry import decline_telemetry
from parapipe.platform.consistency import BACKENDS, CPU, Backend

CPU_PROVIDER = BACKENDS[CPU].provider


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs a processor's operators.

    Parameters
    ----------
    provider
        Name of the execution provider; empty if there is none.
    options
        What it is given, but for the number of threads.
    threads_option
        Its option for the number of threads, if it has threads of its own.
    obstacle
        Why no provider can be bound to this processor; empty if one can.
    """

    provider: str
    options: Mapping[str, str] = field(default_factory=dict)
    threads_option: str | None = None
    obstacle: str = ""


def onnx_runtime() -> ModuleType:
    """Return the module onnxruntime, told not to report to its makers.

    Raises
    ------
    RuntimeMissingError
        If it is not installed.
    """
    decline_telemetry()
    try:
        import onnxruntime
    except ImportError:
        raise RuntimeMissingError(
            "ONNX Runtime is not installed, and nothing can be run or measured without it: "
            "pip install 'parapipe[run]'"
        ) from None
    module: ModuleType = onnxruntime
    return module


def choice_of(
    kind: str, backend: str, cores: Sequence[int], options: Mapping[str, str] | None = None
) -> Choice:
    """Return what runs a processor's operators.

    A CPU with cores is run by ONNX Runtime's own kernels if its backend is none of ONNX Runtime's.

    Parameters
    ----------
    kind, backend, cores, options
        As the platform has them.
    """
    entry = BACKENDS.get(backend)
    if kind != "cpu":
        if entry is None or entry.kinds == ("cpu",):
            return Choice("", obstacle=f"its backend {backend} is none of ONNX Runtime's")
        return Choice(entry.provider, _options_of(entry, kind, options))
    obstacle = "" if cores else "its cores are not listed"
    if entry is None or "cpu" not in entry.kinds:
        return Choice(CPU_PROVIDER, obstacle=obstacle)
    return Choice(entry.provider, _options_of(entry, kind, options), entry.threads_option, obstacle)


def _options_of(backend: Backend, kind: str, own: Mapping[str, str] | None) -> Mapping[str, str]:
    defaults = next((each for name, each in backend.options.items() if name == kind), {})
    return {**defaults, **(own or {})}
