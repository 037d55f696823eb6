"""What holds for every coverage."""

import pytest

NAMES = ("measured", "stated", "compiled", "fitted", "nominal")


def assert_shares_add_up_to_one(coverage):
    """Shares by provenance, of operators and of their time, of each processor and of all."""
    for side in ("operators", "time"):
        add_up(*(getattr(figure, side) for figure in shares(coverage)))
    for row in coverage.processors.values():
        add_up(*shares(row))


def shares(coverage):
    """Return the shares that there are: without stated or compiled times, it has none of them."""
    every = (getattr(coverage, name) for name in NAMES)
    return [share for share in every if share is not None]


def add_up(*shares):
    assert min(shares) >= 0
    assert sum(shares) == pytest.approx(1)
