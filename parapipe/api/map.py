"""The Pareto front of a model on a platform."""

from __future__ import annotations

import warnings
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from parapipe.api.checked import Folder, Note, PlatformFile, checked
from parapipe.api.several import Models
from parapipe.api.torch_export import ExampleInputs, TorchModel, model_path
from parapipe.files.locked_folders import clear_abandoned_scratch
from parapipe.files.progress import Tell
from parapipe.processes.deadline import search_deadline
from parapipe.search.option_types import FilePath
from parapipe.search.options import MapKeywords, MapOptions
from parapipe.solvers import registry

if TYPE_CHECKING:
    from parapipe.api.front import ParetoFront


@checked
def map(
    model: Models | TorchModel,
    platform: PlatformFile,
    *,
    example_inputs: ExampleInputs | None = None,
    model_file: FilePath | None = None,
    options: MapOptions | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    note: Note | None = None,
    **keywords: Unpack[MapKeywords],
) -> ParetoFront:
    """Find all configurations of a model on a platform that no other one beats.

    Parameters
    ----------
    model, platform
        As for `load_model` and `load_platform`. Several models, as a list or by name, share the
        platform: give their `rates`. A `torch.nn.Module` or an `ExportedProgram` is first written
        as an ONNX file, by PyTorch's own exporter; plans name that file.
    example_inputs
        What a `torch.nn.Module` is called with.
    model_file
        Where the ONNX file of a module or a program is written. Default: the name of its class, in
        the working folder.
    options
        What else there is to say; see `MapOptions`.
    executor
        Solves the subgraphs in place of this process and worker processes of its own; it stays
        open.
    progress
        Called after each solved subgraph, and after each place at which the search has cut.
    note
        Takes what does no harm but should be known, a sentence each; a warning if not given.
    keywords
        Fields of `MapOptions`, in place of those of `options`.
    """
    options = replace(options or MapOptions(), **keywords)
    model = model_path(model, example_inputs, model_file)
    deadline = search_deadline(options.of_stated_costs.budget_s, options.memory_limit_bytes)
    registry.check_name(options.mapper)
    for name in options.search:
        check_search(name)
    clear_abandoned_scratch()
    from parapipe.api.search_run import SearchRequest, front_of, search_once

    note = note or warnings.warn
    run = SearchRequest(model, platform, options, executor, progress, note, deadline)
    if options.compiler is not None:
        from parapipe.api.compiled_map import map_compiled

        return map_compiled(run, options.compiler)
    return front_of(search_once(run))


def mapper_names() -> tuple[str, ...]:
    """Names of all mappers, sorted."""
    return registry.MAPPERS.names()


def check_mapper(name: str) -> None:
    """Raise a MappingError if there is no mapper of that name."""
    registry.check_name(name)


def search_names() -> tuple[str, ...]:
    """Names of the searches that other packages add, sorted."""
    from parapipe.search.registry import SEARCHES

    return SEARCHES.names_of_others()


def check_search(name: str) -> None:
    """Raise a MappingError if no package adds a search of that name."""
    from parapipe.search.registry import check_search as check

    check(name)


def reuse_processes() -> AbstractContextManager[object]:
    """Let the worker processes of one call stay for the next, until the context ends."""
    from parapipe.processes.workers import shared_processes

    return shared_processes("parapipe.front.pareto_front")


@checked
def check_directory(directory: Folder) -> None:
    """Raise an OutputError if a front could not be written to a folder; leave it as it was."""
    from parapipe.front.pareto_front import check_directory as check

    check(Path(directory))


def check_figure(path: Path) -> None:
    """Raise an OutputError if the front could not be drawn into a file; leave all as it was."""
    from parapipe.figures.axes import check_picture

    check_picture(path)
