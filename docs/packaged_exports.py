"""Models that PyTorch exports, imported, mapped and run: rows and a section of a page.

The files are those of pytorch_models.py, which runs in an environment of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import parapipe
from docs.packaged_list import Packaged
from docs.pytorch_models import MODELS, SMALL, TOKENS, PyTorchModel

TITLE = "Models of torchvision, timm and transformers"
COLUMNS = (
    "what it is for", "package", "model", "M weights", "operators", "M MACs", "of PyTorch",
    "configurations", "ms, least", "fps, most", "mJ a frame", "same results",
)  # fmt: skip

WHY = {
    "raft_small": "the convolutions of the first update's flow, which is zero",
    "edgenext_x_small": "the projection of its positions, which depend on no input",
    "xcit_nano_12_p16_224": "likewise",
    "bert": "the pooler, whose result is none of the model's outputs",
    "albert": "likewise",
}
"""What constants were computed from, and what was left out."""

Row = Mapping[str, Any]


def packaged(each: PyTorchModel) -> Packaged:
    """Return an exported model as those of packages are, its file below the folder of exports."""
    return Packaged(each.what, each.package, "", f"{each.name}.onnx", below=SMALL["vocab_size"])


def is_exported(each: PyTorchModel, folder: Path) -> bool:
    """Tell whether a model is there, with what PyTorch counts of it."""
    return (folder / f"{each.name}.json").exists()


def figures(each: PyTorchModel, folder: Path, front: parapipe.ParetoFront) -> dict[str, Any]:
    """Return a model's figures, but for the comparison of its results."""
    told = json.loads((folder / f"{each.name}.json").read_text(encoding="utf-8"))
    graph = front.best("period").graph
    fastest = front.best("period")
    return {
        "packages": told["packages"],
        "weights": told["weights"],
        "operators": len(graph.operators),
        "macs": sum(operator.work.macs for operator in graph.operators),
        "counted": told["macs"],
        "configurations": len(front),
        "latency_s": min(row.latency_s for row in front),
        "throughput_fps": fastest.throughput_fps,
        "energy_j": fastest.energy_j,
    }


def section(found: Mapping[str, Row], platform: str) -> str:
    """Return the part of the page that tells of these models.

    Parameters
    ----------
    found
        `figures` and "results" by the model's name.
    """
    rows = [(each, found[each.name]) for each in MODELS if each.name in found]
    versions = {name: v for _, row in rows for name, v in row["packages"].items()}
    packages = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
    equal = sum(row["macs"] == row["counted"] for _, row in rows)
    head = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    lines = [f"| {' | '.join(_cells(each, row))} |" for each, row in rows]
    reasons = "; ".join(f"`{name}`, {why}" for name, why in WHY.items())
    layers, width = SMALL["num_hidden_layers"], SMALL["hidden_size"]
    return f"""
## {TITLE}

`make packaged-models-pytorch` builds {len(rows)} models with random weights and exports them
(`torch.onnx.export(…, dynamo=True)`; {packages}).
They are mapped and run as those above, on `{platform}`. Models of transformers have {layers} layers
of width {width}; language models read {TOKENS} tokens. No model needs an option of `map`.
*M MACs* are parapipe's millions of multiply-accumulates, and *of PyTorch* says how far they are
from half of what its `FlopCounterMode` counts in a run: they are the same, to the last one, in
{equal} of {len(rows)}.
The others' files lack some of what PyTorch runs: {reasons}.

{head}
{chr(10).join(lines)}
"""


def _cells(each: PyTorchModel, row: Row) -> Iterator[str]:
    off = row["macs"] / row["counted"] - 1
    yield from (each.what, each.package, f"`{each.name}`", f"{row['weights'] / 1e6:.1f}")
    yield str(row["operators"])
    yield f"{row['macs'] / 1e6:.1f}"
    yield "equal" if row["macs"] == row["counted"] else f"{off:+.2%}"
    yield str(row["configurations"])
    yield f"{row['latency_s'] * 1e3:.2f}"
    yield f"{row['throughput_fps']:.1f}"
    yield f"{row['energy_j'] * 1e3:.2f}"
    yield row["results"]
