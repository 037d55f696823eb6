"""What is to be measured: models of single operators in a folder, and the list of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import onnx

from parapipe.cost.profile import COLUMNS, OPTIONAL_COLUMNS, SIGNATURE_COLUMNS
from parapipe.errors import PlatformError
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.graph.data_types import dtype_name
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.resolve import Resolved
from parapipe.graph.skim import count_denormals
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.profiling.co_run_kernels import KERNEL_BYTES, kernel_models, kernels_document
from parapipe.profiling.figures import model_of
from parapipe.profiling.providers import Choice, choice_of
from parapipe.profiling.single_models import (
    Read,
    SingleModel,
    Unit,
    UnitKey,
    distinct_units,
    opsets_of,
    single_model,
)

FORMAT = "parapipe/profile-tasks/1"
OVERHEAD_FILE = "overhead.onnx"
TINY = "(float[1] x) => (float[1] y) { y = Relu(x) }"  # to run it takes a session's overhead


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a measurement needs to know.

    Parameters
    ----------
    document
        As `tasks.json` holds it, see `measure`.
    models
        The models by path below the folder.
    left_out
        A sentence for each operator, or processor, that is not measured.
    notes
        What else there is to know, a sentence each.
    denormals
        Weights that hold denormal numbers: name, how many they are, and how many numbers it has.
    """

    document: Mapping[str, Any]
    models: Mapping[Path, bytes]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    denormals: tuple[tuple[str, int, int], ...] = ()

    def keys(self) -> set[tuple[str, ...]]:
        """Return the keys of the rows that a profile has once all of it is measured."""
        operators = self.document["operators"]
        return {_key(each, name) for each in operators for name in each["processors"]}

    def only(self, requests: Collection[tuple[UnitKey, str]]) -> Tasks:
        """Return those of some operators, each on some processors, by key and name."""
        keys = {(*map(str, astuple(signature)), then, name) for (signature, then), name in requests}
        narrowed = (
            {**each, "processors": [n for n in each["processors"] if _key(each, n) in keys]}
            for each in self.document["operators"]
        )
        operators = [each for each in narrowed if each["processors"]]
        return replace(self, document={**self.document, "operators": operators})

    def files(self) -> dict[Path, bytes]:
        """Return all files by their path below the folder."""
        text = json.dumps(self.document, indent=1) + "\n"
        return {**self.models, Path("tasks.json"): text.encode()}


def tasks_of(
    graph: OperatorGraph,
    proto: onnx.ModelProto,
    resolved: Resolved,
    platform: Platform,
    read: Read,
) -> Tasks:
    """Return what there is to measure of a model on a platform.

    Parameters
    ----------
    graph
        Fused operators.
    proto, resolved
        What the graph was made of.
    read
        Takes large constants out of the model, one at a time.

    Raises
    ------
    PlatformError
        If no processor of the platform can be measured with ONNX Runtime.
    """
    chosen = {p.name: choice_of(p.kind, p.backend, p.cores, p.options) for p in platform.processors}
    left_out = [f"processor '{name}': {it.obstacle}" for name, it in chosen.items() if it.obstacle]
    measured = [p for p in platform.processors if not chosen[p.name].obstacle]
    if not measured:
        raise PlatformError(
            f"platform '{platform.name}' has no processor that ONNX Runtime can be pinned to "
            f"({listed_sentences(left_out)}): give its CPU processors their cores"
        )
    models: dict[Path, bytes] = {Path(OVERHEAD_FILE): model_of(TINY).SerializeToString()}
    models |= kernel_models()
    operators: list[dict[str, Any]] = []
    random: list[str] = []
    denormals: dict[str, tuple[str, int, int]] = {}
    for unit in distinct_units(graph):
        model = single_model(unit, graph, resolved, opsets_of(proto), read)
        if isinstance(model, str):
            left_out.append(f"operator '{unit.operator.name}' ({unit.operator.type}): {model}")
            continue
        path = Path("operators") / f"{len(operators):04d}-{unit.operator.type}.onnx"
        models[path] = model.proto.SerializeToString()
        random += [f"'{name}'" for name in model.random]
        denormals |= _denormals(model)
        operators.append(
            {
                "file": path.as_posix(),
                "name": unit.operator.name,
                "cells": {
                    **asdict(unit.signature),
                    "class": unit.operator_class,
                    "macs": unit.macs,
                    "size_bytes": unit.size_bytes,
                    "then": unit.then,
                    "weights": model.weights,
                },
                "processors": _processors_for(unit, graph, measured),
            }
        )
    groups = hardware_groups(measured)
    document = {
        "format": FORMAT,
        "model": graph.source.name,
        "platform": platform.name,
        "columns": [*COLUMNS, *OPTIONAL_COLUMNS],
        "processors": [_processor_entry(p, chosen[p.name], groups[p.name]) for p in measured],
        "kernels": kernels_document(),
        "overhead": {"file": OVERHEAD_FILE, "name": "overhead", "cells": {}},
        "operators": operators,
    }
    notes = (
        [f"random numbers stand for weights that cannot be read: {listed(random)}"]
        if random
        else []
    )
    return Tasks(document, models, tuple(left_out), tuple(notes), tuple(denormals.values()))


