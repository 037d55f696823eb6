"""The folders of a run: a plan's segments, for whole batches and for micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.plan.batch import Batches
from parapipe.runtime.folder import Folder, open_folder
from parapipe.strategies.cut import pieces_of
from parapipe.strategies.strategy import cut_of, may_split, name_of, sizes_of

if TYPE_CHECKING:
    from parapipe.plan.schema import Plan
    from parapipe.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Folders:
    """What is run, for whole batches and for micro-batches, by their size.

    Parameters
    ----------
    pieces
        As the strategy cuts the network.
    """

    whole: Folder
    batch: int
    sized: Mapping[int, Folder]
    pieces: Mapping[str, str]


def run_folders(
    plan: Plan,
    model: Path,
    strategy: type[Strategy],
    place: Path,
    *,
    single: bool,
    cores: Mapping[str, Sequence[int]],
    split: bool = True,
) -> Folders:
    """Write the folders of a run into an empty one.

    Parameters
    ----------
    single
        Make a segment of every operator.
    cores
        Of some processors, in place of the plan's.
    split
        Whether the strategy may split batches, if it does.

    Raises
    ------
    PlanError
        If the plan's operators are not those of the model.
    ExportError
        If a segment cannot be written.
    RunError
        If there is no such processor.
    """
    pieces = pieces_of(plan, cut_of(strategy), name_of(strategy))
    batches = Batches(plan, model) if split and may_split(strategy) else None
    batch = batches.size if batches else 1
    sizes = sizes_of(strategy, batch)

    def written(plan: Plan, name: str) -> Folder:
        within = place / name
        within.mkdir()
        write_session_folder(plan, model, within, single=single, in_place=not sizes, pieces=pieces)
        return open_folder(within).on_cores(cores)

    sized = {size: written(batches.plan_of(size), str(size)) for size in sizes if batches}
    return Folders(written(plan, "whole"), batch if sizes else 1, sized, pieces)
