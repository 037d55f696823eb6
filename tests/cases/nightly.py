"""Parameters of tests of which `make test` takes some and `make test-nightly` the others."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def nightly_from(first: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases, those from the `first`-th on (counted from 0) only nightly."""
    return [_case(case, nightly=index >= first) for index, case in enumerate(cases)]


def nightly_repeats(cases: Iterable[Any], kind: Callable[[Any], Hashable]) -> list[Any]:
    """Return the cases, only nightly those of a kind that an earlier one has."""
    seen: set[Hashable] = set()
    listed = []
    for case in cases:
        listed.append(_case(case, nightly=kind(case) in seen))
        seen.add(kind(case))
    return listed


def _case(case: Any, *, nightly: bool) -> Any:
    return pytest.param(case, marks=[pytest.mark.nightly] * nightly)
