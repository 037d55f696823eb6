"""Of all assignments that allow a period, one with few and short hand-overs.

What a frame waits for is what it is handed over for: at the least period of all, a modulo schedule
of an assignment that nobody asked about hand-overs keeps a frame several times as long as one with
few of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.interleaved.least_cost import least_cost
from parapipe.mapping.interleaved.programme import programme
from parapipe.mapping.interleaved.relaxation import Aim
from parapipe.mapping.problem import MappingProblem


def fewest_hand_overs(
    problem: MappingProblem,
    period_s: float,
    *,
    wait_s: float = 0.0,
    start: Sequence[int] = (),
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> tuple[int, ...] | None:
    """Return an assignment with loads within a period, above 0, and the least time of hand-overs.

    Loads may exceed the period by a hundred-millionth of it for each operator and transfer, which
    rounding hides: what is scheduled has to have the period of its own greatest load.

    Parameters
    ----------
    wait_s
        What a hand-over counts besides its time. In a modulo schedule its reader waits for a turn
        on the circle as well, up to a period; with 0 many short hand-overs count as one long one.
    start
        Processor of each operator in an assignment within the period, if one is known, as that of
        `least_period`: it is where the search begins, and the least that comes back.
    time_limit_s, seed, deterministic
        As for `least_period`.

    Returns
    -------
    tuple of int, or None
        Processor of each operator; None if no assignment allows the period, or none was found.
    """
    stated = programme(problem, lambda _flow, _p, _q: True)
    cost = [0.0] * len(stated.most)
    for (f, p, q), j in stated.moved.items():
        if time_s := problem.flows[f].transfer_s[p][q]:
            cost[j] = time_s + wait_s
    found = least_cost(
        stated,
        Aim(cost, period_s),
        start=start,
        budget=Budget(time_limit_s, deterministic),
        seed=seed,
    )
    return found.processor or None
