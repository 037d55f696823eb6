"""Collects what Rockchip's compiler tells of the convolutions and products of networks.

    python -m tools.rknn_operators

builds and compiles the networks of `tools/rknn_networks.py` for all chips, in int8, and writes
`rknn_operators.csv`, a row for each row of the compiler's table that has cycles. The rows that
`calibrate_rknn_classes` fits to need no compiler. Equal rows of a network are written once, with
their number.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from parapipe.api.load import load_model
from parapipe.compilers.compile import compile_segment
from parapipe.compilers.contract import CompiledRow, CompileJob
from parapipe.cost.measured_source import Subject, subject_of
from parapipe.files.atomic import write_atomically
from parapipe.graph.data_types import convert_graph
from parapipe.graph.operator_graph import OperatorGraph
from tools.calibrate_rknn import COMPILE_LIMIT_S, RATES_FPS, TARGETS

TABLE = Path(__file__).with_name("rknn_operators.csv")


@dataclass(frozen=True, slots=True)
class CompiledOperator:
    """A convolution or product with what the compiler runs at one go with it, on a chip.

    Parameters
    ----------
    input_channels
        Channels that each filter of a convolution reads; 0 of others, as in `Subject`.
    macs, size_bytes
        Multiply-accumulates, and bytes read and written in int8, of the convolution or product.
    cycles
        Of the row.
    count
        How many such rows the network has.
    """

    network: str
    target: str
    operator_class: str
    input_channels: int
    macs: int
    size_bytes: int
    cycles: int
    count: int = 1


def operators_of(
    network: str, target: str, graph: OperatorGraph, rows: Sequence[CompiledRow]
) -> Iterator[CompiledOperator]:
    """Yield the rows that the compiler prices and that hold one convolution or product.

    Parameters
    ----------
    graph
        The network's, in the model's own type.
    """
    subjects = _subjects_by_node(graph)
    extra: Counter[str] = Counter()
    for row in rows:
        extra[row.part_of] += row.cycles or 0 if row.part_of else 0
    counts: Counter[CompiledOperator] = Counter()
    for row in rows:
        within = [subjects[name] for name in dict.fromkeys(row.nodes) if name in subjects]
        products = [each for each in within if each.operator.work.macs]
        if not row.cycles or len(products) != 1:
            continue
        (product,) = products
        cycles = row.cycles + sum(extra[name] for name in dict.fromkeys(row.nodes))
        counts[
            CompiledOperator(
                network,
                target,
                product.operator_class,
                product.input_channels,
                product.operator.work.macs,
                product.operator.work.read_bytes + product.operator.work.written_bytes,
                cycles,
            )
        ] += 1
    for each, count in counts.items():
        yield replace(each, count=count)


def _subjects_by_node(graph: OperatorGraph) -> Mapping[str, Subject]:
    converted = convert_graph(graph, "int8")
    return {
        single.name: subject_of(single, converted)
        for operator in converted.operators
        for single in operator.singles
    }


def compiled_operators() -> Iterator[CompiledOperator]:
    """Build and compile all networks, for all targets."""
    from tools.rknn_networks import NETWORKS

    for name in RATES_FPS:
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.onnx"
            onnx.save(NETWORKS[name](), path)
            graph = load_model(path)
            for target in TARGETS:
                job = CompileJob(path, target, "int8", time_limit_s=COMPILE_LIMIT_S)
                segment = compile_segment("rknn", job)
                yield from operators_of(name, target, graph, segment.rows)


def read_operators(path: Path = TABLE) -> dict[str, list[CompiledOperator]]:
    """Return the table's rows by target."""
    by_target: dict[str, list[CompiledOperator]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            network, target, operator_class, *numbers = row.values()
            each = CompiledOperator(network, target, operator_class, *map(int, numbers))
            by_target[target].append(each)
    return by_target


def write_operators(operators: Sequence[CompiledOperator], path: Path = TABLE) -> None:
    """Write the table."""
    lines = [",".join(each.name for each in fields(CompiledOperator))]
    lines += [",".join(map(str, astuple(each))) for each in operators]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def main() -> int:
    """Compile, and write the table."""
    operators = list(compiled_operators())
    write_operators(operators)
    sys.stdout.write(f"wrote {len(operators)} rows to {TABLE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
