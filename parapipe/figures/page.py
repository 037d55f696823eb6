"""report.html: a front on one page that needs no network and no server.

Style, script and data stand in the page itself. Its content security policy allows this very style
and script, by their digests, and nothing else: what models and operators are called is data only,
and nothing is fetched or sent.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from parapipe.digits import plain
from parapipe.documents.figure_table import FIGURES, SHOWN_FIELDS, page_entries
from parapipe.documents.front_folder import FrontFolder
from parapipe.documents.front_records import MemorySystemRow
from parapipe.documents.front_schema import FrontDocument
from parapipe.documents.shown import absent_texts, medians_of, shown_figure, shown_values
from parapipe.figures.network import layout
from parapipe.figures.timeline import Timeline, operator_flows, timeline
from parapipe.files.titles import model_title
from parapipe.graph.part_marks import origins
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import peak_memory
from parapipe.plan.mapped import mapping_view, network_of
from parapipe.plan.schema import Plan, Transfer

CLOUD = 80  # draws of each configuration that the page shows
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
    [tensor, operator, from, to, stage, within, occupies, start, end, bytes, cast]. Times count from
    the start of the stage; of an `interleaved` plan from the frame's entry. A split operator has a
    bar for each part. `memory` holds for each memory its name, its weights' bytes and [time, bytes]
    over a period. `clouds` has, by id, [latency, period] in microseconds in some draws of costs,
    and `shown` what figures with intervals are shown as: all rows by medians, or none. `figures` is
    the table of figures.
    """
    document = folder.document
    plans = list(folder.plans.values())
    plan = next((each for each in plans if not each.model.split), plans[0])
    tensors = {
        name: each.tensors[name].size_bytes
        for each in (plan, *plans)
        for operator in each.operators
        for name in filter(None, operator.outputs)
    }
    index = _Indices(
        operator={operator.id: i for i, operator in enumerate(document.operators)},
        processor={processor.name: i for i, processor in enumerate(document.processors)},
        tensor={name: i for i, name in enumerate(tensors)},
    )
    front = document.model_dump(mode="json", by_alias=True)
    del front["operators"], front["subgraphs"]
    for row in front["configurations"]:
        row |= {each.field: each.value(row) for each in FIGURES}
    rows = front["configurations"]
    shown = [each for each in FIGURES if any(row[each.field] is not None for row in rows)]
    return {
        "title": model_title(document.model),
        "front": front,
        "figures": page_entries(shown),
        "network": _network_data(document, plan, index) | {"tensors": list(tensors.items())},
        "schedules": {
            name: _schedule_data(each, timeline(each), index)
            | {"memory": _memory_data(each, document.memory)}
            for name, each in folder.plans.items()
        },
        "absent": [*absent_texts(document.absent)],
        "solver": _solver_summary(folder.solve_log),
        "clouds": _sample_clouds(folder),
        "shown": _displayed_figures(front["configurations"]),
    }


