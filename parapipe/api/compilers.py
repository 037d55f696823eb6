"""Compilers of NPU vendors: where they are, whether they work, and what they make of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Model, checked
from parapipe.api.load import model_file
from parapipe.files.checked_arguments import Must, NotEmpty, Seconds
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from typing import Literal

    from parapipe.compilers.contract import CompiledSegment
    from parapipe.compilers.inventory import CompilerCheck, CompilerRow

    Precision = Literal["float16", "int8"]
else:
    from parapipe.compilers.contract import Precision

Samples = Annotated[NotEmpty | Path, Must("the path of a file `.npz`, or of a folder of them")]


def list_compilers() -> tuple[CompilerRow, ...]:
    """Return a row for each compiler: its targets, where it is installed, or why it is not usable.

    Raises
    ------
    ArgumentError
        The user's settings cannot be read.
    """
    from parapipe.compilers.inventory import compiler_rows

    return compiler_rows()


@checked
def use_compiler(name: NotEmpty, *, python: FilePath) -> CompilerRow:
    """Keep in the user's settings which Python has a compiler, once its version is known.

    Parameters
    ----------
    name
        The compiler, such as rknn.
    python
        The Python interpreter of the environment in which it is installed.

    Raises
    ------
    ArgumentError
        There is no such compiler or no such Python.
    CompileError
        The compiler is not installed there.
    OutputError
        The settings cannot be written.
    """
    from parapipe.compilers.inventory import use_python

    return use_python(name, Path(python))


@checked
def check_compiler(
    name: NotEmpty, *, target: NotEmpty | None = None, compile_time_s: Seconds = 600.0
) -> CompilerCheck:
    """Compile a small model and compare what the compiler simulates with ONNX's definition.

    Parameters
    ----------
    name
        The compiler, such as rknn.
    target
        The chip, as the compiler calls it. Default: the last one that it lists.
    compile_time_s
        End the compiler after this time.

    Raises
    ------
    ArgumentError
        There is no such compiler or target.
    CompileError
        The compiler is not installed, does not compile the model, or computes something else.
    """
    from parapipe.compilers.inventory import check

    return check(name, target, compile_time_s)


def clear_compiled() -> int:
    """Delete all that compilers have made from the cache; return how many results there were."""
    from parapipe.compilers.results import clear_results

    return clear_results()


@checked
def compile_model(
    model: Model,
    *,
    compiler: NotEmpty,
    target: NotEmpty,
    precision: Precision = "float16",
    calibration: Samples | None = None,
    out: FilePath | None = None,
    compile_time_s: Seconds = 600.0,
) -> CompiledSegment:
    """Compile a whole model for an NPU: what runs where, its cycles, memory, and the file.

    Parameters
    ----------
    model
        Path of an ONNX file with fixed shapes, of at most 2 GB with its weights, or `zoo:NAME`.
    compiler
        The compiler, such as rknn.
    target
        The chip, as the compiler calls it, such as rk3588.
    precision
        Type of the arithmetic. A model that holds its own scales keeps these.
    calibration
        For int8: a file .npz, or a folder of them, with an array for each input, by its name. An
        array has the input's shape, or one more leading axis that counts samples. Default: random
        samples, with which outputs mean nothing.
    out
        Write the file for the device here. Default: it stays in the cache.
    compile_time_s
        End the compiler after this time.

    Raises
    ------
    ArgumentError
        There is no such compiler or target, or samples do not fit.
    CompileError
        There is no file: the compiler refuses the model, fails, or is not installed.
    OutputError
        The file cannot be written.
    """
    from parapipe.compilers.compile import compile_segment
    from parapipe.compilers.contract import CompileJob
    from parapipe.files.atomic import write_atomically

    samples = None if calibration is None else Path(calibration)
    with model_file(str(model)) as path:
        job = CompileJob(path, target, precision, samples, compile_time_s)
        segment = compile_segment(compiler, job)
    if out is None:
        return segment
    write_atomically(Path(out), segment.artefact.read_bytes())
    return replace(segment, artefact=Path(out))
