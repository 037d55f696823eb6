"""ONNX Runtime's execution providers, and the processors they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Literal

from parapipe.errors import RuntimeMissingError

CPU_PROVIDER = "CPUExecutionProvider"
PREFIX = "onnxruntime-"

Kind = Literal["gpu", "npu"]
_NAMES: Mapping[Kind, str] = {
    "gpu": "CUDA Dml MIGraphX NvTensorRTRTX ROCM Tensorrt WebGpu",
    "npu": "CANN CoreML Nnapi QNN Rknpu VSINPU VitisAI",
}
ACCELERATORS: Mapping[str, Kind] = {
    f"{name}ExecutionProvider": kind for kind, names in _NAMES.items() for name in names.split()
}
"""Providers that run on something else than the CPU; several may stand for the same chip.

Source: https://onnxruntime.ai/docs/execution-providers/
"""


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


def provider_of(kind: str, backend: str, cores: Sequence[int]) -> tuple[str, str]:
    """Return the provider that runs a processor's operators, and why it cannot; one may be empty.

    A CPU with cores is run by ONNX Runtime's own kernels, whatever backend its platform names.
    """
    if kind == "cpu":
        return CPU_PROVIDER, "" if cores else "its cores are not listed"
    for provider in ACCELERATORS:
        if backend == backend_of(provider):
            return provider, ""
    return "", f"its backend {backend} is none of ONNX Runtime's"
