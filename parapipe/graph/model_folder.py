"""Folders that stand for a model: of ONNX Runtime GenAI, and of Hugging Face's optimum.

GenAI's `genai_config.json` names the decoder's file, and the names of its caches by number of the
layer (https://onnxruntime.ai/docs/genai/reference/config.html). Optimum writes `config.json` beside
`model.onnx`, or beside several files of which the user says which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed

GENAI = "genai_config.json"
OPTIMUM = "config.json"
WHOLE = "model.onnx"
MOST_LAYERS = 10_000


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The model of a folder.

    Parameters
    ----------
    file
        Its ONNX file.
    states
        Outputs that are fed back, by input, as the folder says them; others may be recognised.
    """

    file: Path
    states: Mapping[str, str] = field(default_factory=dict)


def model_of_folder(folder: Path) -> ModelFolder:
    """Return the model that a folder stands for.

    Raises
    ------
    ModelError
        If it holds no ONNX file, or several, or its configuration cannot be read or names a file
        that is not there.
    """
    if (folder / GENAI).is_file():
        return _of_genai(folder)
    places = [folder, folder / "onnx"]
    for place in places:
        if (place / WHOLE).is_file() and (folder / OPTIMUM).is_file():
            return ModelFolder(place / WHOLE)
    files = [each for place in places for each in sorted(place.glob("*.onnx"))]
    if len(files) == 1:
        return ModelFolder(files[0])
    if not files:
        raise ModelError(f"'{folder}' is a folder without an .onnx file: give the model's file")
    names = [f"'{each}'" for each in files]
    raise ModelError(f"'{folder}' holds several models: give one of {listed(names)}")


def _of_genai(folder: Path) -> ModelFolder:
    path = folder / GENAI
    try:
        decoder = json.loads(path.read_text(encoding="utf-8"))["model"]["decoder"]
        file = folder / decoder["filename"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"'{path}' names no file of a decoder (model.decoder.filename; {error!r}): give the "
            ".onnx file"
        ) from None
    if not file.is_file():
        raise ModelError(f"'{path}' names '{decoder['filename']}', which is not there")
    return ModelFolder(file, dict(_caches(decoder)))


def _caches(decoder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of caches, before and behind a step."""
    inputs, outputs = decoder.get("inputs", {}), decoder.get("outputs", {})
    layers = decoder.get("num_hidden_layers", 0)
    for what in ("key", "value"):
        read, made = inputs.get(f"past_{what}_names"), outputs.get(f"present_{what}_names")
        if isinstance(read, str) and isinstance(made, str) and isinstance(layers, int):
            for layer in range(min(layers, MOST_LAYERS)):
                yield read.replace("%d", str(layer)), made.replace("%d", str(layer))
