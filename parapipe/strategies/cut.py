"""Cuts a plan's network into named pieces, each of which a processor runs at one go."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from parapipe.errors import StrategyError
from parapipe.files.mistakes import listed
from parapipe.graph.part_marks import tensor_and_part
from parapipe.graph.partition import partition
from parapipe.plan.launch_rules import graph_launches_s
from parapipe.plan.mapped import mapping_view, network_of, operands_of, producers
from parapipe.plan.schema import Plan
from parapipe.strategies.failures import call_of


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as rules see it.

    Parameters
    ----------
    id, name, type
        As in the plan.
    subgraph
        Number of its subgraph in the network, from 1.
    part
        Its number among the parts of an operator, from 0; None if it is a whole one.
    processor
        Name of the plan's processor.
    time_s
        What it takes there, as the plan predicts.
    reads
        Ids of the operators that make what it reads.
    """

    id: str
    name: str
    type: str
    subgraph: int
    part: int | None
    processor: str
    time_s: float
    reads: tuple[str, ...]


# Names the pieces of operators, by their ids, given all in a topological order. Operators of one
# name that the plan has on one processor, at one lag, are a piece; the unnamed stay as they are.
Cut: TypeAlias = Callable[[Sequence[Operator]], Mapping[str, str]]
# Names the piece of one operator; None leaves that to other rules.
Rule: TypeAlias = Callable[[Operator], str | None]


def cut(*rules: Rule) -> Cut:
    """Return what names the piece of every operator by the first rule that does."""

    def named(operators: Sequence[Operator]) -> dict[str, str]:
        names = ((each.id, _first_name(rules, each)) for each in operators)
        return {operator: name for operator, name in names if name is not None}

    return named


def _first_name(rules: Iterable[Rule], operator: Operator) -> str | None:
    return next((name for rule in rules if (name := rule(operator)) is not None), None)


def by_name(pattern: str) -> Rule:
    r"""Operators in whose name a regular expression is found; what it finds is the piece's name.

    `layer\d+` makes a piece of all operators of layer1, and another one of those of layer2.
    """
    wanted = re.compile(pattern)

    def rule(operator: Operator) -> str | None:
        match = wanted.search(operator.name)
        return match[0] if match else None

    return rule


def by_type(*types: str) -> Rule:
    """Each operator of these types is a piece by itself."""
    return lambda operator: operator.id if operator.type in types else None


def by_subgraph() -> Rule:
    """Each subgraph is a piece."""
    return lambda operator: f"subgraph {operator.subgraph}"


def by_part() -> Rule:
    """Parts of one number are a piece within each subgraph of the network."""
    return lambda operator: (
        None if operator.part is None else f"subgraph {operator.subgraph}, part {operator.part}"
    )


def chains(operators: Sequence[Operator]) -> dict[str, str]:
    """Name the piece of every operator: what alone follows another one, and no other one, joins it.

    Nothing could run beside a piece that could not run beside the operators by themselves, and
    there is less to decide.
    """
    readers = Counter(producer for each in operators for producer in each.reads)
    piece_of: dict[str, str] = {}
    for each in operators:
        joins = len(each.reads) == 1 and readers[each.reads[0]] == 1
        piece_of[each.id] = piece_of[each.reads[0]] if joins else each.id
    return piece_of


