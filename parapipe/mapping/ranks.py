"""Ranks of operators by the length of the paths through them.

Those of Topcuoglu, Hariri and Wu (2002) need one number for an operator and one for an edge, before
anything is placed. Both are means, over what can happen:

- an operator's time, over the processors that support it;
- an edge's delay, over the ordered pairs of *different* processors of which the first supports the
  producer and the second the reader (as in the paper, a transfer that is none does not count); 0
  if there is no such pair. Where several tensors go from one operator to the other, the longest
  transfer of each pair counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from parapipe.mapping.problem import MappingProblem

# `delay_s[p][q]`: seconds until all tensors of an edge have got from p to q.
Delay = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Means:
    """Mean times of operators and mean delays of edges, in seconds.

    Parameters
    ----------
    time_s
        Of each operator.
    delay_s
        `delay_s[v][w]` of each edge from v to a reader w.
    release_s
        Of each operator: mean arrival of its latest tensor from outside; 0 without any.
    """

    time_s: tuple[float, ...]
    delay_s: tuple[Mapping[int, float], ...]
    release_s: tuple[float, ...]


def readers_of(problem: MappingProblem) -> tuple[Mapping[int, Delay], ...]:
    """For each operator the ones that read it, each once, with the delay of the edge."""
    readers: list[dict[int, Delay]] = [{} for _ in range(problem.operators)]
    for flow in problem.flows:
        if flow.producer is None:
            continue
        edges = readers[flow.producer]
        for w in flow.consumers:
            edges[w] = _longer(edges[w], flow.transfer_s) if w in edges else flow.transfer_s
    return tuple(readers)


def supporting(problem: MappingProblem) -> tuple[tuple[int, ...], ...]:
    """Processors that support each operator."""
    return tuple(tuple(p for p, time_s in enumerate(row) if time_s < inf) for row in problem.time_s)


def means_of(problem: MappingProblem) -> Means:
    """Average times and delays as the ranks need them."""
    support = supporting(problem)
    release_s = [[0.0] * problem.processors for _ in range(problem.operators)]
    for flow in problem.flows:
        if flow.home is not None:
            for w in flow.consumers:
                release_s[w] = [*map(max, release_s[w], flow.transfer_s[flow.home])]
    return Means(
        time_s=tuple(_mean([row[p] for p in support[v]]) for v, row in enumerate(problem.time_s)),
        delay_s=tuple(
            {
                w: _mean([delay_s[p][q] for p in support[v] for q in support[w] if p != q])
                for w, delay_s in edges.items()
            }
            for v, edges in enumerate(readers_of(problem))
        ),
        release_s=tuple(_mean([release_s[v][p] for p in support[v]]) for v in range(len(support))),
    )


def upward_ranks_s(means: Means) -> tuple[float, ...]:
    """Longest mean path from each operator's start to the end of the problem.

    No operator has a higher rank than one that it reads.
    """
    rank_s = [0.0] * len(means.time_s)
    for v in reversed(range(len(rank_s))):
        rank_s[v] = means.time_s[v] + max(
            (delay_s + rank_s[w] for w, delay_s in means.delay_s[v].items()), default=0.0
        )
    return tuple(rank_s)


def downward_ranks_s(means: Means) -> tuple[float, ...]:
    """Longest mean path from the problem's start to the start of each operator.

    The arrival of a tensor from outside counts as a path too.
    """
    rank_s = list(means.release_s)
    for v, edges in enumerate(means.delay_s):
        for w, delay_s in edges.items():
            rank_s[w] = max(rank_s[w], rank_s[v] + means.time_s[v] + delay_s)
    return tuple(rank_s)


def optimistic_costs_s(problem: MappingProblem) -> tuple[tuple[float, ...], ...]:
    """Return PEFT's table: seconds from the end of operator v on p to the end of all behind it.

    After Arabnejad and Barbosa (2014): the longest path to an operator that nobody reads, each
    operator on the processor that shortens it most, so that no schedule takes less. The transfer
    is that of the two processors at hand; the paper's mean is the same where all pairs take
    equally long. Infinite where p does not support v.
    """
    cost_s = [[inf] * problem.processors for _ in range(problem.operators)]
    support = supporting(problem)
    for v, edges in reversed([*enumerate(readers_of(problem))]):
        for p in support[v]:
            cost_s[v][p] = max(
                (
                    min(cost_s[w][q] + problem.time_s[w][q] + delay_s[p][q] for q in support[w])
                    for w, delay_s in edges.items()
                ),
                default=0.0,
            )
    return tuple(tuple(row) for row in cost_s)


def _longer(one: Delay, other: Delay) -> Delay:
    return tuple(tuple(map(max, *rows)) for rows in zip(one, other, strict=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
