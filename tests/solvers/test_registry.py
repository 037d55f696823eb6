from __future__ import annotations

import subprocess
import sys

import pytest

from parapipe.errors import MappingError
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.registry import MAPPERS, mapper

LONELY = MappingProblem(((2.0, 1.0),), (), (0,))


@pytest.mark.parametrize("name", MAPPERS.names())
def test_every_name_gives_a_mapper(name) -> None:
    schedule = mapper(name)(LONELY, time_limit_s=1.0, seed=0)
    assert schedule.processor == (1,)
    assert schedule.makespan_s == 1.0


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(MappingError, match=r"'corase'; choose one of auto,.*mean 'coarse'\?$"):
        mapper("corase")
    with pytest.raises(MappingError, match=r"'simplex'; choose one of auto.*streams, or .*TION$"):
        mapper("simplex")


def test_the_registry_loads_no_solver() -> None:
    script = (
        "import sys, parapipe.solvers.registry as r; r.MAPPERS.names(); r.mapper('coarse')\n"
        "print(sorted({'pulp', 'ortools', 'highspy', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
