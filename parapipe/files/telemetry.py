"""ONNX Runtime's reports to its makers, which parapipe turns off."""

from __future__ import annotations

import os

TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""Variable without which ONNX Runtime 1.32 reports each session."""


def decline_telemetry() -> None:
    """Turn reports off in this process and those it starts, unless the user chose otherwise."""
    os.environ.setdefault(TELEMETRY, "1")
