"""CBC, the solver of mixed-integer programs that comes with PuLP: import, run, answer."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil, inf
from types import ModuleType
from typing import TYPE_CHECKING

from parapipe.errors import MappingError
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch

if TYPE_CHECKING:
    import pulp

SEED_LIMIT = 2**31 - 2  # CBC takes 1 to 2³¹ − 1: its 0 means the time of day


@dataclass(frozen=True, slots=True)
class Answer:
    """What CBC says of a minimisation; the values stand in the model's variables.

    Parameters
    ----------
    found
        Whether there is a solution.
    optimal
        Whether CBC holds it to be the best.
    bound
        Lower bound on the objective that CBC holds to be proven, if any.
    solver
        Name and version.
    nodes
        Of the search tree: how much work it was, the same on every machine.
    """

    found: bool
    optimal: bool
    bound: float | None
    solver: str
    nodes: int = 0

    @property
    def rounded_bound(self) -> int | None:
        """The bound of an objective that takes whole values only: rounded up.

        A bound that is whole but for CBC's tolerances stays there.
        """
        return None if self.bound is None else ceil(self.bound * (1 - 1e-9) - 1e-3)


def run_cbc(
    model: pulp.LpProblem, *, time_limit_s: float, seed: int, options: Sequence[str] = ()
) -> Answer:
    """Minimise a PuLP model in place by CBC, on one thread and to a gap of 0.

    Parameters
    ----------
    options
        CBC's, each as a name and a value with a blank between.
    time_limit_s
        Seconds of wall time for CBC itself, infinity for none. CBC looks at its clock between
        steps and so ends somewhat later.
    seed
        Of CBC's random choices; any whole number.

    Raises
    ------
    MappingError
        If CBC cannot be run.
    """
    pulp = import_pulp()
    try:
        clear_abandoned_scratch()
        with LockedFolder() as folder:
            log = folder.path / "log"
            solver = pulp.PULP_CBC_CMD(
                msg=False,
                timeLimit=time_limit_s if time_limit_s < inf else None,
                gapRel=0,
                gapAbs=0,
                logPath=str(log),
                # no `threads`: even for 1 CBC starts a worker thread beside the main one
                options=[
                    f"randomCbcSeed {seed % SEED_LIMIT + 1}",
                    f"randomSeed {seed % SEED_LIMIT + 1}",
                    *options,
                ],
            )
            solver.tmpDir = str(folder.path)
            model.solve(solver)
            return _answer(pulp, model, log.read_text(errors="replace"))
    except (pulp.PulpError, OSError) as error:
        raise MappingError(
            f"the CBC that comes with PuLP could not be run ({error}); check that the folder for "
            "temporary files has space and no blank in its name and that PuLP is installed for "
            "this machine, or choose a mapper that does without"
        ) from error


def import_pulp() -> ModuleType:
    """Import PuLP so that it leaves highspy alone.

    PuLP loads highspy if that is installed, which then keeps OR-tools from being imported: both
    bring a shared library of the same name.
    """
    hidden = "highspy" not in sys.modules and "pulp" not in sys.modules
    if hidden:
        sys.modules["highspy"] = None  # type: ignore[assignment]
    try:
        return import_module("pulp")
    finally:
        if hidden:
            del sys.modules["highspy"]


def _answer(pulp: ModuleType, model: pulp.LpProblem, log: str) -> Answer:
    optimal = model.sol_status == pulp.LpSolutionOptimal
    # not of "inf" or "nan", should CBC have come to no bound
    bound = re.search(r"^Lower bound: *(-?\d\S*)", log, re.MULTILINE)
    version = re.search(r"^Version: *(\S+)", log, re.MULTILINE)
    nodes = re.search(r"^Enumerated nodes: *(\d+)", log, re.MULTILINE)
    return Answer(
        found=optimal or model.sol_status == pulp.LpSolutionIntegerFeasible,
        optimal=optimal,
        bound=model.objective.value() if optimal else float(bound[1]) if bound else None,
        solver=f"CBC {version[1] if version else 'unknown'} via PuLP {pulp.__version__}",
        nodes=int(nodes[1]) if nodes else 0,
    )
