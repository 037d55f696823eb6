"""The mapping that a plan writes down, by indices, and its network as an operator graph.

All that follows from a plan's stages and transfers (what waits for what, which stage a processor
belongs to, who makes a tensor) is derived here, for verifier, simulator, runner and exports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from parapipe.graph import operator_graph
from parapipe.graph.operator_graph import (
    Constant,
    ModelSource,
    OperatorGraph,
    State,
    Tensor,
    Work,
)
from parapipe.graph.work import work_of
from parapipe.mappings import mapping
from parapipe.mappings.mapping import Feedback, Placement
from parapipe.plan.schema import Operator, Plan, Transfer

MOST_LAGS = 1 << 53  # beyond it times are no longer numbers
_VIEW = "_view"


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor that one placed operator makes and another one reads.

    Parameters
    ----------
    transfer
        What brings it there; None within a processor, and where the plan lacks it.
    """

    tensor: str
    made: Placement
    read: Placement
    transfer: Transfer | None


@dataclass(frozen=True)
class MappedPlan:
    """A plan as a mapping.

    Parameters
    ----------
    resources
        Processors as the plan lists them, then shared links.
    orders
        What each processor runs in a period, as the plan lists it.
    stage_of
        Position of the stage of each processor.
    edges
        In the order of the operators that read. What cannot be placed (an operator in no stage, a
        tensor without a producer) has none: to find that is the verifier's business.
    """

    plan: Plan
    resources: tuple[str, ...]
    orders: Mapping[int, tuple[Placement, ...]]
    stage_of: Mapping[int, int]
    edges: tuple[Edge, ...]

    def id(self, at: Placement) -> str:
        """Id of a placed operator."""
        return self.plan.operators[at.operator].id

    def name(self, at: Placement) -> str:
        """Name of the processor that runs an operator."""
        return self.resources[at.processor]

    def stage(self, at: Placement) -> int:
        """Position of an operator's stage."""
        return self.stage_of[at.processor]

    @cached_property
    def replicas(self) -> dict[str, tuple[str, ...]]:
        """Names of the processors that take turns on frames, by the first of them."""
        return {
            each.name: (each.name, *each.replicas)
            for stage in self.plan.stages
            for each in stage.processors
            if each.replicas
        }

    @cached_property
    def placements(self) -> dict[str, Placement]:
        """Where operators run, by their ids: stage by stage, each processor's in its order."""
        return {self.id(at): at for order in self.orders.values() for at in order}

    @cached_property
    def interleaved(self) -> frozenset[int]:
        """Positions of the stages that work on several frames.

        Their operators have several lags, or the plan is of several models, whose frames come at
        different times of a period. Times count from the start of the period, and repeat.
        """
        if self.plan.models:
            return frozenset(range(len(self.plan.stages)))
        lags: dict[int, set[int]] = {}
        for at in self.placements.values():
            lags.setdefault(self.stage(at), set()).add(at.lag)
        return frozenset(stage for stage, own_lags in lags.items() if len(own_lags) > 1)

    def last_lag(self, at: Placement) -> int:
        """Lag of the period in which an operator ends, unless it works on several frames."""
        return at.lag + len(self.replicas.get(self.name(at), (0,))) - 1

    @property
    def out_of_step(self) -> int | None:
        """Position of the first stage with another lag than its number; None if there is none.

        What runs each stage on the frame behind that of the stage before cannot run the others.
        """
        odd = (self.stage(at) for at in self.placements.values() if at.lag != self.stage(at))
        return min(odd, default=None)

    @property
    def period_s(self) -> float | None:
        """Period that times repeat in; None where every stage works on one frame."""
        return self.plan.predicted.period_s if self.interleaved else None

    @cached_property
    def users(self) -> dict[tuple[str, str, str], list[Edge]]:
        """Edges between processors by tensor, source and target."""
        users: dict[tuple[str, str, str], list[Edge]] = {}
        for edge in self.edges:
            if edge.made.processor != edge.read.processor:
                route = (edge.tensor, self.name(edge.made), self.name(edge.read))
                users.setdefault(route, []).append(edge)
        return users

    def turn(self, transfer: Transfer) -> int:
        """Frame lag at which a transfer keeps something busy: the last before it is read."""
        starts_s = transfer.start_s or 0.0
        return min(
            edge.read.lag - (self.repeats(edge.read) and edge.read.start_s < starts_s)
            for edge in self.users[route_of(transfer)]
        )

    def repeats(self, at: Placement) -> bool:
        """Whether an operator's stage works on several frames."""
        return self.stage(at) in self.interleaved

    @cached_property
    def moved(self) -> tuple[Transfer, ...]:
        """Transfers that something reads, as the mapping numbers them."""
        return tuple(each for each in self.plan.transfers if route_of(each) in self.users)

    @cached_property
    def mapping(self) -> mapping.Mapping:
        """The same without names, beside those of the tensors."""
        number = {name: i for i, name in enumerate(self.resources)}
        transfer_number = {route_of(each): i for i, each in enumerate(self.moved)}
        return mapping.Mapping(
            placements=tuple(self.placements.values()),
            transfers=tuple(
                mapping.Transfer(
                    tensor=each.tensor,
                    producer=self.users[route_of(each)][0].made.operator,
                    source=number[each.source],
                    target=number[each.target],
                    lag=self.turn(each),
                    time_s=each.time_s,
                    resource=None if each.occupies is None else number[each.occupies],
                    start_s=each.start_s or 0.0,
                    end_s=each.end_s or 0.0,
                )
                for each in self.moved
            ),
            edges=tuple(
                mapping.Edge(
                    edge.made.operator,
                    edge.read.operator,
                    None if edge.transfer is None else transfer_number[route_of(edge.transfer)],
                )
                for edge in self.edges
            ),
            period_s=self.period_s,
            replicated=tuple(
                tuple(number[name] for name in names) for names in self.replicas.values()
            ),
            feedback=tuple(self._feedback()),
        )

    def _feedback(self) -> Iterator[Feedback]:
        """Yield who writes and who reads each state, as far as they are placed."""
        makers, frames = producers(self.plan), self.plan.sequences or 1
        for state in self.plan.states or ():
            ways = {(way.source, way.target): way.time_s for way in state.ways_back}
            made = self.placements.get(makers.get(state.output, ""))
            for operator in self.plan.operators:
                read = self.placements.get(operator.id)
                if made and read and state.input in operator.inputs:
                    time_s = ways.get((self.name(made), self.name(read)), 0.0)
                    yield Feedback(state.input, made.operator, read.operator, frames, time_s)


