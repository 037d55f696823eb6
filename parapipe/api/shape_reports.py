"""Reports of several shapes: one page of all, explanations and exports of placements together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Folder, Model, checked
from parapipe.api.shapes import folder_of_shapes, load_placements
from parapipe.files.checked_arguments import Must
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from parapipe.documents.explanation_schema import ExplanationDocument
    from parapipe.export.exported import Exported

Name = Annotated[str, Must("the id or a name of a configuration")]


@checked
def report_shapes(directory: Folder, out: FilePath | None = None) -> Path:
    """Write the report of several shapes as one HTML file that needs no network; return its path.

    Beside shapes.json, each shape's own report is written to its folder, and the page leads there.

    Parameters
    ----------
    directory
        Folder that `map_shapes` was written to, or the shapes.json in it.
    out
        The HTML file to write; report.html in the folder if not given.

    Raises
    ------
    FrontError, PlanError
        What the folder holds cannot be read.
    OutputError
        A report cannot be written.
    """
    from parapipe.api.reports import report
    from parapipe.documents.shapes_schema import load_shapes
    from parapipe.figures.shapes_page import shapes_page
    from parapipe.files.atomic import write_atomically

    folder = folder_of_shapes(directory)
    document = load_shapes(folder)
    path = folder / "report.html" if out is None else Path(out)
    pages = {each.name: report(folder / each.name) for each in document.shapes}
    write_atomically(path, shapes_page(document, pages, path))
    return path


@checked
def explain_shapes(
    directory: Folder, configuration: Name | None = None
) -> dict[str, ExplanationDocument]:
    """Explain the placements of several shapes: what limits each, by shape.

    Parameters
    ----------
    directory
        Folder that `map_shapes` was written to, or the shapes.json in it.
    configuration
        Its id ("s01") or name ("one-processor"). Default: the balanced one.

    Raises
    ------
    FrontError, NoConfigurationError, VerificationError, ParapipeError
        As of `explain`.
    """
    from parapipe.api.explain import explain

    folder = folder_of_shapes(directory)
    _, row, _ = load_placements(folder, configuration)
    return {name: explain(folder / name, each.id) for name, each in row.placements.items()}


@checked
def export_shapes(
    directory: Folder,
    configuration: Name,
    target: str,
    destination: FilePath | None = None,
    *,
    model: Model | None = None,
    force: bool = False,
) -> Exported:
    """Write the plans of a prompt and of the tokens after it for a runtime that takes both.

    Parameters
    ----------
    directory
        Folder that `map_shapes` was written to, or the shapes.json in it.
    configuration
        Its id ("s01") or name ("one-processor").
    target
        genai; other targets take the plan of one shape, by `export_plan`.
    destination, model, force
        As of `export_plan`.

    Raises
    ------
    PlanError
        The shapes are not a prompt's and then a token's.
    ArgumentError, ExportError, OutputError
        As of `export_plan`; the target takes one plan.
    """
    from parapipe.api.plan import export_plan
    from parapipe.documents.build_request import Request
    from parapipe.errors import ArgumentError, PlanError
    from parapipe.export.targets import takes_keyword

    document, row, plans = load_placements(directory, configuration)
    if not takes_keyword(target, "token_plan"):
        folder = folder_of_shapes(directory)
        of_each = ", ".join(f"'{folder / name}' {each.id}" for name, each in row.placements.items())
        raise ArgumentError(
            f"the target '{target}' takes one plan, and {row.id} has one for each shape: {of_each}"
        )
    request = Request.of(document, row, plans, None)
    if len(request.prompt) > 1:
        raise PlanError("the prompt has steps of several shapes, and a target takes a plan for one")
    return export_plan(
        request.prompt[0].plan, target, destination, model=model, force=force,
        token_plan=request.answer.plan,
    )  # fmt: skip
