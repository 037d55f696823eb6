"""What is told of a strategy that fails; it may be a user's, and fail in any way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from parapipe.errors import StrategyError

FAILURES = (Exception, SystemExit)
"""What may come from a call of a strategy; an interruption is none."""


def told(error: BaseException) -> str:
    """Return what has happened."""
    return f"{type(error).__name__}: {error}"


@contextmanager
def called(member: str) -> Iterator[None]:
    """Call a member of a strategy's class in here.

    Raises
    ------
    StrategyError
        If it fails.
    """
    try:
        yield
    except StrategyError:
        raise
    except FAILURES as error:
        static = "; it is called on the class, so make it a static method"
        raise StrategyError(
            f"the strategy's '{member}' has failed: {told(error)}"
            f"{static if 'required positional argument' in str(error) else ''}"
        ) from error
