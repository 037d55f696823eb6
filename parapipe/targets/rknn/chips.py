"""Which processors of a plan run what Rockchip's compiler makes, and on which core each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from parapipe.errors import ExportError
from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan, Processor
from parapipe.profiling.runtimes import has_provider

COMPILER: Final = "rknn"
CORES: Final[Mapping[str, int]] = {"rk3562": 1, "rk3566": 1, "rk3568": 1, "rk3576": 2, "rk3588": 3}
"""Cores of each chip's NPU. Source: rknn-toolkit-lite2's `init_runtime`, whose core masks are for
the chips with several."""


def npus_of(plan: Plan) -> dict[str, Processor]:
    """Return the processors of a plan that run compiled segments, by name.

    Raises
    ------
    ExportError
        If there is none, if it uses a processor that neither the compiler nor a provider of ONNX
        Runtime serves, or if there are more of them than the NPU has cores.
    """
    npus = {
        each.name: each
        for each in plan.processors
        if each.compiler is not None and each.compiler.name == COMPILER
    }
    others = [each for each in plan.processors if each.name not in npus and not has_provider(each)]
    if others:
        names = [each.name for each in others]
        leave = " ".join(f"--exclude {name}" for name in names)
        raise ExportError(
            f"the plan uses {listed([f'{p.name} ({p.backend})' for p in others])}, which has no "
            f"runtime in a folder of the target {COMPILER}: map with `{leave}`, or choose a "
            "configuration without it"
        )
    if not npus:
        raise ExportError(
            f"the plan uses no processor whose platform names the compiler '{COMPILER}': choose a "
            "configuration with an NPU, which computes in float16 or int8 (map with "
            "`--precision`), or export it to onnxruntime"
        )
    _check_cores(npus)
    return npus


def core_masks(npus: Mapping[str, Processor]) -> dict[str, str | None]:
    """Return the name of each one's core mask, as RKNNLite has it; None on chips with one core."""
    return {
        name: f"NPU_CORE_{core}" if CORES.get(target_of(each), 1) > 1 else None
        for core, (name, each) in enumerate(npus.items())
    }


def target_of(npu: Processor) -> str:
    """Return the chip, as the compiler calls it."""
    assert npu.compiler is not None, "npus_of has chosen it"
    return npu.compiler.target


def _check_cores(npus: Mapping[str, Processor]) -> None:
    targets = {target_of(each) for each in npus.values()}
    if len(targets) > 1:
        raise ExportError(
            f"the plan's NPUs are of {listed(sorted(targets))}: a board has one chip; correct "
            "`compiler` in the platform's file"
        )
    (target,) = targets
    if target in CORES and len(npus) > CORES[target]:
        raise ExportError(
            f"the plan uses {listed(list(npus))}, and the NPU of {target} has {CORES[target]} "
            f"core{'s' * (CORES[target] > 1)}: correct the platform's file"
        )
