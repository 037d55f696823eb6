"""Networks of TensorFlow's slim library, written down in the words of its sources.

A layer is a line such as `Conv2d_0b_1x7 96`: its name, which ends in its kernel, and its output
channels (none: a pool). `/2` means stride 2, `valid` no padding; a stride has none either. A kernel
that the name does not tell stands by itself. A convolution is followed by batch-norm and ReLU.
A branch is a text of such lines: `, ` stands between layers one after the other, ` | ` between
layers side by side, whose results are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parapipe.zoo.emitter import Emitter, same

CLASSES = 1001  # ImageNet's, and one for the background
STEM = (
    *("Conv2d_1a_3x3 32 /2", "Conv2d_2a_3x3 32 valid", "Conv2d_2b_3x3 64", "MaxPool_3a_3x3 /2"),
    *("Conv2d_3b_1x1 80", "Conv2d_4a_3x3 192 valid", "MaxPool_5a_3x3 /2"),
)
"""The first layers of Inception-v3 and of Inception-ResNet-v2; Inception-v4 has the first three."""


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
        short, *words = line.split()
        name = inside + short
        sides = [short.rpartition("_")[2], *(word for word in words if "x" in word)][-1]
        rows, columns = map(int, sides.split("x"))
        kernel, stride = (rows, columns), 2 if "/2" in words else 1
        pads = same(kernel if stride == 1 and "valid" not in words else 1)
        channels = [int(word) for word in words if word.isdecimal()]
        if not channels:
            highest = short.startswith("MaxPool")
            name = self._name(name + (self.max_pool if highest else self.average_pool))
            kind = "MaxPool" if highest else "AveragePool"
            return self.net.pool(kind, x, name, kernel, stride=stride, pads=pads)
        convolution = self._name(name + self.convolution)
        x = self.net.conv(x, convolution, channels[0], kernel, stride=stride, pads=pads)
        x = self.net.batch_norm(x, self._name(name + self.norm))
        return self.net.relu(x, self._name(f"{name}/Relu"))

    def mixed(self, x: str, block: str, branches: Sequence[str]) -> str:
        """Add branches `BLOCK/Branch_0/` and so on, and their join `BLOCK/concat`."""
        ends = [
            self._branch(x, f"{block}/Branch_{number}/", branch)
            for number, branch in enumerate(branches)
        ]
        return self.net.concat(ends, self._name(f"{block}/concat"))

    def _branch(self, x: str, inside: str, branch: str) -> str:
        for step in branch.split(", "):
            ends = [self.layer(x, line, inside) for line in step.split(" | ")]
            x = self.net.concat(ends, self._name(f"{inside}concat")) if ends[1:] else ends[0]
        return x

    def _name(self, name: str) -> str:
        return self.renamed.get(name, name)
