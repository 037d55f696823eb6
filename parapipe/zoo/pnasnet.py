"""PNASNet-5: cells of five sums, each of which reads the two cells before it.

Source: Liu et al., "Progressive Neural Architecture Search", 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same_pads

_STEM = 96
_STEM_CHANNELS = (54, 108)
_CHANNELS = 216  # of each sum; twice as many in each group of cells
_GROUPS, _CELLS = 3, 4


def pnasnet_5_large(*, weightless: bool = False) -> onnx.ModelProto:
    """PNASNet-5-Large: twelve cells of five sums and two in the stem, 216 to 864 channels.

    Source: Liu et al., "Progressive Neural Architecture Search", 2018, figure 1 and section 5.2
    (N = 4, F = 216); `pnasnet.py` of TensorFlow's slim library, from which the stem is.

    For one image `[1, 3, 331, 331]` and 1000 classes.
    """
    net = Emitter("pnasnet-5-large", {"input": (1, 3, 331, 331)}, weightless=weightless)
    x = net.conv("input", "stem/conv", _STEM, 3, stride=2)
    relus: dict[str, str] = {}
    before, last = "", net.batch_norm(x, "stem/norm")
    for number, channels in enumerate(_STEM_CHANNELS):
        before, last = (
            last,
            _cell(_Cell(net, f"stem/cell{number}", channels, 2, relus), before, last),
        )
    for group in range(_GROUPS):
        for number in range(_CELLS):
            name, channels = f"cell{_CELLS * group + number}", _CHANNELS << group
            stride = 2 if group and not number else 1
            before, last = last, _cell(_Cell(net, name, channels, stride, relus), before, last)
    x = net.operator("GlobalAveragePool", [net.relu(last, "head/relu")], "head/pool")
    x = net.gemm(net.flatten(x, "head/flatten"), "head/classifier", IMAGENET_CLASSES)
    return net.model([net.softmax(x, "softmax")])


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell's name, its channels, and the stride of what reads its inputs.

    Parameters
    ----------
    relus
        Of the whole network, by what they read.
    """

    net: Emitter
    name: str
    channels: int
    stride: int
    relus: dict[str, str]

    def relu(self, x: str) -> str:
        """Set negative elements to zero, once for all that read them."""
        if x not in self.relus:
            self.relus[x] = self.net.relu(x, f"{x}/relu")
        return self.relus[x]

    def separable(self, x: str, at: str, kernel: int, *, inner: bool = False) -> str:
        """Filter each channel and mix them, twice; `inner` layers read a sum, not an input."""
        name, stride = f"{self.name}/{at}", 1 if inner else self.stride
        for half in range(2):
            read = self.relu(x)
            channels = self.net.shape(read)[1]
            x = self.net.conv(
                read, f"{name}/depthwise{half}", channels, kernel,
                stride=stride, pads=same_pads(kernel), group=channels,
            )  # fmt: skip
            x = self.net.conv(x, f"{name}/pointwise{half}", self.channels, 1)
            x = self.net.batch_norm(x, f"{name}/norm{half}")
            stride = 1
        return x

    def pool(self, x: str, at: str) -> str:
        """Keep the highest of nine pixels."""
        pads = same_pads(3)
        return self.net.pool("MaxPool", x, f"{self.name}/{at}", 3, stride=self.stride, pads=pads)

    def project(self, x: str, at: str, *, stride: int = 1) -> str:
        """Mix the channels of each pixel."""
        name = f"{self.name}/{at}"
        x = self.net.conv(self.relu(x), name, self.channels, 1, stride=stride)
        return self.net.batch_norm(x, f"{name}/norm")

    def halve(self, x: str, at: str) -> str:
        """Project every other pixel, and, to the other half of the channels, those between them."""
        net, name, channels = self.net, f"{self.name}/{at}", self.channels // 2
        read = self.relu(x)
        even = net.pool("AveragePool", read, f"{name}/even", 1, stride=2)
        rows, columns = net.shape(read)[2:]
        shifted = net.operator(
            "Pad", [read, net.integers(f"{name}/pads", [0, 0, 0, 0, 0, 0, 1, 1])], f"{name}/padded"
        )
        corner = net.integers(f"{name}/corner", [1, 1])
        ends = net.integers(f"{name}/ends", [rows + 1, columns + 1])
        axes = net.integers(f"{name}/axes", [2, 3])
        shifted = net.operator("Slice", [shifted, corner, ends, axes], f"{name}/shifted")
        odd = net.pool("AveragePool", shifted, f"{name}/odd", 1, stride=2)
        halves = [
            net.conv(each, f"{name}/{which}/conv", channels, 1)
            for which, each in (("even", even), ("odd", odd))
        ]
        return net.batch_norm(net.concat(halves, f"{name}/concat"), f"{name}/norm")


def _cell(cell: _Cell, before: str, last: str) -> str:
    """Return the concatenation of five sums; without a cell `before`, `last` is read unprojected.

    `before` is the older of the two cells read, and may have twice the height and width of `last`.
    """
    net, name = cell.net, cell.name
    right = cell.project(last, "right")
    if not before:
        left = last
    elif net.shape(before)[2] == net.shape(last)[2]:
        left = cell.project(before, "left")
    else:
        left = cell.halve(before, "left")
    pooled = cell.pool(left, "pool0")
    if not before:  # of other channels than the sum has
        pooled = net.conv(pooled, f"{name}/pool0/project", cell.channels, 1)
        pooled = net.batch_norm(pooled, f"{name}/pool0/norm")
    sums = [net.add(cell.separable(left, "five0", 5), pooled, f"{name}/add0")]
    right_pooled = cell.pool(right, "pool1")
    sums.append(net.add(cell.separable(right, "seven", 7), right_pooled, f"{name}/add1"))
    sums.append(
        net.add(
            cell.separable(right, "five2", 5), cell.separable(right, "three2", 3), f"{name}/add2"
        )
    )
    sums.append(
        net.add(
            cell.separable(sums[2], "three3", 3, inner=True),
            right_pooled,
            f"{name}/add3",
        )
    )
    same = right if cell.stride == 1 else cell.project(right, "right4", stride=cell.stride)
    sums.append(net.add(cell.separable(left, "three4", 3), same, f"{name}/add4"))
    return net.concat(sums, f"{name}/concat")
