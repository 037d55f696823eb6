"""Rules files: the work of operators by formulas over shapes.

simpleeval computes a formula by the tables below; what stands in none of them is refused before.
Lengths and numbers are bounded, so that no formula can take long.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, prod
from operator import add, eq, floordiv, ge, gt, le, lt, mod, mul, ne, neg, pos, sub, truediv
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from simpleeval import InvalidExpression, SimpleEval

from parapipe.errors import CostError, RulesError
from parapipe.files.mistakes import Mistake, did_you_mean, listed
from parapipe.files.yaml_file import FileKind, Strict, WholeFile, parse_as, read_yaml_text
from parapipe.graph.operator_graph import Constant, Operator, OperatorGraph, Tensor, Work
from parapipe.graph.work import assumption_notes
from parapipe.platform.fields import Many, Name, OperatorType, Text

LONGEST = 500  # characters
LARGEST = 10**18
_LARGEST_EXPONENT = 64

Value = int | float | str | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a formula can speak of.

    Parameters
    ----------
    names
        Numbers and lists by name.
    attributes
        What `attribute("NAME", default)` gives, where it is there.
    """

    names: Mapping[str, Value]
    attributes: Mapping[str, Value]


def check_formula(text: str, names: frozenset[str]) -> str:
    """Return what is wrong with a formula that may use `names`; empty if nothing is."""
    if len(text) > LONGEST:
        return f"is longer than {LONGEST} characters"
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'{text}' is no formula"
    return next(_mistakes_in(tree.body, names), "")


def _mistakes_in(tree: ast.expr, names: frozenset[str]) -> Iterator[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _mistakes_of_call(node)
        elif isinstance(node, ast.Name):
            if node.id not in names and id(node) not in called:
                existing = ", ".join(sorted(names))
                yield f"uses '{node.id}', which does not exist; known: {existing}"
        elif isinstance(node, ast.Constant):
            yield from _mistakes_of_constant(node.value)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            yield _REFUSED[ast.cmpop]
        elif isinstance(node, ast.Slice) and node.step:
            yield "takes a part of a list in steps"
        elif not isinstance(node, (*_OPERATORS, *_PLAIN)):
            yield next(text for kind, text in _REFUSED.items() if isinstance(node, kind))


def _mistakes_of_call(node: ast.Call) -> Iterator[str]:
    match node:
        case ast.Call(ast.Name("attribute"), [ast.Constant(str()), *rest], []) if len(rest) <= 1:
            pass
        case ast.Call(ast.Name("attribute")):
            yield 'calls attribute otherwise than as attribute("NAME", default)'
        case ast.Call(ast.Name(name), keywords=[]) if name in _FUNCTIONS:
            pass
        case _:
            functions = ", ".join(sorted(_FUNCTIONS))
            yield f'calls more than {functions} and attribute("NAME", default)'


def _mistakes_of_constant(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        yield f"holds {value!r}, which is no number"
    elif not isinstance(value, str) and not _is_bounded(value):
        yield _BEYOND


def evaluate_formula(text: str, scope: Scope) -> float:
    """Return the number that a formula gives, which `check_formula` has found nothing wrong with.

    Raises
    ------
    CostError
        If it divides by zero, leaves a list, mixes numbers with lists, asks for an attribute that
        is not there, or goes beyond 10¹⁸; the sentence goes on after the formula.
    """

    def attribute(name: str, *default: Value) -> Value:
        if name not in scope.attributes and not default:
            raise LookupError(f"the operator has no attribute '{name}'")
        return scope.attributes[name] if name in scope.attributes else default[0]

    functions = {**_FUNCTIONS, "attribute": attribute}
    computed = SimpleEval(operators=_OPERATORS, functions=functions, names=dict(scope.names))
    try:
        return _number_from(computed.eval(text))
    except IndexError:
        raise CostError("cannot be computed (a list has no such element)") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, InvalidExpression) as error:
        raise CostError(f"cannot be computed ({error})") from None


def constant_number(text: str) -> float | None:
    """Return the number that a formula gives whatever the operator, if there is one."""
    if "attribute" in text:  # its default is not what every operator has
        return None
    try:
        return evaluate_formula(text, Scope({}, {}))
    except CostError:
        return None


def _number_from(value: Value) -> float:
    if isinstance(value, str | tuple):
        raise TypeError("a list or a text stands where a number should")
    return _bounded(value)


def _is_bounded(value: float) -> bool:
    return isfinite(value) and abs(value) <= LARGEST


def _bounded(value: float) -> float:
    if not _is_bounded(value):
        raise ValueError(_BEYOND)
    return value


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f"takes a power beyond {_LARGEST_EXPONENT}")
    result: float | complex = base**exponent
    if isinstance(result, complex):
        raise TypeError("takes a root of a negative number")
    return result


