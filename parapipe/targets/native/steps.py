"""What the operators of a plan become: a list of steps, each one function of the library.

Rules (`registry`) take an operator of the plan and add steps. Weights are not read meanwhile: a
constant is its shape and a way to make it, so that the file can be written one constant at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parapipe.export.constants import Constants, Network
from parapipe.graph.infer import Array
from parapipe.plan.schema import Operator
from parapipe.targets.native import library_plan
from parapipe.targets.native.backends import BACKENDS, BackendName
from parapipe.targets.native.library_plan import ACTIVATIONS, MOST_DIMENSIONS, Attribute

Shape: TypeAlias = tuple[int, ...]
# A tensor, a number, or a function: its type, its operands, a table of attributes if it has any.
Formula: TypeAlias = str | float | tuple[Any, ...]
Floats: TypeAlias = NDArray[np.float32]


class NotExportable(Exception):  # noqa: N818 - the reason why, not an error of its own
    """An operator has no form in the library; the message says why."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant of the exported folder: its shape, and what makes it."""

    shape: Shape
    load: Callable[[], Array]


def stored(shape: Shape) -> Shape:
    """Return the shape in which a tensor is stored: of more than four dimensions, first ones join.

    All is dense and row by row, so no byte moves.
    """
    beyond = len(shape) - MOST_DIMENSIONS
    return shape if beyond <= 0 else (prod(shape[: beyond + 1]), *shape[beyond + 1 :])


class Steps:
    """The steps so far, and the tensors between them.

    Parameters
    ----------
    network
        Such as a plan.
    constants
        The values of its constants.
    backends
        Back end of each operator, by its id; "neon" for those that have none.
    """

    def __init__(
        self,
        network: Network,
        constants: Constants,
        backends: Mapping[str, BackendName] | None = None,
    ) -> None:
        self.steps: list[library_plan.Operator] = []
        self.weights: dict[str, Weight] = {}
        self.shapes: dict[str, Shape] = {}
        self._network = network
        self._constants = constants
        self._backends = backends or {}
        self._declared = {
            constant.name: constant
            for operator in network.operators
            for single in (operator, *operator.parts)
            for holder in (single, *single.folded)
            for constant in holder.constants
        }
        self._named: dict[Hashable, str] = {}
        self._source = ""
        self.wanted = frozenset(network.outputs).union(
            name
            for operator in network.operators
            for single in (operator, *operator.parts)
            for name in single.inputs
        )

    @property
    def opset(self) -> int:
        """Version of ONNX's standard operators in the model."""
        return self._constants.opset()

    @property
    def complete(self) -> bool:
        """Whether the back end of the operator that was begun has a loop for what it lacks."""
        return BACKENDS[self._backends.get(self._source, "neon")].complete

    def begin(self, operator: Operator) -> None:
        """Say which operator of the plan the next steps stand for."""
        self._source = operator.id

    def shape(self, name: str) -> Shape:
        """Return the shape, in ONNX, of a tensor or constant of the plan, or of a step's output."""
        require(bool(name), "an input that it needs is left out")
        if name in self._network.tensors:
            return self._network.tensors[name].shape
        if name in self.shapes:
            return self.shapes[name]
        if name in self.weights:
            return self.weights[name].shape
        return self._declared[name].shape

    def dtype(self, name: str) -> str:
        """Return the type of the elements of a tensor or constant of the plan."""
        tensor = self._network.tensors.get(name)
        return tensor.dtype if tensor else self._declared[name].dtype

    def is_constant(self, name: str) -> bool:
        """Whether a name is that of a constant of the plan."""
        return name in self._declared

    def values(self, name: str) -> Array:
        """Return the values of a (small) constant of the plan."""
        return self._constants.read(name)

    def weight(self, name: str) -> str:
        """Take over a constant of the plan as it stands."""
        return self.make(name, self.shape(name), lambda: self.values(name))

    def derived(
        self,
        name: str,
        change: str,
        shape: Shape,
        load: Callable[[Array], Array],
        *,
        recipe: tuple[Hashable, ...] = (),
    ) -> str:
        """Take over a constant of the plan with a change, which is called `change`."""
        return self.make(
            f"{name}:{change}",
            shape,
            lambda: load(self.values(name)),
            recipe=recipe and (name, *recipe),
        )

    def number(self, value: float) -> str:
        """Return a constant that holds one number."""
        return self.make(f"={value!r}", (), lambda: np.array(value, np.float32))

    def make(
        self,
        label: str,
        shape: Shape,
        load: Callable[[], Array],
        *,
        recipe: tuple[Hashable, ...] = (),
    ) -> str:
        """Return the name of a constant; the same for the same `recipe`, which is how it is made.

        Without a recipe, `label` says it.
        """
        key = (*recipe, shape) if recipe else label
        if key not in self._named:
            self._named[key] = label if self.is_constant(label) else self._unused_name(label)
            self.weights[self._named[key]] = Weight(stored(shape), load)
        return self._named[key]

    def add(
        self,
        kind: str,
        inputs: Iterable[str],
        shape: Shape,
        *,
        output: str | None = None,
        **attributes: Attribute,
    ) -> str:
        """Add a step and return the name of its output.

        Parameters
        ----------
        shape
            That the step makes.
        output
            Name of the output, where it is a tensor of the plan; else a new one is made up. If the
            plan gives it another shape, a Reshape follows.
        """
        if output is not None and stored(shape) != stored(self.shape(output)):
            intermediate = self.add(kind, inputs, shape, output=None, **attributes)
            return self.reshape(intermediate, self.shape(output), output=output)
        name = self._unused_name(self._source) if output is None else output
        self.shapes[name] = stored(shape)
        self.steps.append(
            library_plan.Operator(
                id=name,
                type=kind,
                inputs=tuple(inputs),
                outputs=(name,),
                attributes=attributes,
                source=None if name == self._source else self._source,
            )
        )
        return name

    def compute(self, formula: Formula, shape: Shape, *, output: str | None = None) -> str:
        """Add the steps of a formula, all of one shape; return the name of its value."""
        if isinstance(formula, float):
            return self.number(formula)
        if isinstance(formula, str):
            return formula
        kind, *operands = formula
        attributes: dict[str, Any] = operands.pop() if isinstance(operands[-1], dict) else {}
        inputs = [self.compute(each, shape) for each in operands]
        return self.add(kind, inputs, shape, output=output, **attributes)

    def reshape(self, source: str, shape: Shape, *, output: str | None = None) -> str:
        """Give a tensor another shape; nothing is done where it is stored in it already."""
        if output is None and stored(self.shape(source)) == stored(shape):
            return source
        return self.add("Reshape", (source,), shape, output=output)

    def activate(self, source: str, output: str, kind: str, **attributes: Attribute) -> bool:
        """Apply an activation to what the last step made, under another name, if that can be."""
        last = self.steps[-1]
        if (
            kind not in ACTIVATIONS
            or last.id != source
            or last.activation is not None
            or (last.source or last.id) != self._source
        ):
            return False
        self.shapes[output] = self.shapes.pop(source)
        self.steps[-1] = library_plan.Operator.model_validate(
            dict(last)
            | {
                "id": output,
                "outputs": (output,),
                "activation": {"type": kind, "attributes": attributes},
                "source": None if output == self._source else self._source,
            }
        )
        return True

    def keep_used(self) -> None:
        """Forget constants that no step reads."""
        read = {name for step in self.steps for name in step.inputs}
        self.weights = {name: weight for name, weight in self.weights.items() if name in read}

    def _unused_name(self, wanted: str) -> str:
        """Return the name, or with a number behind it if it is taken."""
        namespaces = (self.shapes, self.weights, self._network.tensors, self._declared)
        name, number = wanted, 0
        while any(name in names for names in namespaces):
            number += 1
            name = f"{wanted}:{number}"
        return name


