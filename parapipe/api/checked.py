"""A verb whose arguments are checked before it does anything, and what they must be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_type_hints,
)

from parapipe.documents.figure_table import BY_NAME, COMPARED, DRAWN, FIGURES, Demands, FigureEntry
from parapipe.documents.shown import ShownFigure, absent_texts, medians_of, shown_figure
from parapipe.errors import KeywordError
from parapipe.files.checked_arguments import Must, NotEmpty, check_arguments, is_repeatable
from parapipe.files.mistakes import did_you_mean, together
from parapipe.files.titles import model_title, stages_title
from parapipe.pareto import TIE, TIES, least
from parapipe.search.options import MapOptions, flag, idle_options

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

__all__ = [  # what commands take from rooms below
    "BY_NAME", "COMPARED", "DRAWN", "FIGURES", "TIE", "TIES", "Demands", "FigureEntry",
    "ShownFigure", "absent_texts", "did_you_mean", "flag", "idle_options", "is_repeatable", "least",
    "medians_of", "model_title", "shown_figure", "stages_title", "together",
]  # fmt: skip
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Note = Callable[[str], None]
Model = Annotated[NotEmpty | Path, Must("the path of an ONNX file or of its folder, or 'zoo:NAME'")]
PlatformFile = Annotated[
    NotEmpty | Path, Must("the name of a shipped platform or the path of a YAML file")
]
Folder = Annotated[NotEmpty | Path, Must("the path of a folder")]
RECORDS: Mapping[str, type] = {"keywords": MapOptions, "demands": Demands}
"""Records whose fields a verb takes as keywords, by what it calls them."""
Granularity = Literal["fused", "onnx"]
StrategyLike = Annotated[NotEmpty | type, Must("the name of a strategy, MODULE:CLASS, or a class")]


if TYPE_CHECKING:
    from parapipe.api.front import StoredFront
    from parapipe.front.configurations import Configurations
    from parapipe.plan.schema import Plan

    FrontLike: TypeAlias = str | Path | Configurations[Any]
    PlanLike: TypeAlias = str | Path | Plan
    StoredFrontLike: TypeAlias = str | Path | StoredFront
else:

    class _Instance:
        """Takes instances of a class by its name: to load its module takes time."""

        def __init__(self, module: str, name: str) -> None:
            self.module, self.name = module, name

        def __get_pydantic_core_schema__(
            self, source: object, handler: GetCoreSchemaHandler
        ) -> CoreSchema:
            from pydantic_core import core_schema

            return core_schema.is_instance_schema(getattr(import_module(self.module), self.name))

    _Front = Annotated[object, _Instance("parapipe.front.configurations", "Configurations")]
    _Plan = Annotated[object, _Instance("parapipe.plan.schema", "Plan")]
    FrontLike = Annotated[NotEmpty | Path | _Front, Must("a front or the path of its folder")]
    PlanLike = Annotated[NotEmpty | Path | _Plan, Must("a plan or the path of its file")]
    _Stored = Annotated[object, _Instance("parapipe.api.front", "StoredFront")]
    StoredFrontLike = Annotated[
        NotEmpty | Path | _Stored, Must("the path of a folder or what load_front returned")
    ]


def checked(verb: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Check the arguments of a verb against the types of its parameters.

    `**keywords` are fields of `MapOptions`, and `**demands` those of `Demands`. Types that are
    imported for type checkers only are not looked at.
    """
    signature = _signature_with_fields(verb)
    is_method = next(iter(signature.parameters), None) == "plan"  # a plan has it by a shorter name
    verb_name = verb.__name__.removesuffix("_plan") if is_method else verb.__name__

    @wraps(verb)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            complaints = [
                f"there is no argument '{name}'{did_you_mean(name, signature.parameters)}"
                for name in kwargs.keys() - signature.parameters
            ]
            why = ", and ".join(sorted(complaints)) or error
            raise KeywordError(f"{verb_name}: {why}") from None
        check_arguments(verb_name, types_of(verb), arguments)
        return verb(*args, **kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined] # help() and notebooks show it
    return call


def _signature_with_fields(verb: Callable[..., object]) -> inspect.Signature:
    """Return a verb's signature with the fields of a record in the place of keywords."""
    signature = inspect.signature(verb)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    if record := record_of(verb):
        own += inspect.signature(record).parameters.values()
    return signature.replace(parameters=own)


def record_of(verb: Callable[..., object]) -> type | None:
    """Return the record whose fields a verb takes as keywords."""
    parameters = inspect.signature(inspect.unwrap(verb)).parameters.values()
    names = [p.name for p in parameters if p.kind is p.VAR_KEYWORD]
    return RECORDS[names[0]] if names else None


@cache
def types_of(verb: Callable[..., object]) -> Mapping[str, Any]:
    """Return the types of a verb's parameters, or a record's fields, that are known at run time."""
    if isinstance(verb, type):
        return get_type_hints(verb, include_extras=True)
    verb = inspect.unwrap(verb)
    names = dict(verb.__globals__)
    types = {}
    for name, text in verb.__annotations__.items():
        try:
            types[name] = eval(text, names)
        except NameError:
            continue
    record = record_of(verb)
    return {**types, **types_of(record)} if record else types
