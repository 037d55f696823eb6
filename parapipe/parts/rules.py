"""What a user says of the parts of operators, and which operators that concerns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from parapipe.errors import SplitError
from parapipe.files.mistakes import did_you_mean
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.parts.part import NAMES, NotCuttableError, axis_names

_FORM = re.compile(r"(?P<selector>.+):(?P<axis>[A-Za-z_]+|-?[0-9]{1,2})=(?P<shares>[0-9.,]+)")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_RUN = ".."
MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Which operators are cut into which parts.

    Parameters
    ----------
    text
        As the user writes it.
    selector
        A type, a name with `*` and `?` for anything, or `FIRST..LAST`.
    axis
        Name or number of an axis of the (last) operator's first output.
    shares
        Sizes of the parts, in proportion.
    """

    text: str
    selector: str
    axis: str
    shares: tuple[float, ...]

    def axis_of(self, operator: Operator, rank: int) -> int:
        """Return the number of the axis in a result of `rank` axes; WholeError if it has none."""
        if self.axis in NAMES:
            names = axis_names(operator.type, rank)
            if self.axis not in names:
                raise NotCuttableError(f"its result, of {rank} axes, has no {self.axis}")
            return names[self.axis]
        axis = int(self.axis)
        if not -rank <= axis < rank:
            raise NotCuttableError(f"its result has no axis {axis}, but {rank} axes")
        return axis % rank


def read_rule(text: str) -> SplitRule:
    """Read a rule `SELECTOR:AXIS=SHARES`.

    SHARES is a number of equal parts, or two or more shares with commas between.

    Raises
    ------
    SplitError
        If the text is no rule.
    """
    match = _FORM.fullmatch(text.strip())
    shares = match["shares"].split(",") if match else []
    if match is None or not all(map(_NUMBER.fullmatch, shares)):
        raise SplitError(
            f"'{text}' is no rule for parts: write SELECTOR:AXIS=SHARES, as in Conv:rows=2 or "
            "conv1..relu3:rows=3,2"
        )
    axis = match["axis"]
    if axis[0].isalpha() and axis not in NAMES:
        raise SplitError(
            f"'{text}': there is no axis '{axis}'{did_you_mean(axis, NAMES)}; choose from "
            f"{', '.join(NAMES)}, or give its number"
        )
    numbers = tuple(map(float, shares))
    if len(numbers) == 1:
        if not (numbers[0].is_integer() and 2 <= numbers[0] <= MOST_PARTS):
            raise SplitError(
                f"'{text}': the number of parts must be from 2 to {MOST_PARTS}, or give shares, "
                "as in 3,2"
            )
        numbers = (1.0,) * int(numbers[0])
    if not all(numbers) or len(numbers) > MOST_PARTS:
        raise SplitError(f"'{text}': give at most {MOST_PARTS} shares, each more than 0")
    return SplitRule(text.strip(), match["selector"], axis, numbers)


@dataclass(frozen=True, slots=True)
class Target:
    """Operators that a rule concerns, to be cut together.

    Parameters
    ----------
    name
        Of the operator, or of the first and the last of a run.
    operators
        Their indices in the graph.
    """

    name: str
    operators: tuple[int, ...]
    rule: SplitRule


def find_targets(graph: OperatorGraph, rules: Sequence[SplitRule]) -> Iterator[Target]:
    """Yield what the rules concern; the first rule that concerns an operator counts.

    Raises
    ------
    SplitError
        If a rule concerns no operator, a run does not exist, or one takes in an operator that an
        earlier rule concerns.
    """
    rule_of: dict[int, SplitRule] = {}
    for rule in rules:
        run = _run_ends(graph, rule.selector)
        if run:
            targets = [Target(rule.selector, _path_between(graph, *run, rule), rule)]
        else:
            targets = [Target(graph.operators[v].name, (v,), rule) for v in _matches(graph, rule)]
        for each in targets:
            others = {rule_of[v].text for v in each.operators if v in rule_of}
            if run and others:
                raise SplitError(
                    f"'{rule.text}' takes in operators that '{min(others)}' concerns: leave one "
                    "of the two out"
                )
            if not others:
                rule_of.update(dict.fromkeys(each.operators, rule))
                yield each


def _run_ends(graph: OperatorGraph, selector: str) -> tuple[str, str] | None:
    """Return the first and the last name of a run; None if the selector names no run.

    Names may hold two dots themselves: a division counts first that gives two names of operators.
    """
    names = {name for operator in graph.operators for name in _names(operator)}
    if _RUN not in selector or selector in names:
        return None
    places = (match.start() for match in re.finditer(r"(?=\.\.)", selector))
    pairs = [(selector[:at], selector[at + len(_RUN) :]) for at in places]
    return next((pair for pair in pairs if names.issuperset(pair)), pairs[0])


def _matches(graph: OperatorGraph, rule: SplitRule) -> list[int]:
    matches = [
        v
        for v, operator in enumerate(graph.operators)
        if any(
            name == rule.selector or fnmatchcase(name, rule.selector)
            for name in (operator.type, *_names(operator))
        )
    ]
    if not matches:
        names = {operator.type for operator in graph.operators}
        names |= {name for operator in graph.operators for name in _names(operator)}
        raise SplitError(
            f"'{rule.text}' concerns no operator: the model has no type or name "
            f"'{rule.selector}'{did_you_mean(rule.selector, sorted(names))}"
        )
    return matches


def _names(operator: Operator) -> set[str]:
    return {operator.name, operator.id, *operator.members}


def _path_between(graph: OperatorGraph, first: str, last: str, rule: SplitRule) -> tuple[int, ...]:
    """Return the operators on all ways from one to another."""
    ends = []
    for name in (first, last):
        matches = [v for v, operator in enumerate(graph.operators) if name == operator.id]
        if not matches:
            matches = [v for v, operator in enumerate(graph.operators) if name in _names(operator)]
        if len(matches) != 1:
            names = sorted({each for operator in graph.operators for each in _names(operator)})
            many = f"several operators have the name '{name}'"
            none = f"there is no operator '{name}'{did_you_mean(name, names)}"
            raise SplitError(f"'{rule.text}': {many if matches else none}")
        ends += matches
    if ends[0] not in ancestors_of(graph, ends[1]) | {ends[1]}:
        raise SplitError(f"'{rule.text}': no way leads from '{first}' to '{last}'")
    return convex_closure(graph, ends)


def ancestors_of(graph: OperatorGraph, last: int) -> set[int]:
    """Return all operators that one depends on."""
    ancestors: set[int] = set()
    waiting = [last]
    while waiting:
        for v in graph.predecessors(waiting.pop()):
            if v not in ancestors:
                ancestors.add(v)
                waiting.append(v)
    return ancestors


def convex_closure(graph: OperatorGraph, operators: Sequence[int]) -> tuple[int, ...]:
    """Return operators and all that stand on a way from one of them to another, in order."""
    selected = set(operators)
    first, last = min(selected), max(selected)
    behind: set[int] = set()
    for v in range(first, last + 1):
        if v in selected or behind.intersection(graph.predecessors(v)):
            behind.add(v)
    ahead: set[int] = set()
    for v in range(last, first - 1, -1):
        if v in selected or ahead.intersection(graph.successors(v)):
            ahead.add(v)
    return tuple(sorted(behind & ahead))
