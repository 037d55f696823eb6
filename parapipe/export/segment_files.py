"""The target `segments`: each segment of a plan as a plain ONNX model, for compilers elsewhere.

The models hold nothing but the network: no marks, no metadata, fixed shapes, weights inside. A
compiler of an NPU's maker takes them one by one; `docs/segments.md` says by which command.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx.external_data_helper import load_external_data_for_model
from pydantic import ValidationError

from parapipe.export import segment_manifest as manifest
from parapipe.export.exported import Exported, export_folder, readme
from parapipe.export.onnxruntime.boundary import conversion_notes
from parapipe.export.onnxruntime.folder import MOST_BYTES, write_model
from parapipe.export.onnxruntime.network import ModelFile, placed_tensors, plain_model
from parapipe.export.onnxruntime.parts import Parts, parts_of
from parapipe.export.onnxruntime.weights import assign_places, size_of, write_weights
from parapipe.plan.mapped import mapping_view
from parapipe.plan.records import PredictedTimes
from parapipe.plan.schema import ModelFile as Source
from parapipe.plan.schema import Plan
from parapipe.plan.summary import replicas_of
from parapipe.runtime.document import Segment

FOLDER = "segments"
USE = """
Each segment is a plain ONNX model for the compiler of its processor. The manifest says which
processor runs it, in which order, and which tensors go from one segment to another; a runtime of
yours loads what the compilers make of them, and follows it.
"""
FILES = {
    manifest.FILE: "segments in order, their inputs and outputs, transfers, processors",
    f"{FOLDER}/NNN-PROCESSOR.onnx": "a segment, weights inside",
    f"{FOLDER}/*.bin": "weights of segments that are too large for one file",
}
MARGIN_BYTES = 64 << 20  # for what a model holds beside its weights


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write the models and their manifest; an earlier export that stands there is replaced.

    Raises
    ------
    ExportError
        If no folder is named, or a segment is too large for a file.
    OutputError
        If the folder holds anything else, or cannot be written.
    PlanError
        If the plan's operators are not those of the model.
    """

    def write(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        document = write_segments(plan, model, folder)
        counts = Counter(each.processor for each in document.segments)
        turns = {names[0]: "/".join(names) for names in replicas_of(plan)}
        also = {name for names in replicas_of(plan) for name in names[1:]}
        shares = ", ".join(
            f"{counts[each.name]} for {turns.get(each.name, each.name)}"
            for each in document.processors
            if each.name not in also
        )
        return (
            f"segments    {len(document.segments)}: {shares}",
            f"transfers   {len(document.transfers)}",
        ), tuple(conversion_notes(plan))

    return export_folder(
        "segments", destination, manifest.SCHEMA, earlier_files, write,
        document=manifest.FILE,
        readme=readme(plan, "segments", USE, FILES),
    )  # fmt: skip


def earlier_files(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths that an earlier export has put beside its manifest."""
    try:
        earlier = manifest.Manifest.model_validate_json(json.dumps(document))
    except ValidationError:
        return
    for segment in earlier.segments:
        yield from (each.file for each in (segment, segment.weights) if each is not None)


def write_segments(plan: Plan, model: Path, folder: Path) -> manifest.Manifest:
    """Write a plan's segments into an empty folder; return the manifest.

    Parameters
    ----------
    plan
        One that `verify_plan` accepts.
    model
        The file of its model.

    Raises
    ------
    PlanError
        If the plan's operators are not those of the model.
    ExportError
        If a segment is too large for a file.
    OSError
        If a file cannot be read or written.
    """
    parts = parts_of(plan, model)
    (folder / FOLDER).mkdir()
    document = write_parts(plan, parts, tuple(_renumbered(parts.segments)), folder)
    (folder / manifest.FILE).write_bytes(document.to_bytes())
    return document


def write_parts(
    plan: Plan, parts: Parts, listed: Sequence[Segment], folder: Path
) -> manifest.Manifest:
    """Write the models of segments; return the manifest, which is not written.

    Parameters
    ----------
    parts
        Of the plan.
    listed
        Its segments, with the ids and files that they shall have.

    Raises
    ------
    ExportError
        If a segment is too large for a file.
    OSError
        If a file cannot be read or written.
    """
    makers = {name: each.id for each in listed for name in each.outputs}
    turns = mapping_view(plan).replicas
    return manifest.Manifest(
        schema=manifest.SCHEMA,
        model=Source(name=plan.model.name, sha256=plan.model.sha256),
        platform=plan.platform,
        inputs=tuple(manifest.Value(**_value_fields(parts, name)) for name in plan.inputs),
        outputs=tuple(
            manifest.Result.model_validate({"name": name, "from": makers[name]})
            for name in plan.outputs
        ),
        processors=plan.processors,
        segments=tuple(
            _write_segment(parts, parts.files[old.id], each, makers, folder).model_copy(
                update={"replicas": turns.get(each.processor, ())[1:] or None}
            )
            for old, each in zip(parts.segments, listed, strict=True)
        ),
        transfers=plan.transfers,
        predicted=PredictedTimes(
            **plan.predicted.model_dump(include=set(PredictedTimes.model_fields))
        ),
    )


def _renumbered(segments: Sequence[Segment]) -> Iterator[Segment]:
    for number, each in enumerate(segments):
        name = f"{number:03d}-{each.id.partition('-')[2]}"
        yield replace(each, id=name, file=f"{FOLDER}/{name}.onnx")


def _write_segment(
    parts: Parts, part: ModelFile, segment: Segment, makers: Mapping[str, str], folder: Path
) -> manifest.Segment:
    """Write a segment's model, its weights inside if they fit; return what is to be said of it."""
    network, part = parts.network, replace(part, name=segment.id)
    placed = placed_tensors(part, network)
    weights: manifest.File | None = None
    if sum(map(size_of, placed.values())) > MOST_BYTES - MARGIN_BYTES:
        where = assign_places({segment.id: placed})
        beside = (folder / segment.file).parent
        ((name, digest),) = write_weights(where.values(), network.folder, beside).items()
        weights = manifest.File(file=(beside / name).relative_to(folder).as_posix(), sha256=digest)
        model = plain_model(part, network, where)
    else:
        model = plain_model(part, network, {})
        load_external_data_for_model(model, str(network.folder))
    return manifest.Segment(
        id=segment.id,
        file=segment.file,
        sha256=write_model(folder / segment.file, model, segment.operators),
        weights=weights,
        processor=segment.processor,
        stage=segment.stage,
        lag=segment.lag,
        order=segment.position,
        inputs=tuple(
            manifest.Input.model_validate({**_value_fields(parts, name), "from": makers.get(name)})
            for name in segment.inputs
        ),
        outputs=tuple(manifest.Value(**_value_fields(parts, name)) for name in segment.outputs),
        operators=segment.operators,
        start_s=segment.start_s,
        end_s=segment.end_s,
        time_s=segment.time_s,
    )


def _value_fields(parts: Parts, name: str) -> dict[str, Any]:
    return {"name": name, **parts.handovers.tensor(name).model_dump()}
