"""What a branch costs a processor in equation (2) of the Para-Pipe paper."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import fsum

from parapipe.mapping.problem import MappingProblem

Transfer = tuple[tuple[float, ...], ...]


def branch_load_s(
    problem: MappingProblem, branch: Collection[int], placed: Mapping[int, int]
) -> tuple[float, ...]:
    """t_bp + c_b,p,sink of a branch on each processor p, in seconds.

    t_bp sums the times of the branch's operators, infinite if p does not support one of them;
    c_b,p,sink sums the transfers of its outputs to those operators outside that are placed: the
    sink, once it is. Tensors that others send to the branch are no part of (2).
    """
    outgoing = list(deliveries(problem, branch, placed))
    return tuple(
        fsum(
            [
                *(problem.time_s[v][p] for v in branch),
                *(transfer_s[p][q] for _, transfer_s, q in outgoing),
            ]
        )
        for p in range(problem.processors)
    )


def carried_s(
    problem: MappingProblem, branches: Iterable[Collection[int]], placed: Mapping[int, int]
) -> tuple[float, ...]:
    """Load of each processor from branches whose operators have been placed one by one."""
    shares: list[list[float]] = [[] for _ in range(problem.processors)]
    for branch in branches:
        for v in branch:
            shares[placed[v]].append(problem.time_s[v][placed[v]])
        for v, transfer_s, q in deliveries(problem, branch, placed):
            shares[placed[v]].append(transfer_s[placed[v]][q])
    return tuple(fsum(share) for share in shares)


def deliveries(
    problem: MappingProblem, branch: Collection[int], placed: Mapping[int, int]
) -> Iterator[tuple[int, Transfer, int]]:
    """Yield producer, transfer times and target of each tensor that leaves the branch.

    Once per processor with a placed reader outside: readers there share the transfer.
    """
    inside = frozenset(branch)
    for flow in problem.flows:
        if flow.producer is not None and flow.producer in inside:
            outside = placed.keys() & set(flow.consumers) - inside
            for q in sorted({placed[v] for v in outside}):
                yield flow.producer, flow.transfer_s, q
