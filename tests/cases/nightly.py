"""Parameters of tests of which `make test` takes some and `make test-nightly` the others."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import pytest


def nightly_from(first: int, cases: Iterable[Any]) -> Iterator[Any]:
    """The cases, those from the `first`-th on (counted from 0) only nightly."""
    for index, case in enumerate(cases):
        yield pytest.param(case, marks=pytest.mark.nightly) if index >= first else case


def nightly_repeats(cases: Iterable[Any], kind: Callable[[Any], Hashable]) -> Iterator[Any]:
    """The cases, only nightly those of a kind that an earlier one has."""
    seen = set()
    for case in cases:
        one = kind(case)
        yield pytest.param(case, marks=pytest.mark.nightly) if one in seen else case
        seen.add(one)
