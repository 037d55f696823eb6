"""What the state of the A311D's board changes in fronts: python -m benchmarks.board_states.

The networks whose blocks were measured in 2024 are mapped on both platforms of
tools/states_amlogic_a311d.py, `amlogic-a311d` (the board of 2025: those blocks take 1.112 times as
long on big) and `amlogic-a311d-2024` (as they were measured). For every named configuration the
page has latency L, throughput 1/T and frames per joule of both, and for every set of processors the
gain over big alone, beside the paper's.

Why this exists: docs/board-states.md is what it writes, so that a user sees which choices depend on
the state, and which state the paper's figures agree with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import parapipe
from benchmarks import paper_published as published
from benchmarks.paper_page import percent
from benchmarks.paper_runs import front, gains, set_rows
from benchmarks.tables import markdown_table
from parapipe import ParetoFront
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.files.atomic import write_atomically
from tools.states_amlogic_a311d import STATES

PAGE = Path(__file__).parents[1] / "docs/board-states.md"
TEXT = Path(__file__).with_name("board_states.txt")
NETWORKS = ("googlenet", "inception-v3", "inception-v4", "inception-resnet-v2")
AFTER, BEFORE = STATES
FIGURES: Mapping[str, tuple[str, Callable[[published.Gain], float | None]]] = {
    "latency": ("latency_s", lambda gain: gain.latency),
    "throughput": ("one_stage_fps", lambda gain: gain.throughput),
    "frames/J": ("one_stage_frames_per_joule", lambda gain: gain.efficiency),
}


@cache
def fronts(network: str) -> Mapping[str, ParetoFront]:
    """Map a network with parapipe's defaults on the platform of each state."""
    return {
        platform: parapipe.map(f"zoo:{network}", platform, note=lambda _: None)
        for platform in (BEFORE, AFTER)
    }


def named_rows(network: str) -> list[list[str]]:
    """Return a line for every name that a configuration has in one of the fronts."""
    named = {platform: _by_name(found) for platform, found in fronts(network).items()}
    made = []
    for name in dict.fromkeys([*named[BEFORE], *named[AFTER]]):
        rows = [named[platform].get(name) for platform in (BEFORE, AFTER)]
        drawings = [row.drawing if row else "none" for row in rows]
        same = "the same" if drawings[0] == drawings[1] else drawings[1]
        cells = [figure for pair in zip(*map(_figures, rows), strict=True) for figure in pair]
        made.append([network, name, drawings[0], same, *cells])
    return made


def _by_name(found: ParetoFront) -> dict[str, ConfigurationRow]:
    return {name: row for row in found.document.configurations for name in row.names}


def _figures(row: ConfigurationRow | None) -> tuple[str, ...]:
    if row is None:
        return "", "", ""
    values = (row.latency_s * 1e3, row.throughput_fps, row.frames_per_joule)
    return tuple(f"{value:.4g}" for value in values)


def kept_row(network: str) -> list[str]:
    """Return how many configurations on the front of one state are on that of the other."""
    found = fronts(network)
    drawings = [
        {row.drawing for row in found[platform].document.configurations if row.pareto}
        for platform in (BEFORE, AFTER)
    ]
    return [network, *(str(len(each)) for each in drawings), str(len(drawings[0] & drawings[1]))]


@cache
def gains_of(platform: str) -> Mapping[str, Mapping[str, float]]:
    """Return what sets of processors gain over big alone, means of the networks."""
    rows = [
        row for network in NETWORKS for row in set_rows(network, platform, front(network, platform))
    ]
    return gains(rows)


def published_gains() -> Iterator[tuple[str, str, float, float, float]]:
    """Yield processors, figure, and the gain: of the paper, and with either platform."""
    for processors, paper in published.GAINS.items():
        for name, (figure, of_paper) in FIGURES.items():
            theirs = of_paper(paper)
            if theirs is not None:
                before, after = (gains_of(each)[processors][figure] for each in (BEFORE, AFTER))
                yield processors, name, theirs, before, after


def page() -> str:
    """Return docs/board-states.md, the text beside this file with its tables."""
    states = (BEFORE, AFTER)
    head = ["network", "configuration", f"stages, {BEFORE}", f"stages, {AFTER}"]
    figures = [f"{figure}, {s}" for figure in ("ms", "fps", "frames/J") for s in ("2024", "2025")]
    rows = [row for network in NETWORKS for row in named_rows(network)]
    sets = ["processors", "figure", "the paper", *states]
    gained = list(published_gains())
    nearer = sum(abs(before - theirs) < abs(after - theirs) for *_, theirs, before, after in gained)
    return TEXT.read_text(encoding="utf-8").format(
        named=markdown_table([*head, *figures], rows),
        kept=markdown_table(
            ["network", *(f"Pareto, {s}" for s in states), "the same stages in both"],
            [kept_row(network) for network in NETWORKS],
        ),
        sets=markdown_table(sets, [[*each[:2], *map(percent, each[2:])] for each in gained]),
        nearer=nearer,
        count=len(gained),
    )


def main() -> None:
    """Write the page."""
    text = page()
    write_atomically(PAGE, text.encode())
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
