"""The target `model-explorer`: node data that colour an ONNX model in Model Explorer.

Model Explorer (https://github.com/google-ai-edge/model-explorer) takes a JSON file for each kind of
data, with values and colours by the ids of nodes. Its adapter for ONNX
(https://github.com/justinchuby/model-explorer-onnx) takes the nodes' names for ids; a node without
a name, or with that of an earlier one, gets one as `NameFixPass` of onnx-ir gives it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from parapipe.errors import ExportError
from parapipe.export.exported import README, Exported, Written, json_of, readme
from parapipe.files.atomic import write_folder
from parapipe.graph.skim import skim
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Operator, Plan

# Colours that can be told apart whatever one's sight (Okabe and Ito, 2008), black left out.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
GRADIENT = ({"stop": 0, "bgColor": "#fff7ec"}, {"stop": 1, "bgColor": "#7f0000"})
DIGITS = 6  # of a number

TARGET = "model-explorer"
NAMES = {
    "stage.json": "stage",
    "processor.json": "processor",
    "time.json": "time (ms)",
    "energy.json": "dynamic energy (mJ)",
}
"""What the data of each file are called."""

USE = """
Load the ONNX model in [Model Explorer](https://github.com/google-ai-edge/model-explorer) by its
[adapter](https://github.com/justinchuby/model-explorer-onnx), then these files while the main
graph is visible: they colour its nodes.
"""
FILES = {
    "stage.json": "the stage of each node",
    "processor.json": "its processor",
    "time.json": "its predicted time in ms; of several nodes that are one operator, at one of them",
    "energy.json": "its predicted dynamic energy in mJ, likewise",
}


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write a file for stages, processors, times, and energies where the plan knows them.

    Where an operator stands for several nodes, its time and energy stand at the one that gives it
    its type, so that they add up; its stage and processor stand at all. Nodes that vanish, as a
    Dropout does, or that make constants have no data.

    Raises
    ------
    ExportError
        If no folder is named.
    OutputError
        If it cannot be written.
    """
    if destination is None:
        raise ExportError("the target model-explorer makes a folder: name it, as in `… DIR`")
    nodes = model_nodes(skim(model).graph)
    documents = dict(_documents(plan, nodes))
    files = {
        Path(name): json.dumps(document, indent=1, allow_nan=False).encode()
        for name, document in documents.items()
    }
    descriptions = {name: FILES[name] for name in documents}
    files[Path(README)] = readme(plan, TARGET, USE, descriptions).encode()
    write_folder(destination, files)
    shown = documents["stage.json"]["results"]
    unknown = ("the plan does not know its operators' energies; map the model again for them",)
    return Exported(
        TARGET,
        tuple(destination / name for name in files),
        sum(map(len, files.values())),
        (f"nodes       {len(shown)} of {len(nodes)} in the model",),
        () if "energy.json" in documents else unknown,
    )


def written(destination: Path) -> Iterator[Written]:
    """Yield the files; data by their name, README.md by its text tell that they are an export's."""
    for file, name in NAMES.items():
        yield Written(destination / file, partial(_is_named, name))
    yield Written(
        destination / README, lambda content: f"export --to {TARGET}`".encode() in content
    )


def _is_named(name: str, content: bytes) -> bool:
    return bool(json_of(content).get("name") == name)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the main graph, with its id, its name in plans, its type and what it makes."""

    id: str
    member: str
    type: str
    outputs: tuple[str, ...]


def model_nodes(graph: onnx.GraphProto) -> list[Node]:
    """Return the nodes of the main graph, in order."""
    nodes: list[Node] = []
    suffixes: Counter[str] = Counter()  # numbers behind names; bodies of control flow count along

    def visit(part: onnx.GraphProto, *, main: bool) -> None:
        used_names: set[str] = set()
        for node in part.node:
            wanted = node.name or "node"
            name = wanted
            while name in used_names:
                suffixes[wanted] += 1
                name = f"{wanted}_{suffixes[wanted]}"
            used_names.add(name)
            if main:
                outputs = tuple(node.output)
                member = node.name or next(filter(None, outputs), "")
                nodes.append(Node(name, member, node.op_type, outputs))
            for attribute in node.attribute:
                own = [attribute.g] if attribute.HasField("g") else []
                for body in (*own, *attribute.graphs):
                    visit(body, main=False)

    visit(graph, main=True)
    return nodes


def _documents(plan: Plan, nodes: Sequence[Node]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the content of each file."""
    nodes_of: dict[str, list[Node]] = {}
    for node in nodes:
        nodes_of.setdefault(node.member, []).append(node)
    view = mapping_view(plan)
    listed = (each for stage in plan.stages for each in stage.processors)
    energies = {at.operator: at.energy_j for each in listed for at in each.operators}
    shown = [
        (at, energies[operator], ids)
        for operator, at in view.placements.items()
        if (ids := _node_ids(plan.operators[at.operator], nodes_of))
    ]
    stages = [(f"stage {view.stage(at)}", view.stage(at), ids) for at, _, ids in shown]
    processors = [(view.name(at), at.processor, ids) for at, _, ids in shown]
    yield "stage.json", _word_data(NAMES["stage.json"], stages)
    yield "processor.json", _word_data(NAMES["processor.json"], processors)
    times = [(at.end_s - at.start_s, ids[0]) for at, _, ids in shown]
    yield "time.json", _number_data(NAMES["time.json"], times)
    shown_energies = [(energy_j, ids[0]) for _, energy_j, ids in shown if energy_j is not None]
    if len(shown_energies) == len(shown):
        yield "energy.json", _number_data(NAMES["energy.json"], shown_energies)


def _node_ids(operator: Operator, nodes_of: Mapping[str, Sequence[Node]]) -> list[str]:
    """Return the ids of the nodes that an operator stands for, first the one that gives its type.

    Of several nodes of one name they are those that make what the operator makes.
    """
    outputs = {name for single in (operator, *operator.parts) for name in single.outputs}
    nodes = [
        node
        for member in operator.members
        for some in [nodes_of.get(member, ())]
        for node in some
        if len(some) == 1 or outputs.intersection(node.outputs)
    ]
    nodes.sort(key=lambda node: node.type != operator.type)
    return list(dict.fromkeys(node.id for node in nodes))


def _word_data(name: str, shown: Sequence[tuple[str, int, list[str]]]) -> dict[str, Any]:
    """Return data that are words, each with a colour of its own as far as there are any."""
    return {
        "name": name,
        "results": {
            node: {"value": word, "bgColor": COLOURS[number % len(COLOURS)]}
            for word, number, ids in shown
            for node in ids
        },
        "hideInAggregatedStatsTable": True,
        "showExpandedSummaryOnGroupNode": True,
        "showLabelCountColumnsInChildrenStatsTable": True,
    }


def _number_data(name: str, values: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """Return data that are numbers, in thousandths, from pale to dark."""
    return {
        "name": name,
        "results": {node: {"value": float(f"{value * 1e3:.{DIGITS}g}")} for value, node in values},
        "gradient": GRADIENT,
    }
