"""Writes the tables of armcl-operators.md, kept true by a test: python docs/armcl_operators.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from parapipe.export.constants import Constants
from parapipe.graph.onnx_import import import_model
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.build import plan_operators, plan_tensors
from parapipe.plan.schema import Operator, Tensor
from parapipe.targets.native.backends import BackendName
from parapipe.targets.native.build import RULES, unexportable
from parapipe.targets.native.steps import Steps
from parapipe.zoo.registry import examples, write

PAGE = Path(__file__).with_name("armcl-operators.md")
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


class Network(NamedTuple):
    """What a plan would say of a network, before it is placed."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, Tensor]
    operators: tuple[Operator, ...]


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    return {"operators": "\n".join(_operators()), "networks": "\n".join(_networks())}


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found[match[2]], text)


def _operators() -> Iterator[str]:
    yield "| ONNX operator | becomes | if |\n|---|---|---|"
    rows: dict[tuple[str, str], list[str]] = {}
    for kind, rule in sorted(RULES.items()):
        # Operators that stay what they are share a row.
        becomes = "itself" if rule.becomes == kind else rule.becomes
        rows.setdefault((becomes, rule.condition), []).append(f"`{kind}`")
    for (becomes, condition), kinds in sorted(rows.items(), key=lambda row: row[1]):
        yield f"| {', '.join(kinds)} | {becomes} | {condition} |"


def _networks() -> Iterator[str]:
    yield "| model | operators | of the library | in the way |\n|---|---:|---:|---|"
    yield from map(network_row, examples())


def network_row(name: str, backend: BackendName = "neon") -> str:
    """Return the row of a model of the zoo, with all of its operators on a back end."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write(name, path, weightless=True)
        return model_row(name, path, import_model(path, digests=False), backend)


def model_row(name: str, path: Path, graph: OperatorGraph, backend: BackendName) -> str:
    """Return the row of a model in a file, with all of its operators on a back end."""
    network = Network(graph.inputs, graph.outputs, plan_tensors(graph), plan_operators(graph))
    with Constants(network, path) as constants:
        backends = dict.fromkeys([v.id for v in network.operators], backend)
        into = Steps(network, constants, backends)
        refused = list(unexportable(network, into))
    steps = "" if refused else str(len(into.steps))
    return f"| `{name}` | {len(graph.operators)} | {steps} | {reasons(refused)} |"


def reasons(refused: list[tuple[Operator, str]]) -> str:
    """Return what is in the way, each reason with the operators that it holds for."""
    reasons: dict[str, list[str]] = {}
    for operator, why in refused:
        reasons.setdefault(why, []).append(operator.type)
    return "; ".join(
        f"{', '.join(f'{kinds.count(kind)} {kind}' for kind in dict.fromkeys(kinds))}: {why}"
        for why, kinds in reasons.items()
    )


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), tables()))
    sys.stdout.write(f"wrote {PAGE}\n")
