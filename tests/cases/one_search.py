"""A search of a test's own, in the form that explorations take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parapipe.search.contract import Moment


@dataclass(frozen=True)
class OneSearch:
    """A search whose `run` is a function."""

    name: str
    moment: Moment
    run: Callable[..., object]
