"""Searches that end for want of memory: what they show holds, and they say what is missing."""

from __future__ import annotations

from math import inf

import pytest

import parapipe
from parapipe.plan.verify import verify_plan
from parapipe.processes.deadline import Deadline
from parapipe.processes.memory_limit import SHORT_OF_MEMORY, MemoryLimit
from parapipe.search.configurations_from_costs import explore
from parapipe.search.options import MapOptions
from tests.cases.pipeline_cases import identical_costs
from tests.cases.small_network import saved
from tests.search.test_live_boundaries import cut_everywhere, every_configuration, tangled

LOOKS = [0, 2, 8, 34, 144, inf]


def short_at(looks):
    """Return a limit that is reached at a look, that at the beginning not counted."""
    done = iter(range(-1, 10**9))
    return MemoryLimit(1.0, used=lambda: float(next(done) >= looks), look_s=0.0)


def folders(path):
    """Make a folder for each of two models."""
    for name in ("a", "b"):
        (path / name).mkdir()
        yield name, path / name


@pytest.mark.parametrize("most_requests", [0, 100_000])
@pytest.mark.parametrize("objectives", ["latency-throughput", "latency-throughput-energy"])
@pytest.mark.parametrize(("kinds", "seed"), [((0, 1, 2), 0), ((0, 1, 1), 1)])
def test_whenever_memory_runs_short_bounds_hold_and_rows_exist(
    kinds, seed, objectives, most_requests
):
    """Against all configurations, one by one."""
    graph = tangled(4, seed)
    costs, parts = identical_costs(graph, kinds, seed), cut_everywhere(graph)
    every = [c[:2] for c in every_configuration(graph, costs, kinds) if c[0] < inf]
    options = MapOptions(
        mapper="auto", time_limit_s=10, resolution=0.0, jobs=1, objectives=objectives
    )
    complete = explore(graph, parts, costs, options, most_requests=most_requests)
    told = []
    for looks in LOOKS:
        found = explore(
            graph, parts, costs, options,
            most_requests=most_requests, deadline=Deadline(memory=short_at(looks)),
        )  # fmt: skip
        rows = [(row.evaluated.latency_s, row.evaluated.period_s) for row in found.found]
        least = [min(each[i] for each in every) for i in (0, 1)]
        assert all(min(row[i] for row in rows) >= least[i] * (1 - 1e-9) for i in (0, 1))
        if undone := found.unfinished:
            assert undone.latency_s <= least[0] * (1 + 1e-9)
            assert undone.period_s <= least[1] * (1 + 1e-9)
        told.append(bool(undone and SHORT_OF_MEMORY in undone.reasons))
        if not told[-1]:
            best = [(row.evaluated.latency_s, row.evaluated.period_s) for row in complete.found]
            assert len(found.found) == len(complete.found)
            assert rows == best
    assert told[0]
    assert not told[-1]


def test_a_front_within_a_byte_has_plans_and_says_that_more_was_left_out(tmp_path):
    model = saved(tmp_path)
    front = parapipe.map(
        model, "amlogic-a311d", memory_limit_bytes=1.0, cache=False, jobs=1, draws=0
    )
    assert SHORT_OF_MEMORY in front.document.unfinished.reasons
    assert "--memory-limit 1B" in front.document.command
    for each in front.configurations:
        verify_plan(each.plan())
    front.write(tmp_path / "front")
    explained = parapipe.explain(tmp_path / "front", "sequential")
    (bound,) = (row.text for row in explained.reasons if row.about == "bound")
    assert SHORT_OF_MEMORY in bound
    assert "proven optimal" not in bound


def test_a_front_of_several_models_within_a_byte_says_so(tmp_path):
    models = {name: saved(folder) for name, folder in folders(tmp_path)}
    front = parapipe.map(
        models, "amlogic-a311d", rates={"a": 5.0, "b": 5.0}, memory_limit_bytes=1.0, jobs=1
    )
    assert SHORT_OF_MEMORY in front.document.unfinished.reasons
    for each in front.configurations:
        verify_plan(each.plan())


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path):
    model = saved(tmp_path)

    def written(**options):
        front = parapipe.map(model, "amlogic-a311d", cache=False, jobs=1, draws=9, **options)
        return front.document.model_copy(update={"command": ""}).model_dump_json()

    assert written() == written(memory_limit_bytes=1e12)
    assert '"unfinished":null' in written()
