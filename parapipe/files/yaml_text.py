"""YAML text as plain values, with the line of every key and every mistake of the text itself.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` and `12:30` are text. Aliases
are refused, so that a small file cannot stand for a huge one. libyaml finds the tokens, where
PyYAML has it: that takes a tenth of the time of ruamel.yaml, which reports one mistake at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from parapipe.files.mistake import KeyPath, Mistake

MAX_DEPTH = 24
MAX_NODES = 50_000
MAX_DIGITS = 40
_CORE = "tag:yaml.org,2002:"
_SHAPES = {
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+"),
    "float": re.compile(
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
}
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
    parser = _Parser(yaml.parse(content, Loader=_Loader))
    try:
        value = parser.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = f"is no valid YAML: {error.problem or error.context or 'cannot be read'}"
        line = mark.line + 1 if mark else 1
    except yaml.reader.ReaderError as error:
        what = "holds a character that YAML forbids; delete it"
        line = content.count(b"\n", 0, error.position) + 1
    else:
        mistakes, unread = tuple(parser.mistakes), frozenset(parser.unread)
        return Document(value, parser.lines, mistakes, unread)
    return Document(None, {}, (Mistake((), what, line),))


class _Parser:
    """Values made of a parser's events, within bounds."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.depth = 0
        self.nodes = 0
        self.lines: dict[KeyPath, int] = {}
        self.mistakes: list[Mistake] = []
        self.unread: set[KeyPath] = set()

    def document(self) -> object:
        """Return the value of the only document."""
        next(self.events)  # the stream begins
        if isinstance(next(self.events), yaml.StreamEndEvent):
            self.mistakes.append(Mistake((), "is empty; describe a platform in it", 1))
            return None
        value = self._value(self._next(), ())
        next(self.events)  # the document ends
        if not isinstance(more := next(self.events), yaml.StreamEndEvent):
            _refuse("it holds a second document", more)
        return value

    def _next(self) -> Any:  # noqa: ANN401 - one of a dozen kinds of events
        event = next(self.events)
        if isinstance(event, yaml.AliasEvent):
            _refuse("an alias (*) is not allowed; write its value out", event)
        if isinstance(event, yaml.CollectionEndEvent):
            self.depth -= 1
            return event
        if self.depth >= MAX_DEPTH:
            _refuse(f"it is nested deeper than {MAX_DEPTH} levels", event)
        if self.nodes >= MAX_NODES:
            _refuse(f"it holds more than {MAX_NODES} keys and values", event)
        self.nodes += 1
        self.depth += isinstance(event, yaml.CollectionStartEvent)
        return event

    def _skip(self, event: yaml.NodeEvent) -> None:
        """Pass over what belongs to a node."""
        outside = self.depth - isinstance(event, yaml.CollectionStartEvent)
        while self.depth > outside:
            self._next()

    def _value(self, event: Any, path: KeyPath) -> object:  # noqa: ANN401 - as for `_next`
        self.lines.setdefault(path, event.start_mark.line + 1)
        tag = None if event.tag == "!" else event.tag
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, tag, path)
        if isinstance(event, yaml.MappingStartEvent) and tag in (None, f"{_CORE}map"):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent) and tag in (None, f"{_CORE}seq"):
            return self._sequence(path)
        self._skip(event)
        return self._unreadable(event, path, f"the tag '{tag}' is not allowed; leave it out")

    def _mapping(self, path: KeyPath) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                self._skip(key)
                self._skip(self._next())
                self._wrong(key, path, "has a list or a mapping as a key; a key must be a word")
                continue
            entry = (*path, key.value)
            if key.value in found:
                self._skip(self._next())
                first = self.lines[entry]
                self._wrong(key, entry, f"stands twice (first on line {first}); keep one")
                continue
            self.lines[entry] = key.start_mark.line + 1
            found[key.value] = self._value(self._next(), entry)
        return found

    def _sequence(self, path: KeyPath) -> tuple[object, ...]:
        found: list[object] = []
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            found.append(self._value(item, (*path, len(found))))
        return tuple(found)

    def _scalar(self, event: yaml.ScalarEvent, tag: str | None, path: KeyPath) -> object:
        text = event.value
        fitting = (name for name, shape in _SHAPES.items() if shape.fullmatch(text))
        plain = next(fitting, "str") if event.implicit[0] else "str"
        kind = plain if tag is None else tag.removeprefix(_CORE)
        if kind == "str":
            return text
        if kind not in _SHAPES:
            return self._unreadable(event, path, f"the tag '{tag}' is not allowed; leave it out")
        if not _SHAPES[kind].fullmatch(text):
            return self._unreadable(event, path, f"'{text[:MAX_DIGITS]}' is no {kind}")
        if len(text) > MAX_DIGITS:
            return self._unreadable(event, path, f"has more than {MAX_DIGITS} digits; round it")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            return int(text, 16 if text.startswith("0x") else 10)
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))

    def _unreadable(self, event: yaml.NodeEvent, path: KeyPath, text: str) -> None:
        self.unread.add(path)
        self._wrong(event, path, text)

    def _wrong(self, event: yaml.NodeEvent, path: KeyPath, text: str) -> None:
        self.mistakes.append(Mistake(path, text, event.start_mark.line + 1))


def _refuse(problem: str, event: yaml.Event) -> None:
    raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
