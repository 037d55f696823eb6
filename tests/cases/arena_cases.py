"""Arena problems by numbers alone."""

from __future__ import annotations

from parapipe.solvers.memory.offsets import ArenaProblem, Buffer


def problem_of(
    *rows: tuple[int, int, int], period: int | None = None, alignment_bytes: int = 1
) -> ArenaProblem:
    """Buffers by size, begin and end."""
    buffers = (Buffer(f"b{i}", *row, alignment_bytes) for i, row in enumerate(rows))
    return ArenaProblem(tuple(buffers), period)
