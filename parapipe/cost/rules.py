"""What a user says of operators that parapipe does not know: MACs and bytes, as formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from parapipe.cost.formula import Scope, check_formula, constant_number, evaluate_formula
from parapipe.errors import CostError, RulesError
from parapipe.files.listing import listed
from parapipe.files.mistake import Mistake, did_you_mean
from parapipe.files.yaml_file import FileKind, Strict, WholeFile, parsed_as, text_of
from parapipe.graph.operator_graph import Constant, Operator, OperatorGraph, Tensor, Work
from parapipe.platform.fields import Many, Name, OperatorType, Text

NAMES = frozenset({"inputs", "outputs", "input_bytes", "output_bytes"})


def _formula(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _checked(text: str) -> str:
    if mistake := check_formula(text, NAMES):
        raise ValueError(mistake)
    number = constant_number(text)
    if number is not None and number < 0:
        raise ValueError(f"is {number:g}, must be at least 0")
    return text


Formula = Annotated[str, AfterValidator(_checked), BeforeValidator(_formula)]
Domain = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,200}$")]


class WorkRule(Strict):
    """The work of one operator type.

    Parameters
    ----------
    type, domain
        As in ONNX; the standard domain if left out.
    macs
        Multiply-accumulates of one run.
    read_bytes, written_bytes
        What it moves; all that it reads, each tensor once, and all that it writes if left out.
    processors
        Names of processors that run the type, although a platform may not list it.
    source
        Where the formulas come from.
    """

    type: OperatorType
    domain: Domain = ""
    macs: Formula
    read_bytes: Formula | None = None
    written_bytes: Formula | None = None
    processors: Many[Name] = ()
    source: Text


class Rules(WholeFile):
    """A rules file; there is at most one rule for a type."""

    schema_version: Literal["parapipe/rules/1"] = Field(alias="schema")
    rules: Annotated[Many[WorkRule], Field(min_length=1, max_length=1000)]

    @classmethod
    def contradictions(cls, raw: object) -> Iterator[Mistake]:
        """Yield every second rule for a type."""
        rules = raw.get("rules") if isinstance(raw, Mapping) else None
        first: dict[tuple[str, str], int] = {}
        for index, rule in enumerate(rules if isinstance(rules, list | tuple) else ()):
            given = rule if isinstance(rule, Mapping) else {}
            domain, kind = given.get("domain", ""), given.get("type")
            if not isinstance(domain, str) or not isinstance(kind, str):
                continue
            if (at := first.setdefault((domain, kind), index)) != index:
                text = f"is a second rule for {_full(domain, kind)}, beside rules[{at}]; keep one"
                yield Mistake(("rules", index), text)


_KIND = FileKind("rules file", RulesError, "give the path of a YAML file")


def load_rules(path: Path) -> Rules:
    """Read a rules file.

    Raises
    ------
    RulesError
        If it cannot be read or is wrong; then `mistakes` holds every mistake with its line.
    """
    return read_rules(text_of(path, _KIND), str(path))


def read_rules(text: str, file: str) -> Rules:
    """Read rules from YAML text, which errors call `file`; RulesError if anything is wrong."""
    return parsed_as(Rules, text, file, _KIND)


def idle_rules(graph: OperatorGraph, rules: Rules) -> tuple[str, ...]:
    """Return a sentence for each rule whose type no operator has."""
    there = sorted({_full(_domain(operator), operator.type) for operator in graph.operators})
    asked = [_full(rule.domain, rule.type) for rule in rules.rules]
    return tuple(
        f"the rule for {name} fits no operator of the model{did_you_mean(name, there)}"
        for name in asked
        if name not in there
    )


def _full(domain: str, kind: str) -> str:
    return f"{domain}.{kind}" if domain else kind


def _domain(operator: Operator) -> str:
    return "" if operator.domain == "ai.onnx" else operator.domain


def apply_rules(graph: OperatorGraph, rules: Rules, file: str) -> OperatorGraph:
    """Return a graph of single operators with the work that rules give them.

    Parameters
    ----------
    file
        Where the rules are from; errors and the source of every time that rests on them say it.

    Raises
    ------
    CostError
        If a formula gives no number of at least 0 for an operator; names all of them.
    """
    by_type = {(rule.domain, rule.type): rule for rule in rules.rules}
    operators: list[Operator] = []
    mistakes: list[str] = []
    for operator in graph.operators:
        rule = by_type.get((_domain(operator), operator.type))
        try:
            work = _work(operator, graph, rule, file) if rule else operator.work
        except CostError as error:
            mistakes.append(f"'{operator.name}' ({operator.type}): {error}")
        else:
            operators.append(replace(operator, work=work))
    if mistakes:
        found = listed(mistakes)
        raise CostError(f"rules file '{file}' does not fit {found}; correct its formulas")
    return replace(graph, operators=tuple(operators))


def _work(operator: Operator, graph: OperatorGraph, rule: WorkRule, file: str) -> Work:
    scope = _scope(operator, graph)
    given = {
        name: _amount(name, text, scope)
        for name in ("macs", "read_bytes", "written_bytes")
        if (text := getattr(rule, name)) is not None
    }
    return replace(operator.work, **given, modelled=True, rule=file, runs_on=rule.processors)


def _amount(name: str, formula: str, scope: Scope) -> int:
    try:
        number = evaluate_formula(formula, scope)
    except CostError as error:
        raise CostError(f"{name} '{formula}' {error}") from None
    if number < 0:
        raise CostError(f"{name} '{formula}' is {number:g}, below 0")
    return ceil(number)


def _scope(operator: Operator, graph: OperatorGraph) -> Scope:
    read = [_found(name, graph) for name in operator.inputs]
    written = [_found(name, graph) for name in operator.outputs]
    return Scope(
        {
            "inputs": tuple(each.shape if each else () for each in read),
            "outputs": tuple(each.shape if each else () for each in written),
            "input_bytes": tuple(each.size_bytes if each else 0 for each in read),
            "output_bytes": tuple(each.size_bytes if each else 0 for each in written),
        },
        operator.attributes,
    )


def _found(name: str, graph: OperatorGraph) -> Tensor | Constant | None:
    return graph.tensors.get(name) or graph.constants.get(name)
