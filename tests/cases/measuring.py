"""This machine as a platform to be measured."""

from __future__ import annotations

from pathlib import Path

from parapipe.profiling.detect import MachineFigures, clusters_here, platform_text
from parapipe.profiling.figures import Figures
from parapipe.profiling.identical_figures import HandOver

FIGURES = Figures({"float32": 2e10, "int32": 3e9, "int64": 2e9}, 1e-6, 8e9, 2e-5)


def platform_of_parts(path: Path, parts: int = 2) -> Path:
    """Write this machine as identical processors of one core, none of its figures measured."""
    clusters = clusters_here(split=parts)[:parts]
    pairs = {
        (p, q): HandOver(1e-5, 1e12, 0.1) for p in range(parts) for q in range(parts) if p != q
    }
    path.write_text(
        platform_text("here", clusters, MachineFigures((FIGURES,) * len(clusters), pairs, {}))
    )
    return path
