"""What the report page draws: a front and its plans, without what is not drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.figures.network_layout import layout
from parapipe.figures.timeline import Timeline, flows, timeline
from parapipe.formats.front import FrontDocument
from parapipe.formats.front_folder import FrontFolder
from parapipe.plan.schema import Plan

HARDEST = 8
DIGITS = 3  # of microseconds: the page shows nanoseconds at most


@dataclass(frozen=True, slots=True)
class _Indices:
    operator: Mapping[str, int]
    processor: Mapping[str, int]
    tensor: Mapping[str, int]


def page_data(folder: FrontFolder) -> dict[str, Any]:
    """Return plain data for the page.

    `network` holds operators and tensors by index, operators with their place in the picture.
    `schedules`, by id of the configuration, refers to them and to processors by these indices, and
    gives times in microseconds: `bars` are [operator, stage, processor, start, end], `passages`
    [tensor, operator, from, to, stage, within, occupies, start, end]. Times count from the start of
    the stage; of an `interleaved` plan from the frame's entry.
    """
    document = folder.document
    plan = next(iter(folder.plans.values()))
    index = _Indices(
        operator={operator.id: i for i, operator in enumerate(document.operators)},
        processor={processor.name: i for i, processor in enumerate(document.processors)},
        tensor={name: i for i, name in enumerate(_made(plan))},
    )
    front = document.model_dump(mode="json", by_alias=True)
    del front["operators"], front["subgraphs"]
    return {
        "front": front,
        "network": _network(document, plan, index),
        "schedules": {
            name: _schedule(each, timeline(each), index) for name, each in folder.plans.items()
        },
        "solver": _solver(folder.solve_log),
    }


def subgraph_members(document: FrontDocument) -> list[list[str]]:
    """Return the ids of each subgraph's operators, in the stored order."""
    ids = [operator.id for operator in document.operators]
    index = {name: i for i, name in enumerate(ids)}
    return [
        ids[index[subgraph.first_operator] : index[subgraph.last_operator] + 1]
        for subgraph in document.subgraphs
    ]


def _network(document: FrontDocument, plan: Plan, index: _Indices) -> dict[str, Any]:
    members = subgraph_members(document)
    read = flows(plan)
    blocks = layout(members, read)
    fused = {operator.id: len(operator.members) for operator in plan.operators}
    shapes = {
        operator.id: list(plan.tensors[operator.outputs[0]].shape) for operator in plan.operators
    }
    return {
        "operators": [
            {
                "name": operator.name,
                "type": operator.type,
                "nodes": fused[operator.id],
                "shape": shapes[operator.id],
                "subgraph": number,
                "place": block.places[operator.id],
            }
            for number, (names, block) in enumerate(zip(members, blocks, strict=True))
            for operator in (document.operators[index.operator[name]] for name in names)
        ],
        "flows": [[index.operator[source], index.operator[target]] for source, target in read],
        "tensors": [[name, plan.tensors[name].size_bytes] for name in _made(plan)],
        "subgraphs": [
            {
                "number": subgraph.number,
                "parallelism": subgraph.parallelism,
                "columns": block.columns,
                "lanes": block.lanes,
            }
            for subgraph, block in zip(document.subgraphs, blocks, strict=True)
        ],
    }


def _made(plan: Plan) -> list[str]:
    return [name for operator in plan.operators for name in operator.outputs if name]


def _schedule(plan: Plan, time: Timeline, index: _Indices) -> dict[str, Any]:
    return {
        "bars": [
            [
                index.operator[bar.operator],
                bar.stage,
                index.processor[bar.processor],
                _us(bar.start_s),
                _us(bar.end_s),
            ]
            for bar in time.bars
        ],
        "passages": [
            [
                index.tensor[passage.transfer.tensor],
                index.operator[passage.operator],
                index.processor[passage.transfer.source],
                index.processor[passage.transfer.target],
                passage.stage,
                int(passage.transfer.kind == "within-stage"),
                passage.transfer.occupies,
                _us(passage.start_s),
                _us(passage.end_s),
            ]
            for passage in time.passages
        ],
        "interleaved": time.period_s is not None,
        "coverage": None if (known := plan.predicted.coverage) is None else known.model_dump(),
    }


def _us(seconds: float) -> float:
    return round(seconds * 1e6, DIGITS)


def _solver(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up how problems were solved, and list those that took longest."""
    counted: Counter[tuple[str, str]] = Counter()
    proven: Counter[tuple[str, str]] = Counter()
    wall_s: Counter[tuple[str, str]] = Counter()
    for entry in log:
        kind = (entry["solver"], entry["proves"])
        counted[kind] += 1
        proven[kind] += bool(entry["proven"])
        wall_s[kind] += entry["wall_s"]
    hardest = sorted(log, key=lambda entry: (-entry["gap"], -entry["wall_s"]))[:HARDEST]
    return {
        "problems": len(log),
        "proven": sum(proven.values()),
        "cached": sum(bool(entry["cached"]) for entry in log),
        "wall_s": sum(entry["wall_s"] for entry in log),
        "largest_gap": max((entry["gap"] for entry in log), default=0.0),
        "solvers": [
            {
                "solver": solver,
                "proves": proves,
                "problems": count,
                "proven": proven[solver, proves],
                "wall_s": wall_s[solver, proves],
            }
            for (solver, proves), count in counted.most_common()
        ],
        "hardest": [
            {
                "subgraphs": entry["asked_for"][0]["subgraphs"] if entry["asked_for"] else [],
                "processors": entry["asked_for"][0]["processors"] if entry["asked_for"] else [],
                **{
                    key: entry[key]
                    for key in ("operators", "proves", "proven", "gap", "wall_s", "solver")
                },
            }
            for entry in hardest
        ],
    }
