"""Which compilers there are, where they are installed, and whether one works."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from parapipe.compilers.compile import compile_segment, simulate_segment, tool_version
from parapipe.compilers.contract import CompileError, CompileJob, Compiler
from parapipe.compilers.environments import environment, stated_environment, use
from parapipe.compilers.registry import COMPILERS, compiler
from parapipe.compilers.results import scratch_folder

LEAST_COSINE = 0.99
_SIZE, _CHANNELS = 16, 8


@dataclass(frozen=True, slots=True)
class CompilerRow:
    """A compiler of the registry.

    Parameters
    ----------
    name, title
        Its name in commands and platform files; what it is.
    targets
        Chips that it compiles for.
    prices
        Whether it tells cycles.
    python
        The Python interpreter that has it; None if nobody has said.
    version
        Of the tool; None if it cannot be used.
    problem
        Why it cannot be used; empty if it can.
    """

    name: str
    title: str
    targets: tuple[str, ...]
    prices: bool
    python: str | None
    version: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompilerCheck:
    """What a check of a compiler has shown.

    Parameters
    ----------
    name, version, python
        The compiler, its version, and where it is.
    target
        The chip for which the small model was compiled.
    rows
        Rows of what it made.
    cosine
        Likeness of the simulator's outputs and those of ONNX's definition: 1 where they are equal.
    """

    name: str
    version: str
    python: str
    target: str
    rows: int
    cosine: float


def compiler_row(name: str) -> CompilerRow:
    """Return what is known of a compiler; ArgumentError if there is none of that name."""
    tool = compiler(name)
    python = version = None
    problem = ""
    try:
        python = str(environment(name).python)
        version = tool_version(name)
    except CompileError as error:
        problem = error.message
    return _row(tool, python, version, problem)


def _row(tool: Compiler, python: str | None, version: str | None, problem: str = "") -> CompilerRow:
    return CompilerRow(
        tool.name, tool.title, tuple(tool.targets), tool.prices, python, version, problem
    )


def compiler_rows() -> tuple[CompilerRow, ...]:
    """Return a row for each compiler, sorted by name."""
    return tuple(compiler_row(name) for name in COMPILERS.names())


def use_python(name: str, python: Path) -> CompilerRow:
    """Keep in the user's settings which Python has a compiler, if that has it; return its row.

    Raises
    ------
    ArgumentError
        If there is no such compiler, or no such Python.
    CompileError
        If the compiler is not installed there; the settings stay as they were.
    """
    tool, place = compiler(name), stated_environment(python)
    version = tool_version(name, place)
    use(name, place.python)
    return _row(tool, str(place.python), version)


def check(name: str, target: str | None, time_limit_s: float) -> CompilerCheck:
    """Compile a small model and simulate a frame of it.

    Parameters
    ----------
    target
        The chip; the compiler's last one if not given.

    Raises
    ------
    ArgumentError
        If there is no such compiler or target.
    CompileError
        If it does not compile, or outputs differ.
    """
    tool = compiler(name)
    target = tool.targets[-1] if target is None else target
    model = _small_model()
    image = np.random.default_rng(1).standard_normal((1, _CHANNELS, _SIZE, _SIZE))
    frame = {"x": image.astype(np.float32)}
    (expected,) = ReferenceEvaluator(model).run(None, frame)
    with scratch_folder("small.onnx") as folder:
        path = folder / "small.onnx"
        onnx.save(model, path)
        job = CompileJob(path, target, "float16", time_limit_s=time_limit_s)
        segment = compile_segment(name, job)
        outputs = simulate_segment(name, job, frame)
    cosine = _cosine(outputs["y"], expected)
    if not cosine >= LEAST_COSINE:
        raise CompileError(
            f"the compiler '{name}' {segment.version} compiles a small model, but what it "
            f"simulates differs (cosine {cosine:.3f}); install it anew, as docs/compilers.md says",
            "crashed",
        )
    python = str(environment(name).python)
    return CompilerCheck(name, segment.version, python, target, len(segment.rows), cosine)


def _small_model() -> ModelProto:
    """Return a convolution with an activation and a pool, with weights that are always the same."""
    weights = np.random.default_rng(0).standard_normal((_CHANNELS, _CHANNELS, 3, 3))
    shape = (1, _CHANNELS, _SIZE, _SIZE)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MaxPool", ["b"], ["y"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, _CHANNELS, 8, 8))],
        [numpy_helper.from_array((weights * 0.1).astype(np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _cosine(one: Any, other: Any) -> float:  # noqa: ANN401 - arrays
    first, second = one.astype(float).ravel(), other.astype(float).ravel()
    if first.shape != second.shape:
        return 0.0
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))
