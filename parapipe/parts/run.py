"""Parts of operators in a row: what each computes, and reads, for a range of the last one's result.

Ranges go backwards through the run. Where two parts need the same rows (halos), both compute them;
so they wait for nobody until their results are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from parapipe.graph.operator_graph import NamedTensors, Operator
from parapipe.parts import elementwise, layout, products, windows
from parapipe.parts.part import (
    Cut,
    NotCuttableError,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    single_of,
)

RULES: Mapping[str, Mapping[str, Rule]] = {
    "": {
        **windows.RULES,
        **windows.TRANSPOSED_RULES,
        **products.RULES,
        **products.ATTENTION_RULES,
        **elementwise.RULES,
        **elementwise.NORMALISATION_RULES,
        **elementwise.REDUCTION_RULES,
        **layout.RESIZE_RULES,
        **layout.RULES,
        **elementwise.VIEW_RULES,
        **layout.QUANTISATION_RULES,
    },
    "com.microsoft": {
        **elementwise.MICROSOFT,
        **products.MICROSOFT,
        **products.MICROSOFT_ATTENTIONS,
        **elementwise.MICROSOFT_NORMALISATIONS,
        **layout.MICROSOFT_QUANTISATION,
    },
}
"""How operators are cut, by domain and type."""

# A kernel for integers reads what a DequantizeLinear reads, so that this one computes nothing.
_FREE = elementwise.VIEW_RULES.keys() | {"Identity", "Dropout", "DequantizeLinear"}
_MOST_TRIED = 8  # boundaries tried to see whether a step is large enough


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a run, in one of its parts.

    Parameters
    ----------
    part
        What it reads, and attributes that change.
    computed
        What it computes of each of its outputs.
    """

    operator: Operator
    part: Part
    computed: Range


