"""What a profile measures: the operators of a model, and parts of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.load import ZOO, load_model, split_file
from parapipe.api.split import has_external
from parapipe.errors import ModelError
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.pipeline.options import Dims, Rules, Shapes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from parapipe.api.checked import Model
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.platform.platform import Platform
    from parapipe.profiling.tasks import Tasks


@contextmanager
def tasks_in(
    model: Model,
    graph: OperatorGraph,
    platform: Platform,
    dims: Dims | None,
    shapes: Shapes | None,
) -> Iterator[Tasks]:
    """Yield what there is to measure of a model, which `graph` was read from."""
    from parapipe.export.constants import Constants
    from parapipe.graph.onnx_import import resolve_proto
    from parapipe.graph.skim import skim
    from parapipe.profiling.tasks import tasks_of

    with model_file(os.fspath(model)) as path, Constants(graph, path) as constants:
        proto = skim(path)
        _, resolved = resolve_proto(proto, graph.source.name, dims=dims, shapes=shapes)

        def read(name: str) -> NDArray[np.generic] | None:
            try:
                return constants.read(name)
            except ModelError:
                return None

        yield tasks_of(graph, proto, resolved, platform, read)


@contextmanager
def model_file(name: str) -> Iterator[Path]:
    """Yield the path of a model; one of the zoo is written into a folder that is soon gone."""
    if not name.startswith(ZOO):
        yield Path(name)
        return
    from parapipe.zoo.registry import write

    clear_abandoned_scratch()
    with LockedFolder() as scratch:
        path = scratch.path / "model.onnx"
        write(name.removeprefix(ZOO), path)
        yield path


SEARCHES = 3
"""Searches for parts, each with the times of what those before have asked for."""


def asked_parts(
    graph: OperatorGraph, platform: Platform, path: Path
) -> Iterator[Sequence[Sequence[str]]]:
    """Yield lists of rules of which the parts should be measured before the next lists are asked.

    First each operator by itself in parts that suit the processors' speeds, then what searches take
    that know these times.

    Parameters
    ----------
    path
        The profile, read anew for each search; those of the platform if it is not there.
    """
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.cost.profile import read_profile, shipped_profiles
    from parapipe.pipeline.asked_parts import balanced, searched

    for asked in (balanced, *(searched,) * SEARCHES):
        known = (read_profile(path),) if path.exists() else shipped_profiles(platform.profile_name)
        costs = build_cost_table(graph, platform, profiles=known, precision="model")
        yield asked(graph, platform, costs, known)


def part_tasks(
    model: Model,
    platform: Platform,
    lists: Sequence[Sequence[str]],
    *,
    dims: Dims | None,
    shapes: Shapes | None,
    rules: Rules | None,
) -> Iterator[Tasks]:
    """Yield what there is to measure of a model that is split by each of some lists of rules."""
    from parapipe.graph.skim import skim

    with model_file(os.fspath(model)) as path:
        apart = has_external(skim(path))
        for split in lists:
            with split_file(
                path, os.fspath(model), split, "fused", apart=apart, dims=dims, shapes=shapes
            ) as file:
                graph = load_model(file, rules=rules, note=lambda _: None)
                with tasks_in(str(file), graph, platform, None, None) as tasks:
                    yield tasks
