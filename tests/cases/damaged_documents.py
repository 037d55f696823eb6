"""Documents damaged at random, as JSON or YAML: what is read must be refused well, or go on."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import yaml

DEEP = "deep"
CYCLE = "cycle"
HUGE = "huge"
DIGITS = "1" + "0" * 4400  # more than Python's int() takes
LEVELS = 3000
STRANGE: tuple[Any, ...] = (
    None, True, False, "", "x", "0", "-1", "1e999", [], {}, [[]], [None], {"": None}, 0, -1, 1, 7,
    0.5, -0.5, 1e-300, 1e300, -1e300, 2**31, 2**63, 2**64, -(2**63), 10**40, float("nan"),
    float("inf"), -float("inf"), "\ud800", "\udcff", "\u0000", "\u202e", "é" * 300, "x" * 20_000,
    "../../x", "/", "a\nb", [1] * 200, [2] * 200, [2**40] * 3, [0], [-1, 1], [1, "x"],
    DEEP, CYCLE, HUGE,
)  # fmt: skip
Place = tuple[Any, Any]


def damaged_json(document: object, rng: random.Random) -> bytes:
    """Return a document with some mistakes as JSON; sometimes the text itself is damaged."""
    text = json.dumps(_damaged(document, rng))
    text = text.replace(f'"{DEEP}"', "[" * LEVELS + "]" * LEVELS).replace(f'"{HUGE}"', DIGITS)
    return _spoiled(text.encode(), rng)


def damaged_yaml(document: object, rng: random.Random) -> bytes:
    """Return a document with some mistakes as YAML; sometimes the text itself is damaged."""
    dumped = yaml.safe_dump(_damaged(document, rng), sort_keys=False, allow_unicode=False)
    text = dumped.replace(f" {DEEP}\n", " " + "[" * LEVELS + "]" * LEVELS + "\n")
    text = text.replace(f" {CYCLE}\n", " &a [*a]\n").replace(f" {HUGE}\n", f" {DIGITS}\n")
    return _spoiled(text.encode(errors="surrogatepass"), rng)


def _damaged(document: object, rng: random.Random) -> object:
    """Return a copy with one to three changes, each at a place of its own."""
    root = [copy.deepcopy(document)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        # first a key, so that long lists do not hide what stands but once
        places: dict[object, list[Place]] = {}
        for inside, key in _places(root):
            places.setdefault(key if isinstance(inside, dict) else "item", []).append((inside, key))
        inside, key = rng.choice(places[rng.choice(list(places))])
        rng.choice(CHANGES)(inside, key, root, rng)
        root[1:] = []
        root = root or [None]
    return root[0]


def _places(inside: Any) -> Iterator[Place]:
    for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
        yield inside, key
        if isinstance(inside[key], dict | list):
            yield from _places(inside[key])


def _strange(inside: Any, key: Any, _root: Any, rng: random.Random) -> None:
    inside[key] = copy.deepcopy(rng.choice(STRANGE))


def _delete(inside: Any, key: Any, _root: Any, _rng: random.Random) -> None:
    del inside[key]


def _repeat(inside: Any, key: Any, _root: Any, rng: random.Random) -> None:
    if isinstance(inside, list):
        inside.insert(rng.randint(0, len(inside)), copy.deepcopy(inside[key]))
    else:
        inside[f"{key}2"] = copy.deepcopy(inside[key])


def _other(inside: Any, key: Any, root: Any, rng: random.Random) -> None:
    """Put what stands elsewhere, mostly under the same key: references to others, cycles."""
    places = [each for each in _places(root) if each[1] == key] or list(_places(root))
    there, other = rng.choice(places)
    inside[key] = copy.deepcopy(there[other])


def _number(inside: Any, key: Any, _root: Any, rng: random.Random) -> None:
    if isinstance(inside[key], int | float):
        inside[key] *= rng.choice((-1, 0, 1 + 1e-12, 2, 1e6, 1e-6, 10**6, 10**15))
    elif isinstance(inside[key], list):
        rng.shuffle(inside[key])
    else:
        _strange(inside, key, _root, rng)


CHANGES: tuple[Callable[[Any, Any, Any, random.Random], None], ...] = (
    _strange, _strange, _delete, _repeat, _other, _other, _number, _number,
)  # fmt: skip


def _spoiled(content: bytes, rng: random.Random) -> bytes:
    if rng.random() > 0.04:
        return content
    at = rng.randrange(len(content))
    return rng.choice((
        content[:at],
        content[:at] + b"\xff" + content[at:],
        content[:at] + b"\x00" + content[at:],
        b"\xef\xbb\xbf" + content,
        content.decode("utf-8", "replace").encode("utf-16"),
    ))  # fmt: skip
