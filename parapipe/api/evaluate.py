"""What a given mapping takes, without a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from parapipe.api.checked import Granularity, Model, Note, PlatformFile, checked
from parapipe.api.load import load_model, load_platform
from parapipe.errors import ArgumentError
from parapipe.files.checked_arguments import Count, Must, NotEmpty
from parapipe.platform.precision import Precision
from parapipe.search.option_types import Dims, Profiles, Rules, Shapes

if TYPE_CHECKING:
    from parapipe.documents.evaluation import EvaluationDocument


@checked
def evaluate(
    model: Model,
    platform: PlatformFile,
    *,
    assignment: Annotated[NotEmpty | Path, Must("the path of a YAML or JSON file")] | None = None,
    order: Annotated[str, Must("a letter for each block, as in 'GGBB'")] | None = None,
    points: Annotated[str, Must("megahertz for each block, as in '1800 800/1200'")] | None = None,
    granularity: Granularity = "fused",
    view: Literal["deployed", "as-measured"] | None = None,
    profiles: Profiles = (),
    precision: Precision | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    rules: Rules | None = None,
    at_most: Count | None = None,
    note: Note | None = None,
) -> EvaluationDocument:
    """Price a given mapping without a search.

    Parameters
    ----------
    assignment
        YAML or JSON file: a processor for each operator or subgraph, and optionally stages.
    order
        Instead of an assignment: a letter for each block of a network that was measured on the
        platform, the first letter of the processor's name, as in `GGGGBBBBBBG`.
    points
        With an order: the operating point of each block in megahertz, and after a stroke that of
        the processor's host, as in `1800 800/1200 408`. One frame at a time; the platform has to
        say what such runs take.
    granularity
        Whether an assignment's operators include the activations after them (fused); an order is
        always priced operator by operator.
    view
        deployed: operators that a runtime folds away are free. Default: as-measured, for a model
        that was measured on the platform, unless points are given.
    profiles
        CSV files of measured times, instead of the platform's own and of the networks measured as a
        whole.
    precision, dims, shapes, rules, at_most
        As in `MapOptions`.
    note
        As for `load_model`.

    Raises
    ------
    AssignmentError
        The assignment or the order does not fit the model or the platform.
    """
    if (assignment is None) == (order is None):
        raise ArgumentError("evaluate: give either an assignment or an order")
    if points is not None and order is None:
        raise ArgumentError("evaluate: points are those of an order's blocks; give the order, too")
    from parapipe.cost.profile import read_profile
    from parapipe.documents.evaluation import evaluate_assignment
    from parapipe.platform.states import in_state

    chosen: Granularity = granularity if order is None else "onnx"
    return evaluate_assignment(
        load_model(
            model,
            granularity=chosen,
            dims=dims,
            shapes=shapes,
            rules=rules,
            at_most=at_most,
            note=note,
        ),
        in_state(load_platform(platform)),
        assignment=None if assignment is None else Path(assignment),
        order=order,
        points=points,
        view=view,
        profiles=[read_profile(Path(path)) for path in profiles] or None,
        precision=precision,
    )
