"""Imports profiles: what a board has measured, and what other tools have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Model, PlatformFile, checked
from parapipe.api.compiled import compiled_profile_path
from parapipe.api.load import load_model, load_platform
from parapipe.api.profile import profile_path
from parapipe.errors import ArgumentError
from parapipe.files.checked_arguments import Count, Must, NotEmpty
from parapipe.platform.precision import Precision
from parapipe.search.option_types import Dims, FilePath, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.profiling.profile_report import ProfileReport


@checked
def import_profile(
    path: FilePath,
    platform: PlatformFile,
    model: Model | None = None,
    *,
    processor: Annotated[
        NotEmpty | Sequence[NotEmpty], Must("the name of a processor, or PLACE=NAME, or some")
    ] = (),
    out: FilePath | None = None,
    precision: Precision | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
) -> ProfileReport:
    """Import what a board has measured, after checking every row, or what another tool has.

    The format of the file is recognised by its content: parapipe's own, or one of those in
    docs/imports.md. Layers of a tool are matched to the operators that they stand for, by names,
    order and shapes. What matches none is reported with its share of the time. Operators that the
    tool ran at one go share their time by their prices.

    Parameters
    ----------
    path
        The file `results.csv` of the board, or a tool's.
    model
        The model that the tool ran; of parapipe's own files, none.
    processor
        The processor that the tool ran it on, where its file does not say so in the platform's
        words. PLACE=NAME names the processor for a place of the file, such as an execution
        provider.
    out
        As for `profile`; rows that stand there are kept if the file has no newer ones. Of a tool's
        file, the default is `profiles/PLATFORM/FORMAT.csv`.
    precision
        The type that the tool computed in, as in `MapOptions`. Default: what the platform's file
        says, else model.
    dims, shapes, rules, at_most
        As in `MapOptions`.

    Raises
    ------
    ArgumentError
        A model is given for a file of parapipe's own, or none for a tool's.
    CostError
        Rows are wrong or of another platform; all are told, each with its line.
    ProfilingError
        The file is of no known format, it is not known where its layers ran, or none of them
        stands for an operator of the model.
    """
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.imports.registry import read_tool_profile, title_of
    from parapipe.imports.rows import rows_of
    from parapipe.profiling.profiling_run import import_rows, take_in

    target, file = load_platform(platform), Path(path)
    if model is None:
        if title := title_of(file):
            raise ArgumentError(f"'{file}' is a {title}: name the model that was run")
        return import_rows(file, target, profile_path(out, platform, target))
    told = read_tool_profile(file)
    graph = load_model(model, dims=dims, shapes=shapes, rules=rules, at_most=at_most)
    costs = build_cost_table(graph, target, precision=precision)
    requested = (processor,) if isinstance(processor, str) else processor
    rows = rows_of(told, graph, target, costs, requested)
    to = compiled_profile_path(out, platform, target, told.format)
    report = take_in(rows.measurements, target, to).with_notes(rows.notes)
    return replace(report, imported=rows.summary)
