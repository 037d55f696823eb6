"""Reading platform files: a name or a path in, a Platform or all mistakes out."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from parapipe.errors import PlatformError
from parapipe.platform.catalogue import find, shipped
from parapipe.platform.consistency import contradictions
from parapipe.platform.mistake import Mistake
from parapipe.platform.platform import Platform
from parapipe.platform.validation import mistakes_of
from parapipe.platform.yaml_tree import Document, parse_yaml

MAX_BYTES = 1 << 20


def load_platform(name_or_path: str) -> Platform:
    """Load a shipped platform by its name, or a platform file by its path.

    A shipped name wins over a file of the same name; write `./name` for the file.

    Raises
    ------
    PlatformError
        If there is no such platform, the file cannot be read, or it is wrong; then `mistakes`
        holds every mistake as `file:line: key: what is wrong, what to do`.
    """
    path = find(name_or_path) if name_or_path in shipped() else Path(name_or_path)
    if path.suffix not in (".yaml", ".yml") and len(path.parts) == 1 and not path.exists():
        path = find(name_or_path)
    return read_platform(_text(path), str(path))


def read_platform(text: str, file: str) -> Platform:
    """Read a platform from YAML text.

    Parameters
    ----------
    file
        What to call the text in error messages.

    Raises
    ------
    PlatformError
        If anything is wrong; `mistakes` holds every mistake.
    """
    document = parse_yaml(text)
    mistakes = list(document.mistakes)
    platform = None
    if not (mistakes and document.value is None):
        try:
            platform = Platform.model_validate(document.value)
        except ValidationError as error:
            mistakes += _below_the_text(error, document)
    if mistakes or platform is None:
        placed = sorted({(m.line or document.line(m.path), m) for m in mistakes}, key=_order)
        sentences = [mistake.sentence(file, line) for line, mistake in placed]
        raise PlatformError(_summary(file, sentences), sentences)
    return platform


def _below_the_text(error: ValidationError, document: Document) -> list[Mistake]:
    found = [*mistakes_of(error), *contradictions(document.value)]
    return [mistake for mistake in found if mistake.path not in document.unread]


def _order(placed: tuple[int, Mistake]) -> tuple[int, str, str]:
    line, mistake = placed
    return line, str(mistake.path), mistake.text


def _summary(file: str, sentences: list[str]) -> str:
    count = "one mistake" if len(sentences) == 1 else f"{len(sentences)} mistakes"
    return f"platform file '{file}' has {count}; mend what is listed and try again"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlatformError(
            f"cannot read platform file '{path}': {reason}; give the path of a YAML file or one "
            f"of the shipped names: {', '.join(shipped())}"
        ) from None
    if len(data) > MAX_BYTES:
        raise PlatformError(
            f"platform file '{path}' is larger than {MAX_BYTES} bytes; is it the right file?"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        sentence = f"{path}:{line}: is no UTF-8 text; save it as UTF-8"
        raise PlatformError(_summary(str(path), [sentence]), [sentence]) from None
