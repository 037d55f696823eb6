"""Compiles operators of a model for an NPU, and finds out which of them its compiler takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from parapipe.compilers.compile import compile_segment
from parapipe.compilers.contract import CompiledSegment, CompileError, CompileJob, Precision
from parapipe.cost.cost_table import CostTable
from parapipe.errors import ArgumentError
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.resolve import Resolved
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision as PlannedPrecision
from parapipe.platform.processor import Processor
from parapipe.profiling.single_models import Read, joint_model

MOST_TRIES = 64
"""Compilations of parts of what was refused as a whole, for one processor."""


@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model of which operators are written as models of their own.

    Parameters
    ----------
    graph
        Its operators.
    resolved, opsets
        Its nodes, and the version of each domain's operators.
    read
        Takes large constants out of the model, one at a time.
    folder
        Where files may be written.
    """

    graph: OperatorGraph
    resolved: Resolved
    opsets: Mapping[str, int]
    read: Read
    folder: Path

    def of(self, graph: OperatorGraph) -> ModelParts:
        """Return that of the same model with other operators joined."""
        return replace(self, graph=graph)

    def write(self, operators: Sequence[int]) -> Path:
        """Write operators, by number, as a model; return its file.

        Raises
        ------
        CompileError
            If no model can be made of them.
        """
        chosen = [self.graph.operators[v] for v in sorted(operators)]
        made = joint_model(chosen, self.graph, self.resolved, self.opsets, self.read)
        if isinstance(made, str):
            raise CompileError(f"operators {_named(self.graph, operators)}: {made}", "refused")
        path = self.folder / "segment.onnx"
        onnx.save(made.proto, path)
        return path


@dataclass(frozen=True, slots=True)
class CompilerChoice:
    """Which compiler is asked, and how.

    Parameters
    ----------
    name
        Of the compiler.
    precision
        What the model is planned in; that of the platform if None.
    time_limit_s
        Seconds for one segment.
    """

    name: str
    precision: PlannedPrecision | None
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class Compiler:
    """The compiler of a processor, as a platform names it.

    Parameters
    ----------
    name, target
        Of the compiler, and of the chip.
    precision
        Type of the arithmetic.
    time_limit_s
        Seconds for one segment.
    """

    name: str
    target: str
    precision: Precision
    time_limit_s: float

    def compile(self, parts: ModelParts, operators: Sequence[int]) -> CompiledSegment:
        """Compile operators, by number, as one segment.

        Raises
        ------
        CompileError
            If they do not compile.
        """
        path = parts.write(operators)
        job = CompileJob(path, self.target, self.precision, time_limit_s=self.time_limit_s)
        try:
            return compile_segment(self.name, job)
        finally:
            path.unlink()


@dataclass(frozen=True, slots=True)
class Compilation:
    """What of some operators compiles.

    Parameters
    ----------
    segments
        Numbers of the operators of each, and what the compiler made of them.
    failures
        Numbers of operators that do not compile, alone or together, and why.
    """

    segments: tuple[tuple[tuple[int, ...], CompiledSegment], ...]
    failures: tuple[tuple[tuple[int, ...], CompileError], ...]


def compile_all(compiler: Compiler, parts: ModelParts, operators: Sequence[int]) -> Compilation:
    """Compile operators as one segment; what is refused as a whole, in halves.

    Parameters
    ----------
    operators
        Numbers, in the order of the graph.

    Raises
    ------
    CompileError
        If the compiler is not there.
    """
    segments: list[tuple[tuple[int, ...], CompiledSegment]] = []
    failures: list[tuple[tuple[int, ...], CompileError]] = []
    waiting = [tuple(operators)] if operators else []
    tries = 0
    while waiting:
        group = waiting.pop()
        tries += 1
        try:
            segments.append((group, compiler.compile(parts, group)))
        except CompileError as error:
            if error.cause == "missing":
                raise
            if len(group) == 1 or tries + len(waiting) >= MOST_TRIES:
                failures.append((group, error))
            else:
                half = len(group) // 2
                waiting += [group[half:], group[:half]]
    return Compilation(tuple(segments), tuple(failures))


def compiled_processors(platform: Platform, name: str) -> list[tuple[Processor, ...]]:
    """Return the processors that a compiler makes files for, equal ones together.

    Raises
    ------
    ArgumentError
        If there is no such compiler, or no processor of it; names those that there are.
    """
    from parapipe.compilers.registry import compiler
    from parapipe.profiling.tasks import hardware_groups

    compiler(name)
    chosen = [p for p in platform.processors if p.compiler and p.compiler.name == name]
    if not chosen:
        others = [f"'{p.compiler.name}' of {p.name}" for p in platform.processors if p.compiler]
        has = listed(others) if others else "none"
        raise ArgumentError(
            f"platform '{platform.name}' has no processor with the compiler '{name}': it has "
            f"{has}; state `compiler: {{name: {name}, target: CHIP}}` of the processor in its file"
        )
    groups = hardware_groups(chosen)
    return [
        tuple(p for p in chosen if groups[p.name] == first)
        for first in dict.fromkeys(groups.values())
    ]


def compiler_for(
    processor: Processor, choice: CompilerChoice, costs: CostTable, operators: Sequence[int]
) -> Compiler:
    """Return the compiler of a processor, in the type that operators are planned in there."""
    place = costs.processors.index(processor.name)
    types = {cost.data_type for v in operators if (cost := costs.cost(v, place))}
    integers = costs.precision == "int8" or types & {"int8", "uint8"}
    target = processor.compiler.target if processor.compiler else ""
    precision: Precision = "int8" if integers else "float16"
    return Compiler(choice.name, target, precision, choice.time_limit_s)


def supported(costs: CostTable, place: int) -> list[int]:
    """Return the operators that a processor runs, by number."""
    return [v for v in range(len(costs.entries)) if costs.cost(v, place)]


def _named(graph: OperatorGraph, operators: Sequence[int]) -> str:
    return listed([f"'{graph.operators[v].name}'" for v in operators])
