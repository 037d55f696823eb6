"""A front as one page to look at."""

from __future__ import annotations

from pathlib import Path

from parapipe.api.checked import Folder, checked
from parapipe.search.options import FilePath


@checked
def report(directory: Folder, out: FilePath | None = None) -> Path:
    """Write the report of a front as one HTML file that needs no network; return its path.

    Parameters
    ----------
    directory
        Folder that a front was written to, or the front.json in it.
    out
        The HTML file to write; report.html in the folder if not given.

    Raises
    ------
    FrontError, PlanError
        What the folder holds cannot be read.
    OutputError
        The report cannot be written.
    """
    from parapipe.documents.front_folder import folder_of, load_folder
    from parapipe.figures.page import page
    from parapipe.files.atomic import write_atomically

    folder = folder_of(Path(directory))
    path = folder / "report.html" if out is None else Path(out)
    write_atomically(path, page(load_folder(folder)))
    return path