def _displayed_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by configuration and figure how it is shown, of those with intervals."""
    shown: dict[str, dict[str, Any]] = {row["id"]: {} for row in rows}
    medians = medians_of(rows)
    for key in SHOWN_FIELDS:
        by_median = key in medians
        for row, value in zip(rows, shown_values(rows, key), strict=True):
            if figure := shown_figure(row, key):
                display = {
                    "value": value,
                    "by_median": by_median,
                    "even": figure.even and not by_median,
                }
                shown[row["id"]][key] = asdict(figure) | display
    return shown


def _sample_clouds(folder: FrontFolder) -> dict[str, list[list[float]]]:
    """Return latency and period of each configuration in the first draws."""
    if folder.drawn is None:
        return {}
    latency_s, period_s = (
        each[:, :CLOUD] for each in (folder.drawn.latency_s, folder.drawn.period_s)
    )
    return {
        row.id: [[round(a * 1e6), round(b * 1e6)] for a, b in zip(*pair, strict=True)]
        for row, *pair in zip(folder.document.configurations, latency_s, period_s, strict=True)
    }


def _network_data(document: FrontDocument, plan: Plan, index: _Indices) -> dict[str, Any]:
    place = index.operator
    members = document.members
    edges = operator_flows(plan)
    layouts = layout([[operator.id for operator in each] for each in members], edges)
    planned = {operator.id: operator for operator in plan.operators}
    return {
        "operators": [
            {
                "name": operator.name,
                "type": operator.type,
                "nodes": len(planned[operator.id].members),
                "shape": list(plan.tensors[planned[operator.id].outputs[0]].shape),
                "subgraph": number,
                "place": laid.places[operator.id],
            }
            for number, (inside, laid) in enumerate(zip(members, layouts, strict=True))
            for operator in inside
        ],
        "flows": [[place[source], place[target]] for source, target in edges],
        "subgraphs": [
            subgraph.model_dump(include={"number", "parallelism"})
            | {"columns": laid.columns, "levels": laid.levels}
            for subgraph, laid in zip(document.subgraphs, layouts, strict=True)
        ],
    }


def _schedule_data(plan: Plan, time: Timeline, index: _Indices) -> dict[str, Any]:
    origin = origins(plan.operators, index.operator.keys())
    coverage = plan.predicted.coverage
    return {
        "bars": [
            [
                index.operator[origin[bar.operator]],
                bar.stage,
                index.processor[bar.processor],
                _microseconds(bar.start_s),
                _microseconds(bar.end_s),
            ]
            for bar in time.bars
        ],
        "passages": [
            [
                index.tensor[passage.transfer.tensor],
                index.operator[origin[passage.operator]],
                index.processor[passage.transfer.source],
                index.processor[passage.transfer.target],
                passage.stage,
                int(passage.transfer.kind == "within-stage"),
                passage.transfer.occupies,
                _microseconds(passage.start_s),
                _microseconds(passage.end_s),
                passage.transfer.size_bytes,
                _cast_text(passage.transfer),
            ]
            for passage in time.passages
        ],
        "interleaved": time.period_s is not None,
        "coverage": coverage and coverage.model_dump(exclude_none=True),
    }


def _memory_data(plan: Plan, row: MemorySystemRow | None) -> list[dict[str, Any]]:
    if row is None:
        return []
    names = tuple(mapping_view(plan).resources)
    types = {processor.name: processor.data_type for processor in plan.processors}
    storage = Storage(network_of(plan), row.system, names, tuple(map(types.get, names)))
    peaks = peak_memory(mapping_view(plan).mapping, storage, plan.predicted.period_s)
    return [
        {
            "name": each.name,
            "weights": each.weights_bytes + each.segments_bytes,
            "peak": each.size_bytes,
            "usage": [[_microseconds(time_s), size_bytes] for time_s, size_bytes in each.usage],
        }
        for each in peaks.memories
    ]


def _cast_text(transfer: Transfer) -> str | None:
    cast = transfer.cast
    if cast is None:
        return None
    types = f"{cast.source_type} to {cast.target_type}"
    return f"{types} on {cast.processor} ({cast.operator}, {plain(_microseconds(cast.time_s))} µs)"


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, DIGITS)


def _solver_summary(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up how problems were solved."""
    kinds: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in log:
        kinds.setdefault((entry["solver"], entry["proves"]), []).append(entry)
    return {
        **_sum_entries(log),
        "cached": _count(entry for entry in log if entry["cached"]),
        "largest_gap": max((entry["gap"] for entry in log), default=0.0),
        "solvers": [
            {"solver": solver, "proves": proves, **_sum_entries(entries)}
            for (solver, proves), entries in sorted(kinds.items(), key=lambda it: -_count(it[1]))
        ],
    }


def _sum_entries(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "problems": _count(log),
        "proven": _count(entry for entry in log if entry["proven"]),
        "wall_s": sum(entry["wall_s"] for entry in log),
    }


def _count(entries: Iterable[Mapping[str, Any]]) -> int:
    """Return how many problems entries stand for; one each in files of earlier versions."""
    return sum(entry.get("problems", 1) for entry in entries)


WEB = Path(__file__).with_name("web")
SCRIPTS = (
    "elements.js",
    "numbers.js",
    "colours.js",
    "state.js",
    "tooltip.js",
    "scatter.js",
    "summary.js",
    "gantt.js",
    "memory.js",
    "processors.js",
    "network.js",
    "sources.js",
    "table.js",
    "main.js",
)
"""In this order they make one script; see web/README.md."""


def page(folder: FrontFolder) -> bytes:
    """Return the page of a front."""
    document = folder.document
    title = f"{model_title(document.model)} on {document.platform}"
    return filled_page("report.html", SCRIPTS, title, page_data(folder))


def filled_page(template: str, scripts: Sequence[str], title: str, data: Any) -> bytes:  # noqa: ANN401 - any JSON document
    """Return a page of `web`: its template with the style, the scripts and the data."""
    style = _read_source("report.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_read_source, scripts)) + "\n})();\n"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    filled = Template(_read_source(template)).substitute(
        policy=escape(policy),
        title=escape(f"{title} – parapipe"),
        style=style,
        script=script,
        data=embedded_json(data),
    )
    return filled.encode()


def embedded_json(data: Any) -> str:  # noqa: ANN401 - any JSON document
    """Return JSON that ends no element it stands in, whatever its texts are."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _read_source(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
