"""Numbers for readers: some digits, and never an exponent."""

from __future__ import annotations

from decimal import Decimal


def plain(value: float, digits: int = 4) -> str:
    """Write a number with so many significant digits, or more in place of an exponent."""
    if abs(value) >= 10**digits:
        return f"{value:.0f}"
    return f"{Decimal(f'{value:.{digits}g}'):f}"