def mapping_view(plan: Plan) -> MappedPlan:
    """Return the mapping that a plan writes down: one for each plan, its copies have others."""
    attributes = vars(plan)  # `model_copy` takes its fields alone
    if _VIEW not in attributes:
        attributes[_VIEW] = _view_of(plan.model_copy())  # no circle, which would stay for a while
    view: MappedPlan = attributes[_VIEW]
    return view


def _view_of(plan: Plan) -> MappedPlan:
    processors = (processor.name for processor in plan.processors)
    placed_on = (
        name
        for stage in plan.stages
        for p in stage.processors
        for name in (p.name, *(p.replicas or ()))
    )
    occupied = (each.occupies for each in plan.transfers if each.occupies is not None)
    resources = tuple(dict.fromkeys((*processors, *placed_on, *occupied)))
    number = {name: i for i, name in enumerate(resources)}
    index_of = {operator.id: i for i, operator in enumerate(plan.operators)}
    orders: dict[int, tuple[Placement, ...]] = {}
    stage_of: dict[int, int] = {}
    placed: dict[str, Placement] = {}
    for position, stage in enumerate(plan.stages):
        for processor in stage.processors:
            p = number[processor.name]
            here = [
                Placement(index_of[at.operator], p, at.start_s, at.end_s, min(at.lag, MOST_LAGS))
                for at in processor.operators
                if at.operator in index_of and at.operator not in placed
            ]
            placed.update((plan.operators[at.operator].id, at) for at in here)
            orders[p] = (*orders.get(p, ()), *here)
            stage_of.setdefault(p, position)
    return MappedPlan(plan, resources, orders, stage_of, tuple(_edges(plan, resources, placed)))


def _edges(
    plan: Plan, resources: tuple[str, ...], placed: Mapping[str, Placement]
) -> Iterator[Edge]:
    transfers = {route_of(each): each for each in plan.transfers}
    producer_of = producers(plan)
    for operator in plan.operators:
        for name in operands_of(operator, plan):
            producer, reader = placed.get(producer_of.get(name, "")), placed.get(operator.id)
            if producer and reader:
                ends = resources[producer.processor], resources[reader.processor]
                crosses = producer.processor != reader.processor
                yield Edge(
                    name, producer, reader, transfers.get((name, *ends)) if crosses else None
                )


