"""YAML text as plain values, with the line of every key and every mistake of the text itself.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` and `12:30` are text. Aliases
are refused, so that a small file cannot stand for a huge one. libyaml finds the tokens, where
PyYAML has it: that takes a tenth of the time of ruamel.yaml, which reports one mistake at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import yaml
from yaml.composer import ComposerError

from parapipe.files.mistake import KeyPath, Mistake

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
        self._wrong(node, path, what)
        return None

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._wrong(key, path, "has a list or a mapping as a key; a key must be a word")
                continue
            entry = (*path, key.value)
            if key.value in found:
                first = self.lines[entry]
                self._wrong(key, entry, f"stands twice (first on line {first}); keep one")
                continue
            self.lines[entry] = key.start_mark.line + 1
            found[key.value] = self.build(value, entry)
        return found

    def _wrong(self, node: yaml.Node, path: KeyPath, text: str) -> None:
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
