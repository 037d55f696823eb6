"""Every row of a front is evaluated with the law of co-runs, whatever found it."""

import pytest

import parapipe
from tests.cases.co_runs import disturbed_board
from tests.cases.small_network import saved

QUICK = {"mapper": "heft", "interleave": "none", "draws": 0, "note": lambda _note: None}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("co_runs")
    return saved(folder), disturbed_board(folder, 1.5)


@pytest.mark.parametrize(
    "options",
    [
        {"objectives": "latency-throughput-memory"},
        {"max_segments": 3},
        pytest.param({"dvfs": True, "objectives": "latency-throughput"}, marks=pytest.mark.nightly),
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_row_and_its_plan_hold_what_co_runs_cost(files, options):
    front = parapipe.map(*files, **QUICK | options)
    for row in front:
        plan = row.plan()
        assert row.co_run is not None
        assert row.co_run.free_period_s <= row.period_s * (1 + 1e-9)
        assert plan.co_run is not None
        assert plan.predicted.period_s == pytest.approx(row.period_s)
        assert plan.predicted.latency_s == pytest.approx(row.latency_s)
