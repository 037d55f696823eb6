"""What changed from one front to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.api.checked import FrontLike, checked

if TYPE_CHECKING:
    from parapipe.documents.difference import DifferenceDocument
    from parapipe.documents.front_folder import FrontFolder


@checked
def diff(old: FrontLike, new: FrontLike) -> DifferenceDocument:
    """Return what changed from one front to another: inputs, costs, the best, the Pareto front.

    Of the result, `same` says whether nothing did, and `check(max_loss)` raises a WorseError if the
    best latency, throughput, energy or memory is worse by more than a share.

    Parameters
    ----------
    old, new
        Fronts, folders that `map` wrote, or the front.json in them.

    Raises
    ------
    FrontError
        A folder's files cannot be read, or do not belong together.
    PlanError
        A plan cannot be read.
    """
    from parapipe.documents.difference import difference

    return difference(_load_content(old), _load_content(new))


def _load_content(front: FrontLike) -> FrontFolder:
    from parapipe.documents.front_folder import folder_of, load_folder

    if isinstance(front, str | Path):
        return load_folder(folder_of(Path(front)))
    return front.content()
