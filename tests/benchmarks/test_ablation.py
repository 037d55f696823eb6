"""The benchmark of the exact mapper's devices, on problems that take no time."""

from __future__ import annotations

from math import inf

import pytest

from benchmarks import ablation
from benchmarks.instances import inception_like
from benchmarks.mapping_registry import Instance

# two jobs; the first operation of the second may run on either machine
SHOP = "2 2\n2 1 0 3 1 1 2\n2 2 0 4 1 1 1 1 5\n"


def test_a_flexible_job_shop_becomes_a_problem_of_one_chain_for_each_job():
    problem = ablation.flexible_job_shop(SHOP)
    unit = ablation.UNIT_S
    assert problem.time_s == (
        (3 * unit, inf),
        (inf, 2 * unit),
        (4 * unit, 1 * unit),
        (inf, 5 * unit),
    )
    assert [(flow.producer, flow.consumers) for flow in problem.flows] == [(0, (1,)), (2, (3,))]


@pytest.mark.parametrize("name", ablation.devices())
def test_without_any_device_the_optimum_is_the_same(name):
    instance = Instance("inception", lambda: inception_like(8, processors=2))
    rows = [
        ablation.measured(solve, name, device, ("families", instance), 10.0)
        for solve, device in (
            (ablation.exact, ablation.devices()[name]),
            (ablation.plain_cp_sat, {}),
        )
    ]
    assert all(row.proven for row in rows)
    assert rows[0].makespan_s == pytest.approx(rows[1].makespan_s, abs=8e-6)


def test_a_device_is_compared_with_the_whole_mapper():
    whole = ablation.Row(ablation.EVERYTHING, "zoo", "a", 2.0, 1.0, 1.0, proven=True)
    other = ablation.Row("hints", "zoo", "a", 3.0, 1.1, 0.99, proven=False)
    assert ablation.table([whole, other]).splitlines()[-1] == "| hints | 1.50 | 1 | 1 | 0.100 |"
