"""Chips with a Hexagon tensor processor (HTP) that Qualcomm's compiler knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Chip:
    """How the compiler calls a chip.

    Parameters
    ----------
    architecture
        Its option `htp_arch`: 73 for Hexagon v73.
    soc_model
        Its option `soc_model`. Without it, and for a chip without float16, it takes integers only.
    float16
        Whether the chip computes in float16.
    """

    architecture: int
    soc_model: int
    float16: bool = True


CHIPS: Mapping[str, Chip] = MappingProxyType(
    {
        "qcm6490": Chip(68, 93, float16=False),
        "qcs9100": Chip(73, 77),
        "sa8255": Chip(73, 52),
        "sa8295": Chip(68, 39),
        "sm8350": Chip(68, 30),
        "sm8450": Chip(69, 36),
        "sm8475": Chip(69, 42),
        "sm8550": Chip(73, 43),
        "sm8650": Chip(75, 57),
        "sm8750": Chip(79, 69),
        "sm8850": Chip(81, 87),
    }
)
"""Numbers: `QcomChipset` and `HtpArch` in backends/qualcomm/serialization/qc_schema.py of
github.com/pytorch/executorch. Float16: MobileNet-v2 in float compiles for all of them but one by
onnxruntime-qnn 2.7.0."""
