"""ONNX Runtime's execution providers, and the processors they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, Protocol

from parapipe.errors import RuntimeMissingError

CPU_PROVIDER = "CPUExecutionProvider"
PREFIX = "onnxruntime-"

Kind = Literal["gpu", "npu"]
ACCELERATORS: Mapping[str, Kind] = {
    "CUDAExecutionProvider": "gpu",
    "DmlExecutionProvider": "gpu",
    "MIGraphXExecutionProvider": "gpu",
    "NvTensorRTRTXExecutionProvider": "gpu",
    "ROCMExecutionProvider": "gpu",
    "TensorrtExecutionProvider": "gpu",
    "WebGpuExecutionProvider": "gpu",
    "CANNExecutionProvider": "npu",
    "CoreMLExecutionProvider": "npu",
    "NnapiExecutionProvider": "npu",
    "QNNExecutionProvider": "npu",
    "RknpuExecutionProvider": "npu",
    "VSINPUExecutionProvider": "npu",
    "VitisAIExecutionProvider": "npu",
}
"""Providers that run on something else than the CPU; several may stand for the same chip.

Source: https://onnxruntime.ai/docs/execution-providers/
"""


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider that runs a processor's operators.

    Parameters
    ----------
    reason
        Why there is none; empty if there is.
    """

    name: str
    reason: str = ""


def onnx_runtime() -> ModuleType:
    """Return the module onnxruntime.

    Raises
    ------
    RuntimeMissingError
        If it is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise RuntimeMissingError(
            "ONNX Runtime is not installed, and nothing can be run or measured without it: "
            "pip install 'parapipe[run]'"
        ) from None
    module: ModuleType = onnxruntime
    return module


def backend_of(provider: str) -> str:
    """Return the backend that a platform file names for a provider: `onnxruntime-cuda`."""
    return PREFIX + provider.removesuffix("ExecutionProvider").lower()


class Runnable(Protocol):
    """A processor of a platform or of a plan."""

    @property
    def kind(self) -> str:
        """What it is: cpu, gpu, npu, dsp."""

    @property
    def backend(self) -> str:
        """What its operators were timed with."""

    @property
    def cores(self) -> Sequence[int]:
        """Its cores; none if they are not known."""


def provider_of(processor: Runnable) -> Provider:
    """Return the provider that runs a processor's operators, or why there is none.

    A CPU with cores is run by ONNX Runtime's own kernels, whatever backend its platform names.
    """
    if processor.kind == "cpu":
        return Provider(CPU_PROVIDER, "" if processor.cores else "its cores are not listed")
    for provider in ACCELERATORS:
        if processor.backend == backend_of(provider):
            return Provider(provider)
    return Provider("", f"its backend {processor.backend} is none of ONNX Runtime's")
