"""Models, platforms and plans by path or name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from parapipe.api.checked import Granularity, Model, Note, PlanLike, PlatformFile, checked
from parapipe.errors import ModelError, PlanError
from parapipe.files.checked_arguments import Count
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.mistakes import listed
from parapipe.files.shipped import path_exists
from parapipe.search.option_types import Dims, FilePath, Rules, Shapes, States

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

    from parapipe.api.plan import Plan
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.graph.resolve import Resolved
    from parapipe.graph.user_shapes import SizeKeywords
    from parapipe.plan import schema
    from parapipe.platform.platform import Platform
    from parapipe.platform.thermal_state import State

ZOO = "zoo:"
MOST_INSIDE = 1 << 30  # bytes of several models whose weights stand in one file with them


@checked
def load_model(
    model: Model,
    *,
    granularity: Granularity = "fused",
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    states: States | None = None,
    sequences: Count = 1,
    note: Note | None = None,
) -> OperatorGraph:
    """Read an ONNX file, or build a model of the zoo, as an operator graph.

    Parameters
    ----------
    model
        Path of an ONNX file, or of a folder of ONNX Runtime GenAI or optimum, or `zoo:NAME`.
    granularity
        "fused": an activation belongs to the operator before it; "onnx": each is its own.
    dims, shapes, rules, at_most, states, sequences
        As in `MapOptions`.
    note
        Takes a sentence for each thing that is assumed of the model, such as a batch of one, and
        for each rule that fits no operator; a warning if not given.

    Raises
    ------
    ArgumentError
        Arguments are not what they must be; it names all of them. So in all functions here.
    ModelError
        The file cannot be read, or shapes stay unknown.
    RulesError, CostError
        The rules file is wrong, or does not fit the model.
    """
    return load_graph(
        model, granularity, rules=rules, dims=dims, shapes=shapes, digests=True, note=note,
        at_most=at_most, states=states, sequences=sequences,
    )  # fmt: skip


def load_graph(
    model: str | Path,
    granularity: Granularity,
    *,
    rules: str | Path | None,
    dims: Dims | None,
    shapes: Shapes | None,
    digests: bool,
    note: Note | None,
    weights: bool = True,
    split: Sequence[str] = (),
    at_most: int | None = None,
    states: States | None = None,
    sequences: int = 1,
) -> OperatorGraph:
    """Return a model as `load_model` does.

    Parameters
    ----------
    digests
        Whether with those of its files.
    weights
        Whether with those of external data; if not, `with_external_digests` adds them.
    split
        Rules by which operators are split.
    at_most, states, sequences
        As in `MapOptions`.
    """
    from parapipe.cost.rules import apply_rules, idle_rules, load_rules
    from parapipe.graph.onnx_import import import_checked, open_model
    from parapipe.graph.operator_graph import ModelSource
    from parapipe.graph.rewrites import fuse
    from parapipe.graph.states import with_states
    from parapipe.zoo.registry import is_name, model_and_digest

    sizes: SizeKeywords = {"dims": dims, "shapes": shapes, "at_most": at_most}
    work_rules = None if rules is None else load_rules(Path(rules))
    name, stated = file_of_folder(os.fspath(model))
    if is_name(name) and not path_exists(Path(name)):
        raise ModelError(f"there is no file '{name}'; did you mean '{ZOO}{name}'?")
    if name.startswith(ZOO):
        proto, digest = model_and_digest(name.removeprefix(ZOO))
        source = ModelSource(name, digest)
    else:
        proto, source = open_model(Path(name), digests=digests, weights=weights)
    if split:
        proto = _split_proto(proto, name, split, granularity, **sizes)
        source, sizes = replace(source, split=tuple(split)), {}
    graph = import_checked(proto, source=source, granularity="onnx", **sizes)
    named = {*graph.inputs, *graph.outputs}
    stated = {a: b for a, b in stated.items() if {a, b} <= named}  # those that are used
    graph = with_states(graph, {**stated, **(states or {})}, sequences)
    unused = () if work_rules is None else idle_rules(graph, work_rules)
    if work_rules is not None:
        graph = apply_rules(graph, work_rules, str(rules))
    for sentence in (*graph.notes, *(f"rules file '{rules}': {each}" for each in unused)):
        (note or warnings.warn)(sentence)
    return graph if granularity == "onnx" else fuse(graph)


def file_of_folder(name: str) -> tuple[str, Mapping[str, str]]:
    """Return the file of a model, where the folder that it is in was given, and its states."""
    from parapipe.graph.model_folder import model_of_folder

    if name.startswith(ZOO) or not Path(name).is_dir():
        return name, {}
    folder = model_of_folder(Path(name))
    return str(folder.file), folder.states


@contextmanager
def locate_model(plan: schema.Plan, model: str | Path | None = None) -> Iterator[Path]:
    """Yield the file of a plan's model; PlanError unless the plan was made for it.

    The model is the one that the plan names if none is given. One of the zoo is built and written
    into a folder of its own, which is gone at the end; so are several models, in one file.
    """
    if plan.models:
        if model is not None:
            raise PlanError(
                "a plan of several models finds each where it says: put the files there, and give "
                "no `model`"
            )
        with _joined_models_file(plan.models) as file:
            yield file
        return
    with _located_file(plan.model, model) as path, _split_model_file(plan, path) as file:
        yield file


@contextmanager
def _located_file(
    of: schema.Model | schema.PlannedModel, model: str | Path | None
) -> Iterator[Path]:
    """Yield the file of a model, given or where the plan says; PlanError if it is another one."""
    name = os.fspath(model or of.name)
    if model is None and not name.startswith(ZOO) and not path_exists(Path(name)):
        raise PlanError(
            f"there is no file '{name}', the model that the plan was made for: say with `model` "
            "where it is"
        )
    with model_file(name) as path:
        _check_digests(of, path, name)
        yield path


@contextmanager
def model_file(name: str) -> Iterator[Path]:
    """Yield the path of a model; one of the zoo is written into a folder that is soon gone."""
    if not name.startswith(ZOO):
        yield Path(file_of_folder(name)[0])
        return
    from parapipe.zoo.registry import write

    clear_abandoned_scratch()
    with LockedFolder() as scratch:
        path = scratch.path / "model.onnx"
        write(name.removeprefix(ZOO), path)
        yield path


class SourceNodes(NamedTuple):
    """The nodes of a model that a graph was read from.

    `read` returns a large constant's values by its name, None where they cannot be read.
    """

    proto: onnx.ModelProto
    resolved: Resolved
    read: Callable[[str], NDArray[np.generic] | None]


@contextmanager
def source_nodes(
    model: Model, graph: OperatorGraph, **sizes: Unpack[SizeKeywords]
) -> Iterator[SourceNodes]:
    """Yield the nodes of a model, which `graph` was read from; its file stays open meanwhile."""
    from parapipe.export.constants import Constants
    from parapipe.graph.onnx_import import resolve_proto
    from parapipe.graph.skim import skim

    with model_file(os.fspath(model)) as path, Constants(graph, path) as constants:
        proto = skim(path)
        _, resolved = resolve_proto(proto, graph.source.name, **sizes)

        def read(name: str) -> NDArray[np.generic] | None:
            try:
                return constants.read(name)
            except ModelError:
                return None

        yield SourceNodes(proto, resolved, read)


@contextmanager
def _joined_models_file(models: Sequence[schema.PlannedModel]) -> Iterator[Path]:
    """Yield one file of all frames of several models, in a folder that is gone at the end."""
    import onnx

    from parapipe.graph.operator_graph import Member, ModelSource
    from parapipe.graph.several import union_proto

    protos = []
    members = []
    for each in models:
        with _located_file(each, None) as path:
            protos.append(onnx.load(path))
        source = ModelSource(each.name, each.sha256)
        members.append(Member(each.short_name, source, len(each.prefixes)))
    external = sum(proto.ByteSize() for proto in protos) > MOST_INSIDE
    with LockedFolder() as scratch:
        file = scratch.path / "several.onnx"
        joined = union_proto(protos, members)
        onnx.save(joined, file, save_as_external_data=external, location="weights")
        yield file


@contextmanager
def _split_model_file(plan: schema.Plan, path: Path) -> Iterator[Path]:
    """Yield the model that a plan's operators are of: with some split, if the plan says so."""
    if not plan.model.split:
        yield path
        return
    rules, granularity = plan.model.split.rules, plan.model.split.granularity
    external = bool(plan.model.external)
    shapes = {each: plan.tensors[each].shape for each in plan.inputs}
    with split_file(
        path, plan.model.name, rules, granularity, external=external, shapes=shapes
    ) as split:
        yield split


