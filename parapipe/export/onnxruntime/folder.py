"""The target `onnxruntime`: a folder that ONNX Runtime executes on the board."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import onnx

from parapipe.errors import ExportError
from parapipe.export.exported import Exported, export_folder, readme
from parapipe.export.onnxruntime.arena import with_places
from parapipe.export.onnxruntime.boundary import Handovers, conversion_notes
from parapipe.export.onnxruntime.network import placed_tensors, segment_model, staged_model
from parapipe.export.onnxruntime.parts import parts_of
from parapipe.export.onnxruntime.session_document import WHOLE, session_plan
from parapipe.export.onnxruntime.weights import Place, assign_places, write_weights
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import ITEM_BYTES
from parapipe.graph.skim import count_denormals
from parapipe.plan.schema import Plan
from parapipe.plan.segments import NO_PIECES, Pieces
from parapipe.runtime.copied import runner_files
from parapipe.runtime.document import SCHEMA, Denormals, Segment, SessionPlan
from parapipe.runtime.machine import denormals_note

PLAN = "plan.json"
WITHOUT_ARRAY = frozenset(
    {"bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2"}
)  # ONNX Runtime gives and takes no NumPy arrays of them
USE = """
It needs Python 3.10, numpy and ONNX Runtime, nothing of parapipe. On the board, in this folder:

    python3 -m pip install -r requirements.txt
    python3 run.py

runs a hundred frames of random numbers, and prints measured beside predicted figures;
`python3 run.py --help` lists options. A processor with another backend than `onnxruntime-cpu` needs
the build of ONNX Runtime that has it in place of the one in `requirements.txt`; else run.py says
which of them run on the CPU.
"""
FILES = {
    "run.py": "runs the folder",
    "requirements.txt": "the packages that it needs",
    "parapipe_runtime": "its modules",
    "plan.json": "segments, channels between them, processors, predicted figures",
    "NN-PROCESSOR.onnx": "a segment: operators that a processor runs without waiting for another",
    "NN-PROCESSOR.bin, shared.bin": "weights of one segment, and of several",
    "network.onnx": "the whole network in one file, which refers to these weights",
}
MOST_BYTES = (1 << 31) - 1  # of a protobuf message


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write the folder; an earlier export that stands there is replaced.

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
        document = write_session_folder(plan, model, folder)
        counts = Counter(each.processor for each in document.segments)
        shares = ", ".join(
            f"{counts[each.name]} on {'/'.join(each.turns) or each.name}"
            for each in document.processors
            if each.name == each.first
        )
        return (
            f"segments    {len(document.segments)}: {shares}",
            f"channels    {sum(each.producer is not None for each in document.channels)}",
        ), (*conversion_notes(plan), *_notes_of_document(document))

    about = readme(plan, "onnxruntime", USE, FILES)
    return export_folder("onnxruntime", destination, SCHEMA, _earlier_names, write, readme=about)


def _notes_of_document(document: SessionPlan) -> Iterator[str]:
    for each in document.processors:
        if each.substitute:
            yield f"segments of '{each.name}' run on the CPU: {each.substitute}"
    if denormal := denormals_note(
        (each.tensor, each.count, each.of) for each in document.denormals
    ):
        yield denormal


def _earlier_names(document: Mapping[str, Any]) -> set[str]:
    """Return the names that an earlier export has put beside its plan."""
    return {*(Path(name).parts[0] for name in runner_files()), *document.get("files", ())}


def write_session_folder(
    plan: Plan,
    model: Path,
    folder: Path,
    *,
    single: bool = False,
    in_place: bool = True,
    pieces: Pieces = NO_PIECES,
) -> SessionPlan:
    """Write a plan for ONNX Runtime into an empty folder; return its `plan.json`.

    Parameters
    ----------
    plan
        One that `verify_plan` accepts.
    model
        The file of its model.
    single
        Make a segment of every operator.
    in_place
        Leave out Concats and Slices that join and cut tensors where they lie. If not, and with
        `single`, a run holds the tensors that the plan counts, each by itself.
    pieces
        As of `segments`.

    Raises
    ------
    PlanError
        If the plan's operators are not those of the model.
    ExportError
        If a segment is too large for a file, or a tensor of a type that NumPy has not would go
        from one to another.
    OSError
        If a file cannot be read or written.
    """
    parts = parts_of(plan, model, in_place=in_place, single=single, pieces=pieces)
    numbered, network = parts.segments, parts.network
    check_array_types(plan, numbered, parts.handovers)
    where = assign_places(
        {name: placed_tensors(part, network) for name, part in parts.files.items()}
    )
    denormal: Counter[str] = Counter()

    def count(place: Place, chunk: bytes) -> None:
        denormal[place.name] += count_denormals(chunk, place.dtype)

    digests = write_weights(where.values(), network.folder, folder, count)
    for each in numbered:
        about = {
            "parapipe.segment": each.id,
            "parapipe.processor": each.processor,
            "parapipe.stage": str(each.stage),
        }
        proto = segment_model(parts.files[each.id], network, where, about)
        digests[each.file] = write_model(folder / each.file, proto, each.operators)
    names = [processor.name for processor in plan.processors]
    network_proto = staged_model(parts.network_file, network, where, plan.platform, names)
    digests[WHOLE] = write_model(folder / WHOLE, network_proto, ())
    denormals = tuple(
        Denormals(each.name, denormal[each.name], int(each.size_bytes / ITEM_BYTES[each.dtype]))
        for each in where.values()
        if denormal[each.name]
    )
    run = session_plan(parts.plan, numbered, parts.handovers, digests, views=parts.views)
    read = tuple(replace(each, inputs=tuple(parts.files[each.id].inputs)) for each in numbered)
    document = with_places(replace(run, segments=read, denormals=denormals), plan, parts.handovers)
    _write_bytes(folder / PLAN, (json.dumps(asdict(document), indent=1) + "\n").encode())
    for name, content in runner_files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        _write_bytes(folder / name, content)
    return document


def check_array_types(plan: Plan, numbered: Sequence[Segment], handovers: Handovers) -> None:
    """Check that every tensor between segments can be handed on as an array."""
    crossing = {
        handovers.tensor_and_type[name]
        for each in numbered
        for name in (*each.inputs, *each.outputs)
    }
    shown = [f"'{name}' ({dtype})" for name, dtype in sorted(crossing) if dtype in WITHOUT_ARRAY]
    if shown:
        odd = {name for name, dtype in crossing if dtype in WITHOUT_ARRAY}
        raise ExportError(
            f"tensors of types without a NumPy array would go from session to session "
            f"({listed(shown)}): choose a plan that keeps their operators on one processor, or "
            "convert the model to float16",
            [v.id for v in plan.operators if odd.intersection((*v.inputs, *v.outputs))],
        )


def write_model(path: Path, model: onnx.ModelProto, operators: Sequence[str]) -> str:
    """Write a model file; return its SHA-256.

    Parameters
    ----------
    operators
        Ids of the operators that it holds.

    Raises
    ------
    ExportError
        If it is too large for a file.
    """
    if model.ByteSize() > MOST_BYTES:
        raise ExportError(
            f"'{path.name}' would have more than 2 GB, since its operators hold weights in graphs "
            "of their own: export the model with external data",
            operators,
        )
    content = model.SerializeToString(deterministic=True)
    _write_bytes(path, content)
    return sha256(content).hexdigest()


def _write_bytes(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
