"""Two published ten-task examples on three processors, a unit of the papers being 1 µs.

Every edge is a tensor of its own, as long on the way between any two processors. Task n of a
paper is operator n − 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parapipe.solvers.problem import Flow, MappingProblem

UNIT_S = 1e-6


def ten_tasks() -> MappingProblem:
    """The sample graph of Topcuoglu, Hariri and Wu (2002): HEFT 80, CPOP 86; the optimum is 73."""
    return published(
        [
            (14, 16, 9),
            (13, 19, 18),
            (11, 13, 19),
            (13, 8, 17),
            (12, 13, 10),
            (13, 16, 9),
            (7, 15, 11),
            (5, 11, 14),
            (18, 12, 20),
            (21, 7, 16),
        ],
        {
            1: {2: 18, 3: 12, 4: 9, 5: 11, 6: 14},
            2: {8: 19, 9: 16},
            3: {7: 23},
            4: {8: 27, 9: 23},
            5: {9: 13},
            6: {8: 15},
            7: {10: 17},
            8: {10: 11},
            9: {10: 13},
        },
    )


def ten_tasks_of_peft() -> MappingProblem:
    """The sample graph of Arabnejad and Barbosa (2014): PEFT 122, HEFT 133."""
    return published(
        [
            (22, 21, 36),
            (22, 18, 18),
            (32, 27, 43),
            (7, 10, 4),
            (29, 27, 35),
            (26, 17, 24),
            (14, 25, 30),
            (29, 23, 36),
            (15, 21, 8),
            (13, 16, 33),
        ],
        {
            1: {2: 17, 3: 31, 4: 29, 5: 13, 6: 7},
            2: {8: 3, 9: 30},
            3: {7: 16},
            4: {8: 11, 9: 7},
            5: {9: 57},
            6: {8: 5},
            7: {10: 9},
            8: {10: 42},
            9: {10: 7},
        },
    )


def published(
    times: Sequence[Sequence[int]], edges: Mapping[int, Mapping[int, int]]
) -> MappingProblem:
    """Build a problem from a paper's table, in its units and with its numbers of tasks."""
    processors = range(len(times[0]))
    flows = [
        Flow(
            u - 1,
            (v - 1,),
            tuple(tuple(UNIT_S * cost * (p != q) for q in processors) for p in processors),
        )
        for u, readers in edges.items()
        for v, cost in readers.items()
    ]
    rows = tuple(tuple(UNIT_S * time for time in row) for row in times)
    return MappingProblem(rows, tuple(flows), tuple(range(len(times))))
