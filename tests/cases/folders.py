"""Folders written by hand, for the runner with a stub in the library's place.

The stub gives for any operator but Concat and Slice, element by element, 1 + the sum over its
inputs k of (k + 1) / 2 * input k, taken round and round.
"""

import json
from dataclasses import dataclass, field, replace

import numpy as np

FRAMES = 3


@dataclass
class Network:
    """Operators of one output each, and the processor that each stands on."""

    shapes: dict
    operators: list
    places: dict
    stages: list
    outputs: list
    attributes: dict = field(default_factory=dict)
    orders: dict = field(default_factory=dict)
    lags: dict = field(default_factory=dict)

    def transfers(self):
        """What goes from one processor to another: tensor, from, to."""
        return sorted(
            {
                (tensor, self.places[tensor], self.places[name])
                for name, _, inputs in self.operators
                for tensor in inputs
                if self.places.get(tensor, self.places[name]) != self.places[name]
            }
        )

    def order(self, processor):
        """What a processor does in a round."""
        order = self.orders.get(processor, [name for name, _, _ in self.operators])
        return [name for name in order if self.places[name] == processor]

    def held(self, tensor, target):
        """Rounds from the turn that makes a tensor to the last one on a processor that reads it."""
        readers = [v for v, _, inputs in self.operators if tensor in inputs]
        lags = [self.lags.get(v, 0) for v in readers if self.places[v] == target]
        return max(lags) - self.lags.get(tensor, 0)

    def document(self, *, backend="stub", depth=2):
        """The plan."""
        made = {name for name, _, _ in self.operators}
        used = [name for stage in self.stages for name in stage]
        return {
            "schema": "parapipe/armcl/1",
            "model": {"name": "hand-made", "sha256": "0" * 64},
            "platform": "board",
            "weights": {"file": "weights.bin", "size_bytes": 64},
            "inputs": [name for name in self.shapes if name not in made and name != "w"],
            "outputs": self.outputs,
            "tensors": {
                name: {"shape": shape, "dtype": "float32"} | ({"offset": 0} if name == "w" else {})
                for name, shape in self.shapes.items()
            },
            "operators": [
                {
                    "id": name,
                    "type": kind,
                    "inputs": inputs,
                    "outputs": [name],
                    "attributes": self.attributes.get(name, self.attributes.get(kind, {})),
                }
                for name, kind, inputs in self.operators
            ],
            "processors": [
                {"name": name, "backend": backend, "cores": [], "threads": 1} for name in used
            ],
            "stages": [
                {
                    "index": index,
                    "processors": [
                        {"name": name, "operators": self.order(name)}
                        | ({"lags": [self.lags[v] for v in self.order(name)]} if self.lags else {})
                        for name in stage
                    ],
                }
                for index, stage in enumerate(self.stages)
            ],
            "transfers": [
                {
                    "tensor": tensor,
                    "from": source,
                    "to": target,
                    "queue_depth": depth + self.held(tensor, target),
                }
                for tensor, source, target in self.transfers()
            ],
        }

    def write(self, folder, **options):
        """Write plan, weights, frames and what the stub makes of them."""
        document = self.document(**options)
        weights = np.arange(16, dtype="<f4") / 16
        frames = [
            {
                name: np.random.default_rng((seed, at)).uniform(-1, 1, self.shapes[name])
                for at, name in enumerate(document["inputs"])
            }
            for seed in range(FRAMES)
        ]
        write_document(folder, document)
        (folder / "weights.bin").write_bytes(weights.tobytes())
        fed = [
            frame[name].astype("<f4").tobytes() for frame in frames for name in document["inputs"]
        ]
        (folder / "input.bin").write_bytes(b"".join(fed))
        made = [values for frame in frames for values in self._made(frame, weights)]
        (folder / "expected.bin").write_bytes(b"".join(v.astype("<f4").tobytes() for v in made))
        return folder

    def _made(self, frame, weights):
        values = {name: value.astype("<f4").ravel() for name, value in frame.items()}
        if "w" in self.shapes:
            values["w"] = weights[: int(np.prod(self.shapes["w"]))]
        for name, kind, inputs in self.operators:
            if kind in ("Concat", "Slice"):
                parts = [values[each].reshape(self.shapes[each]) for each in inputs]
                values[name] = _moved(parts, **self.attributes[name]).ravel()
                continue
            total = np.ones(int(np.prod(self.shapes[name])), "<f4")
            for k, tensor in enumerate(inputs):
                total += np.float32((k + 1) / 2) * np.resize(values[tensor], total.size)
            values[name] = total
        return [values[name] for name in self.outputs]


def _moved(parts, *, axis=None, starts=(), ends=(), steps=()):
    if axis is not None:
        return np.concatenate(parts, axis)
    return parts[0][tuple(map(slice, starts, ends, steps))]


def write_document(folder, document):
    """Write the plan alone."""
    (folder / "plan.json").write_text(json.dumps(document))


POOL = {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "ceil_mode": 0}


def diamond():
    """Two stages; in the second, two processors work on the two branches of a frame."""
    shape = [1, 2, 4, 4]
    names = ("x", "stem", "left", "right", "side", "join")
    return Network(
        shapes=dict.fromkeys(names, shape) | {"w": [2, 1, 1]},
        operators=[
            ("stem", "Mul", ["x", "w"]),
            ("left", "MaxPool", ["stem"]),
            ("right", "Sigmoid", ["stem"]),
            ("side", "Neg", ["left"]),
            ("join", "Add", ["right", "left"]),
        ],
        places={"stem": "one", "left": "two", "side": "two", "right": "three", "join": "three"},
        stages=[["one"], ["two", "three"]],
        outputs=["join", "side"],
        attributes={"MaxPool": POOL},
    )


