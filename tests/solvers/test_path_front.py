"""What longest paths bound, against all schedules there are."""

from __future__ import annotations

import pytest

from parapipe.solvers.energy.small_problems import path_front
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.energy_cases import MICRO, NANO, every_pair, random_case

FAR = ((0.0, 2.0), (3.0, 0.0))


@pytest.mark.parametrize("seed", range(60))
def test_no_schedule_takes_less_energy_in_the_time(seed) -> None:
    problem, energy_j = random_case(seed)
    found = path_front(problem, energy_j, 0.1)
    for time_us, energy_nj in every_pair(problem, energy_j):
        reached = [
            energy
            for time, energy in zip(found.time_s, found.energy_j, strict=True)
            if time <= time_us * MICRO * (1.1 + 1e-9)
        ]
        assert min(reached) <= energy_nj * NANO * (1 + 1e-9)


def test_a_chain_is_exact() -> None:
    # both on 0: 1 + 1 s; 0 then 1: 1 + 2 + 4 s; both on 1, the input 2 s away: 2 + 4 + 4 s
    rows, energy_j = ((1.0, 4.0), (1.0, 4.0)), ((4.0, 1.0), (4.0, 1.0))
    flows = (Flow(None, (0,), FAR, 0), Flow(0, (1,), FAR))
    found = path_front(MappingProblem(rows, flows, (0, 1)), energy_j, 0.0)
    assert found.time_s.tolist() == [2.0, 7.0, 10.0]
    assert found.energy_j.tolist() == [8.0, 5.0, 2.0]
    assert found.processor.tolist() == [[0, 0], [0, 1], [1, 1]]
