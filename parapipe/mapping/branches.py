"""Placed branches: their loads in equation (2) of the Para-Pipe paper, and when they run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import fsum

from parapipe.mapping.list_order import list_order
from parapipe.mapping.problem import MappingProblem, Series, operators_of
from parapipe.mapping.replay import Timed, replay

TransferTimes = tuple[tuple[float, ...], ...]


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


def load_of_placed_s(
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
) -> Iterator[tuple[int, TransferTimes, int]]:
    """Yield producer, transfer times and target of each tensor that leaves the branch.

    Once per processor with a placed reader outside: readers there share the transfer.
    """
    inside = frozenset(branch)
    for flow in problem.flows:
        if flow.producer is not None and flow.producer in inside:
            outside = placed.keys() & set(flow.consumers) - inside
            for q in sorted({placed[v] for v in outside}):
                yield flow.producer, flow.transfer_s, q


def branch_times(problem: MappingProblem, placed: Mapping[int, int]) -> Timed:
    """Start and end of operators that all have a processor.

    Branches of one processor run in the order of their transfers to where they are read, the
    longest first: Jackson's rule, optimal for jobs that are ready together and delivered after
    they have run. Yet no processor waits for a branch while it could run another.
    """
    processor = tuple(placed[v] for v in range(problem.operators))
    priority = [0] * problem.operators
    for rank, v in enumerate(_ranked(problem, problem.structure, placed)):
        priority[v] = rank
    return replay(problem, processor, list_order(problem, processor, priority))


def makespan_s(problem: MappingProblem, placed: Mapping[int, int]) -> float:
    """Seconds until the last of the placed operators has ended."""
    return branch_times(problem, placed).makespan_s


def _ranked(problem: MappingProblem, series: Series, placed: Mapping[int, int]) -> Iterator[int]:
    for step in series:
        if isinstance(step, int):
            yield step
            continue
        ranks = {i: _rank(problem, branch, placed) for i, branch in enumerate(step)}
        for i in sorted(ranks, key=ranks.__getitem__):
            yield from _ranked(problem, step[i], placed)


def _rank(
    problem: MappingProblem, branch: Series, placed: Mapping[int, int]
) -> tuple[float, float]:
    """Longest transfer first, then longest time."""
    inside = operators_of(branch)
    sent_s = [transfer_s[placed[v]][q] for v, transfer_s, q in deliveries(problem, inside, placed)]
    return -max(sent_s, default=0.0), -sum(problem.time_s[v][placed[v]] for v in inside)
