"""Writes the tables of parameters in python.md, which a test compares: python docs/python.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import parapipe
from parapipe.api.checked import record_of, types_of
from parapipe.cli.verb_options import parameter_texts
from parapipe.files.atomic import write_atomically
from parapipe.files.checked_arguments import type_text

PAGE = Path(__file__).with_name("python.md")
MARK = "<!-- Written by python docs/python.py; a test compares it with the signatures. -->\n"


def page(text: str) -> str:
    """Return the page's text with its tables replaced."""
    verbs = [each for name in parapipe.__all__ for each in [getattr(parapipe, name)]]
    tables = ["\n".join(_table(verb)) for verb in verbs if inspect.isfunction(verb)]
    return text.partition(MARK)[0] + MARK + "".join(f"\n{table}\n" for table in tables)


def _table(verb: Callable[..., object]) -> Iterator[str]:
    parameters = inspect.signature(verb).parameters
    options = _told(record_of(verb) or parapipe.MapOptions)
    own = {name: text for name, text in _told(verb).items() if text != "As in `MapOptions`."}
    told = {**options, **own}
    types = types_of(verb)
    yield f"### `{verb.__name__}`\n\n{(inspect.getdoc(verb) or '').splitlines()[0]}"
    if parameters:
        yield "\n| parameter | default | must be | meaning |\n|---|---|---|---|"
    for name, parameter in parameters.items():
        must = type_text(types[name]) if name in types else f"a `{parameter.annotation}`"
        default = "" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
        cells = (f"`{name}`", default, must, told.get(name, ""))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _told(documented: Any) -> dict[str, str]:  # noqa: ANN401 - a function or a class
    return dict(parameter_texts(inspect.getdoc(documented) or ""))


if __name__ == "__main__":
    write_atomically(PAGE, page(PAGE.read_text(encoding="utf-8")).encode())
