"""The benchmark models that parapipe builds itself, by name."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.errors import ModelError

if TYPE_CHECKING:
    import onnx

# The module that builds each model by `build(*, weightless)`; imported when it is asked for.
_MODULES = {
    "alexnet": "parapipe.zoo.alexnet",
    "densenet-121": "parapipe.zoo.densenet_121",
    "googlenet": "parapipe.zoo.googlenet",
    "inception-resnet-v2": "parapipe.zoo.inception_resnet_v2",
    "inception-v3": "parapipe.zoo.inception_v3",
    "inception-v4": "parapipe.zoo.inception_v4",
    "mobilenet-v1": "parapipe.zoo.mobilenet_v1",
    "mobilenet-v2": "parapipe.zoo.mobilenet_v2",
    "resnet-50": "parapipe.zoo.resnet_50",
    "squeezenet": "parapipe.zoo.squeezenet",
}


def names() -> tuple[str, ...]:
    """Return the names of all models, sorted."""
    return tuple(sorted(_MODULES))


def build(name: str, *, weightless: bool = False) -> onnx.ModelProto:
    """Build a model; the same name always gives the same one, weights included.

    Parameters
    ----------
    weightless
        Put a node that makes equal numbers in the place of each weight; operators, shapes and
        work stay the same, and the file is small.

    Raises
    ------
    ModelError
        If there is no model of that name.
    """
    if name not in _MODULES:
        close = get_close_matches(name, names(), 1, cutoff=0.4)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        raise ModelError(f"there is no zoo model '{name}': choose from {', '.join(names())}{meant}")
    model: onnx.ModelProto = import_module(_MODULES[name]).build(weightless=weightless)
    return model


def serialize(model: onnx.ModelProto) -> bytes:
    """Return a model's bytes, which depend on nothing but the model."""
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def write(name: str, path: Path, *, weightless: bool = False) -> None:
    """Build a model and write it to a file, which appears whole or not at all.

    Parameters
    ----------
    weightless
        As for `build`.

    Raises
    ------
    ModelError
        If there is no model of that name.
    OutputError
        If the file cannot be written.
    """
    from parapipe.atomic_files import write_atomically

    write_atomically(path, serialize(build(name, weightless=weightless)))