@dataclass(frozen=True, slots=True)
class Rule:
    """How operators of an ONNX type are exported.

    Parameters
    ----------
    lower
        Adds the steps of one operator; raises `NotExportable` where it cannot.
    becomes
        The steps, in words.
    condition
        What must hold besides, in words; empty if nothing.
    dimensions
        Whether it takes tensors of more than four dimensions.
    integers
        Whether it takes whole numbers and truth values, which are kept as float32.
    """

    lower: Callable[[Operator, Steps], None]
    becomes: str
    condition: str = ""
    dimensions: bool = False
    integers: bool = False


def integers(operator: Operator, name: str, default: Sequence[int]) -> tuple[int, ...]:
    """Return an attribute that is a list of integers."""
    value = operator.attributes.get(name)
    return tuple(map(int, value)) if isinstance(value, tuple) else tuple(default)


def integer(operator: Operator, name: str, default: int) -> int:
    """Return an attribute that is an integer."""
    value = operator.attributes.get(name, default)
    return value if isinstance(value, int) else default


def number(operator: Operator, name: str, default: float) -> float:
    """Return an attribute that is a number, which may be infinite."""
    value = operator.attributes.get(name, default)
    return default if isinstance(value, tuple) else float(value)


def text(operator: Operator, name: str, default: str) -> str:
    """Return an attribute that is a text."""
    value = operator.attributes.get(name, default)
    return value if isinstance(value, str) else default


def axis_of(operator: Operator, default: int, rank: int) -> int:
    """Return the attribute `axis`, counted from the first dimension."""
    return integer(operator, "axis", default) % max(rank, 1)


def require(condition: bool, reason: str) -> None:
    """Refuse an operator unless a condition holds.

    Raises
    ------
    NotExportable
        If it does not.
    """
    if not condition:
        raise NotExportable(reason)
