"""A YAML file as a pydantic model, or all its mistakes with file, line and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from pydantic import ValidationError, model_validator
from pydantic_core import PydanticCustomError

from parapipe.errors import FileError
from parapipe.files.frozen import Frozen
from parapipe.files.listing import with_article
from parapipe.files.mistake import KeyPath, Mistake
from parapipe.files.model_mistakes import CONTRADICTION, mistakes_of
from parapipe.files.regular import require_regular
from parapipe.files.yaml_text import parse_yaml

MAX_BYTES = 1 << 20


class Strict(Frozen):
    """A part of a YAML file: unknown keys, wrong types and later changes are refused."""

    short_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that a file may have here besides, which are gone once it is expanded."""


class WholeFile(Strict):
    """A whole YAML file, whose parts may contradict each other."""

    @classmethod
    def contradictions(cls, raw: object) -> Iterable[Mistake]:
        """Find contradictions in the plain values of a file, whatever else is wrong with them."""
        del raw
        return ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        raw = self.model_dump(by_alias=True)
        if text := "; ".join(mistake.text for mistake in self.contradictions(raw)):
            raise PydanticCustomError(CONTRADICTION, "{text}", {"text": text})
        return self


Model = TypeVar("Model", bound=WholeFile)


@dataclass(frozen=True, slots=True)
class Expansion:
    """Plain values of a file in full form.

    Parameters
    ----------
    origins
        Where items of lists stand in the file itself, by their path here; others have not moved.
    mistakes
        What is wrong with the short form, by paths in the file.
    """

    value: object
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def origin(self, path: KeyPath) -> KeyPath:
        """Return the path in the file of what stands at a path here."""
        if path[:2] not in self.origins:
            return path
        return (*self.origins[path[:2]], *path[2:])

    def moved(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Return these mistakes by paths in the file, none twice; or its own alone, if it has any.

        The full form of what is wrong in short form is wrong in ways that the user did not write.
        """
        placed = (Mistake(self.origin(each.path), each.text, each.line) for each in mistakes)
        return list(dict.fromkeys(self.mistakes or placed))


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of YAML file.

    Parameters
    ----------
    name
        What people call it: "platform file".
    error
        What is raised where a file of this kind is wrong.
    advice
        What to do if there is no such file.
    """

    name: str
    error: type[FileError]
    advice: str

    def refusal(self, file: str, sentences: Sequence[str]) -> FileError:
        """Return the error for a file with these mistakes."""
        count = "one mistake" if len(sentences) == 1 else f"{len(sentences)} mistakes"
        summary = f"{self.name} '{file}' has {count}; correct what is listed and try again"
        return self.error(summary, sentences)


def text_of(path: Path, kind: FileKind) -> str:
    """Return a file's text.

    Raises
    ------
    FileError
        Of the kind's class; if the file cannot be read, is larger than 1 MiB or is no UTF-8.
    """
    try:
        require_regular(path)
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise kind.error(f"cannot read {kind.name} '{path}': {reason}; {kind.advice}") from None
    if len(data) > MAX_BYTES:
        raise kind.error(
            f"{kind.name} '{path}' is larger than {MAX_BYTES} bytes; is it the right file?"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        sentence = f"{path}:{line}: is no UTF-8 text; save it as UTF-8"
        raise kind.refusal(str(path), [sentence]) from None


def parsed_as(
    model: type[Model],
    text: str,
    file: str,
    kind: FileKind,
    expand: Callable[[object], Expansion] = Expansion,
) -> Model:
    """Read YAML text as a model.

    Parameters
    ----------
    file
        What to call the text in error messages.
    expand
        Makes the full form of a file's plain values.

    Raises
    ------
    FileError
        Of the kind's class; `mistakes` holds every mistake as `file:line: key: what, what to do`.
    """
    document = parse_yaml(text)
    schema = document.value.get("schema") if isinstance(document.value, dict) else None
    if other := re.match("parapipe/(front|plan|run)/", str(schema)):
        raise kind.error(f"'{file}' is a {other[1]}, not {with_article(kind.name)}; {kind.advice}")
    mistakes = list(document.mistakes)
    if not (mistakes and document.value is None):
        expansion = expand(document.value)
        try:
            found = model.model_validate(expansion.value)
        except ValidationError as error:
            below = (*mistakes_of(error, model), *model.contradictions(expansion.value))
        else:
            if not (mistakes or expansion.mistakes):
                return found
            below = ()
        moved = expansion.moved(below)
        mistakes += (mistake for mistake in moved if mistake.path not in document.unread)
    placed = {(mistake.line or document.line(mistake.path), mistake) for mistake in mistakes}
    ordered = sorted(placed, key=lambda each: (each[0], str(each[1].path), each[1].text))
    raise kind.refusal(file, [mistake.sentence(file, line) for line, mistake in ordered])