def random_network(seed):
    """Operators at random, on one to four processors at random."""
    rng = np.random.default_rng(seed)
    shape = [1, 2, 3, 4]
    processors = [f"p{i}" for i in range(rng.integers(1, 5))]
    operators = []
    for at in range(int(rng.integers(len(processors), 24))):
        known = ["x", *(name for name, _, _ in operators)]
        kind = str(rng.choice(["Add", "Relu", "MaxPool", "Mul"]))
        count = 2 if kind in ("Add", "Mul") else 1
        operators.append((f"v{at}", kind, [str(n) for n in rng.choice(known[-6:], count)]))
    places = {
        name: processors[at] if at < len(processors) else str(rng.choice(processors))
        for at, (name, _, _) in enumerate(operators)
    }
    read = {tensor for _, _, inputs in operators for tensor in inputs}
    unread = [name for name, _, _ in operators if name not in read]
    return Network(
        shapes=dict.fromkeys(("x", *(name for name, _, _ in operators)), shape),
        operators=operators,
        places=places,
        stages=[processors],
        outputs=unread,
        attributes={"MaxPool": POOL},
    )


def halves(*, batch=1, processors=("one", "two"), axis=1, readers="Relu"):
    """A tensor is cut, one part for each processor, and joined for both of them.

    The first part is larger. `readers` is the type of what reads the whole on both processors.
    """
    one, two = processors
    whole, extents = [batch, 5, 4, 4], [3, 2] if axis == 1 else [3, 1]
    parts = [[*whole[:axis], extent, *whole[axis + 1 :]] for extent in extents]
    stops = [extents[0], sum(extents)]
    bounds = [
        {
            "starts": [0] * axis + [stop - extent] + [0] * (3 - axis),
            "ends": [*whole[:axis], stop, *whole[axis + 1 :]],
            "steps": [1] * 4,
        }
        for stop, extent in zip(stops, extents, strict=True)
    ]
    last = dict.fromkeys(("stem", "join", "left", "right"), whole)
    return Network(
        shapes={"x": whole, "cut0": parts[0], "cut1": parts[1], "part0": parts[0]}
        | {"part1": parts[1]}
        | last,
        operators=[
            ("stem", "Relu", ["x"]),
            ("cut0", "Slice", ["stem"]),
            ("cut1", "Slice", ["stem"]),
            ("part0", "Sigmoid", ["cut0"]),
            ("part1", "Sigmoid", ["cut1"]),
            ("join", "Concat", ["part0", "part1"]),
            ("left", readers, ["join"]),
            ("right", readers, ["join"]),
        ],
        places=dict.fromkeys(("stem", "cut0", "part0", "join", "left"), one)
        | dict.fromkeys(("cut1", "part1", "right"), two),
        stages=[list(dict.fromkeys(processors))],
        outputs=["left", "right"],
        attributes={"cut0": bounds[0], "cut1": bounds[1], "join": {"axis": axis}, "MaxPool": POOL},
    )


MOST_CHANNELS = 12


def random_joins(seed):
    """As `random_network`, with tensors that are cut and joined along channels."""
    rng = np.random.default_rng(seed)
    processors = [f"p{i}" for i in range(rng.integers(1, 4))]
    batch = 1 if rng.integers(4) else 2
    shapes, operators, attributes = {"x": [batch, 4, 3, 4]}, [], {"MaxPool": POOL}
    for at in range(int(rng.integers(len(processors), 20))):
        name, known = f"v{at}", list(shapes)[-6:]
        kind = str(rng.choice(["Add", "Relu", "MaxPool", "Slice", "Concat", "Concat"]))
        inputs = [str(rng.choice(known))]
        channels = shapes[inputs[0]][1]
        if kind == "Add":
            inputs.append(str(rng.choice([n for n in known if shapes[n][1] == channels])))
        elif kind == "Slice":
            start = int(rng.integers(channels))
            end = int(rng.integers(start, channels)) + 1
            attributes[name] = {
                "starts": [0, start, 0, 0], "ends": [batch, end, 3, 4], "steps": [1] * 4
            }  # fmt: skip
            channels = end - start
        elif kind == "Concat":
            inputs += [str(n) for n in rng.choice(known, int(rng.integers(1, 3)))]
            channels = sum(shapes[n][1] for n in inputs)
            if channels > MOST_CHANNELS:
                kind, inputs, channels = "Relu", inputs[:1], shapes[inputs[0]][1]
            else:
                attributes[name] = {"axis": 1}
        shapes[name] = [batch, channels, 3, 4]
        operators.append((name, kind, inputs))
    places = {
        name: processors[at] if at < len(processors) else str(rng.choice(processors))
        for at, (name, _, _) in enumerate(operators)
    }
    read = {tensor for _, _, inputs in operators for tensor in inputs}
    some = [name for name, _, _ in operators if name not in read or rng.integers(6) == 0]
    return Network(shapes, operators, places, [processors], some, attributes)


def interleaved(network, seed):
    """The same, its processors working on several frames in an order at random.

    Every operator has a point of a round; what is read from a later point is of a frame before.
    """
    rng = np.random.default_rng(seed)
    point = {name: float(rng.uniform()) for name, _, _ in network.operators}
    lags = {}
    for name, _, inputs in network.operators:
        behind = [lags[t] + (point[t] >= point[name]) for t in inputs if t in lags]
        lags[name] = max(behind, default=0) + int(rng.integers(4) == 0)
    names = sorted(point, key=point.get)
    orders = dict.fromkeys(network.places.values(), names)
    return replace(network, orders=orders, lags=lags)
