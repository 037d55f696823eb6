"""A YAML file as a pydantic model, or all its mistakes with file, line and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from parapipe.errors import AssignmentError, PlatformError, RulesError
from parapipe.platform.mistake import Mistake
from parapipe.platform.validation import mistakes_of
from parapipe.platform.yaml_tree import Document, parse_yaml

MAX_BYTES = 1 << 20
Model = TypeVar("Model", bound=BaseModel)


def _nothing(_value: object) -> Iterable[Mistake]:
    return ()


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
    contradictions
        Finds what is wrong beyond the model, in the plain values.
    """

    name: str
    error: type[PlatformError] | type[RulesError] | type[AssignmentError]
    advice: str
    contradictions: Callable[[object], Iterable[Mistake]] = _nothing


def text_of(path: Path, kind: FileKind) -> str:
    """Return a file's text.

    Raises
    ------
    PlatformError or RulesError
        As `kind` says; if the file cannot be read, is larger than 1 MiB or is no UTF-8.
    """
    try:
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
        raise kind.error(_summary(kind, str(path), [sentence]), [sentence]) from None


def parsed_as(model: type[Model], text: str, file: str, kind: FileKind) -> Model:
    """Read YAML text as a model.

    Parameters
    ----------
    file
        What to call the text in error messages.

    Raises
    ------
    PlatformError or RulesError
        As `kind` says; `mistakes` holds every mistake as `file:line: key: what, what to do`.
    """
    document = parse_yaml(text)
    mistakes = list(document.mistakes)
    found = None
    if not (mistakes and document.value is None):
        try:
            found = model.model_validate(document.value)
        except ValidationError as error:
            mistakes += _below_the_text(error, model, document, kind)
    if mistakes or found is None:
        placed = sorted({(m.line or document.line(m.path), m) for m in mistakes}, key=_order)
        sentences = [mistake.sentence(file, line) for line, mistake in placed]
        raise kind.error(_summary(kind, file, sentences), sentences)
    return found


def _below_the_text(
    error: ValidationError, model: type[BaseModel], document: Document, kind: FileKind
) -> list[Mistake]:
    found = [*mistakes_of(error, model), *kind.contradictions(document.value)]
    return [mistake for mistake in found if mistake.path not in document.unread]


def _order(placed: tuple[int, Mistake]) -> tuple[int, str, str]:
    line, mistake = placed
    return line, str(mistake.path), mistake.text


def _summary(kind: FileKind, file: str, sentences: Sequence[str]) -> str:
    count = "one mistake" if len(sentences) == 1 else f"{len(sentences)} mistakes"
    return f"{kind.name} '{file}' has {count}; mend what is listed and try again"