def kernel_tasks(
    processors: Sequence[Processor], size_bytes: int = KERNEL_BYTES
) -> tuple[dict[str, Any], dict[Path, bytes]]:
    """Return what there is to measure of processors with kernels alone, and the kernels' files.

    Parameters
    ----------
    size_bytes
        Bytes that the memory-bound kernel moves.
    """
    chosen = {p.name: choice_of(p.kind, p.backend, p.cores, p.options) for p in processors}
    measured = [p for p in processors if not chosen[p.name].obstacle]
    entries = [_processor_entry(p, chosen[p.name], p.name) for p in measured]
    document = {"processors": entries, "kernels": kernels_document(size_bytes)}
    return document, kernel_models(size_bytes)


def _processor_entry(p: Processor, choice: Choice, same_as: str) -> dict[str, Any]:
    """Return what a measurement needs to know of a processor."""
    return {
        "name": p.name,
        "cores": list(p.cores),
        "frequency_hz": p.point.frequency_hz,
        "provider": choice.provider,
        "options": dict(choice.options),
        "threads_option": choice.threads_option,
        "same_as": same_as,
    }


def merge_tasks(
    first: Tasks, others: Iterable[Tasks], without: Collection[tuple[str, ...]] = ()
) -> Tasks:
    """Return what there is to measure of several models on one platform, each row once.

    Parameters
    ----------
    without
        Keys of rows that are left out.
    """
    seen = set(without)
    models = {Path(OVERHEAD_FILE): first.models[Path(OVERHEAD_FILE)], **kernel_models()}
    operators: list[dict[str, Any]] = []
    left_out: dict[str, None] = {}
    notes: dict[str, None] = {}
    for tasks in chain([first], others):
        left_out |= dict.fromkeys(tasks.left_out)
        notes |= dict.fromkeys(tasks.notes)
        for each in tasks.document["operators"]:
            keys = {name: _key(each, name) for name in each["processors"]}
            names = [name for name, key in keys.items() if key not in seen]
            if names:
                seen.update(keys.values())
                file = Path("operators") / f"{len(operators):04d}-{each['cells']['type']}.onnx"
                models[file] = tasks.models[Path(each["file"])]
                operators.append({**each, "file": file.as_posix(), "processors": names})
    document = {**first.document, "operators": operators}
    return Tasks(document, models, tuple(left_out), tuple(notes))


def _key(operator: Mapping[str, Any], processor: str) -> tuple[str, ...]:
    cells = operator["cells"]
    return (*(str(cells[name]) for name in (*SIGNATURE_COLUMNS, "then")), processor)


def hardware_groups(processors: Sequence[Processor]) -> dict[str, str]:
    """Return by each processor's name that of the first with the same hardware."""
    return {
        p.name: next(q.name for q in processors if _hardware(q) == _hardware(p)) for p in processors
    }


def _denormals(model: SingleModel) -> dict[str, tuple[str, int, int]]:
    """Return the own weights of a model that hold denormal numbers, by their names."""
    counted = (
        (
            each.name,
            count_denormals(each.raw_data, dtype_name(each.data_type) or ""),
            prod(each.dims),
        )
        for each in model.proto.graph.initializer
        if each.name not in model.random
    )
    return {name: (name, count, of) for name, count, of in counted if count}


def _hardware(p: Processor) -> tuple[object, ...]:
    """Return what describes a processor's hardware: if it is equal, so are the times.

    What was measured is not compared: noise makes it differ.
    """
    options = tuple(sorted(p.options.items()))
    runs = (p.kind, p.backend, options, p.host, len(p.cores), p.point.frequency_hz)
    return (*runs, p.description) if p.description else (p.name,)


def _processors_for(unit: Unit, graph: OperatorGraph, every: Sequence[Processor]) -> list[str]:
    """Return the names of the processors that run every part of a unit."""
    names = []
    for processor in every:
        refusals = [
            processor.supports(
                part.type,
                unit.signature.dtype,
                part.attributes,
                {i for i, name in enumerate(part.inputs) if name in graph.tensors},
            )
            for part in unit.operator.singles
        ]
        if not any(refusals):
            names.append(processor.name)
    return names
