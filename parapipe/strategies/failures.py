"""What is told of a strategy that fails or does not return; it may be a user's, and do anything."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Thread, get_ident
from time import perf_counter
from typing import ParamSpec, TypeVar

from parapipe.errors import ParapipeError, StrategyError

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")
FAILURES = (Exception, SystemExit)
"""What may come from a call of a strategy; an interruption is none."""
LEAST_PATIENCE_S = 60.0
LOOK_S = 0.25  # how often it is looked whether a strategy has returned

_calls: dict[int, tuple[str, str, float]] = {}
"""By thread that calls a strategy: its name, the member, and since when."""


def describe_error(error: BaseException) -> str:
    """Return what has happened."""
    return f"{type(error).__name__}: {error}"


@contextmanager
def call_of(name: str, member: str) -> Iterator[None]:
    """Call a member of a strategy in here, and look at what it returns.

    Parameters
    ----------
    name
        What messages call the strategy.

    Raises
    ------
    StrategyError
        If it fails, or something else in here does.
    """
    begin_call(name, member)
    try:
        yield
    except StrategyError as error:
        raise StrategyError(f"strategy '{name}': {error}") from error
    except FAILURES as error:
        static = "; it is called on the class, so make it a static method"
        raise StrategyError(
            f"strategy '{name}': '{member}' has failed: {describe_error(error)}"
            f"{static if 'required positional argument' in str(error) else ''}"
        ) from error
    finally:
        end_call()


def begin_call(name: str, member: str) -> None:
    """Say that this thread calls a member of a strategy now."""
    _calls[get_ident()] = name, member, perf_counter()


def end_call() -> None:
    """Say that the member has returned, or failed."""
    _calls.pop(get_ident(), None)


def call_with_timeout(call: Callable[[], Answer], patience_s: float | None) -> Answer:
    """Return what a call returns that calls strategies, unless one of these calls takes too long.

    It is made in a thread of its own, which Python lets go on until it next comes to Python's code.

    Parameters
    ----------
    patience_s
        For each call of a strategy; a minute if not given.

    Raises
    ------
    StrategyError
        A member of a strategy does not return.
    """
    limit_s = LEAST_PATIENCE_S if patience_s is None else patience_s
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - the caller raises it again
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(min(LOOK_S, limit_s))
        name, member, since_s = _calls.get(thread.ident or 0, ("", "", perf_counter()))
        if thread.is_alive() and perf_counter() - since_s > limit_s:
            end_thread(thread.ident or 0)
            raise StrategyError(
                f"strategy '{name}' does not return: '{member}' was called {limit_s:.3g} s ago"
            )
    for error in errors:
        raise error
    return answers[0]


def end_thread(thread: int) -> None:
    """Let a thread, given by its ident, end where it next comes to Python's code."""
    exits = ctypes.py_object(SystemExit)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exits)


def attribute_failures(verb: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Name the strategy in what fails by it: a verb whose argument `strategy` may be a user's own.

    Raises
    ------
    StrategyError
        In place of what is no error of parapipe's, if the strategy is none of parapipe's.
    """

    @wraps(verb)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            return verb(*args, **kwargs)
        except ParapipeError:
            raise
        except FAILURES as error:
            strategy = kwargs.get("strategy", "")
            if isinstance(strategy, type):
                strategy = f"{strategy.__module__}:{strategy.__qualname__}"
            from parapipe.strategies.registry import STRATEGIES  # which imports this module

            if strategy in STRATEGIES.own:
                raise
            raise StrategyError(f"strategy '{strategy}' {unusable_sentence(error)}") from error

    return call


def unusable_sentence(error: BaseException) -> str:
    """Return what is told if something other than a strategy's own code fails."""
    return (
        f"has left what it was given in a state that cannot be used ({describe_error(error)}): it "
        "may change it by state.split and state.execute only"
    )