def route_of(transfer: Transfer) -> tuple[str, str, str]:
    """Tensor, source and target of a transfer."""
    return transfer.tensor, transfer.source, transfer.target


def operands_of(operator: Operator, plan: Plan) -> tuple[str, ...]:
    """Activations that an operator reads, each once, in order."""
    return tuple(dict.fromkeys(name for name in operator.inputs if name in plan.tensors))


def producers(plan: Plan) -> dict[str, str]:
    """Operator that makes each tensor; the first if there are several. Graph inputs have none."""
    producer_of: dict[str, str] = {}
    for operator in plan.operators:
        for name in operator.outputs:
            if name:
                producer_of.setdefault(name, operator.id)
    return producer_of


COPIED = ("id", "name", "domain", "type", "attributes", "inputs", "outputs", "members")
"""What an operator says of itself in a plan as in a graph."""


def network_of(plan: Plan, *, with_work: bool = True) -> OperatorGraph:
    """Return the operators of a plan, fused ones by their parts; what was folded is left out.

    Parameters
    ----------
    with_work
        Whether operators get their work, and constants are told: else it takes far less time.
    """
    constants = {
        each.name: Constant(
            each.name,
            each.shape,
            each.dtype,
            stored=each.stored or "",
            scale_bytes=each.scale_bytes or 0,
        )
        for operator in plan.operators
        for single in ((operator, *operator.parts) if with_work else ())
        for each in single.constants
    }
    tensors = {name: Tensor(name, each.shape, each.dtype) for name, each in plan.tensors.items()}
    declared: dict[str, Tensor | Constant] = {**constants, **tensors}
    operators = tuple(
        _graph_operator(each, declared if with_work else None) for each in plan.operators
    )
    source = ModelSource(plan.model.name, plan.model.sha256)
    states = (State(each.input, each.output, each.kind) for each in plan.states or ())
    return OperatorGraph(
        source, "fused", operators, tensors, constants, plan.inputs, plan.outputs,
        states=tuple(states), sequences=plan.sequences or 1,
    )  # fmt: skip


def _graph_operator(
    operator: Operator, declared: Mapping[str, Tensor | Constant] | None
) -> operator_graph.Operator:
    parts = tuple(_graph_operator(part, declared) for part in operator.parts)
    same = {field: getattr(operator, field) for field in COPIED}
    return operator_graph.Operator(
        **same,
        work=_operator_work(operator, parts, declared),
        parts=parts,
        computes_in=operator.computes_in or "",
    )


def _operator_work(
    operator: Operator,
    parts: Sequence[operator_graph.Operator],
    declared: Mapping[str, Tensor | Constant] | None,
) -> Work:
    if declared is None:
        return Work(0, 0, 0, modelled=False)
    if parts and not operator.computes_in:
        return Work(
            macs=sum(part.work.macs for part in parts),
            read_bytes=sum(part.work.read_bytes for part in parts),
            written_bytes=sum(part.work.written_bytes for part in parts),
        )
    names = operator.inputs, operator.outputs
    work = work_of(operator.domain, operator.type, operator.attributes, *names, known=declared)
    if operator.moved_bytes is None:
        return work
    return replace(work, read_bytes=operator.moved_bytes, written_bytes=0)


def state_moved_bytes(
    operator: Operator, like: operator_graph.Operator, declared: Mapping[str, Tensor | Constant]
) -> Operator:
    """Return an operator with the bytes that one of a graph moves, unless it says as many itself.

    Parameters
    ----------
    like
        The same operator in the graph that the plan is of.
    declared
        Tensors and constants of that graph.
    """
    if like.singles != (like,):
        pairs = zip(operator.parts, like.parts, strict=True)
        parts = tuple(state_moved_bytes(*pair, declared) for pair in pairs)
        return operator.model_copy(update={"parts": parts})
    own = _graph_operator(operator, declared).work
    moved_bytes = like.work.read_bytes + like.work.written_bytes
    if own.read_bytes + own.written_bytes == moved_bytes:
        return operator
    return operator.model_copy(update={"moved_bytes": moved_bytes})