def _of_numbers(apply: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: _bounded(apply(*map(_number_from, values)))


def _of_list(apply: Callable[[list[float]], float]) -> Callable[..., float]:
    """Take one list, or the numbers of it each by itself."""

    def step(*values: Value) -> float:
        numbers = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        return _bounded(apply([_number_from(value) for value in numbers]))

    return step


_PLAIN = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Load,
)  # fmt: skip
_REFUSED: Mapping[type[ast.AST], str] = {
    ast.cmpop: "compares otherwise than by one of == != < <= > >=",
    ast.operator: "uses an operator that is none of + - * / // % **",
    ast.unaryop: "uses an operator that is neither + nor -",
    ast.AST: "holds more than numbers, names, + - * / // % **, comparisons, [ ], if and functions",
}
_BEYOND = f"holds or gives a number beyond {LARGEST:g}"
_OPERATORS: Mapping[type[ast.AST], Callable[..., object]] = {
    ast.Add: _of_numbers(add),
    ast.Sub: _of_numbers(sub),
    ast.Mult: _of_numbers(mul),
    ast.Div: _of_numbers(truediv),
    ast.FloorDiv: _of_numbers(floordiv),
    ast.Mod: _of_numbers(mod),
    ast.Pow: _of_numbers(_power),
    ast.USub: _of_numbers(neg),
    ast.UAdd: _of_numbers(pos),
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: _of_numbers(lt),
    ast.LtE: _of_numbers(le),
    ast.Gt: _of_numbers(gt),
    ast.GtE: _of_numbers(ge),
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "prod": _of_list(prod),
    "sum": _of_list(sum),
    "min": _of_list(min),
    "max": _of_list(max),
    "len": len,
    "abs": _of_numbers(abs),
    "ceil": _of_numbers(ceil),
    "floor": _of_numbers(floor),
}


NAMES = frozenset({"inputs", "outputs", "input_bytes", "output_bytes"})


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _checked_formula(text: str) -> str:
    if mistake := check_formula(text, NAMES):
        raise ValueError(mistake)
    number = constant_number(text)
    if number is not None and number < 0:
        raise ValueError(f"is {number:g}, must be at least 0")
    return text


Formula = Annotated[str, AfterValidator(_checked_formula), BeforeValidator(_as_text)]
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
            entry = rule if isinstance(rule, Mapping) else {}
            domain, kind = entry.get("domain", ""), entry.get("type")
            if not isinstance(domain, str) or not isinstance(kind, str):
                continue
            if (at := first.setdefault((domain, kind), index)) != index:
                text = (
                    f"is a second rule for {_full_type(domain, kind)}, beside rules[{at}]; keep one"
                )
                yield Mistake(("rules", index), text)


_KIND = FileKind("rules file", RulesError, "give the path of a YAML file")


def load_rules(path: Path) -> Rules:
    """Read a rules file.

    Raises
    ------
    RulesError
        If it cannot be read or is wrong; then `mistakes` holds every mistake with its line.
    """
    return read_rules(read_yaml_text(path, _KIND), str(path))


def read_rules(text: str, file: str) -> Rules:
    """Read rules from YAML text, which errors call `file`; RulesError if anything is wrong."""
    return parse_as(Rules, text, file, _KIND)


def idle_rules(graph: OperatorGraph, rules: Rules) -> tuple[str, ...]:
    """Return a sentence for each rule whose type no operator has."""
    there = sorted({_full_type(_domain(operator), operator.type) for operator in graph.operators})
    ruled = [_full_type(rule.domain, rule.type) for rule in rules.rules]
    return tuple(
        f"the rule for {name} fits no operator of the model{did_you_mean(name, there)}"
        for name in ruled
        if name not in there
    )


def _full_type(domain: str, kind: str) -> str:
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
            work = _work_by_rule(operator, graph, rule, file) if rule else operator.work
        except CostError as error:
            mistakes.append(f"'{operator.name}' ({operator.type}): {error}")
        else:
            operators.append(replace(operator, work=work))
    if mistakes:
        unfit = listed(mistakes)
        raise CostError(f"rules file '{file}' does not fit {unfit}; correct its formulas")
    assumed = assumption_notes(graph.operators)
    notes = [note for note in graph.notes if note not in assumed]
    return replace(graph, operators=tuple(operators), notes=(*notes, *assumption_notes(operators)))


def _work_by_rule(operator: Operator, graph: OperatorGraph, rule: WorkRule, file: str) -> Work:
    scope = _scope_of(operator, graph)
    amounts = {
        name: _evaluate_amount(name, text, scope)
        for name in ("macs", "read_bytes", "written_bytes")
        if (text := getattr(rule, name)) is not None
    }
    return replace(
        operator.work, **amounts, modelled=True, rule=file, runs_on=rule.processors, assumption=""
    )


def _evaluate_amount(name: str, formula: str, scope: Scope) -> int:
    try:
        number = evaluate_formula(formula, scope)
    except CostError as error:
        raise CostError(f"{name} '{formula}' {error}") from None
    if number < 0:
        raise CostError(f"{name} '{formula}' is {number:g}, below 0")
    return ceil(number)


def _scope_of(operator: Operator, graph: OperatorGraph) -> Scope:
    read = [_tensor_or_constant(name, graph) for name in operator.inputs]
    written = [_tensor_or_constant(name, graph) for name in operator.outputs]
    return Scope(
        {
            "inputs": tuple(each.shape if each else () for each in read),
            "outputs": tuple(each.shape if each else () for each in written),
            "input_bytes": tuple(each.size_bytes if each else 0 for each in read),
            "output_bytes": tuple(each.size_bytes if each else 0 for each in written),
        },
        operator.attributes,
    )


def _tensor_or_constant(name: str, graph: OperatorGraph) -> Tensor | Constant | None:
    return graph.tensors.get(name) or graph.constants.get(name)