@contextmanager
def split_file(
    path: Path,
    name: str,
    rules: Sequence[str],
    granularity: Granularity,
    *,
    external: bool,
    **sizes: Unpack[SizeKeywords],
) -> Iterator[Path]:
    """Yield the file of a model with operators split, in a folder that is gone at the end.

    Parameters
    ----------
    external
        Whether weights are in a file of their own: one of more than 2 GB cannot be written whole.

    Raises
    ------
    SplitError
        As `split_proto` does.
    """
    import onnx

    proto = _split_proto(onnx.load(path), name, rules, granularity, **sizes)
    with LockedFolder() as scratch:
        split = scratch.path / "split.onnx"
        onnx.save(proto, split, save_as_external_data=external, location="weights")
        yield split


def _split_proto(
    proto: onnx.ModelProto,
    name: str,
    rules: Sequence[str],
    granularity: Granularity,
    **sizes: Unpack[SizeKeywords],
) -> onnx.ModelProto:
    """Return a model with operators split, or run again: the same nodes with and without weights.

    Raises
    ------
    SplitError
        As `split_proto` and `recompute_proto` do.
    """
    from parapipe.parts.recompute import read_recompute_rule, recompute_proto
    from parapipe.parts.rules import read_rule
    from parapipe.parts.split import split_proto

    recomputed = [rule for text in rules if (rule := read_recompute_rule(text))]
    if recomputed:
        return recompute_proto(proto, name, recomputed, granularity=granularity, **sizes)
    parts = [read_rule(text) for text in rules]
    split, _ = split_proto(proto, name, parts, granularity=granularity, by_nodes=True, **sizes)
    return split


