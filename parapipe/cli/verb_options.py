"""Options that a command makes from its verb: from the signature, the types and the docstring."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click

from parapipe.cli.options import FILE, FORMS, quantity_form

Command = TypeVar("Command", bound=Callable[..., Any])


class SectionedOption(click.Option):
    """An option that help may list in a section.

    Parameters
    ----------
    section
        Key of one of the sections of a `SectionedCommand`.
    """

    def __init__(self, names: Sequence[str], section: str | None = None, **settings: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(names, **settings)
        self.section = section


class VerbCommand(click.Command):
    """A command whose options are made when they are asked for: its verb may take time to load.

    Of two options of one name, as those of two records, it has the first.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments and options, --help included."""
        parameters = [each() if isinstance(each, partial) else [each] for each in self.params]
        first: dict[str | None, click.Parameter] = {}
        for each in (each for several in parameters for each in several):
            first.setdefault(each.name, each)
        self.params = [*first.values()]
        return super().get_params(ctx)


class SectionedCommand(VerbCommand):
    """A command whose help lists options in sections: those that have none in the last one.

    Parameters
    ----------
    sections
        Headings by key, in the order of help.
    """

    def __init__(self, *args: Any, sections: Mapping[str, str], **settings: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **settings)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings."""
        listed: dict[str, list[tuple[str, str]]] = {key: [] for key in self.sections}
        last = [*listed][-1]
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record:
                listed[getattr(param, "section", None) or last].append(record)
        for key, records in listed.items():
            with formatter.section(self.sections[key]):
                formatter.write_dl(records)


def options(verb: str, *names: str, **changes: dict[str, Any]) -> Callable[[Command], Command]:
    """Add options to a `VerbCommand`: for named parameters of a verb or a record, or for all.

    `changes` are settings of click by parameter, in place of those made from its type; `flag` among
    them is the option's own name, `section` that of help which lists it, in place of the one among
    the traits of an option.
    """

    def add(command: Command) -> Command:
        build = partial(_build_options, verb, names, changes)
        command.__dict__.setdefault("__click_params__", []).append(build)
        return command

    return add


def _build_options(
    verb: str, names: Sequence[str], changes: Mapping[str, Mapping[str, Any]]
) -> list[click.Parameter]:
    import parapipe
    from parapipe.api.checked import RECORDS, flag, types_of

    records = {record.__name__: record for record in RECORDS.values()}
    function = records.get(verb) or getattr(parapipe, verb)
    signature, types = inspect.signature(function).parameters, types_of(function)
    texts = parameter_texts(inspect.getdoc(function) or "")
    of_fields = fields(function) if is_dataclass(function) else ()
    metadata = {each.name: each.metadata for each in of_fields}
    parameters: list[click.Parameter] = []
    for name in names or signature:
        settings: dict[str, Any] = {"help": _as_options(texts.get(name, ""), signature)}
        own: Mapping[str, Any] = metadata.get(name, {})
        settings["section"] = own.get("section")
        settings |= _settings_of_type(name, types[name], signature[name].default)
        if quantity := own.get("quantity"):
            settings |= quantity_form(quantity, own["example"])
        if traits := own.get("traits"):
            settings["section"] = traits.section
            settings["metavar"] = traits.metavar or settings.get("metavar")
        settings |= {**FORMS.get(name, {}), **changes.get(name, {})}
        settings["help"] += _form_text(
            settings.pop("example", None), repeated=bool(settings.get("multiple"))
        )
        parameters.append(SectionedOption([settings.pop("flag", flag(name)), name], **settings))
    return parameters


def _settings_of_type(name: str, hint: object, default: object) -> dict[str, Any]:
    """Return what click wants to know of an option of some type."""
    from parapipe.api.checked import is_repeatable

    parts = list(_parts_of_type(hint))
    bounds: Any = next((part for part in reversed(parts) if hasattr(part, "be")), None)
    settings: dict[str, Any] = {"default": default, "show_default": default is not None}
    if choices := [part for part in parts if isinstance(part, str)]:
        settings["type"] = _OneOf(choices)
    elif bool in parts:
        return {"is_flag": True}
    elif Path in parts:
        settings["type"] = FILE
    elif int in parts:
        settings["type"] = click.IntRange(min=bounds.ge)
    elif float in parts:
        settings["type"] = _Finite(bounds)
        settings["metavar"] = "SECONDS" if name.endswith("_s") else "SHARE"
    if is_repeatable(hint):
        by_name = Sequence not in [get_origin(part) for part in (hint, *get_args(hint))]
        kind = str if by_name else settings.get("type", str)
        settings = {"type": kind, "multiple": True}
        return settings | {"default": (), "show_default": False} if by_name else settings
    return settings


def _parts_of_type(hint: object) -> Iterator[Any]:
    """Yield the types, bounds and choices that a type is made of."""
    if get_origin(hint) in (Annotated, Union, UnionType, Literal, Sequence, Mapping):
        for part in get_args(hint):
            yield from _parts_of_type(part)
    else:
        yield hint


def _as_options(text: str, parameters: Collection[str]) -> str:
    """Return what a docstring says, with parameters as the options that they are."""
    from parapipe.api.checked import flag

    def plain(match: re.Match[str]) -> str:
        return flag(match[1]) if match[1] in parameters else match[1]

    return re.sub("`([^`]*)`", plain, text)


def _form_text(example: str | None, *, repeated: bool) -> str:
    """Say how the command line takes a value, where its form differs from Python's."""
    said = f" As in {example}." if example else ""
    return f"{said} May be repeated." if repeated else said


def parameter_texts(text: str) -> Mapping[str, str]:
    """Return what a docstring says of each parameter, in one line."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.M | re.S)
    texts = {}
    entry = r"^(\w.*)\n((?: +.*\n?|\n)+)"
    for names, body in re.findall(entry, section[1] if section else "", re.M):
        words = " ".join(body.split())
        texts.update(dict.fromkeys(names.split(", "), words))
    return texts


class _OneOf(click.Choice):  # type: ignore[type-arg] # older clicks take none
    """One of several words; a wrong one is answered with that which may be meant."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take one of the words."""
        from parapipe.api.checked import did_you_mean

        if value in self.choices:
            return value
        words = ", ".join(f"'{each}'" for each in self.choices)
        meant = did_you_mean(value, self.choices)
        return self.fail(f"'{value}' is not one of {words}{meant}", param, ctx)


class _Finite(click.FloatRange):
    """A number between bounds, and no other way to write one."""

    def __init__(self, bounds: Any) -> None:  # noqa: ANN401 - what a type of the API must be
        least = bounds.ge if bounds.gt is None else bounds.gt
        most = bounds.le if bounds.lt is None else bounds.lt
        opened = {"min_open": bounds.gt is not None, "max_open": bounds.lt is not None}
        super().__init__(least, most, **opened)

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Take a finite number in the range."""
        number = float(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
