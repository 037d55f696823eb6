"""Draws the packages of parapipe and the imports between them: python docs/rooms.py.

Floors are those of the import contract in pyproject.toml. An arrow is drawn where no longer way
says the same: if a imports b, and b imports c, then an import of c by a is not drawn.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "parapipe"
PICTURE = Path(__file__).with_name("images") / "rooms.svg"
WIDTH, FLOOR_HEIGHT, ROOM_WIDTH, ROOM_HEIGHT = 760, 64, 120, 30
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
font-family="sans-serif" font-size="13">
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#567"/></marker></defs>
<rect width="{width}" height="{height}" fill="white"/>"""


def floors() -> list[list[str]]:
    """Return the rooms of each floor, the highest floor first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip().removeprefix("parapipe.") for room in row.split("|")] for row in layers]


def imports() -> Iterator[tuple[str, str]]:
    """Yield which room imports which, functions' own imports included."""
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("parapipe"):
                _, *inner = str(node.module).split(".")
                for name in inner[:1] or [alias.name for alias in node.names]:
                    yield room, name


def picture() -> str:
    """Return the picture as SVG."""
    rows = floors()
    rooms = {room for row in rows for room in row}
    arrows: nx.DiGraph[str] = nx.DiGraph()
    arrows.add_edges_from((a, b) for a, b in imports() if a != b and a in rooms and b in rooms)
    place = {
        room: (round(WIDTH * (i + 1) / (len(row) + 1)), FLOOR_HEIGHT * number + FLOOR_HEIGHT // 2)
        for number, row in enumerate(rows)
        for i, room in enumerate(row)
    }
    shown = sorted(nx.transitive_reduction(arrows).edges)
    parts = [
        HEAD.format(width=WIDTH, height=FLOOR_HEIGHT * len(rows)),
        *(_arrow(place[a], place[b]) for a, b in shown),
        *(_room(room, *at) for room, at in place.items()),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _arrow(begin: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (u, v) = begin, end
    y, v = y + ROOM_HEIGHT // 2, v - ROOM_HEIGHT // 2
    # arrows that pass floors go around the rooms between
    bend = 0 if v - y < FLOOR_HEIGHT else (150 if x >= WIDTH // 2 else -150)
    return (
        f'<path d="M{x} {y} C{x + bend} {y + 25} {u + bend} {v - 25} {u} {v}" fill="none" '
        'stroke="#567" stroke-width="1.2" marker-end="url(#head)"/>'
    )


def _room(name: str, x: int, y: int) -> str:
    left, top = x - ROOM_WIDTH // 2, y - ROOM_HEIGHT // 2
    return (
        f'<rect x="{left}" y="{top}" width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}" rx="5" '
        'fill="#eef3f8" stroke="#567"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle">{escape(name)}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.stdout.write(f"wrote {PICTURE}\n")
