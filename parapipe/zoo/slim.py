"""Networks of TensorFlow's slim library, written down in the words of its sources.

A layer is a line such as `Conv2d_0b_1x7 96`: its name, which ends in its kernel, and its output
channels (none: a pool). `/2` means stride 2, `valid` no padding; a stride has none either. A kernel
that the name does not tell stands by itself. A convolution is followed by batch-norm and ReLU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from parapipe.zoo.emitter import Emitter, Kernel, same

# Layers one after the other; a tuple at the end holds layers side by side, which are joined.
Branch: TypeAlias = "Sequence[str | tuple[str, ...]]"


@dataclass(frozen=True, slots=True)
class Slim:
    """Adds layers and blocks to a network.

    Parameters
    ----------
    convolution, norm, max_pool, average_pool
        What stands behind a layer's name in the names of its operators.
    renamed
        Names that depart from the rule.
    """

    net: Emitter
    convolution: str = "/convolution"
    norm: str = "/BatchNorm"
    max_pool: str = ""
    average_pool: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)

    def layers(self, x: str, lines: Sequence[str], inside: str = "") -> str:
        """Add layers one after the other; return the result."""
        for line in lines:
            x = self.layer(x, line, inside)
        return x

    def layer(self, x: str, line: str, inside: str = "") -> str:
        """Add one layer."""
        layer = _Layer.read(line)
        name = inside + layer.name
        if not layer.channels:
            return self._pool(x, name, layer)
        x = self.net.conv(
            x,
            self._name(name + self.convolution),
            layer.channels,
            layer.kernel,
            stride=layer.stride,
            pads=same(layer.kernel if layer.padded else 1),
        )
        x = self.net.batch_norm(x, self._name(name + self.norm))
        return self.net.relu(x, self._name(f"{name}/Relu"))

    def mixed(self, x: str, block: str, branches: Sequence[Branch]) -> str:
        """Add branches `BLOCK/Branch_0/` and so on, and their join `BLOCK/concat`."""
        ends = [
            self._branch(x, f"{block}/Branch_{number}/", branch)
            for number, branch in enumerate(branches)
        ]
        return self.net.concat(ends, self._name(f"{block}/concat"))

    def _branch(self, x: str, inside: str, branch: Branch) -> str:
        for step in branch:
            if isinstance(step, str):
                x = self.layer(x, step, inside)
            else:
                ends = [self.layer(x, line, inside) for line in step]
                x = self.net.concat(ends, self._name(f"{inside}concat"))
        return x

    def _pool(self, x: str, name: str, layer: _Layer) -> str:
        highest = layer.name.startswith("MaxPool")
        return self.net.pool(
            "MaxPool" if highest else "AveragePool",
            x,
            self._name(name + (self.max_pool if highest else self.average_pool)),
            layer.kernel,
            stride=layer.stride,
            pads=same(layer.kernel if layer.padded else 1),
        )

    def _name(self, name: str) -> str:
        return self.renamed.get(name, name)


@dataclass(frozen=True, slots=True)
class _Layer:
    name: str
    channels: int
    kernel: Kernel
    stride: int
    padded: bool

    @classmethod
    def read(cls, line: str) -> _Layer:
        name, *words = line.split()
        kernels = [name.rpartition("_")[2], *(word for word in words if "x" in word)]
        rows, columns = map(int, kernels[-1].split("x"))
        strided = "/2" in words
        return cls(
            name=name,
            channels=next((int(word) for word in words if word.isdecimal()), 0),
            kernel=(rows, columns),
            stride=2 if strided else 1,
            padded=not strided and "valid" not in words,
        )
