"""Networks that single cuts hardly divide: U-Net, a pyramid with PAN neck, DenseNet, many heads.

Their sizes are those of the networks they are named after, their weights none.
"""

from __future__ import annotations

from parapipe.zoo.emitter import Emitter, same_pads


def unet(levels=4, channels=64, side=256):
    """Ronneberger et al. 2015 with padded convolutions; what goes down is read again going up."""
    net = Emitter("unet", {"image": (1, 3, side, side)}, weightless=True)
    x, skips = "image", []
    for level in range(levels):
        x = double(net, x, f"down{level}", channels << level)
        skips.append(x)
        x = net.pool("MaxPool", x, f"down{level}/pool", 2, stride=2)
    x = double(net, x, "bottom", channels << levels)
    for level in reversed(range(levels)):
        x = upsample(net, x, f"up{level}/resize")
        x = conv(net, x, f"up{level}/half", channels << level, 1)
        x = net.concat([skips[level], x], f"up{level}/concat")
        x = double(net, x, f"up{level}", channels << level)
    return net.model([net.conv(x, "classes", 2, 1)])


def pan(depths=(1, 2, 2, 1), channels=64, side=320, joined=False):
    """A backbone of CSP blocks, a pyramid up and down again (PAN), and a head on each level."""
    net = Emitter("pan", {"image": (1, 3, side, side)}, weightless=True)
    x = conv(net, "image", "stem", channels // 2, 3, stride=2)
    levels = []
    for i, depth in enumerate(depths):
        x = conv(net, x, f"stage{i}/reduce", channels << i, 3, stride=2)
        x = csp(net, x, f"stage{i}", depth)
        levels.append(x)
    low, middle, high = levels[-3:]
    high = conv(net, high, "lateral5", net.shape(middle)[1], 1)
    joint = net.concat([upsample(net, high, "up4"), middle], "join4")
    middle = conv(net, csp(net, joint, "top4", 1), "lateral4", net.shape(low)[1], 1)
    joint = net.concat([upsample(net, middle, "up3"), low], "join3")
    outs = [csp(net, joint, "out3", 1)]
    for number, level in ((4, middle), (5, high)):
        down = conv(net, outs[-1], f"down{number}", net.shape(level)[1], 3, stride=2)
        outs.append(csp(net, net.concat([down, level], f"back{number}"), f"out{number}", 1))
    return net.model(heads_on(net, outs, joined))


def heads_on(net, tensors, joined):
    ends = []
    for i, tensor in enumerate(tensors):
        x = conv(net, tensor, f"head{i}/conv", 64, 3)
        ends.append(net.flatten(net.conv(x, f"head{i}/boxes", 64, 1), f"head{i}/flat"))
    if not joined:
        return ends
    return [net.operator("Concat", ends, "detections", axis=1)]


def densenet(blocks=(6, 12, 24, 16), growth=32, side=224):
    """Huang et al. 2017 as exporters write it: each layer concatenates all layers before it."""
    net = Emitter("densenet", {"image": (1, 3, side, side)}, weightless=True)
    x = net.pool(
        "MaxPool", conv(net, "image", "stem", 2 * growth, 7, stride=2), "pool0", 2, stride=2
    )
    for b, layers in enumerate(blocks):
        parts = [x]
        for i in range(layers):
            name = f"block{b}/{i}"
            joint = net.concat(parts, f"{name}/concat") if i else x
            x = net.relu(net.batch_norm(joint, f"{name}/norm"), f"{name}/relu0")
            parts.append(net.conv(conv(net, x, f"{name}/one", 4 * growth, 1), f"{name}/three",
                                  growth, 3, pads=same_pads(3)))  # fmt: skip
        x = net.concat(parts, f"block{b}/concat")
        x = net.relu(net.batch_norm(x, f"block{b}/norm"), f"block{b}/relu")
        if b + 1 < len(blocks):
            x = net.conv(x, f"block{b}/half", net.shape(x)[1] // 2, 1)
            x = net.pool("AveragePool", x, f"block{b}/pool", 2, stride=2)
    x = net.pool("AveragePool", x, "global", net.shape(x)[2])
    return net.model([net.gemm(net.flatten(x, "flat"), "classes", 1000)])


def many_heads(heads=10, channels=32, side=64, *, last=True):
    """A chain that a head of three operators reads at each step; the file lists heads last."""
    net = Emitter("heads", {"image": (1, 3, side, side)}, weightless=True)
    x, trunk, outputs = "image", [], []

    def head(i, tensor):
        made = net.conv(conv(net, tensor, f"head{i}/conv", channels, 1), f"head{i}/out", 4, 1)
        outputs.append(made)

    for i in range(heads):
        x = conv(net, x, f"trunk{i}", channels, 3)
        trunk.append(x)
        if not last:
            head(i, x)
    if last:
        for i, tensor in enumerate(trunk):
            head(i, tensor)
    return net.model(outputs)


def towers(count=2, depth=6, channels=32, side=64):
    """Towers of one shape, each with an input of its own, that meet in one head."""
    shapes = {f"image{i}": (1, 3, side, side) for i in range(count)}
    net = Emitter("towers", shapes, weightless=True)
    ends = []
    for i in range(count):
        x = f"image{i}"
        for d in range(depth):
            x = conv(net, x, f"tower{i}/{d}", channels, 3)
        ends.append(x)
    x = conv(net, net.concat(ends, "join"), "head", channels, 3)
    return net.model([net.conv(x, "out", 4, 1)])


def csp(net, x, name, depth):
    half = net.shape(x)[1] // 2
    main, aside = conv(net, x, f"{name}/main", half, 1), conv(net, x, f"{name}/aside", half, 1)
    for i in range(depth):
        y = conv(net, conv(net, main, f"{name}/{i}a", half, 1), f"{name}/{i}b", half, 3)
        main = net.add(main, y, f"{name}/{i}add")
    return conv(net, net.concat([main, aside], f"{name}/concat"), f"{name}/out", 2 * half, 1)


def double(net, x, name, channels):
    return conv(net, conv(net, x, f"{name}/a", channels, 3), f"{name}/b", channels, 3)


def conv(net, x, name, channels, kernel, *, stride=1):
    x = net.conv(x, name, channels, kernel, stride=stride, pads=same_pads(kernel))
    return net.relu(x, f"{name}/relu")


def upsample(net, x, name):
    import numpy as np

    scales = net.constant(f"{name}/scales", np.array([1, 1, 2, 2], np.float32))
    return net.operator("Resize", [x, "", scales], name, mode="nearest")
