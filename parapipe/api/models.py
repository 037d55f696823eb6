"""Models: of the zoo, what one holds and where it can be cut, and operators split into parts."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from parapipe.api.checked import Granularity, Model, Note, PlatformFile, checked
from parapipe.api.compiled import COMPILE_TIME_S, compiled_support
from parapipe.api.load import ZOO, load_graph, load_platform
from parapipe.errors import ArgumentError, ModelError, SplitError
from parapipe.files.checked_arguments import Count, Must, NotEmpty, Seconds
from parapipe.platform.precision import Precision
from parapipe.search.option_types import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    import onnx

    from parapipe.documents.inspection import InspectionDocument
    from parapipe.parts.split import Split


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
    from parapipe.zoo.registry import write

    write(name, Path(path), weightless=weightless)


@checked
def inspect(
    model: Model,
    *,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    platform: PlatformFile | None = None,
    precision: Precision | None = None,
    compiler: NotEmpty | None = None,
    compile_time_s: Seconds = COMPILE_TIME_S,
    note: Note | None = None,
) -> InspectionDocument:
    """Describe a model: operators, subgraphs, parallelism, work, memory.

    Parameters
    ----------
    dims, shapes, rules, at_most
        As in `MapOptions`.
    platform
        Show how a platform runs the model: a shipped name, or the path of a YAML file. Times come
        from the profiles that `map` would use.
    precision
        As in `MapOptions`; it has no effect without a platform.
    compiler
        Ask this compiler of NPUs of the platform which operators run there, and why others do not:
        see `compilers list`. What it answered once is cached.
    compile_time_s
        Seconds until the compilation of a segment is ended.
    note
        As for `load_model`.

    Raises
    ------
    ArgumentError
        A compiler is named without a platform, or the platform has no processor with it.
    CompileError
        The compiler is not installed where the user said.
    """
    from parapipe.cost.profile import chosen_profiles
    from parapipe.documents.inspection import inspect_graph

    if compiler is not None and platform is None:
        raise ArgumentError("inspect: `compiler` needs a `platform`, which names its processors")

    target = None if platform is None else load_platform(platform)
    graph = load_graph(
        model, "onnx", rules=rules, dims=dims, shapes=shapes, digests=False, note=note,
        at_most=at_most,
    )  # fmt: skip
    profiles = None
    if platform is not None and target is not None:
        profiles = chosen_profiles((), beside=platform, platform=target.profile_name)
    inspection = inspect_graph(graph, target, precision, profiles)
    if compiler is None or platform is None:
        return inspection
    from parapipe.profiling.compiled_segments import CompilerChoice

    support = compiled_support(
        model,
        platform,
        CompilerChoice(compiler, precision, compile_time_s),
        rules=rules,
        dims=dims,
        shapes=shapes,
        at_most=at_most,
    )
    return inspection.model_copy(update={"compiled": support})


def fallback_sentences(row: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each operator that a compiler does not run on its processors."""
    from parapipe.documents.compiled_support import CompiledSupportRow
    from parapipe.files.mistakes import join_with_and

    support = CompiledSupportRow.model_validate_json(json.dumps(row))
    return [each.sentence(join_with_and(support.processors)) for each in support.fallbacks]


def structure_text(inspection: InspectionDocument, form: Literal["dot", "svg"]) -> str:
    """Return the subgraphs and what goes between them in Graphviz's language, or as a picture."""
    if form == "dot":
        from parapipe.figures.structure import structure_dot

        return structure_dot(inspection)
    from parapipe.figures.structure import structure_svg

    return structure_svg(inspection).decode()


@checked
def draw_structure(
    found: InspectionDocument, *, dot: FilePath | None = None, svg: FilePath | None = None
) -> None:
    """Draw the subgraphs and what goes between them into files.

    Parameters
    ----------
    dot, svg
        Files to write: text in Graphviz's language, and a picture.

    Raises
    ------
    OutputError
        A file cannot be written.
    """
    from parapipe.files.atomic import write_atomically

    if dot is not None:
        write_atomically(Path(dot), structure_text(found, "dot").encode())
    if svg is not None:
        write_atomically(Path(svg), structure_text(found, "svg").encode())


