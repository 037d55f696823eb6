"""Rules on the transfers of a plan: what goes between processors, and how much may be under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from parapipe.plan.places import Edge, edges
from parapipe.plan.schema import Plan, Transfer

Route = tuple[str, str, str]


def least_depth(producer_lag: int, consumer_lag: int) -> int:
    """Slots that a channel needs so that every stage can keep the pace of the longest one.

    A slot is held from the start of the operator that makes the tensor to the end of the last one
    on the target that reads it. Let the stages keep step, a frame entering every T seconds, T being
    the longest stage. Then frame n's tensor is made from (n + producer lag) T on, and its readers
    have ended by (n + consumer lag + 1) T. So its slot is held for at most
    d = consumer lag - producer lag + 1 periods: when frame n + d is to be made, it is free, and d
    slots are enough. With fewer the producer would have to wait. Between neighbouring stages d = 2:
    one slot is filled while the other is read. For each stage that a tensor skips, one more frame
    is under way. Within a stage d = 1 would do for a period of T, but producer and consumer could
    never work at the same time, as the sustained period supposes: hence two at least.
    """
    return max(2, consumer_lag - producer_lag + 1)


def traffic_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the transfers of a plan.

    The rules: a tensor has one transfer to each other processor that reads it, and no more; the
    transfer says rightly whether it stays within a stage, and how many bytes it moves; its queue
    holds as many frames as the lag between maker and readers asks for, two at least.
    """
    routes: dict[Route, list[Edge]] = {}
    for edge in edges(plan):
        if edge.producer.processor != edge.consumer.processor:
            route = (edge.tensor, edge.producer.processor, edge.consumer.processor)
            routes.setdefault(route, []).append(edge)
    counts = Counter(_route(transfer) for transfer in plan.transfers)
    for route, users in sorted(routes.items()):
        if route not in counts:
            readers = ", ".join(f"'{edge.consumer.operator}'" for edge in users)
            yield f"{_called(route)} has no transfer, and {readers} there reads it"
    for route, count in sorted(counts.items()):
        if count > 1:
            yield f"{_called(route)} has {count} transfers"
        if route not in routes:
            yield f"{_called(route)} has a transfer, and nothing there reads it from there"
    for transfer in plan.transfers:
        yield from _transfer(transfer, routes.get(_route(transfer), []), plan)


def _route(transfer: Transfer) -> Route:
    return transfer.tensor, transfer.source, transfer.target


def _called(route: Route) -> str:
    return f"tensor '{route[0]}' from '{route[1]}' to '{route[2]}'"


def _transfer(transfer: Transfer, users: list[Edge], plan: Plan) -> Iterator[str]:
    called = f"the transfer of {_called(_route(transfer))}"
    tensor = plan.tensors.get(transfer.tensor)
    if tensor is not None and tensor.size_bytes != transfer.size_bytes:
        yield f"{called} moves {transfer.size_bytes} bytes of {tensor.size_bytes}"
    if not users:
        return
    within = all(edge.producer.stage == edge.consumer.stage for edge in users)
    kind = "within-stage" if within else "stage"
    if transfer.kind != kind:
        yield f"{called} is of kind '{transfer.kind}' and should be of kind '{kind}'"
    depth = max(least_depth(edge.producer.lag, edge.consumer.lag) for edge in users)
    if transfer.queue_depth < depth:
        yield f"{called} has a queue of {transfer.queue_depth}, and needs {depth}"