def part_runs(operators: Sequence[Operator]) -> dict[str, str]:
    """Name the piece of every operator: all that parts of one number do on their own in between.

    A piece begins where something comes from other parts, and ends where others wait for it. What
    cuts or joins tensors for parts of one number only goes with these. What goes with no part is a
    piece by itself. Far fewer pieces than `chains` gives, and parts still run beside each other.
    """
    part = {each.id: each.part for each in operators}
    readers: dict[str, list[str]] = {each.id: [] for each in operators}
    for each in operators:
        for producer in each.reads:
            readers[producer].append(each.id)
    for each in reversed(operators):
        reading = {part[reader] for reader in readers[each.id]}
        if part[each.id] is None and len(reading) == 1:
            (part[each.id],) = reading
    owner_of = {each.id: (part[each.id], each.processor) for each in operators}
    awaited = {v for v, read in readers.items() if any(owner_of[w] != owner_of[v] for w in read)}
    runs: dict[str, int] = {}
    piece_of: dict[str, str] = {}
    for each in operators:
        own, number = owner_of[each.id], part[each.id]
        begun = (
            runs[producer] + (producer in awaited or owner_of[producer] != own)
            for producer in each.reads
        )
        runs[each.id] = max(begun, default=0)
        piece_of[each.id] = each.id if number is None else f"part {number}, run {runs[each.id]}"
    return piece_of


def stretches(count: int) -> Cut:
    """Return what cuts the work of each processor on a frame into stretches of about equal time.

    A stretch also begins where an operator reads what another processor has made. So all that a
    piece reads from others is there when its first operator begins, as with segments, and no pieces
    wait for each other in a circle.

    Raises
    ------
    StrategyError
        If `count` is less than 1.
    """
    if count < 1:
        raise StrategyError(f"a processor's work is cut into 1 stretch or more, not {count}")

    def named(operators: Sequence[Operator]) -> dict[str, str]:
        where = {each.id: each.processor for each in operators}
        total_s, before_s = (dict.fromkeys(where.values(), 0.0) for _ in range(2))
        breaks = Counter[str]()
        for each in operators:
            total_s[each.processor] += each.time_s
        names: dict[tuple[str, int, int], str] = {}
        piece_of: dict[str, str] = {}
        for each in operators:
            own = each.processor
            breaks[own] += any(where[producer] != own for producer in each.reads)
            middle_s = before_s[own] + each.time_s / 2
            before_s[own] += each.time_s
            stretch = int(count * middle_s / total_s[own]) if total_s[own] else 0
            key = own, breaks[own], stretch
            piece_of[each.id] = names.setdefault(key, f"stretch {len(names) + 1}")
        return piece_of

    return named


def pieces_of(plan: Plan, cut: Cut | None, name: str = "its own") -> Mapping[str, str]:
    """Return the names of pieces by the ids of operators; those of no piece are left out.

    Parameters
    ----------
    name
        What messages call the strategy.

    Raises
    ------
    StrategyError
        If `cut` fails, or returns anything else.
    """
    if cut is None:
        return {}
    operators = operators_of(plan)
    with call_of(name, "cut"):
        pieces: object = cut(operators)
        if not isinstance(pieces, Mapping) or not all(isinstance(n, str) for n in pieces.values()):
            raise StrategyError(
                "'cut' has to return names of pieces by the ids of operators, as in "
                "{'conv1': 'stem'}"
            )
        if strange := sorted(map(str, pieces.keys() - {each.id for each in operators})):
            raise StrategyError(f"'cut' names operators that the plan lacks: {listed(strange)}")
    return pieces


def operators_of(plan: Plan) -> tuple[Operator, ...]:
    """Return a plan's operators as rules see them, in the plan's order."""
    network_parts = partition(network_of(plan))
    subgraph = {
        v: n for n, each in enumerate(network_parts.subgraphs, start=1) for v in each.operators
    }
    view, maker = mapping_view(plan), producers(plan)
    launches_s = graph_launches_s(view)
    operators = []
    for v, each in enumerate(plan.operators):
        at, part = view.placements[each.id], tensor_and_part(each.id)
        read_from = dict.fromkeys(maker[name] for name in operands_of(each, plan) if name in maker)
        operators.append(
            Operator(
                id=each.id,
                name=each.name,
                type=each.type,
                subgraph=subgraph[v],
                part=part[1] if part else None,
                processor=view.name(at),
                time_s=at.end_s - at.start_s - launches_s.get(each.id, 0.0),
                reads=tuple(read_from),
            )
        )
    return tuple(operators)
