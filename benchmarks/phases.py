"""The phases that are measured: each opens with what it computes and why it is watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import parapipe

PLATFORM = "amlogic-a311d"


def load(model: str) -> None:
    """Read V operators and E tensors with shapes and work: O(V + E), plus shape inference.

    Watched because shape inference and constant folding are repeated until nothing changes.
    """
    parapipe.load_model(model)


def inspect(model: str) -> None:
    """Partition into subgraphs by dominators, at both granularities: about O(V + E).

    Watched because it is what a user waits for first.
    """
    parapipe.inspect(model)


def map_(model: str) -> None:
    """Solve each distinct mapping problem once, then search all stages exactly.

    The number of problems is at most subgraphs x processor sets x homes of the boundary tensors;
    the search is a dynamic programme over (cut, processors used, homes). Watched because it is
    where nearly all time goes.
    """
    parapipe.map(model, PLATFORM)


def map_and_write(model: str) -> None:
    """Map, then write the front, its picture and a verified plan of each configuration.

    Watched because plans are built and verified one by one, and the picture loads matplotlib.
    """
    with TemporaryDirectory() as directory:
        parapipe.map(model, PLATFORM).write(Path(directory) / "out")


PHASES: Mapping[str, Callable[[str], None]] = {
    "load": load,
    "inspect": inspect,
    "map": map_,
    "map and write": map_and_write,
}