@dataclass(frozen=True, slots=True)
class RunPart:
    """One part of a run.

    Parameters
    ----------
    requested
        The range of the last operator's outputs that is asked for.
    steps
        In the order of the run. Views that every part needs all of are not among them, since they
        stay whole.
    """

    requested: Range
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Operators that are cut together; one operator is a run, too.

    Parameters
    ----------
    operators
        In topological order; nothing outside reads what they make, but for the last one's outputs.
    tensors
        All tensors and constants that they name.
    opsets
        Versions of the operators by domain.
    """

    operators: tuple[Operator, ...]
    tensors: NamedTensors
    opsets: Mapping[str, int]
    _cuts: dict[tuple[str, int], Cut | str] = field(default_factory=dict, compare=False)

    @property
    def last(self) -> Operator:
        """The operator whose result is cut."""
        return self.operators[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the last operator's first output."""
        return self.tensors[self.last.outputs[0]].shape

    def cut(self, operator: Operator, axis: int) -> Cut:
        """Return how an operator is cut along an axis of its outputs; WholeError if it cannot."""
        key = (operator.id, axis)
        if key not in self._cuts:
            try:
                self._cuts[key] = self._find_cut(operator, axis)
            except NotCuttableError as error:
                self._cuts[key] = str(error)
        cut = self._cuts[key]
        if isinstance(cut, str):
            prefix = "" if operator is self.last else f"'{operator.name}' ({operator.type}): "
            raise NotCuttableError(f"{prefix}{cut}")
        return cut

    def _find_cut(self, operator: Operator, axis: int) -> Cut:
        rule = RULES.get(operator.domain, {}).get(operator.type)
        if operator.opaque:
            raise NotCuttableError("it holds graphs of its own")
        if rule is None:
            raise NotCuttableError("there is no rule that cuts its type")
        single = single_of(operator, self.tensors, self.opsets)
        if len({shape[axis] if axis < len(shape) else 0 for shape in single.outputs}) > 1:
            raise NotCuttableError("its results have different sizes along that axis")
        if single.output[axis] < 2:
            raise NotCuttableError("there is only one element along that axis")
        return rule(single, axis)

    def part(self, requested: Range) -> RunPart:
        """Return the part that makes a range of the last operator's outputs.

        Raises
        ------
        WholeError
            If an operator cannot be cut so, or every part would need all of what one makes.
        """
        inside = {name for operator in self.operators for name in operator.outputs if name}
        needs = {name: requested for name in self.last.outputs if name}
        wholly: set[str] = set()
        steps = []
        for operator in reversed(self.operators):
            if wholly.intersection(operator.outputs):
                self._check_is_free(operator)
                wholly.update(inside.intersection(operator.inputs))
                continue
            if needs.keys().isdisjoint(operator.outputs):
                continue  # a Concat of which this part is another input
            required = _covering_range([needs[name] for name in operator.outputs if name in needs])
            part = self.cut(operator, required.axis).part(required.begin, required.end)
            steps.append(Step(operator, part, part.computed or required))
            for position, name in enumerate(operator.inputs):
                if name in inside:
                    self._demand(name, part.of(position), needs, wholly)
        return RunPart(requested, tuple(reversed(steps)))

    def _check_is_free(self, operator: Operator) -> None:
        if operator is self.last or operator.domain or operator.type not in _FREE:
            raise NotCuttableError(f"every part would need all of what '{operator.name}' makes")

    @staticmethod
    def _demand(
        name: str, ranges: Ranges | None, needs: dict[str, Range], wholly: set[str]
    ) -> None:
        if ranges == ():
            wholly.add(name)
        elif ranges:
            merged = [*ranges, *([needs[name]] if name in needs else [])]
            needs[name] = _covering_range(merged)

    def step(self, axis: int) -> int:
        """Return the number whose multiples parts begin and end at.

        Raises
        ------
        WholeError
            If the run cannot be cut along that axis.
        """
        extent = self.shape[axis]
        least = self.cut(self.last, axis).step
        why: NotCuttableError = RangeError(f"it is cut at multiples of {least} only")
        for step in range(least, extent // 2 + 1):
            if extent % step or step % least:
                continue
            try:
                for at in _middle_boundaries(extent // step):
                    self.part(Range(axis, 0, at * step))
                    self.part(Range(axis, at * step, extent))
            except RangeError as error:
                why = error
            else:
                return step
        raise why


def _middle_boundaries(count: int) -> list[int]:
    """Return some numbers around the middle: a range at an end may be nothing but padding."""
    quarter = count / _MOST_TRIED / 2
    tried = range(-_MOST_TRIED // 2, _MOST_TRIED // 2 + 1)
    return sorted({min(count - 1, max(1, round(count / 2 + each * quarter))) for each in tried})


def _covering_range(ranges: Sequence[Range]) -> Range:
    """Return the range that covers several of one axis."""
    if not ranges:
        raise NotCuttableError("a part would need nothing of what an operator makes")
    (axis, *others) = {each.axis for each in ranges}
    if others:
        raise NotCuttableError("a tensor would be read along several axes")
    return Range(axis, min(each.begin for each in ranges), max(each.end for each in ranges))


def outside_reads(part: RunPart) -> dict[str, Ranges]:
    """Return what a part reads from outside of the run, by name: of tensors and of constants.

    A tensor that is read along several axes, or by one operator as a whole, is read whole.
    """
    outputs = {name for step in part.steps for name in step.operator.outputs}
    reads: dict[str, Ranges] = {}
    for step in part.steps:
        for position, name in enumerate(step.operator.inputs):
            ranges = step.part.of(position)
            if name and name not in outputs and ranges is not None:
                reads[name] = merge_ranges(reads[name], ranges) if name in reads else ranges
    return reads


def merge_ranges(first: Ranges, second: Ranges) -> Ranges:
    """Return the ranges that cover two; everything where they are of different axes."""
    if [each.axis for each in first] != [each.axis for each in second]:
        return ()
    pairs = zip(first, second, strict=True)
    return tuple(_covering_range(list(chain(pair))) for pair in pairs)
