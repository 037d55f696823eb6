"""The benchmark models that parapipe builds itself, by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.errors import ModelError
from parapipe.files.atomic import write_atomically
from parapipe.files.mistakes import nearest

if TYPE_CHECKING:
    import onnx

# The modules that build them, by functions such as `bert_base(*, weightless)`.
_MODELS = {
    **dict.fromkeys(
        ("alexnet", "densenet-121", "googlenet", "squeezenet", "unet"), "convolutional"
    ),
    **dict.fromkeys(("bevformer", "petr"), "detection"),
    "hrnet-w18": "hrnet",
    **dict.fromkeys(("inception-resnet-v2", "inception-v3", "inception-v4"), "inception"),
    **dict.fromkeys(("mobilenet-v1", "mobilenet-v2", "resnet-50"), "residual"),
    "pnasnet-5-large": "pnasnet",
    **dict.fromkeys(("bert-base", "vit-b16"), "transformer"),
    **dict.fromkeys(("whisper-decoder", "whisper-encoder"), "whisper"),
    "yolo-pan": "yolo_pan",
}
# Of any depth, `gpt:12`: by `gpt(layers, *, weightless)`.
_FAMILIES = {
    "gpt": "transformer",
    **dict.fromkeys(("llama", "llama-step"), "llama"),
    **dict.fromkeys(("moe", "moe-step"), "mixture"),
}
DIGESTS = Path(__file__).with_name("digests.csv")
_LAYERS = re.compile("[1-9][0-9]{0,3}")


def names() -> tuple[str, ...]:
    """Return the names of all models, sorted; `gpt:LAYERS` wants a number for LAYERS."""
    return tuple(sorted([*_MODELS, *(f"{family}:LAYERS" for family in _FAMILIES)]))


def examples() -> tuple[str, ...]:
    """Return a name for each model that can be built as it stands: `gpt:12`, ... Sorted."""
    return tuple(name.replace("LAYERS", "12") for name in names())


def builder_of(name: str) -> Callable[..., onnx.ModelProto]:
    """Return the function that builds a model of `examples`; its docstring cites the source."""
    family = name.partition(":")[0]
    module = import_module(f"parapipe.zoo.{(_MODELS | _FAMILIES)[family]}")
    builder: Callable[..., onnx.ModelProto] = getattr(module, family.replace("-", "_"))
    return builder


def is_name(name: str) -> bool:
    """Tell whether a name is that of a model or, whatever the number of layers, of a family."""
    return name in _MODELS or name.partition(":")[0] in _FAMILIES


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
        If there is no model of that name, or its number of layers is none.
    """
    if not is_name(name):
        close = nearest(name, names())
        meant = f"; did you mean '{close}'?" if close else ""
        raise ModelError(f"there is no zoo model '{name}': choose from {', '.join(names())}{meant}")
    family, _, layers = name.partition(":")
    depth = [int(layers)] if _LAYERS.fullmatch(layers) else []
    if family in _FAMILIES and not depth:
        number = (
            f"'{layers}' is no number of layers" if layers else "its number of layers is missing"
        )
        raise ModelError(
            f"zoo model '{name}': {number}; give one from 1 to 9999, as in '{family}:12'"
        )
    return builder_of(name)(*depth, weightless=weightless)


def serialize(model: onnx.ModelProto) -> bytes:
    """Return a model's bytes, which depend on nothing but the model."""
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def model_and_digest(name: str) -> tuple[onnx.ModelProto, str]:
    """Return a model without the numbers of its weights, and the SHA-256 of its file.

    Mapping needs no more. The digests of the models of `examples` are kept in `digests.csv`, each
    with that of the model without numbers: another version of onnx may write other bytes. To find
    that of another model, its weights are made one at a time.

    Raises
    ------
    ModelError
        As for `build`.
    """
    from parapipe.zoo.emitter import digest, without_weights

    with without_weights() as makers:
        model = build(name)
    with DIGESTS.open(encoding="utf-8") as file:
        digests = {row["without_numbers"]: row["file"] for row in csv.DictReader(file)}
    file_digest = digests.get(sha256(serialize(model)).hexdigest())
    return model, file_digest or digest(model, makers)


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
    write_atomically(path, serialize(build(name, weightless=weightless)))
