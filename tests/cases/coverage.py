"""What holds for every coverage."""

import pytest


def assert_shares_add_up_to_one(coverage):
    """Shares by provenance, of operators and of their time, of each processor and of all."""
    for side in ("operators", "time"):
        add_up(*(getattr(getattr(coverage, name), side) for name in NAMES))
    for row in coverage.processors.values():
        add_up(*(getattr(row, name) for name in NAMES))


NAMES = ("measured", "stated", "fitted", "nominal")


def add_up(*shares):
    assert min(shares) >= 0
    assert sum(shares) == pytest.approx(1)
