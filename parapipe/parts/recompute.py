"""A model in which operators run again, in place of keeping what they made: another ONNX model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import onnx

from parapipe.errors import SplitError
from parapipe.files.mistakes import did_you_mean
from parapipe.graph.onnx_import import graph_of_nodes, resolve_proto, simplify
from parapipe.graph.operator_graph import Granularity, ModelSource, OperatorGraph
from parapipe.graph.order import inline_functions
from parapipe.graph.part_marks import operator_and_run, recompute_name
from parapipe.graph.resolve import DEQUANTISES, Resolved, ResolvedNode
from parapipe.graph.user_shapes import SizeKeywords
from parapipe.parts.split import replace_graph_fields, replace_nodes, visible_names

_FORM = re.compile(r"(?P<operator>.+):again(?P<run>[1-9][0-9]{0,5})=(?P<reader>.+)")
_BY_CHANCE = re.compile(r"Random.*|Multinomial|Bernoulli")

Run = tuple[int, int]
"""An operator by its index, and the number of a run; 0 is the one that keeps the names."""


@dataclass(frozen=True, slots=True)
class RecomputeRule:
    """A reader takes the result of another run of an operator.

    Parameters
    ----------
    operator
        Id of the operator that runs again.
    run
        Number of that run, from 1.
    reader
        Id of the operator that reads it; `ID/againN` for another run of that.
    """

    text: str
    operator: str
    run: int
    reader: str


def recompute_rule(operator: str, run: int, reader: str) -> str:
    """Return the text of a rule."""
    return f"{operator}:again{run}={reader}"


def read_recompute_rule(text: str) -> RecomputeRule | None:
    """Read a rule `OPERATOR:againN=READER`; None if the text is none."""
    match = _FORM.fullmatch(text)
    return match and RecomputeRule(text, match["operator"], int(match["run"]), match["reader"])


def recompute_proto(
    model: onnx.ModelProto,
    name: str,
    rules: Sequence[RecomputeRule],
    *,
    granularity: Granularity = "fused",
    **sizes: Unpack[SizeKeywords],
) -> onnx.ModelProto:
    """Return a model with the same results, in which operators run more than once.

    Parameters
    ----------
    model
        It is not changed.
    name
        What to call it in messages.
    granularity, dims, shapes
        As for `split_proto`.

    Raises
    ------
    ModelError
        As `import_proto` does.
    SplitError
        If a rule names what there is not, or an operator that cannot run again.
    """
    model = inline_functions(model, name)
    inputs, resolved = resolve_proto(model, name, **sizes)
    nodes = graph_of_nodes(resolved, ModelSource(name, ""), inputs)
    graph = simplify(nodes, resolved, granularity)
    writer = _Writer(graph, resolved, rules, visible_names(model))
    added = list(writer.nodes())
    return replace_graph_fields(
        model,
        resolved,
        node=replace_nodes(model.graph, writer.dropped, added, "the model with runs again"),
        value_info=[*model.graph.value_info, *writer.types()],
    )


@dataclass(frozen=True)
class _Writer:
    """Writes the nodes of more runs, and of operators that read these."""

    graph: OperatorGraph
    resolved: Resolved
    rules: Sequence[RecomputeRule]
    visible: Collection[str]

    @cached_property
    def sources(self) -> dict[Run, dict[int, int]]:
        """By run: which run it reads of each operator; of others, it reads run 0.

        Raises
        ------
        SplitError
            If a rule does not fit the model.
        """
        number = {operator.id: v for v, operator in enumerate(self.graph.operators)}
        reruns = {(rule.operator, rule.run) for rule in self.rules}
        sources: dict[Run, dict[int, int]] = {
            (number[name], run): {} for name, run in sorted(reruns) if name in number
        }
        for rule in self.rules:
            other = operator_and_run(rule.reader)
            name, run = (rule.reader, 0) if rule.reader in number else other or (rule.reader, 0)
            for each in (rule.operator, name):
                if each not in number:
                    near = did_you_mean(each, sorted(number))
                    raise SplitError(f"'{rule.text}': there is no operator '{each}'{near}")
            u, w = number[rule.operator], number[name]
            self._check_rule(rule, u, w)
            if run and (w, run) not in sources:
                raise SplitError(f"'{rule.text}': no rule makes '{rule.reader}' run")
            sources.setdefault((w, run), {})[u] = rule.run
        for v, _ in sources:
            self._check_visible(v)
        return sources

    def _check_rule(self, rule: RecomputeRule, u: int, w: int) -> None:
        """Check that an operator can run again, and that another one reads it."""
        operator, reader = self.graph.operators[u], self.graph.operators[w]
        if u not in self.graph.predecessors(w):
            raise SplitError(f"'{rule.text}': '{reader.id}' does not read what it makes")
        for each in (operator, reader):
            if each.opaque:
                raise SplitError(f"'{rule.text}': '{each.name}' ({each.type}) holds other graphs")
        if any(_BY_CHANCE.fullmatch(single.type) for single in operator.singles):
            raise SplitError(f"'{rule.text}': '{operator.name}' makes another result each time")

    def _check_visible(self, v: int) -> None:
        """Check that an operator's nodes are such of the main graph, or copies that import made."""
        items = self.items[v]
        copies = {item.writes[0] for item in items if item.node.op_type == DEQUANTISES}
        names = {name for item in items for name in (*item.node.input, *item.writes) if name}
        if not names <= {*self.visible, *copies}:
            name = self.graph.operators[v].name
            raise SplitError(f"'{name}' cannot run again: it stands in the branch of an If")

    @cached_property
    def items(self) -> dict[int, list[ResolvedNode]]:
        """The nodes of each operator."""
        by_name = {item.name: item for item in self.resolved.nodes}
        return {
            v: [by_name[member] for member in operator.members]
            for v, operator in enumerate(self.graph.operators)
        }

    @cached_property
    def maker(self) -> dict[str, int]:
        """The operator that makes each tensor of a node."""
        return {name: v for v, own in self.items.items() for each in own for name in each.writes}

    @cached_property
    def root(self) -> dict[str, str]:
        """What nodes without effect read first, by what they make."""
        root: dict[str, str] = {}
        for item in self.resolved.nodes:
            if item.reads and item.writes[0] not in self.maker:
                root[item.writes[0]] = root.get(item.reads[0], item.reads[0])
        return root

    @property
    def dropped(self) -> set[str]:
        """What nodes make that are written anew."""
        return {
            name
            for v, run in self.sources
            if not run
            for item in self.items[v]
            for name in filter(None, item.node.output)
        }

    def nodes(self) -> Iterator[onnx.NodeProto]:
        """Yield the nodes that are added."""
        for run in self.sources:
            for item in self.items[run[0]]:
                yield self._rerun_node(item, run)

    def _rerun_node(self, item: ResolvedNode, run: Run) -> onnx.NodeProto:
        node = deepcopy(item.node)
        for place, name in enumerate(node.input):
            node.input[place] = self._source_name(name, run)
        if run[1]:
            node.name = recompute_name(item.name, run[1])
            for place, name in enumerate(node.output):
                node.output[place] = name and recompute_name(name, run[1])
        return node

    def _source_name(self, name: str, run: Run) -> str:
        """Return the name of what a run reads in place of a tensor."""
        root = self.root.get(name, name)
        u = self.maker.get(root)
        if u is None:
            return name
        source = run[1] if u == run[0] else self.sources[run].get(u, 0)
        return recompute_name(root, source) if source else name

    def types(self) -> Iterator[onnx.ValueInfoProto]:
        """Yield the types of what more runs make."""
        for v, run in self.sources:
            names = (name for item in self.items[v] for name in item.writes if run)
            for name in names:
                if name in self.resolved.types:
                    yield onnx.helper.make_value_info(
                        recompute_name(name, run), self.resolved.types[name]
                    )
