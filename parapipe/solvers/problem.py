"""The mapping problem: plain arrays, free of ONNX, of YAML and of pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from math import floor, inf, isfinite

from parapipe.errors import MappingError

# A series is run step by step: an operator, or parallel branches, each a series again.
Series = tuple["int | Parallel", ...]
Parallel = tuple[Series, ...]
TransferResources = tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """One tensor: who makes it, who reads it, and what moving it costs.

    Parameters
    ----------
    producer
        Index of the operator that makes it, or None if it comes from outside.
    consumers
        Indices of the operators that read it, ascending. Consumers on one processor share one
        transfer.
    transfer_s
        `transfer_s[p][q]`: seconds to move it from processor p to q; 0 on the diagonal.
    location
        For a tensor from outside: the processor it lives on at time 0. None otherwise.
    """

    producer: int | None
    consumers: tuple[int, ...]
    transfer_s: tuple[tuple[float, ...], ...]
    location: int | None = None

    def __post_init__(self) -> None:
        if (self.producer is None) == (self.location is None):
            raise ValueError("a flow has either a producer or a location")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.producer, self.consumers, self.transfer_s, self.location)


@dataclass(frozen=True, slots=True)
class MappingProblem:
    """Operators of one subgraph to be placed and ordered on a platform's processors.

    Parameters
    ----------
    time_s
        `time_s[v][p]`: seconds of operator v on processor p; infinite where p does not support v
        or may not be used. Operators are in topological order.
    flows
        Tensors between operators, and those that come from outside. Tensors that are available
        everywhere (loaded graph inputs) need no flow.
    structure
        The operators as series and parallel branches, each operator once. It is what coarse
        mappers place; where it says nothing (a plain series that is no chain), they run all on
        one processor.
    transfer_resource
        `transfer_resource[p][q]`: the resource that a transfer from p to q keeps busy for its whole
        `transfer_s`, alone: p, q, or a number from `processors` on for a link that several pairs
        may share. None where a transfer is a pure delay, as in equation (4) of the Para-Pipe
        paper; `()` if all of them are.

    Raises
    ------
    MappingError
        If operators can run on no processor; names them all.
    ValueError
        If the arrays do not fit each other, a time is negative or not a number, an operator is
        read before it runs, the structure misses or repeats an operator, or a transfer keeps a
        processor busy that it neither leaves nor reaches.
    """

    time_s: tuple[tuple[float, ...], ...]
    flows: tuple[Flow, ...]
    structure: Series
    transfer_resource: TransferResources = ()
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.time_s or not self.time_s[0]:
            raise ValueError("a mapping problem needs at least one operator and one processor")
        processors = len(self.time_s[0])
        for v, row in enumerate(self.time_s):
            if len(row) != processors:
                raise ValueError(f"operator {v} has {len(row)} times for {processors} processors")
            if not all(map((0.0).__le__, row)):
                raise ValueError(f"operator {v} has a negative time or one that is not a number")
        stranded = [v for v, row in enumerate(self.time_s) if min(row) == inf]
        if stranded:
            raise MappingError(
                f"operators {stranded} can run on no processor that may be used; "
                "allow a processor that supports them"
            )
        for flow in self.flows:
            self._check(flow)
        if sorted(operators_of(self.structure)) != list(range(len(self.time_s))):
            raise ValueError("the structure must hold every operator exactly once")
        if self.transfer_resource:
            self._check_transfer_resource()

    def __hash__(self) -> int:
        if self._hash is None:  # it is looked up very often
            content = (self.time_s, self.flows, self.structure, self.transfer_resource)
            object.__setattr__(self, "_hash", hash(content))
        return self._hash or 0

    def __reduce__(self) -> tuple[object, ...]:
        content = (self.time_s, self.flows, self.structure, self.transfer_resource)
        return type(self), content  # another process has other hashes

    def _check(self, flow: Flow) -> None:
        ends = flow.consumers if flow.producer is None else (flow.producer, *flow.consumers)
        if ends and not 0 <= min(ends) <= max(ends) < self.operators:
            raise ValueError(f"a flow joins operators {ends}, and there are {self.operators}")
        if flow.producer is not None and min(flow.consumers, default=inf) <= flow.producer:
            raise ValueError(f"operator {flow.producer} is read before it runs")
        if flow.location is not None and not 0 <= flow.location < self.processors:
            raise ValueError(f"a flow comes from processor {flow.location} of {self.processors}")
        _check_times(flow.transfer_s, self.processors)

    def _check_transfer_resource(self) -> None:
        if {len(self.transfer_resource), *map(len, self.transfer_resource)} != {self.processors}:
            raise ValueError(
                "transfer resources are named from every processor to every processor, or none"
            )
        for p, row in enumerate(self.transfer_resource):
            for q, resource in enumerate(row):
                if resource is None or resource >= self.processors:
                    continue
                if resource not in (p, q) or p == q:
                    raise ValueError(
                        f"a transfer from processor {p} to {q} cannot keep {resource} busy: name "
                        f"either end, or a link by a number from {self.processors} on"
                    )

    def resource_of(self, p: int, q: int) -> int | None:
        """Resource that a transfer from p to q keeps busy; None if it is a pure delay."""
        return self.transfer_resource[p][q] if self.transfer_resource and p != q else None

    @property
    def resources(self) -> int:
        """Number of what can be busy: the processors, and the numbers of links behind them."""
        named = chain.from_iterable(self.transfer_resource)
        return max([self.processors, *(each + 1 for each in named if each is not None)])

    @property
    def operators(self) -> int:
        """Number of operators."""
        return len(self.time_s)

    @property
    def processors(self) -> int:
        """Number of processors, those that may not be used included."""
        return len(self.time_s[0])


@lru_cache(maxsize=1024)  # problems of one unit share their tensors
def _check_times(transfer_s: tuple[tuple[float, ...], ...], processors: int) -> None:
    if {len(transfer_s), *map(len, transfer_s)} != {processors}:
        raise ValueError("a flow needs transfer times from every processor to every processor")
    if any(not (isfinite(t) and t >= 0) for row in transfer_s for t in row):
        raise ValueError("a transfer time is negative, infinite or not a number")
    if any(transfer_s[p][p] for p in range(processors)):
        raise ValueError("a transfer within one processor must take no time")


def operators_of(series: Series) -> tuple[int, ...]:
    """Return all operators of a series, in the order in which it lists them."""
    operators: list[int] = []
    for step in series:
        if isinstance(step, int):
            operators.append(step)
        else:
            for branch in step:
                operators.extend(operators_of(branch))
    return tuple(operators)


MICRO = 1e6
NANO = 1e9
ROUNDING = 1e-6  # of a unit, so that 0.009 s, as a double a little less, counts 9000 microseconds
NEVER = 1 << 50  # more than any sum of times that occurs; small enough to be added up


def floor_units(amount: float, per_one: float = MICRO) -> int:
    """Round down to whole units, so many of which are one second or joule; `NEVER` if infinite."""
    return NEVER if amount == inf else floor(amount * per_one + ROUNDING)


def rounded_down(problem: MappingProblem, per_second: float = MICRO) -> MappingProblem:
    """Return the problem with every time rounded down to whole units.

    A unit stands there as a microsecond, however many of them a second has.
    """

    def rounded(row: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(inf if s == inf else floor_units(s, per_second) / MICRO for s in row)

    flows = tuple(
        replace(flow, transfer_s=tuple(map(rounded, flow.transfer_s))) for flow in problem.flows
    )
    return replace(problem, time_s=tuple(map(rounded, problem.time_s)), flows=flows)
