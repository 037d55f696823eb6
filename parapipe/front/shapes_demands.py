"""The demands on placements of several shapes together, and which placements meet them best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from parapipe.digits import plain
from parapipe.documents.figure_table import Demands, Minimise
from parapipe.documents.shapes_schema import CombinationRow
from parapipe.errors import DemandError
from parapipe.files.mistakes import listed
from parapipe.front.demands import Figure, InMemory, limits
from parapipe.pareto import TIE, TIES, least
from parapipe.platform.memories import no_such_memory

REFUSED = {
    "max_segments": "shapes.json states no segments; those of a shape are in its own front",
    "board": "shapes.json states no energy of the board",
    "sustained": "requests follow each other without overlapping",
    "confidence": "shapes.json states intervals, not the draws themselves",
}
"""Demands that several shapes do not have, and why."""
_WORDS: Mapping[str, tuple[str, float, str]] = {
    "latency": ("time to the first token", 1e3, "ms"),
    "energy": ("energy of a request", 1e3, "mJ"),
    "energy per token": ("energy per token", 1e3, "mJ"),
    "power": ("power", 1, "W"),
    "memory": ("memory", 1e-6, "MB"),
}
"""What figures are called, and how they are shown."""
_RATES = {"throughput": "requests a second", "tokens": "tokens a second"}
"""Figures that are seconds here, and what is asked of their reciprocals."""


def best_combination(
    rows: Sequence[CombinationRow], minimise: Minimise, demands: Demands
) -> CombinationRow:
    """Return the placements that are least in one figure among those that keep all demands.

    Latency is the time to the first token; throughput and period are those of requests.

    Raises
    ------
    DemandError
        None keeps them all; the message says what each demand comes to. Or shapes.json does not
        state what is asked for.
    """
    default = Demands()
    asked = [each.name for each in fields(demands)
             if getattr(demands, each.name) != getattr(default, each.name)]  # fmt: skip
    if refused := [f"{name} ({REFUSED[name]})" for name in asked if name in REFUSED]:
        raise DemandError(f"several shapes cannot be picked by {listed(refused)}")
    bounds = limits(demands)
    meeting = [
        row for row in rows
        if all(figure(row, of) <= most * (1 + TIE) for of, most in bounds.items())
    ]  # fmt: skip
    if not meeting:
        texts = [_nearest(rows, of, most) for of, most in bounds.items()]
        raise DemandError(f"no placements meet all demands: {'; '.join(texts)}")
    last = "latency" if rows[0].first_token_s else "throughput"
    order = (minimise, "throughput", last, "energy")
    return least(meeting, lambda row: [figure(row, of) for of in order], (TIES.get(minimise, TIE),))


def figure(row: CombinationRow, of: Figure) -> float:
    """Return a figure of placements, in SI units; of rates the reciprocal.

    Raises
    ------
    DemandError
        It is one of language models, and this is none; or there is no such memory.
    """
    match of:
        case InMemory(name):
            peaks = {each.name: each.peak_bytes for each in row.memories}
            if name not in peaks:
                raise DemandError(no_such_memory([name], tuple(peaks)))
            return peaks[name]
        case "latency" | "tokens":
            value = row.first_token_s if of == "latency" else row.tokens_per_second
            if value is None:
                raise DemandError(
                    f"{row.id} says nothing of tokens: the last of the shapes reads "
                    "no token that is fed back, or an older version wrote the front; minimise "
                    "throughput, which is that of requests"
                )
            return value if of == "latency" else 1 / value
        case "energy per token":
            if row.energy_per_token_j is None:
                raise DemandError(
                    f"{row.id} says nothing of energy per token: the shapes are not those of a "
                    "language model, or an older version wrote the front; write it again with map"
                )
            return row.energy_per_token_j
        case "energy":
            return row.energy_j
        case "power":
            return row.energy_j / row.request_s
        case "memory":
            return float(row.memory_bytes)
    return row.request_s


def _nearest(rows: Sequence[CombinationRow], of: Figure, most: float) -> str:
    """Say what is asked of a figure, and what the best placements have."""
    best = min(rows, key=lambda row: figure(row, of))
    value = figure(best, of)
    if of in _RATES:
        asked, has = (plain(1 / each, 4) for each in (most, value))
        return f"{asked} {_RATES[str(of)]} are asked, and {best.id} has the most, {has}"
    words, factor, unit = _WORDS[of if isinstance(of, str) else "memory"]
    where = f" in '{of.name}'" if isinstance(of, InMemory) else ""
    asked, has = (plain(each * factor, 4) for each in (most, value))
    return f"{words}{where} of {asked} {unit} is asked, and {best.id} has the least, {has} {unit}"
