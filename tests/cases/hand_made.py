"""Folders of segments made by hand, small enough to run thousands of frames."""

import json
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from parapipe.runtime.folder import Folder, open_folder

FLOAT = TensorProto.FLOAT


@dataclass
class Piece:
    """A segment: its nodes, and the tensors that it reads and makes."""

    name: str
    processor: str
    nodes: list
    inputs: list
    outputs: list
    stage: int = 0
    lag: int | None = None
    initializers: list = field(default_factory=list)


def folder_of(
    path: Path,
    pieces,
    *,
    inputs,
    outputs,
    shapes,
    cores=None,
    types=None,
    queue_depth=2,
    predicted_s=1e-3,
) -> Folder:
    """Write the segments and their plan.json; return the folder as a runner sees it.

    `shapes` of all tensors; `types` of those that aren't float32 (ONNX's numbers).
    """
    types = types or {}
    processors = list(dict.fromkeys(piece.processor for piece in pieces))
    path.mkdir(parents=True, exist_ok=True)
    for piece in pieces:
        onnx.save(_model(piece, shapes, types), path / f"{piece.name}.onnx")
    numpy_types = {
        name: helper.tensor_dtype_to_np_dtype(types.get(name, FLOAT)).name for name in shapes
    }
    document = {
        "schema": "parapipe/onnxruntime/1",
        "model": {"name": "hand-made", "sha256": "0" * 64},
        "platform": "here",
        "processors": [
            {
                "name": processor,
                "kind": "cpu",
                "cores": (cores or {}).get(processor, [0]),
                "threads": len((cores or {}).get(processor, [0])),
                "provider": "CPUExecutionProvider",
                "frequency_hz": 1e9,
            }
            for processor in processors
        ],
        "inputs": list(inputs),
        "outputs": [{"tensor": name, "segment": _maker(pieces, name)} for name in outputs],
        "tensors": {
            name: {
                "dtype": numpy_types[name],
                "shape": list(shape),
                "size_bytes": prod(shape) * np.dtype(numpy_types[name]).itemsize,
            }
            for name, shape in shapes.items()
        },
        "segments": [
            {
                "id": piece.name,
                "file": f"{piece.name}.onnx",
                "processor": piece.processor,
                "stage": piece.stage,
                "lag": piece.stage if piece.lag is None else piece.lag,
                "position": position,
                "inputs": piece.inputs,
                "outputs": piece.outputs,
                "operators": [f"{piece.name}/op"],
                "start_s": 0.0,
                "end_s": predicted_s,
                "time_s": predicted_s,
            }
            for position, piece in enumerate(pieces)
        ],
        "channels": list(_channels(pieces, inputs, queue_depth)),
        "predicted": {
            "latency_s": predicted_s * len(pieces),
            "period_s": predicted_s,
            "sustained_period_s": predicted_s,
            "input_s": 0.0,
            "output_s": 0.0,
        },
        "whole": {"file": "network.onnx", "configuration": "here", "layer_assignment": "cpu"},
        "files": {},
    }
    (path / "plan.json").write_text(json.dumps(document))
    return open_folder(path)


def _maker(pieces, name):
    return next((piece.name for piece in pieces if name in piece.outputs), None)


def _channels(pieces, inputs, queue_depth):
    for name in [*inputs, *(name for piece in pieces for name in piece.outputs)]:
        maker = _maker(pieces, name)
        readers = [piece for piece in pieces if name in piece.inputs]
        for processor in dict.fromkeys(piece.processor for piece in readers):
            there = [piece.name for piece in readers if piece.processor == processor]
            yield {
                "tensor": name,
                "kind": "stage",
                "producer": maker,
                "processor": processor,
                "consumers": there,
                "queue_depth": queue_depth,
                "time_s": 0.0,
            }


def _model(piece, shapes, types):
    def described(names):
        return [
            helper.make_tensor_value_info(name, types.get(name, FLOAT), shapes[name])
            for name in names
        ]

    graph = helper.make_graph(
        piece.nodes,
        piece.name,
        described(piece.inputs),
        described(piece.outputs),
        piece.initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def hybrid(path, *, cores=None, shape=(2, 3), **options) -> Folder:
    """Two stages: `a` alone, then `b` and `c` that work for each other; y = 8 (x + 1) + 3 (x + 1).

    a: t = x + 1; b: u = 2t; c: v = 3t; b: w = 4u; c: y = v + w
    """
    one, two, three, four = (
        scalar(name, value)
        for name, value in (("one", 1.0), ("two", 2.0), ("three", 3.0), ("four", 4.0))
    )
    pieces = [
        Piece("s0-a-0", "a", [node("Add", "x", "one", "t")], ["x"], ["t"], 0, None, [one]),
        Piece("s1-b-0", "b", [node("Mul", "t", "two", "u")], ["t"], ["u"], 1, None, [two]),
        Piece("s1-c-0", "c", [node("Mul", "t", "three", "v")], ["t"], ["v"], 1, None, [three]),
        Piece("s1-b-1", "b", [node("Mul", "u", "four", "w")], ["u"], ["w"], 1, None, [four]),
        Piece("s1-c-1", "c", [node("Add", "v", "w", "y")], ["v", "w"], ["y"], 1),
    ]
    shapes = {name: list(shape) for name in "xtuvwy"}
    return folder_of(
        path, pieces, inputs=["x"], outputs=["y"], shapes=shapes, cores=cores, **options
    )


def scalar(name, value):
    return helper.make_tensor(name, FLOAT, [1], [value])


def node(kind, *names):
    return helper.make_node(kind, list(names[:-1]), [names[-1]])
