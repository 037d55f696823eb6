"""Times of operators out of the cycles that a processor's compiler tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from parapipe.api.checked import Model, PlatformFile, checked
from parapipe.api.load import load_model, load_platform, source_nodes
from parapipe.errors import ArgumentError
from parapipe.files.checked_arguments import Count, NotEmpty, Seconds
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.platform.precision import Precision
from parapipe.search.option_types import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.cost.profile import Measurement
    from parapipe.documents.compiled_support import CompiledSupportRow, FallbackRow
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.graph.user_shapes import SizeKeywords
    from parapipe.platform.platform import Platform
    from parapipe.platform.processor import Processor
    from parapipe.profiling.compiled_segments import Compilation, CompilerChoice, ModelParts
    from parapipe.profiling.profile_report import ProfileReport

COMPILE_TIME_S = 600.0


@checked
def compile_profile(
    model: Model,
    platform: PlatformFile,
    compiler: NotEmpty,
    *,
    out: FilePath | None = None,
    precision: Precision | None = None,
    compile_time_s: Seconds = COMPILE_TIME_S,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
) -> ProfileReport:
    """Take the times of a model's operators on NPUs out of what their compiler tells.

    What an NPU runs is compiled as one segment, or in parts if the compiler refuses that. Cycles
    become seconds by the platform's `compiled` section. Operators that the compiler runs at one go
    share a row, so that `map` never cuts between them.

    Parameters
    ----------
    platform
        One whose file names the compiler of a processor.
    compiler
        Take times out of the cycles that this compiler tells, for the processors that the platform
        has it for; nothing is measured.
    out
        The profile, a CSV file; rows of equal operators are replaced. Default:
        `profiles/PLATFORM/COMPILER.csv` beside the platform's file, where `map` finds it.
    precision
        The type that the model is compiled in, as in `MapOptions`. Default: what the platform's
        file says, else model.
    compile_time_s
        Seconds until the compilation of a segment is ended.
    dims, shapes, rules, at_most
        As in `MapOptions`.

    Raises
    ------
    ArgumentError
        The platform has no processor with that compiler, or none runs an operator of the model.
    CompileError
        The compiler is not installed where the user said.
    PlatformError
        The platform does not say how cycles become seconds.
    """
    from parapipe.profiling.compiled_segments import CompilerChoice
    from parapipe.profiling.profiling_run import take_in

    target = load_platform(platform)
    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    graph = load_model(model, rules=rules, **sizes)
    path = compiled_profile_path(out, platform, target, compiler)
    choice = CompilerChoice(compiler, precision, compile_time_s)
    notes: list[str] = []
    with model_parts(model, graph, **sizes) as parts:
        rows = compiled_measurements(parts, target, choice, notes)
    return take_in(rows, target, path).with_notes(notes)


def compiled_profile_path(
    out: str | Path | None, platform: str | Path, target: Platform, compiler: str
) -> Path:
    """Return the file of a profile of compiled times."""
    if out is not None:
        return Path(out)
    return Path(platform).parent / "profiles" / target.profile_name / f"{compiler}.csv"


@contextmanager
def model_parts(
    model: str | Path, graph: OperatorGraph, **sizes: Unpack[SizeKeywords]
) -> Iterator[ModelParts]:
    """Yield a model of which operators can be written as models; `graph` was read from it."""
    from parapipe.profiling.compiled_segments import ModelParts
    from parapipe.profiling.single_models import opsets_of

    clear_abandoned_scratch()
    with (
        source_nodes(model, graph, **sizes) as (proto, resolved, read),
        LockedFolder() as scratch,
    ):
        yield ModelParts(graph, resolved, opsets_of(proto), read, scratch.path)


def compiled_measurements(
    parts: ModelParts, platform: Platform, choice: CompilerChoice, notes: list[str]
) -> list[Measurement]:
    """Return the rows of a profile of a model's operators, compiled together; add what to know."""
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.files.mistakes import join_with_and
    from parapipe.profiling.compiled_rows import RowTimes, joined_as, operator_times
    from parapipe.profiling.compiled_segments import compiled_processors
    from parapipe.profiling.operator_times import measurements_of

    own = build_cost_table(parts.graph, platform, profiles=(), precision=choice.precision)
    rows: list[Measurement] = []
    for group in compiled_processors(platform, choice.name):
        compilation = compile_supported(parts, own, group[0], choice)
        names = join_with_and([each.name for each in group])
        notes += [
            each.sentence(names) for each in _fallbacks(compilation, parts.graph, own, platform)
        ]
        segments = [segment for _, segment in compilation.segments]
        graph = joined_as(parts.graph, segments)
        controlled = platform.with_controllers
        costs = build_cost_table(graph, controlled, profiles=(), precision=choice.precision)
        times = RowTimes.of(costs, controlled, group[0])
        of_segments = [operator_times(graph, segment, times) for segment in segments]
        rows += measurements_of(graph, of_segments, costs, group, weights="own")
    return rows


