"""YAML text as plain values, with the line of every key and every mistake of the text itself.

Scalars follow the core schema of YAML 1.2: `1e9` is a number, `no` and `12:30` are text. Aliases
are refused, so that a small file cannot stand for a huge one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from yaml.composer import ComposerError

from parapipe.platform.mistake import KeyPath, Mistake

MAX_DEPTH = 24
MAX_NODES = 50_000
MAX_DIGITS = 40
_CORE = "tag:yaml.org,2002:"
_SHAPES = {
    "null": (re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    "int": (re.compile(r"^(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")),
    "float": (
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
}


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
    try:
        root = _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "cannot be read"
        line = mark.line + 1 if mark else 1
        return Document(None, {}, (Mistake((), f"is no valid YAML: {what}", line),))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = "holds a character that YAML forbids; delete it"
        return Document(None, {}, (Mistake((), what, line),))
    if root is None:
        return Document(None, {}, (Mistake((), "is empty; describe a platform in it", 1),))
    builder = _Builder()
    value = builder.build(root, ())
    return Document(value, builder.lines, tuple(builder.mistakes), frozenset(builder.unread))


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """A loader that only composes: core schema scalars, no aliases, a bounded tree."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self._refuse("an alias (*) is not allowed; write its value out")
        if self.depth >= MAX_DEPTH:
            self._refuse(f"it is nested deeper than {MAX_DEPTH} levels")
        if self.nodes >= MAX_NODES:
            self._refuse(f"it holds more than {MAX_NODES} keys and values")
        self.nodes += 1
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def _refuse(self, problem: str) -> None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise ComposerError(None, None, problem, mark)


_Loader.yaml_implicit_resolvers = {}
for _name, (_shape, _first) in _SHAPES.items():
    _Loader.add_implicit_resolver(_CORE + _name, _shape, _first)


@dataclass(slots=True)
class _Builder:
    lines: dict[KeyPath, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    unread: set[KeyPath] = field(default_factory=set)

    def build(self, node: yaml.Node, path: KeyPath) -> object:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode) and node.tag == _CORE + "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _CORE + "seq":
            return tuple(self.build(item, (*path, i)) for i, item in enumerate(node.value))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        return self._unreadable(node, path, f"the tag '{node.tag}' is not allowed; leave it out")

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

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> object:
        tag, text = node.tag.removeprefix(_CORE), node.value
        if tag == "str":
            return text
        if tag not in _SHAPES:
            return self._unreadable(
                node, path, f"the tag '{node.tag}' is not allowed; leave it out"
            )
        if not _SHAPES[tag][0].match(text):
            return self._unreadable(node, path, f"'{text[:MAX_DIGITS]}' is no {tag}")
        if len(text) > MAX_DIGITS:
            return self._unreadable(node, path, f"has more than {MAX_DIGITS} digits; round it")
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() == "true"
        if tag == "int":
            return int(text, 16 if text.startswith("0x") else 10)
        return _number(text)

    def _unreadable(self, node: yaml.Node, path: KeyPath, text: str) -> object:
        self.unread.add(path)
        self._wrong(node, path, text)
        return None

    def _wrong(self, node: yaml.Node, path: KeyPath, text: str) -> None:
        self.mistakes.append(Mistake(path, text, node.start_mark.line + 1))


def _number(text: str) -> float:
    lowered = text.lower()
    return float(lowered.replace(".inf", "inf").replace(".nan", "nan"))