@checked
def split(
    model: Model,
    out: FilePath,
    *,
    parts: Annotated[
        Sequence[NotEmpty], Must("a list of rules SELECTOR:AXIS=SHARES, as in 'Conv:rows=2'")
    ],
    granularity: Granularity = "fused",
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    at_most: Count | None = None,
    note: Note | None = None,
) -> Split:
    """Split operators of a model into parts, and write it as another model with the same results.

    Parameters
    ----------
    out
        File to write. If the model's weights stand in files of their own, it must be in the folder
        of the model, since it names the same files; small constants of whole numbers, such as
        indices, are written into it.
    parts
        Rules SELECTOR:AXIS=SHARES. SELECTOR is a type, a name (* stands for
        anything), or FIRST..LAST for all operators between two. AXIS is batch, channels, heads,
        tokens, rows, columns, or a number. SHARES is a number of equal parts, or shares as in 3,2.
        The first rule that concerns an operator counts.
    granularity
        Split activations together with the operator before them (fused), or every operator by
        itself (onnx).
    dims, shapes, at_most
        As in `MapOptions`.
    note
        Takes a sentence for each thing that is assumed of the model; a warning if not given.

    Raises
    ------
    ModelError
        The file cannot be read, or shapes stay unknown.
    SplitError
        A rule is none, or concerns no operator, or nothing can be split.
    OutputError
        The file cannot be written. Nothing is written in any of these cases.
    """
    from parapipe.files.atomic import write_atomically
    from parapipe.graph.model_source import embed_indices
    from parapipe.parts.rules import read_rule
    from parapipe.parts.split import split_proto, with_file

    if not parts:
        raise ArgumentError("split: give at least one rule for parts, as in 'Conv:rows=2'")
    rules = [read_rule(text) for text in parts]
    name = os.fspath(model)
    place = Path(out)
    proto = _loaded_proto(name, place)
    parts_proto, result = split_proto(
        proto, name, rules, granularity=granularity, dims=dims, shapes=shapes, at_most=at_most
    )
    try:
        embed_indices(parts_proto, Path(name).parent)
    except OSError as error:
        raise ModelError(f"weights of '{name}' cannot be read ({error}): export it again") from None
    for sentence in result.notes:
        (note or warnings.warn)(sentence)
    write_atomically(place, parts_proto.SerializeToString(deterministic=True))
    return with_file(result, str(place))


def _loaded_proto(name: str, out: Path) -> onnx.ModelProto:
    """Return a model with all its weights but external ones, which stay where they are."""
    from parapipe.zoo.registry import build

    if name.startswith(ZOO):
        return build(name.removeprefix(ZOO))
    import onnx
    from google.protobuf.message import DecodeError

    from parapipe.graph.model_source import check_texts, model_source
    from parapipe.graph.skim import skim

    path = Path(name)
    skimmed = skim(path)
    check_texts(skimmed, name)
    model_source(path, skimmed, digests=False)
    external = has_external_weights(skimmed)
    if external and os.path.realpath(out.parent) != os.path.realpath(path.parent):
        raise SplitError(
            f"'{name}' has weights in other files, which the split model names too: write it into "
            f"the same folder, '{path.parent}'"
        )
    if out.exists() and os.path.realpath(out) == os.path.realpath(path):
        raise SplitError(f"'{out}' is the model itself: name another file")
    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ModelError(f"'{path}' is damaged ({error}): export the model again") from None


def has_external_weights(model: onnx.ModelProto) -> bool:
    """Whether weights of a model stand in other files."""
    from parapipe.graph.model_source import is_external, tensors_of

    return any(map(is_external, tensors_of(model)))
