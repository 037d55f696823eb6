"""Modules of PyTorch and exported programs as models: written as ONNX files by PyTorch's exporter.

PyTorch need not be installed: who gives a module has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from parapipe.api.several import Models
from parapipe.errors import ArgumentError, ModelError, OutputError
from parapipe.files.checked_arguments import Must

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

KINDS = frozenset({("torch.nn.modules.module", "Module"),
                   ("torch.export.exported_program", "ExportedProgram")})  # fmt: skip


def is_torch_model(value: object) -> bool:
    """Tell whether something is a `torch.nn.Module` or a `torch.export.ExportedProgram`."""
    return any((kind.__module__, kind.__name__) in KINDS for kind in type(value).__mro__)


class _TorchInstance:
    """Takes those instances; PyTorch is not loaded for that."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        def check(value: object) -> object:
            if not is_torch_model(value):
                raise ValueError
            return value

        return core_schema.no_info_plain_validator_function(check)


ExampleInputs = Annotated[Sequence[Any], Must("a list of tensors")]
TorchModel = Annotated[Any, _TorchInstance(), Must("a torch.nn.Module or an ExportedProgram")]


def export_torch_model(
    model: Any,  # noqa: ANN401 - PyTorch is optional
    example_inputs: Sequence[object] | None,
    path: Path | None,
) -> Path:
    """Write a module, or an exported program, as an ONNX file; return its path.

    Parameters
    ----------
    example_inputs
        What a module is called with; an exported program knows.
    path
        Default: the name of the class, in the working folder.

    Raises
    ------
    ArgumentError
        A module has no example inputs.
    ModelError
        PyTorch cannot export it; says why.
    OutputError
        The file cannot be written.
    """
    name = type(model).__name__
    program = name == "ExportedProgram"
    if example_inputs is None and not program:
        raise ArgumentError(
            f"map: give what {name} is called with, as in example_inputs=(picture,): its shapes "
            "are those of the model"
        )
    path = path or Path(f"{name}.onnx")
    if not path.parent.is_dir():
        raise OutputError(f"'{path.parent}' is no folder: make it, or give another `model_file`")
    import torch

    arguments = () if program else tuple(example_inputs or ())
    try:
        torch.onnx.export(model, arguments, str(path), dynamo=True, verbose=False)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written ({error})") from error
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(f"PyTorch cannot export {name} ({first}): export it yourself") from error
    return path


def model_path(
    model: Any,  # noqa: ANN401 - PyTorch is optional
    example_inputs: Sequence[object] | None,
    path: str | Path | None,
) -> Models:
    """Return what `map` is to read: the file of a module or a program, or what was given.

    Raises
    ------
    ArgumentError
        What goes with a module is given with something else.
    """
    if is_torch_model(model):
        return export_torch_model(model, example_inputs, None if path is None else Path(path))
    given = {"example_inputs": example_inputs, "model_file": path}
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"map: `{name}` goes with a module of PyTorch, not with a file")
    models: Models = model
    return models
