"""report.html of several shapes: all placements in a table and a picture, on one page.

Style stands in the page itself, and nothing is fetched; the reports of single shapes are links.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from parapipe.digits import plain
from parapipe.documents.shapes_schema import CombinationRow, ShapesDocument
from parapipe.figures.shapes_front import axis_titles, point_of
from parapipe.files.titles import model_title

WIDTH, HEIGHT, EDGE = 640, 360, 56
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse } th, td { padding: .25rem .6rem; text-align: left }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
tbody tr:nth-child(odd) { background: #8881 } tr.beaten { color: #777 } svg { max-width: 100% }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } a { color: #8bf } }
"""


def shapes_page(document: ShapesDocument, pages: Mapping[str, Path], path: Path) -> bytes:
    """Return the page.

    Parameters
    ----------
    pages
        The report of each shape.
    path
        Where the page goes, from which links lead to these.
    """
    title = f"{model_title(document.model)} on {document.platform}, {len(document.shapes)} shapes"
    beside = path.resolve().parent
    links = ", ".join(
        f'<a href="{escape(Path(os.path.relpath(each.resolve(), beside)).as_posix())}">'
        f"{escape(name)}</a>"
        for name, each in pages.items()
    )
    steps = ", ".join(f"{each.steps} of {each.name}" for each in document.shapes)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    note = (
        "States move once from where one shape writes them to where the next one reads them. "
        "Weights that several shapes use in a memory count once there. Rows in grey are beaten "
        "and are there to compare with."
    )
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>A request has these steps: {escape(steps)}. The shapes by themselves: {links}.</p>",
        *_picture(document),
        *_table(document),
        f"<p>{note}</p>",
        f"<p>Made by: <code>{escape(document.command)}</code></p></body></html>",
    ]
    return "\n".join(parts).encode()


def _picture(document: ShapesDocument) -> Iterator[str]:
    """Yield rows as points."""
    across, up = (each.replace("(ms)", "in ms") for each in axis_titles(document))
    points = [point_of(row) for row in document.configurations]
    place_x = _scale([x for x, _ in points], EDGE, WIDTH - 16)
    place_y = _scale([y for _, y in points], HEIGHT - EDGE, 16)
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" fill="currentColor" role="img">'
    yield f"<title>{escape(across)} and {escape(up)} of each row</title>"
    right, below = WIDTH - 16, HEIGHT - EDGE
    axes = f"M{EDGE} 8V{below}H{right}"
    yield f'<path d="{axes}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    corner = f'x="{right}" y="{HEIGHT - 12}" text-anchor="end" font-size="13"'
    yield f"<text {corner}>{escape(across)}</text>"
    yield f'<text x="{EDGE + 6}" y="18" font-size="13">{escape(up)}</text>'
    for some, place, at in (
        ([x for x, _ in points], place_x, lambda v: (place_x[v], below + 18, "middle")),
        ([y for _, y in points], place_y, lambda v: (EDGE - 6, place_y[v] + 4, "end")),
    ):
        for value in {min(some), max(some)} & {*place}:
            x, y, anchor = at(value)
            yield (
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12">'
                f"{plain(value, 3)}</text>"
            )
    for row, (x, y) in zip(document.configurations, points, strict=True):
        shade = "" if row.pareto else ' fill-opacity=".35"'
        told = f"{row.id}: {plain(x, 3)} ms, {plain(y, 3)} {up}"
        yield (
            f'<circle cx="{place_x[x]:.1f}" cy="{place_y[y]:.1f}" r="5"{shade}>'
            f"<title>{escape(told)}</title></circle>"
        )
    yield "</svg>"


def _scale(values: Sequence[float], begin: float, end: float) -> dict[float, float]:
    """Return the place of each value between two ends, which have some room."""
    least, most = min(values), max(values)
    spread = most - least or 1.0
    return {
        each: begin + (end - begin) * (0.06 + 0.88 * (each - least) / spread) for each in values
    }


def _table(document: ShapesDocument) -> Iterator[str]:
    """Yield a row of cells for each row."""
    names = [each.name for each in document.shapes]
    tokens = document.configurations[0].tokens_per_second is not None
    titles = [
        *(f"{each}, ms" for each in names),
        *(("first token, ms", "tokens/s") if tokens else ()),
        *("request, ms", "moved, ms", "energy, mJ"),
        *(("mJ per token",) if _states_token_energy(document) else ()),
        "memory, MB",
    ]
    heads = "".join(f'<th class="n">{escape(each)}</th>' for each in titles)
    on = "".join(f"<th>{escape(each)} on</th>" for each in names)
    yield f"<table><thead><tr><th>id</th>{on}{heads}<th>named</th></tr></thead><tbody>"
    for row in document.configurations:
        mark = "" if row.pareto else ' class="beaten"'
        places = "".join(f"<td>{escape(each.drawing)}</td>" for each in row.placements.values())
        cells = _figures(row, tokens=tokens, token_energy=_states_token_energy(document))
        figures = "".join(f'<td class="n">{each}</td>' for each in cells)
        named = escape(", ".join(row.names))
        yield f"<tr{mark}><td>{row.id}</td>{places}{figures}<td>{named}</td></tr>"
    yield "</tbody></table>"


def _figures(row: CombinationRow, *, tokens: bool, token_energy: bool) -> Iterator[str]:
    for each in row.placements.values():
        yield plain(each.latency_s * 1e3, 3)
    if tokens:
        yield plain((row.first_token_s or 0.0) * 1e3, 3)
        yield plain(row.tokens_per_second or 0.0, 3)
    yield plain(row.request_s * 1e3, 4)
    yield plain(sum(each.time_s for each in row.moves) * 1e3, 3)
    yield plain(row.energy_j * 1e3, 4)
    if token_energy:
        yield plain((row.energy_per_token_j or 0.0) * 1e3, 4)
    yield plain(row.memory_bytes / 1e6, 4)


def _states_token_energy(document: ShapesDocument) -> bool:
    """Tell whether rows state energy per token; those of older versions do not."""
    return all(row.energy_per_token_j is not None for row in document.configurations)
