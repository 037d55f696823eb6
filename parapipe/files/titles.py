"""What a model is called where there is no room for its path."""

from __future__ import annotations

from pathlib import PurePath


def model_title(model: str) -> str:
    """Return a model's name: the last part of a path without `.onnx`; `zoo:NAME` as it is."""
    last = PurePath(model.replace("\\", "/")).name
    return last.removesuffix(".onnx") or model
