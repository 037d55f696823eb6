"""What a model is called where there is no room for its path, and what stages are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath


def model_title(model: str) -> str:
    """Return a model's name: the last part of a path without `.onnx`; `zoo:NAME` as it is."""
    last = PurePath(model.replace("\\", "/")).name
    return last.removesuffix(".onnx") or model


def stages_title(stages: Iterable[Sequence[str]], replicas: Iterable[Sequence[str]] = ()) -> str:
    """Return the processors of stages, as `big+gpu │ npu0/npu1`.

    Parameters
    ----------
    stages
        Names of the processors of each.
    replicas
        Names of those that take turns on the frames of a stage; the first of each stands for them
        in the stages.
    """
    turns = {names[0]: "/".join(names) for names in replicas}
    return " │ ".join("+".join(turns.get(name, name) for name in names) for names in stages)
