"""A YAML file as a pydantic model, or all its mistakes with file, line and key.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` and `12:30` are text. Aliases
are refused, so that a small file cannot stand for a huge one. libyaml finds the tokens, where
PyYAML has it: that takes a tenth of the time of ruamel.yaml, which reports one mistake at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import yaml
from pydantic import ValidationError, model_validator
from pydantic_core import PydanticCustomError
from yaml.composer import ComposerError

from parapipe.errors import FileError
from parapipe.files.checked_arguments import CONTRADICTION, mistakes_of
from parapipe.files.mistakes import KeyPath, Mistake, with_article
from parapipe.files.record import Frozen
from parapipe.files.shipped import require_regular

MAX_DEPTH = 24
TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
LIBRARY_DEPTH = "maximum nesting depth"  # PyYAML 6.0.4 has a limit of its own, which comes first
MAX_NODES = 50_000
MAX_DIGITS = 40
_CORE = "tag:yaml.org,2002:"
_SHAPES = {
    "null": re.compile(r"^(?:~|null|Null|NULL|)$"),
    "bool": re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
    "int": re.compile(r"^(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)$"),
    "float": re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Knows the scalars of the core schema only."""

    yaml_implicit_resolvers: ClassVar[dict[str, object]] = {}


for _name, _shape in _SHAPES.items():
    _Loader.add_implicit_resolver(_CORE + _name, _shape, None)


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a YAML text: mappings, tuples, text, numbers, booleans and None.

    Parameters
    ----------
    value
        The whole; None if the text is not YAML at all.
    lines
        Line (from 1) of every mapping entry and list item, by path.
    mistakes
        What is wrong with the text as such, each with its line.
    unread
        Paths whose value could not be made sense of and is given as None.
    """

    value: object
    lines: Mapping[KeyPath, int]
    mistakes: tuple[Mistake, ...]
    unread: frozenset[KeyPath] = frozenset()

    def line(self, path: KeyPath) -> int:
        """Return the line of the path, or of the nearest part of it that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse_yaml(text: str) -> Document:
    """Parse one YAML document; what is wrong with it stands in the answer's mistakes."""
    content = text.encode(errors="surrogatepass")
    try:
        _check_bounds(content)
        root = yaml.compose(content, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be read"
        if LIBRARY_DEPTH in problem:
            problem = TOO_DEEP
        what = f"is no valid YAML: {problem}"
        line = mark.line + 1 if mark else 1
    except yaml.reader.ReaderError as error:
        what = "holds a character that YAML forbids; delete it"
        line = content.count(b"\n", 0, error.position) + 1
    else:
        if root is not None:
            builder = _Builder()
            value = builder.build(root, ())
            return Document(
                value, builder.lines, tuple(builder.mistakes), frozenset(builder.unread)
            )
        what, line = "is empty; describe a platform in it", 1
    return Document(None, {}, (Mistake((), what, line),))


def _check_bounds(content: bytes) -> None:
    """Refuse what takes long to compose; nothing is built yet."""
    depth = nodes = 0
    for event in yaml.parse(content, Loader=_Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            problem = ""
            if isinstance(event, yaml.AliasEvent):
                problem = "an alias (*) is not allowed; write its value out"
            elif depth >= MAX_DEPTH:
                problem = TOO_DEEP
            elif nodes >= MAX_NODES:
                problem = f"it holds more than {MAX_NODES} keys and values"
            if problem:
                raise ComposerError(None, None, problem, event.start_mark)  # type: ignore[arg-type]
            nodes += 1
            depth += isinstance(event, yaml.CollectionStartEvent)


@dataclass(slots=True)
class _Builder:
    lines: dict[KeyPath, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    unread: set[KeyPath] = field(default_factory=set)

    def build(self, node: yaml.Node, path: KeyPath) -> object:
        self.lines.setdefault(path, node.start_mark.line + 1)
        tag = node.tag.removeprefix(_CORE)
        if isinstance(node, yaml.MappingNode) and tag == "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and tag == "seq":
            return tuple(self.build(item, (*path, i)) for i, item in enumerate(node.value))
        if isinstance(node, yaml.ScalarNode) and tag in (*_SHAPES, "str"):
            try:
                return _scalar(tag, node.value)
            except ValueError as error:
                what = str(error)
        else:
            what = f"the tag '{node.tag}' is not allowed; leave it out"
        self.unread.add(path)
        self._note(node, path, what)
        return None

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        entries: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._note(key, path, "has a list or a mapping as a key; a key must be a word")
                continue
            entry = (*path, key.value)
            if key.value in entries:
                first = self.lines[entry]
                self._note(key, entry, f"stands twice (first on line {first}); keep one")
                continue
            self.lines[entry] = key.start_mark.line + 1
            entries[key.value] = self.build(value, entry)
        return entries

    def _note(self, node: yaml.Node, path: KeyPath, text: str) -> None:
        self.mistakes.append(Mistake(path, text, node.start_mark.line + 1))


def _scalar(kind: str, text: str) -> object:
    """Return the value of a scalar; ValueError says what is wrong with it."""
    if kind == "str":
        return text
    if not _SHAPES[kind].match(text):
        raise ValueError(f"'{text[:MAX_DIGITS]}' is no {kind}")
    if len(text) > MAX_DIGITS:
        raise ValueError(f"has more than {MAX_DIGITS} digits; round it")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return int(text, 16 if text.startswith("0x") else 10)
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


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


def read_yaml_text(path: Path, kind: FileKind) -> str:
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


def parse_as(
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
            parsed = model.model_validate(expansion.value)
        except ValidationError as error:
            below = (*mistakes_of(error, model), *model.contradictions(expansion.value))
        else:
            if not (mistakes or expansion.mistakes):
                return parsed
            below = ()
        moved = expansion.moved(below)
        mistakes += (mistake for mistake in moved if mistake.path not in document.unread)
    placed = {(mistake.line or document.line(mistake.path), mistake) for mistake in mistakes}
    ordered = sorted(placed, key=lambda each: (each[0], str(each[1].path), each[1].text))
    raise kind.refusal(file, [mistake.sentence(file, line) for line, mistake in ordered])
