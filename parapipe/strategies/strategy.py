"""What a strategy is."""

from __future__ import annotations

from itertools import accumulate, combinations, islice
from numbers import Integral
from typing import Any, Protocol

from parapipe.errors import StrategyError
from parapipe.strategies.cut import Cut
from parapipe.strategies.failures import call_of
from parapipe.strategies.state import State
from parapipe.strategies.work import Work

MOST_SPLITS = 4096


class Strategy(Protocol):
    """Decides what processors do next; one is made for each run, from its work.

    It is asked whenever a processor is free and something has happened, and again until it gives
    nobody anything more. The engine looks after dependencies, data and memory.
    """

    follows_plan: bool
    """Whether the plan's processor of a task gets what the task reads as soon as it is made.
    Otherwise tensors are moved once a processor takes the task that reads them."""

    def __init__(self, work: Work) -> None: ...

    def schedule(self, state: State) -> None:
        """Give free processors something to do by `state.execute`, or let them wait."""


def name_of(strategy: type[Strategy]) -> str:
    """Return what messages call a strategy's class, as `--strategy` takes it."""
    return f"{strategy.__module__}:{strategy.__qualname__}"


def cut_of(strategy: type[Strategy]) -> Cut | None:
    """Return how a strategy cuts a network into pieces: its member `cut`, if it has one."""
    with call_of(name_of(strategy), "cut"):
        own_cut: Cut | None = getattr(strategy, "cut", None)
    return own_cut


def may_split(strategy: type[Strategy]) -> bool:
    """Tell whether a strategy may split batches: if it has a member `splits`."""
    with call_of(name_of(strategy), "splits"):
        return hasattr(strategy, "splits")


def splits_of(strategy: type[Strategy], batch: int) -> tuple[tuple[int, ...], ...]:
    """Return how a strategy may split a batch: what its member `splits(batch)` says, if it has one.

    Returns
    -------
    tuple
        Sizes of micro-batches; those that are none of a batch are left out.

    Raises
    ------
    StrategyError
        If that fails, sizes are no whole numbers from 1 on, or there are more splits than a batch
        has, or than `MOST_SPLITS`.
    """
    if not may_split(strategy):
        return ()
    most = min(MOST_SPLITS, 2 ** (batch - 1))
    with call_of(name_of(strategy), f"splits({batch})"):
        split_function: Any = getattr(strategy, "splits")  # noqa: B009 - no strategy has to have it
        splits = [
            tuple(islice(sizes, batch + 1)) for sizes in islice(split_function(batch), most + 1)
        ]
        if len(splits) > most:
            why = "too many to try" if most == MOST_SPLITS else f"a batch of {batch} has no more"
            raise StrategyError(f"splits({batch}) are more than {most}, {why}")
        if wrong := [sizes for sizes in splits if not all(map(_is_size, sizes))]:
            listed = ", ".join(str([*sizes]) for sizes in wrong)
            raise StrategyError(
                f"splits({batch}) are to be lists of whole numbers from 1 on, and there is {listed}"
            )
        return tuple(tuple(map(int, sizes)) for sizes in splits if sum(sizes) == batch)


def _is_size(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0


def sizes_of(strategy: type[Strategy], batch: int) -> tuple[int, ...]:
    """Return the sizes that pieces of a split batch may have: micro-batches, and several as one."""
    sizes: set[int] = set()
    for split in splits_of(strategy, batch):
        ends = (0, *accumulate(split))
        sizes.update(end - begin for begin, end in combinations(ends, 2))
    return tuple(sorted(sizes - {batch}))
