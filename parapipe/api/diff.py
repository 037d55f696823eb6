"""What changed from one front to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import Folder, checked

if TYPE_CHECKING:
    from parapipe.formats.difference import DifferenceDocument


@checked
def diff(old: Folder, new: Folder) -> DifferenceDocument:
    """Return what changed from one front to another: inputs, costs, the best, the Pareto front.

    Of the result, `same` says whether nothing did, and `check(max_loss)` raises a WorseError if the
    best latency, throughput, energy or memory is worse by more than a share.

    Parameters
    ----------
    old, new
        Folders that `map` wrote, or the front.json in them.

    Raises
    ------
    FrontError
        A folder's files cannot be read, or do not belong together.
    PlanError
        A plan cannot be read.
    """
    from parapipe.formats.difference import difference
    from parapipe.formats.front_folder import folder_of, load_folder

    before, after = (load_folder(folder_of(Path(each))) for each in (old, new))
    return difference(before, after)