def _check_digests(planned: schema.Model | schema.PlannedModel, path: Path, name: str) -> None:
    from parapipe.graph.model_source import model_source
    from parapipe.graph.skim import skim

    source = model_source(path, skim(path))
    differ = [] if source.sha256 == planned.sha256 else [f"'{name}'"]
    differ += [
        f"'{each}'"
        for each in sorted({*source.external, *planned.external})
        if source.external.get(each) != planned.external.get(each)
    ]
    if differ:
        raise PlanError(
            f"the plan was made for other files: the SHA-256 of {listed(differ)} is not that "
            f"in the plan; give the model that was mapped, '{planned.name}', or map this one"
        )


@checked
def load_platform(platform: PlatformFile) -> Platform:
    """Read a platform file, given its path or the name of a shipped one.

    Raises
    ------
    PlatformError
        The file is wrong; the error lists every mistake.
    """
    from parapipe.platform.load import load_platform as load

    return load(os.fspath(platform))


def load_platform_without(
    platform: str | Path, exclude: Sequence[str], state: State | None
) -> Platform:
    """Return a platform in a state, without the processors that `exclude` names."""
    from parapipe.platform.excluded import without_processors
    from parapipe.platform.states import in_state

    return in_state(without_processors(load_platform(platform), exclude), state)


@checked
def load_plan(path: FilePath) -> Plan:
    """Read a plan file; PlanError if it is not one."""
    from parapipe.api.plan import Plan
    from parapipe.plan import schema

    return Plan.of(schema.Plan.load(Path(path)))


def open_plan(plan: PlanLike) -> schema.Plan:
    """Return a plan that is given itself or by its file."""
    return load_plan(plan) if isinstance(plan, str | Path) else plan
