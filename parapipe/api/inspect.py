"""What a model holds, and where it can be cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from parapipe.api.checked import Model, Note, PlatformFile, checked
from parapipe.api.load import load_platform, loaded_graph
from parapipe.platform.fields import Precision
from parapipe.search.options import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.documents.inspection import InspectionDocument


@checked
def inspect(
    model: Model,
    *,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    platform: PlatformFile | None = None,
    precision: Precision | None = None,
    note: Note | None = None,
) -> InspectionDocument:
    """Describe a model: operators, subgraphs, parallelism, work, memory.

    Parameters
    ----------
    dims, shapes, rules
        As in `MapOptions`.
    platform
        Show how a platform runs the model: a shipped name, or the path of a YAML file.
    precision
        As in `MapOptions`; it has no effect without a platform.
    note
        As for `load_model`.
    """
    from parapipe.documents.inspection import inspected

    target = None if platform is None else load_platform(platform)
    graph = loaded_graph(
        model, "onnx", rules=rules, dims=dims, shapes=shapes, digests=False, note=note
    )
    return inspected(graph, target, precision)


def structure_text(found: InspectionDocument, form: Literal["dot", "svg"]) -> str:
    """Return the subgraphs and what goes between them in Graphviz's language, or as a picture."""
    if form == "dot":
        from parapipe.figures.structure import structure_dot

        return structure_dot(found)
    from parapipe.figures.structure import structure_svg

    return structure_svg(found).decode()


@checked
def draw_structure(
    found: InspectionDocument, *, dot: FilePath | None = None, svg: FilePath | None = None
) -> None:
    """Draw the subgraphs and what goes between them into files.

    Parameters
    ----------
    dot, svg
        Files to write: text in Graphviz's language, and a picture.

    Raises
    ------
    OutputError
        A file cannot be written.
    """
    from parapipe.files.atomic import write_atomically

    if dot is not None:
        write_atomically(Path(dot), structure_text(found, "dot").encode())
    if svg is not None:
        write_atomically(Path(svg), structure_text(found, "svg").encode())
