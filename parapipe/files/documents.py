"""JSON documents that a version of parapipe wrote, read back into their pydantic models."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from parapipe.errors import ParapipeError
from parapipe.files.mistakes import listed_sentences, shorten_text, with_article
from parapipe.files.shipped import require_regular
from parapipe.version import __version__

WRITERS = {"run": "run --json", "sweep": "sweep", "board-run": "export, as run.py --json,"}
"""Commands that write a kind of document, where that is not `map`."""
PLACES = {"front": "folder", "sweep": "folder"}
"""What a user names to have a document read, where that is not the document."""
INSTEAD = {
    "plan": "give one of its plans, as in plans/c01.json; `parapipe pick` names the best",
    "front": "give the folder that `parapipe map` wrote",
    "run": "give what `parapipe run --json` printed",
}
"""What to do where a plan or a front stands in place of another document."""
Document = TypeVar("Document", bound=BaseModel)


def read_document(
    path: Path, model: type[Document], *, schema: str, what: str, error: type[ParapipeError]
) -> Document:
    """Read a document that `parapipe map`, or one of `WRITERS`, wrote.

    Parameters
    ----------
    schema
        Version of the format that the model stands for.
    what
        Name of the kind of document, "plan" or "front".
    error
        What is raised if the file cannot be read, is no JSON (names the line), is of another
        schema, or has fields that are wrong, missing or unknown (names them by their path, the
        schema, and the version of parapipe that wrote it where the file says so).
    """
    text, document = _parse(path, what, error)
    table = document if isinstance(document, dict) else {}
    written, writer = table.get("schema"), table.get("parapipe")
    is_what = "names no schema"
    if isinstance(written, str):
        is_what = f"is of schema {shorten_text(json.dumps(written, ensure_ascii=False))}"
        kind = written.removeprefix("parapipe/").partition("/")[0]
        if kind != what and kind in ("plan", "front"):
            instead = INSTEAD.get(what, _advice(what))
            raise error(f"{path}: is a {kind}, not {with_article(what)}; {instead}")
        if kind == "onnxruntime" and what == "plan":
            raise error(
                f"{path}: is what run.py of an exported folder reads, not a plan; name the plan "
                "that it was exported from, in the folder that `parapipe map` wrote"
            )
    advice = _advice(what)
    if isinstance(writer, str) and writer != __version__:
        is_what += f", written by parapipe {shorten_text(writer)}"
        advice += ", or use the version that wrote it"
    if written != schema:
        raise error(
            f"{path}: {is_what}, and parapipe {__version__} reads {what}s of schema "
            f'"{schema}"; {advice}'
        )
    try:
        return model.model_validate_json(text)
    except ValidationError as wrong:
        mistakes = _mistakes_in(wrong, document)
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise error(
            f"{path}: {is_what}, with {count}: {listed_sentences(mistakes)}; {advice}"
        ) from wrong


def read_json(path: Path, what: str, error: type[ParapipeError]) -> Any:  # noqa: ANN401
    """Return any JSON value that `parapipe map` wrote; errors as for `read_document`."""
    return _parse(path, what, error)[1]


def _advice(what: str) -> str:
    return f"write the {what} again with `parapipe {WRITERS.get(what, 'map')}`"


def _parse(path: Path, what: str, error: type[ParapipeError]) -> tuple[str, Any]:
    try:
        require_regular(path)
        text = path.read_bytes().decode()
    except OSError as wrong:
        raise error(
            f"{path}: cannot be read ({wrong.strerror}); name a {PLACES.get(what, what)} that "
            f"`parapipe {WRITERS.get(what, 'map')}` wrote"
        ) from wrong
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: is not text in UTF-8, so no {what}; {_advice(what)}") from wrong
    try:
        return text, json.loads(text, object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as wrong:
        raise error(
            f"{path}:{wrong.lineno}: is not JSON ({wrong.msg}, column {wrong.colno}); "
            f"{_advice(what)}"
        ) from wrong
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path}: is no {what} ({wrong}); {_advice(what)}") from wrong


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = sorted(key for key, count in counts.items() if count > 1)
        raise ValueError(f"{', '.join(map(repr, repeated))} stands twice in one table")
    return table


def _mistakes_in(error: ValidationError, document: Any) -> list[str]:  # noqa: ANN401
    plain = {"missing": "is missing", "extra_forbidden": "is unknown"}
    return [
        f"{_json_path(mistake['loc'], document)}: "
        + plain.get(mistake["type"], mistake["msg"][:1].lower() + mistake["msg"][1:])
        for mistake in error.errors(include_url=False, include_input=False)
    ]


def _json_path(location: Sequence[int | str], document: Any) -> str:  # noqa: ANN401
    """Write a place as in `stages[0].time_s`.

    Where a value may be of several kinds, pydantic names the kind in between: what the document
    does not have and is not the last step is such a kind.
    """
    path = ""
    for i, step in enumerate(location):
        if isinstance(step, int):
            path += f"[{step}]"
            inside = isinstance(document, list) and step < len(document)  # a tuple may be too short
            document = document[step] if inside else None
        elif isinstance(document, dict) and (step in document or i == len(location) - 1):
            path += f".{step}" if path else step
            document = document.get(step)
    return path or "the whole"
