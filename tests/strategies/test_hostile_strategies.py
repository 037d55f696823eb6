"""Strategies that fail, do not return, or change what they must not: one line names them."""

import os
import sys
from itertools import repeat

import pytest

import parapipe
from parapipe.errors import ParapipeError
from parapipe.strategies.order_of_plan import ReadyPool
from parapipe.strategies.strategy import MOST_SPLITS, splits_of

ONE = min(os.sched_getaffinity(0))
CORES = {"big": [ONE], "little": [ONE], "gpu": [ONE]}


def changing(change):
    """Return a strategy that decides well, and then changes the state by a function."""

    class Changing(ReadyPool):
        def schedule(self, state):
            super().schedule(state)
            change(state)

    return Changing


def members(**named):
    """Return a strategy with members of its own."""
    return type("Members", (ReadyPool,), named)


def forever(*_):
    while True:
        pass


def fails(*_, **__):
    raise KeyError("mine")


class Failing:
    """A member that fails when it is looked at."""

    def __get__(self, instance, owner=None):
        raise RuntimeError("mine")


def running_of_nobody(state):
    state.running[:] = [None] * len(state.running)


CHANGES = {
    "running emptied": running_of_nobody,
    "running shortened": lambda state: state.running.clear(),
    "ended cleared": lambda state: state.ended.clear(),
    "begun cleared": lambda state: state.begun.clear(),
    "nothing left": lambda state: setattr(state, "left", None),
    "clock back": lambda state: setattr(state, "now_s", -1.0),
    "nothing ready": lambda state: (state.ready_by.clear(), state.left.clear()),
    "work without tasks": lambda state: object.__setattr__(state.work, "waits", ()),
}
STRATEGIES = {
    **{name: changing(change) for name, change in CHANGES.items()},
    "schedule fails": members(schedule=fails),
    "schedule exits": members(schedule=lambda *_: sys.exit(3)),
    "schedule never returns": members(schedule=forever),
    "init fails": members(__init__=fails),
    "init never returns": members(__init__=forever),
    "cut fails": members(cut=staticmethod(fails)),
    "cut never returns": members(cut=staticmethod(forever)),
    "cut is no function": members(cut=3),
    "cut cannot be had": members(cut=Failing()),
    "splits fail": members(splits=staticmethod(fails)),
    "splits never return": members(splits=staticmethod(forever)),
    "splits never end": members(splits=staticmethod(lambda batch: repeat((batch,)))),
    "splits are no function": members(splits=3),
    "splits cannot be had": members(splits=Failing()),
    "schedule cannot be had": members(schedule=Failing()),
    "follows_plan cannot be had": members(follows_plan=Failing()),
}


@pytest.mark.parametrize("run", ["simulate", "run"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_that_misbehaves_is_named_in_one_line(branchy_front, name, run):
    strategy = STRATEGIES[name]
    plan = branchy_front.best("period").plan()
    cores = {"cores": CORES} if run == "run" else {}
    with pytest.raises(ParapipeError) as caught:
        getattr(plan, run)(strategy=strategy, patience_s=0.5, frames=5, **cores)
    line = str(caught.value)
    assert f"{strategy.__module__}:{strategy.__qualname__}" in line
    assert "\n" not in line


@pytest.mark.parametrize("name", ["schedule never returns", "cut fails", "clock back"])
def test_so_it_is_where_several_plans_are_run_together(branchy_front, name):
    plans = [branchy_front.best("period").plan()] * 2
    for verb, how in ((parapipe.simulate_plans, {}), (parapipe.run_plans, {"cores": CORES})):
        with pytest.raises(ParapipeError, match="strategy '"):
            verb(plans, strategy=STRATEGIES[name], patience_s=0.5, frames=5, **how)


def test_mistakes_beside_a_strategy_are_not_told_as_its_own(branchy_front, monkeypatch):
    monkeypatch.setattr("parapipe.simulate.strategies.program", fails)
    with pytest.raises(KeyError):
        branchy_front[0].plan().simulate(strategy="ready-pool", frames=2)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 13, 14])
def test_splits_are_bounded_by_the_batch(batch):
    most = min(MOST_SPLITS, 2 ** (batch - 1))
    bounded = members(splits=staticmethod(lambda batch: repeat((batch,), most)))
    assert len(splits_of(bounded, batch)) == most
    endless = members(splits=staticmethod(lambda batch: repeat((batch,), most + 1)))
    with pytest.raises(ParapipeError, match=rf"splits\({batch}\) are more than {most}, "):
        splits_of(endless, batch)


def test_sizes_that_never_end_are_no_split():
    assert splits_of(members(splits=staticmethod(lambda batch: [repeat(1)])), 4) == ()
