"""Execution providers of ONNX Runtime that a platform file can name as a processor's backend.

Whether one is there depends on how ONNX Runtime was built; who runs a plan finds out.
Source: https://onnxruntime.ai/docs/execution-providers/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from parapipe.files.mistake import did_you_mean

PREFIX = "onnxruntime-"
CPU = f"{PREFIX}cpu"

Kind = Literal["cpu", "gpu", "npu"]


@dataclass(frozen=True, slots=True)
class Backend:
    """An execution provider.

    Parameters
    ----------
    provider
        ONNX Runtime's name for it.
    runs_on
        For people: the hardware, and the library that drives it.
    kinds
        Kinds of processors that it runs on; several may stand for the same chip.
    threads_option
        Its option for the number of threads, if it has threads of its own on a CPU.
    options
        Options that are set by kind, where a platform gives them no other value.
    """

    provider: str
    runs_on: str
    kinds: tuple[Kind, ...]
    threads_option: str | None = None
    options: Mapping[Kind, Mapping[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a platform file calls it: `onnxruntime-openvino`."""
        return PREFIX + self.provider.removesuffix("ExecutionProvider").lower()


# OpenVINO would bind threads to cores by itself, and leave them free of ours afterwards.
_OPENVINO: Mapping[Kind, Mapping[str, str]] = {
    "cpu": {"device_type": "CPU", "load_config": '{"CPU": {"ENABLE_CPU_PINNING": "NO"}}'},
    "gpu": {"device_type": "GPU"},
    "npu": {"device_type": "NPU"},
}

BACKENDS: Mapping[str, Backend] = {
    each.name: each
    for each in (
        Backend("CPUExecutionProvider", "any CPU, ONNX Runtime's own kernels", ("cpu",)),
        Backend(
            "XnnpackExecutionProvider", "Arm and x86 CPUs, XNNPACK", ("cpu",),
            threads_option="intra_op_num_threads",
        ),
        Backend(
            "OpenVINOExecutionProvider", "Intel CPUs, GPUs and NPUs, OpenVINO",
            ("cpu", "gpu", "npu"), threads_option="num_of_threads", options=_OPENVINO,
        ),
        Backend("ACLExecutionProvider", "Arm CPUs, Arm Compute Library", ("cpu",)),
        Backend("DnnlExecutionProvider", "x86 CPUs, oneDNN", ("cpu",)),
        Backend("CUDAExecutionProvider", "NVIDIA GPUs, cuDNN", ("gpu",)),
        Backend("TensorrtExecutionProvider", "NVIDIA GPUs, TensorRT", ("gpu",)),
        Backend("NvTensorRTRTXExecutionProvider", "NVIDIA RTX GPUs, TensorRT", ("gpu",)),
        Backend("MIGraphXExecutionProvider", "AMD GPUs, MIGraphX", ("gpu",)),
        Backend("ROCMExecutionProvider", "AMD GPUs, ROCm", ("gpu",)),
        Backend("DmlExecutionProvider", "GPUs on Windows, DirectML", ("gpu",)),
        Backend("WebGpuExecutionProvider", "GPUs, WebGPU", ("gpu",)),
        Backend("QNNExecutionProvider", "Qualcomm's NPUs and GPUs, QNN", ("npu", "gpu")),
        Backend("CoreMLExecutionProvider", "Apple's NPUs and GPUs, Core ML", ("npu", "gpu")),
        Backend("NnapiExecutionProvider", "NPUs and GPUs on Android, NNAPI", ("npu", "gpu")),
        Backend("RknpuExecutionProvider", "Rockchip's first NPUs, RKNPU DDK", ("npu",)),
        Backend("VSINPUExecutionProvider", "VeriSilicon's NPUs, TIM-VX", ("npu",)),
        Backend("TIDLExecutionProvider", "TI's C7x and MMA, TIDL, in TI's builds", ("npu",)),
        Backend("CANNExecutionProvider", "Huawei's NPUs, CANN", ("npu",)),
        Backend("VitisAIExecutionProvider", "AMD's NPUs, Vitis AI", ("npu",)),
    )
}  # fmt: skip
"""Providers by the name that a platform file gives them, those of CPUs first."""


def mistake_of(backend: str) -> str:
    """Return what is wrong with a backend that is said to be ONNX Runtime's; empty if nothing."""
    if not backend.startswith(PREFIX) or backend in BACKENDS:
        return ""
    return (
        f"'{backend}' is no execution provider that is known; docs/backends.md lists them"
        f"{did_you_mean(backend, BACKENDS)}"
    )
