"""The mapper `in-order`: operators in the model's order, each where it ends first."""

from time import perf_counter

from parapipe.solvers.lists import list_schedule
from parapipe.solvers.paths import simple_bound_s
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import certified
from parapipe.solvers.schedule import Schedule


def in_order(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Return a schedule of the problem; parapipe verifies it."""
    began_s = perf_counter()
    made = list_schedule(problem, [-float(v) for v in range(problem.operators)])
    return certified(
        problem,
        made.processor,
        made.timed,
        bound_s=simple_bound_s(problem),
        solver="in-order",
        seed=seed,
        began_s=began_s,
    )
