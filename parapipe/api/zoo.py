"""The benchmark models that parapipe builds itself."""

from __future__ import annotations

from parapipe.api.checked import checked
from parapipe.files.checked_arguments import NotEmpty
from parapipe.search.options import FilePath


def zoo_names() -> tuple[str, ...]:
    """Names of the models that `zoo:NAME` knows; `gpt:LAYERS` wants a number for LAYERS."""
    from parapipe.zoo.registry import names

    return names()


def zoo_examples() -> tuple[str, ...]:
    """Names of all zoo models, a number in the place of LAYERS: `gpt:12` for `gpt:LAYERS`."""
    from parapipe.zoo.registry import examples

    return examples()


@checked
def build_zoo(name: NotEmpty, path: FilePath, *, weightless: bool = False) -> None:
    """Write a model of the zoo as an ONNX file, its seeded random weights always the same.

    Parameters
    ----------
    weightless
        Make weights by nodes of the model, all elements equal: a file of kilobytes that still runs.
    """
    from pathlib import Path

    from parapipe.zoo.registry import write

    write(name, Path(path), weightless=weightless)