def compiled_support(
    model: str | Path,
    platform: str | Path,
    choice: CompilerChoice,
    *,
    rules: Rules | None,
    **sizes: Unpack[SizeKeywords],
) -> tuple[CompiledSupportRow, ...]:
    """Ask the compiler of a platform's processors where each operator of a model would run.

    All operators are asked, those too that the platform says the processor does not run. What the
    compiler answered once is cached.

    Raises
    ------
    ArgumentError, CompileError
        As for `compile_profile`.
    """
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.documents.compiled_support import CompiledSupportRow
    from parapipe.profiling.compiled_segments import compile_all, compiled_processors, compiler_for

    target = load_platform(platform)
    graph = load_model(model, rules=rules, note=lambda _: None, **sizes)
    costs = build_cost_table(graph, target, profiles=(), precision=choice.precision)
    every = range(len(graph.operators))
    rows: list[CompiledSupportRow] = []
    with model_parts(model, graph, **sizes) as parts:
        for group in compiled_processors(target, choice.name):
            tool = compiler_for(group[0], choice, costs, every)
            compilation = compile_all(tool, parts, every)
            fallbacks = tuple(_fallbacks(compilation, graph, costs, target))
            names = {each.operator for each in fallbacks}
            versions = {segment.version for _, segment in compilation.segments}
            rows.append(
                CompiledSupportRow(
                    processors=tuple(each.name for each in group),
                    compiler=tool.name,
                    version=", ".join(sorted(versions)),
                    target=tool.target,
                    precision=tool.precision,
                    operators=len(every),
                    on_processor=len(every) - len(names),
                    fallbacks=fallbacks,
                )
            )
    return tuple(rows)


def _fallbacks(
    compilation: Compilation, graph: OperatorGraph, costs: CostTable, platform: Platform
) -> Iterator[FallbackRow]:
    """Yield the operators that a compiler leaves to the CPU, or refuses, in the graph's order."""
    from parapipe.documents.compiled_support import FallbackRow

    number = {name: v for v, each in enumerate(graph.operators) for name in each.members}
    left: dict[int, tuple[Literal["cpu", "refused"], str]] = {}
    for group, error in compilation.failures:
        words = {number[each.node]: each.reason for each in error.refused if each.node in number}
        left |= {v: ("refused", words.get(v) or error.message) for v in group}
    for _, segment in compilation.segments:
        for node in segment.on_cpu:
            if node.node in number:
                left.setdefault(number[node.node], ("cpu", node.reason))
    others = [p for p, each in enumerate(platform.processors) if each.kind == "cpu"]
    for v, (where, reason) in sorted(left.items()):
        operator = graph.operators[v]
        able = [p for p in others if costs.cost(v, p)]
        best = min(able, key=lambda p: costs.time_s(v, p), default=None)
        yield FallbackRow(
            operator=operator.name,
            type=operator.type,
            shapes=tuple(graph.tensors[name].shape for name in operator.outputs if name),
            where=where,
            reason=reason,
            runs_on=None if best is None else costs.processors[best],
            time_s=None if best is None else costs.time_s(v, best),
        )


def compile_supported(
    parts: ModelParts, costs: CostTable, processor: Processor, choice: CompilerChoice
) -> Compilation:
    """Compile what a processor runs of a model.

    Parameters
    ----------
    costs
        Of the model's graph, without compiled times.

    Raises
    ------
    ArgumentError
        If that is nothing.
    """
    from parapipe.profiling.compiled_segments import compile_all, compiler_for, supported

    operators = supported(costs, costs.processors.index(processor.name))
    if not operators:
        types = " or ".join(each for each in processor.data_types if each in {"int8", "float16"})
        raise ArgumentError(
            f"processor '{processor.name}' runs no operator of '{parts.graph.source.name}' in "
            f"precision {costs.precision}; give `precision` {types}"
        )
    chosen = compiler_for(processor, choice, costs, operators)
    return compile_all(chosen, parts, operators)
